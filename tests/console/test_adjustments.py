"""Adjustments in the console: one operator proposes, another carries out, and nothing is booked twice."""

import pytest
from tests.console.conftest import ConsoleUser, People, read_text
from tests.journeys.conftest import Platform, Shop, replace_rule

from merchant_wallet.approvals import proposals
from merchant_wallet.book.commands import Adjust
from merchant_wallet.book.outcomes import Outcome
from merchant_wallet.book.rules import operators as rules
from merchant_wallet.book.state import Draft
from merchant_wallet.operators import records

ADJUSTMENTS = "/console/adjustments"


def fill(shop: Shop, **changes: str) -> dict[str, str]:
    """A valid form."""
    return {
        "merchant": str(shop.merchant_id),
        "direction": "credit",
        "currency": "USDT",
        "amount": "25",
        "reason": "goodwill, ticket 12",
        **{name.replace("_", "-"): text for name, text in changes.items()},
    }


def propose(person: ConsoleUser, shop: Shop, **changes: str) -> str:
    """Propose an adjustment. Returns the URL of the proposal's page."""
    answer = person.post(f"{ADJUSTMENTS}/new", fill(shop, **changes))
    assert answer.status_code == 303, read_text(answer.text)
    return str(answer.headers["location"])


def test_a_proposal_moves_nothing_until_another_person_accepts_it(shop: Shop, people: People) -> None:
    ann, ben = people.signed_in("operator"), people.signed_in("owner")
    url = propose(ann, shop)
    assert shop.balances()[0] == "1000"
    assert "Another person must accept it." in read_text(ann.page(url))
    assert f'action="{url}/accept"' not in ann.page(url)
    assert "It is your own proposal" in read_text(ann.follow(ann.post(f"{url}/accept")).text)
    assert shop.balances()[0] == "1000"
    told = ben.follow(ben.post(f"{url}/accept"))
    assert "Carried out: the entry is in the book." in read_text(told.text)
    assert shop.balances()[0] == "1025"
    assert f"/console/books/{shop.merchant_id}/entries/" in told.text
    again = ben.follow(ben.post(f"{url}/accept"))
    assert "It was decided meanwhile." in read_text(again.text)
    assert shop.balances()[0] == "1025"


def test_the_direction_of_an_adjustment_is_chosen_by_a_person(shop: Shop, people: People) -> None:
    ann = people.signed_in("operator")
    assert "checked" not in ann.page(f"{ADJUSTMENTS}/new")
    answer = ann.post(f"{ADJUSTMENTS}/new", fill(shop, direction=""))
    assert (answer.status_code, "Choose whether" in read_text(answer.text)) == (422, True)


def test_the_balance_now_and_after_is_shown_while_typing_and_deciding(shop: Shop, people: People) -> None:
    ann, ben = people.signed_in("operator"), people.signed_in("owner")

    def preview(**changes: str) -> str:
        return read_text(ann.get(f"{ADJUSTMENTS}/new/effect", params=fill(shop, **changes)).text)

    assert preview() == "Balance now 1,000.00 USDT Balance after 1,025.00 USDT"
    assert preview(direction="") == preview(amount="a lot") == "Balance now 1,000.00 USDT"
    assert preview(merchant="nobody") == preview(sub_user="nobody") == ""
    assert preview(direction="debit", amount="1,000.50").endswith(
        "−0.50 USDT The account holds less: the book would refuse it."
    )
    url = propose(ann, shop, direction="debit", amount="5000")
    told = read_text(ben.page(url))
    assert told.count("Balance after −4,000.00 USDT") == told.count("The account holds less") == 2
    ben.post(f"{url}/accept")
    assert "Balance now" not in ben.page(url)


def test_an_acceptance_that_was_refused_is_closed_in_the_audit_log(
    platform: Platform, shop: Shop, people: People
) -> None:
    ann, ben = people.signed_in("operator"), people.signed_in("owner")
    url = propose(ann, shop)
    assert ann.operator is not None
    number = ann.operator.operator_id
    platform.operate(lambda conn: records.disable(conn, number))
    told = read_text(ben.follow(ben.post(f"{url}/accept")).text)
    assert "The proposer's account was disabled, reset or changed" in told
    log = platform.rows(
        "select actor, action, after from audit_entry where subject = %s order by audit_no desc limit 2",
        f"proposal {url.rsplit('/', 1)[1]}",
    )
    assert [action for _, action, _ in log] == ["adjustment.accept.refused", "adjustment.accept.asked"]
    assert log[0][2]["reason"].startswith("The proposer's account was disabled")
    assert shop.balances()[0] == "1000"


def test_one_name_at_the_terminal_and_in_the_console_is_one_person(shop: Shop, people: People) -> None:
    ann = people.signed_in("operator")
    made = shop.platform.operate(
        lambda conn: proposals.propose(
            conn, shop.merchant_id, "USDT", 5, "x", proposed_by=f"cli:{ann.name.upper()}", at_ms=1
        )
    )
    told = ann.follow(ann.post(f"{ADJUSTMENTS}/{made.proposal_no}/accept"))
    assert "It is your own proposal" in read_text(told.text)


def test_each_step_is_in_the_audit_log(shop: Shop, people: People) -> None:
    ann, ben = people.signed_in("operator"), people.signed_in("owner")
    url = propose(ann, shop, direction="debit")
    ben.post(f"{url}/accept")
    found = shop.platform.rows(
        "select actor, action from audit_entry where merchant_id = %s order by audit_no", shop.merchant_id
    )
    assert found == [
        (f"operator:{ann.name}", "adjustment.propose"),
        (f"operator:{ben.name}", "adjustment.accept.asked"),
        (f"operator:{ben.name}", "adjustment.accept"),
    ]
    assert shop.balances()[0] == "975"


def test_what_the_book_refuses_is_told_with_its_sentence(shop: Shop, people: People) -> None:
    url = propose(people.signed_in("operator"), shop, direction="debit", amount="5000")
    ben = people.signed_in("owner")
    told = read_text(ben.follow(ben.post(f"{url}/accept")).text)
    assert "The book refused it" in told
    assert "more than the available balance" in told
    chinese = ben.get(url, headers={"accept-language": "zh-CN"}).text
    assert "amount：超过可用余额" in chinese
    assert "more than" not in chinese
    assert shop.balances()[0] == "1000"


def test_a_refusal_needs_a_reason_and_whoever_proposed_reads_it(shop: Shop, people: People) -> None:
    ann, ben = people.signed_in("operator"), people.signed_in("owner")
    url = propose(ann, shop)
    empty = ben.post(f"{url}/refuse", {"reason": "  "})
    assert empty.status_code == 422
    assert "Say why" in read_text(empty.text)
    ben.post(f"{url}/refuse", {"reason": "no such <b>ticket</b>"})
    page = ann.page(url)
    assert "no such &lt;b&gt;ticket&lt;/b&gt;" in page
    assert f'action="{url}/' not in page


def test_one_takes_back_ones_own_and_nobody_elses(shop: Shop, people: People) -> None:
    ann, ben = people.signed_in("operator"), people.signed_in("owner")
    url = propose(ann, shop)
    assert "It was decided meanwhile" in read_text(ben.follow(ben.post(f"{url}/withdraw")).text)
    assert "Waits for a second person" in read_text(ann.page(url))
    assert "Withdrawn: nothing moves." in read_text(ann.follow(ann.post(f"{url}/withdraw")).text)


def test_an_acceptance_whose_outcome_nobody_knows_is_found_out_and_moves_once(
    shop: Shop, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = propose(people.signed_in("operator"), shop)
    ben = people.signed_in("owner")

    def break_down(draft: Draft, command: Adjust) -> Outcome:
        raise RuntimeError("a fault of the rule")

    with monkeypatch.context() as patch:
        replace_rule(patch, Adjust, break_down)
        told = read_text(ben.follow(ben.post(f"{url}/accept")).text)
    assert "The book did not answer in time." in told
    assert "Accepted, outcome unknown" in told
    assert shop.balances()[0] == "1000"
    replace_rule(monkeypatch, Adjust, rules.adjust)
    for _ in range(2):
        told = read_text(ben.follow(ben.post(f"{url}/carry-out")).text)
        assert "Carried out: the entry is in the book." in told
    assert shop.balances()[0] == "1025"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"merchant": "nobody"}, "No merchant has this id"),
        ({"amount": "0"}, "An amount above 0"),
        ({"amount": "1.0000001"}, "An amount above 0"),
        ({"amount": "-5"}, "An amount above 0"),
        ({"amount": "8,20"}, "in a wrong place in 8,20."),
        ({"reason": " "}, "Say why"),
        ({"sub_user": "nobody"}, "This merchant has no such sub-user."),
    ],
)
def test_what_is_wrong_is_said_beside_its_field_and_what_was_typed_stays(
    shop: Shop, people: People, changes: dict[str, str], told: str
) -> None:
    answer = people.signed_in("operator").post(f"{ADJUSTMENTS}/new", fill(shop, **changes))
    assert answer.status_code == 422
    assert told in read_text(answer.text)
    assert "goodwill, ticket 12" in answer.text or "reason" in changes


def test_a_wallet_of_another_currency_is_no_account(shop: Shop, people: People) -> None:
    shop.user("player-7", "10")
    operator = people.signed_in("operator")
    answer = operator.post(f"{ADJUSTMENTS}/new", fill(shop, sub_user="player-7"))
    assert "holds another currency" in read_text(answer.text)
    ben, url = people.signed_in("owner"), propose(operator, shop, sub_user="player-7", currency="KFB")
    ben.post(f"{url}/accept")
    assert shop.user_balance("player-7") == "35"


def test_lists_say_what_waits_and_what_was_decided(shop: Shop, platform: Platform, people: People) -> None:
    ann, ben = people.signed_in("operator"), people.signed_in("owner")
    waits, done = (
        propose(ann, shop, reason="the one that waits"),
        propose(ann, shop, reason="the one refused"),
    )
    ben.post(f"{done}/refuse", {"reason": "no"})
    page = read_text(ben.page(f"{ADJUSTMENTS}?merchant={shop.merchant_id}"))
    assert page.index("the one that waits") < page.index("the one refused")
    assert "No proposal matches" in ben.page(f"{ADJUSTMENTS}?merchant={platform.open_merchant().merchant_id}")
    assert waits in ben.page(ADJUSTMENTS)


def test_auditors_look_and_merchants_are_not_told(shop: Shop, people: People) -> None:
    url, auditor = propose(people.signed_in("operator"), shop), people.signed_in("auditor")
    assert "data-opens" not in auditor.page(url).split('id="main"')[1]
    for what in ("accept", "refuse", "withdraw", "carry-out"):
        assert auditor.post(f"{url}/{what}", {"reason": "x"}).status_code == 403
    user = people.signed_in("merchant", shop.merchant_id)
    for path in (ADJUSTMENTS, url, f"{ADJUSTMENTS}/new"):
        assert user.get(path).status_code == 404
