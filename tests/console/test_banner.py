"""The banner says what stops payouts: on every page concerned, at each order, and before an approval."""

from collections.abc import Iterator

import pytest
from tests.console.conftest import ConsoleUser, People, read_text
from tests.console.test_withdrawals import QUEUE, Till, audit, decide, till
from tests.journeys.conftest import Platform

from merchant_wallet.book.commands import Approve, TakeUp
from merchant_wallet.hot_wallet.stops import stop_payouts

__all__ = ["till"]

PAYOUTS = "/console/payouts"
CAUSE = "the node shows odd balances"


def stop(platform: Platform, chain: str = "TRC20", actor: str = "cli:ann", cause: str = CAUSE) -> None:
    """Stop a chain's payouts, as the command line does."""
    at_ms = platform.clock()
    platform.operate(lambda conn: stop_payouts(conn, chain, actor, cause, at_ms))


def hold(till: Till, order: int, **columns: str | int) -> None:
    """Record on an order's payout why it can't go on."""
    names, places = ", ".join(columns), ", ".join(["%s"] * len(columns))
    till.platform.rows(
        f"insert into payout (merchant_id, order_id, chain, fence, claimed_by, claimed_until_ms, {names})"
        f" values (%s, %s, 'TRC20', 1, 'a worker', 0, {places})",
        till.shop.merchant_id,
        order,
        *columns.values(),
    )


@pytest.fixture(autouse=True)
def all_goes_on(platform: Platform) -> Iterator[None]:
    """Removes every stop, freeze and obstacle after each test."""
    yield
    platform.rows("delete from payout_stop")
    platform.rows("delete from rollback_evidence")
    platform.rows("update hot_wallet set frozen_cause = null, frozen_ms = null")
    platform.rows("update payout set frozen_cause = null, frozen_ms = null")
    platform.rows("update payout set obstacle_kind = null, obstacle_cause = null, obstacle_ms = null")


def read_banner(page: str) -> str:
    """The text of a page's banner."""
    return read_text(page.split('id="banner"')[1].split('<div class="console-page"')[0].partition(">")[2])


def banner(person: ConsoleUser, path: str) -> str:
    return read_banner(person.page(path))


def test_while_nothing_is_stopped_there_is_no_banner(people: People) -> None:
    assert banner(people.signed_in("operator"), "/console") == ""


def test_every_page_shows_a_stop_with_its_actor_cause_and_time(till: Till, people: People) -> None:
    order = till.order("60", chain="TRC20")
    stop(till.platform)
    owner = people.signed_in("owner")
    merchant = f"/console/merchants/{till.shop.merchant_id}"
    for path in (
        "/console",
        QUEUE,
        f"{QUEUE}/{order}",
        f"{merchant}/settings",
        "/console/operators",
        PAYOUTS,
    ):
        told = banner(owner, path)
        assert "Payouts on TRC20 are stopped" in told, path
        assert f"ann, on the command line · {CAUSE} · since " in told, path


def test_a_frozen_wallet_is_shown_like_a_stop(till: Till, people: People) -> None:
    till.platform.rows(
        "insert into hot_wallet (chain, address) values ('ERC20', %s) on conflict do nothing", bytes(20)
    )
    till.platform.rows(
        "update hot_wallet set frozen_cause = 'a stranger paid', frozen_ms = 5 where chain = 'ERC20'"
    )
    assert "The hot wallet on ERC20 is frozen a stranger paid · since" in banner(
        people.signed_in("auditor"), "/console/audit"
    )


def test_a_rolled_back_database_is_shown_on_every_page_and_at_each_order(till: Till, people: People) -> None:
    order = till.order("40", chain="TRC20")
    till.platform.rows(
        "insert into rollback_evidence values (%s, 'book', 'behind', 'the book has 5 entries of 7', 5)",
        till.shop.merchant_id,
    )
    operator, user = people.signed_in("operator"), people.signed_in("merchant", till.shop.merchant_id)
    for path in ("/console", "/console/operators", f"{QUEUE}/{order}"):
        told = banner(operator, path)
        assert told.count("The database was rolled back or rewritten: nothing is paid") == 1, path
        assert "the book has 5 entries of 7 · since" in told, path
    assert "nothing is paid the book has 5" in read_text(
        operator.page(f"{QUEUE}/{order}").split("order-state")[1]
    )
    page = user.page(f"{QUEUE}/{order}")
    assert "The platform has stopped payouts on TRC20 for now" in read_banner(page)
    assert "entries of 7" not in page


def test_an_obstacle_and_frozen_orders_are_told_where_money_is_looked_at(till: Till, people: People) -> None:
    waits, frozen = till.order("60", chain="TRC20"), till.order("70", chain="TRC20")
    cause = "the hot wallet of TRC20 has 1 USDT free, 60 are needed"
    hold(till, waits, obstacle_kind="funds", obstacle_cause=cause, obstacle_ms=5)
    hold(till, frozen, frozen_cause="the journal has no entry for this order", frozen_ms=6)
    operator = people.signed_in("operator")
    for path in ("/console", QUEUE, PAYOUTS, "/console/reconciliation"):
        told = banner(operator, path)
        assert f"The hot wallet on TRC20 holds too little One order waits. {cause}" in told, path
        assert "An operator has to look at frozen orders on TRC20 One order waits." in told, path
    assert banner(operator, "/console/debugger") == ""
    page = read_text(operator.page(PAYOUTS))
    assert "the journal has no entry for this order" in page
    assert cause in page
    operator.http.headers["accept-language"] = "zh-CN"
    for path in (PAYOUTS, "/console/safety"):
        chinese = read_text(operator.page(path))
        assert "TRC20 热钱包可用 1 USDT，需要 60" in chinese, path
        assert "账簿中没有此订单的分录" in chinese, path
        assert "journal" not in chinese, path


def test_the_overview_does_not_say_that_there_is_nothing_to_do(till: Till, people: People) -> None:
    operator = people.signed_in("operator")
    assert "stopped on" not in read_text(operator.page("/console"))
    order = till.order("40", chain="TRC20")
    stop(till.platform)
    page = read_text(operator.page("/console"))
    assert "stopped on TRC20" in page
    assert "Payouts Stopped" in page
    assert till.status(order) == 0


def test_an_approval_says_that_nothing_is_paid_while_the_chain_is_stopped(till: Till, people: People) -> None:
    order, operator = till.order("60", chain="TRC20"), people.signed_in("operator")
    assert "It is paid at once" in read_text(operator.page(f"{QUEUE}/{order}"))
    stop(till.platform)
    page = read_text(operator.page(f"{QUEUE}/{order}"))
    assert "It is paid at once" not in page
    assert f"It will not be paid at once Payouts on TRC20 are stopped: {CAUSE}" in page
    asked = read_text(operator.follow(operator.post(f"{QUEUE}/approve", {"order": str(order)})).text)
    assert "None of them will be paid at once" in asked
    assert "paid at once, and" not in asked
    assert "Approved, and not paid yet: Payouts on TRC20 are stopped." in decide(operator, "approve", order)
    page = read_text(operator.page(f"{QUEUE}/{order}"))
    assert "Payment on the chain Payouts on TRC20 are stopped" in page, "the order's life"
    assert f"Payouts on TRC20 are stopped ann, on the command line: {CAUSE}" in page, "the notice"
    listed = read_text(operator.page(f"{QUEUE}/all?merchant={till.shop.merchant_id}"))
    assert "Pending Payouts on TRC20 are stopped" in listed


def test_each_of_several_orders_shows_whether_it_will_wait(till: Till, people: People) -> None:
    waits, goes = till.order("60", chain="TRC20"), till.order("60", chain="ERC20")
    stop(till.platform)
    operator = people.signed_in("operator")
    asked = operator.follow(operator.post(f"{QUEUE}/approve", {"order": [str(waits), str(goes)]}))
    assert "Those with a reason beside them will not be paid at once" in read_text(asked.text)
    assert asked.text.count("cell-reason") == 1


def test_a_suspended_merchants_approved_order_says_so(till: Till, people: People) -> None:
    order, operator = till.order("60"), people.signed_in("operator")
    till.shop.ask_book(Approve(order, "cli:ann"))
    operator.post(f"/console/merchants/{till.shop.merchant_id}/status", {"status": "suspended"})
    assert "The merchant is suspended" in read_text(operator.page(f"{QUEUE}/{order}"))


def test_a_page_that_was_open_before_the_stop_gets_the_band(till: Till, people: People) -> None:
    operator = people.signed_in("operator")
    page = operator.page("/console/debugger")
    part = page.split('hx-get="')[1].split('"')[0].replace("&amp;", "&")
    assert part.startswith("/console/band?")
    assert operator.get(part).status_code == 204
    stop(till.platform)
    assert "Payouts on TRC20 are stopped" in read_text(operator.get(part).text)


def test_a_merchants_user_is_told_of_its_own_orders_without_names_and_causes(
    till: Till, people: People
) -> None:
    stop(till.platform, "TRC20", "operator:mei.lin", "Quayside Books moves too much")
    stop(till.platform, "TRC20", "reconciliation", "12 USDT are missing")
    user = people.signed_in("merchant", till.shop.merchant_id)
    assert banner(user, "/console") == "", "none of its orders is on that chain"
    order = till.order("40", chain="TRC20")
    pages = {path: user.page(path) for path in ("/console", f"{QUEUE}/all", f"{QUEUE}/{order}")}
    for path, page in pages.items():
        told = read_banner(page)
        assert told.count("The platform has stopped payouts on TRC20 for now") == 1, path
        for secret in ("mei.lin", "Quayside", "reconciliation", "12 USDT", "/console/payouts"):
            assert secret not in page, path
    assert "The platform has stopped payouts on TRC20 for now" in read_text(pages[f"{QUEUE}/{order}"])


def test_a_merchants_user_reads_how_many_orders_wait_whatever_each_waits_for(
    till: Till, people: People
) -> None:
    for n in range(5):
        obstacle = "funds" if n < 3 else "fee"
        hold(
            till,
            till.order("40", chain="TRC20"),
            obstacle_kind=obstacle,
            obstacle_cause="x",
            obstacle_ms=5 + n,
        )
    for chain in ("TRC20", "ERC20"):
        hold(till, till.order("40", chain=chain), frozen_cause="the journal says else", frozen_ms=3)
    told = banner(people.signed_in("merchant", till.shop.merchant_id), "/console")
    assert "The platform can't pay on TRC20 at the moment 5 orders wait." in told
    assert "The platform is looking into this payment 2 orders wait." in told
    theirs = banner(people.signed_in("operator"), "/console")
    assert "The hot wallet on TRC20 holds too little 3 orders wait." in theirs
    assert "The network fee on TRC20 is too high 2 orders wait." in theirs


def test_a_merchants_user_reads_of_frozen_and_hindered_orders_of_its_own_alone(
    till: Till, people: People
) -> None:
    other = till.platform.open_merchant(approval_limit="0")
    other.fund("USDT", "100")
    theirs = Till(till.platform, other)
    hold(theirs, theirs.order("60"), obstacle_kind="fuel", obstacle_cause="0.1 ETH", obstacle_ms=5)
    user = people.signed_in("merchant", till.shop.merchant_id)
    assert banner(user, "/console") == ""
    hold(till, till.order("60"), frozen_cause="the journal says another address", frozen_ms=5)
    page = user.page("/console")
    assert "The platform is looking into this payment One order waits." in read_banner(page)
    assert "another address" not in page


def test_one_person_stops_payouts_with_a_reason_that_the_audit_log_keeps(till: Till, people: People) -> None:
    operator = people.signed_in("operator")
    subject_before = len(audit(till.platform, "wallet TRC20"))
    refused = operator.post(f"{PAYOUTS}/TRC20/stop", {"reason": " "})
    assert refused.status_code == 422
    assert "A reason of 1 to 500 characters" in read_text(refused.text)
    assert banner(operator, "/console") == ""
    told = operator.follow(operator.post(f"{PAYOUTS}/TRC20/stop", {"reason": CAUSE}))
    assert "Stopped: nothing new is signed on TRC20." in read_text(told.text)
    assert f"{operator.name} · {CAUSE} · since" in banner(operator, "/console")
    again = operator.follow(operator.post(f"{PAYOUTS}/TRC20/stop", {"reason": "more"}))
    assert "You had stopped it before" in read_text(again.text)
    assert audit(till.platform, "wallet TRC20")[subject_before:] == [
        (f"operator:{operator.name}", "wallet.freeze")
    ]
    assert operator.post(f"{PAYOUTS}/BEP20/stop", {"reason": "x"}).status_code == 404


def test_in_the_sandbox_one_person_lets_payouts_go_on(till: Till, people: People) -> None:
    stop(till.platform)
    operator = people.signed_in("operator")
    told = operator.follow(operator.post(f"{PAYOUTS}/TRC20/resume", {"reason": "it was a drill"}))
    assert "Payouts on TRC20 go on." in read_text(told.text)
    assert banner(operator, "/console") == ""
    assert audit(till.platform, "wallet TRC20")[-1] == (f"operator:{operator.name}", "wallet.thaw")


def test_an_order_whose_transfer_is_signed_goes_on_and_does_not_say_that_it_waits(
    till: Till, people: People
) -> None:
    order = till.order("40", chain="TRC20")
    till.shop.ask_book(TakeUp(order))
    hold(till, order, signed_no=1)
    stop(till.platform)
    page = people.signed_in("operator").page(f"{QUEUE}/{order}")
    assert "Payouts on TRC20 are stopped" in read_banner(page)
    assert "Payouts on TRC20 are stopped" not in read_text(page.split('class="console-page"')[1])
