"""The console with apart cells: pages and changes reach their merchant's cell, and a dead cell is named."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.cells.layout import Layout, far_cluster
from tests.cells.two_shops import CellShop, open_shops, read_text
from tests.clusters import Cluster
from tests.console.conftest import ConsoleUser, People
from tests.console.test_safety import work
from tests.journeys.conftest import Platform, running
from tests.waits import wait_until

from merchant_wallet.base.db import connect_sync
from merchant_wallet.reporting import cells as reporting_cells
from merchant_wallet.reporting.cells import Patience
from merchant_wallet.web.cells import CellPools

AWAY = "Away now: cell far"
LISTS = (
    "/console",
    "/console/merchants",
    "/console/merchants?sort=name",
    "/console/books",
    "/console/withdrawals",
    "/console/withdrawals/all",
    "/console/withdrawals/all?sort=-amount",
    "/console/withdrawals/all?id=waits",
    "/console/deposits",
    "/console/callbacks",
    "/console/sub-users",
    "/console/sub-users?q=al&by=ext",
    "/console/sub-users?q=a&by=name",
    "/console/sub-users?q=alice",
    "/console/payouts",
    "/console/safety",
    "/console/search?q=alice",
    "/console/inbox",
    "/console/finance",
)


@pytest.fixture
def cells(database_url: str) -> Iterator[tuple[Layout, Cluster]]:
    with far_cluster(database_url) as found:
        yield found


@pytest.fixture
def platform(layout: Layout, tmp_path: Path) -> Iterator[Platform]:
    with running(layout.url, tmp_path) as found:
        yield found


@pytest.fixture
def people(platform: Platform) -> Iterator[People]:
    found = People(platform)
    yield found
    found.leave()


@pytest.fixture
def owner(people: People) -> ConsoleUser:
    return people.signed_in("owner")


def test_a_page_holds_one_connection_of_a_cell_at_a_time(
    layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CellPools.__init__, "__defaults__", (1,))
    with running(layout.url, tmp_path) as platform:
        _, far = open_shops(platform, layout)
        people = People(platform)
        owner = people.signed_in("owner")
        for path in ("/console/band", *LISTS, *far.list_pages().values()):
            answer = owner.get(path)
            assert answer.status_code in {200, 303}, path
            # The menu counts what waits in the same cell.
            for missing in (AWAY, "some could not be read", "could not be read:"):
                assert missing not in answer.text, path
        people.leave()


def _read_pages(person: ConsoleUser, one: CellShop) -> dict[str, str]:
    texts = {}
    for name, path in one.list_pages().items():
        answer = person.get(path)
        # A search with one result leads to it.
        texts[name] = read_text((person.follow(answer) if answer.status_code == 303 else answer).text)
    return texts


def test_pages_about_a_merchant_show_the_same_from_an_apart_cell(
    platform: Platform, layout: Layout, owner: ConsoleUser, people: People
) -> None:
    near, far = open_shops(platform, layout)
    pages = _read_pages(owner, near)
    for name, text in _read_pages(owner, far).items():
        assert text == pages[name], name
    assert "alice" in pages["sub-user"]
    assert "Nothing here" not in " ".join(pages.values())
    user = people.signed_in("merchant", far.merchant_id)
    assert "alice" in user.page(f"/console/merchants/{far.merchant_id}/users/{far.user_id}")
    assert user.get(f"/console/withdrawals/{near.order_id}").status_code == 404


def test_lists_show_the_merchants_of_all_cells(
    platform: Platform, layout: Layout, owner: ConsoleUser
) -> None:
    near, far = open_shops(platform, layout)
    pages = {path: owner.page(path) for path in LISTS}
    pages["all"] = owner.page("/console/inbox?show=all")
    for path, page in pages.items():
        assert AWAY not in page, path
        if path not in ("/console", "/console/finance", "/console/payouts", "/console/safety"):
            assert page.count(f"/{near.merchant_id}") + page.count(str(near.order_id)[:-3]), path
    orders = pages["/console/withdrawals/all"]
    for one in (near, far):
        assert f"/console/withdrawals/{one.order_id}" in orders
        assert f"/console/withdrawals/{one.cancelled_id}" in orders
        assert one.tx_hash in pages["/console/deposits"]
        assert one.event in pages["/console/callbacks"]
        assert f"/console/withdrawals/{one.order_id}" in pages["all"]
        assert f"/console/merchants/{one.merchant_id}" in pages["/console/merchants"]
        assert f"/users/{one.user_id}" in pages["/console/sub-users"]
    assert read_text(pages["/console"]) == read_text(owner.page("/console"))


def _list_far_rates(layout: Layout) -> list[tuple[int, bool]]:
    """USDT:KFB by which books in the apart cell exchange, and whether it is paused."""
    with connect_sync(layout.far_url) as far:
        return far.execute("select usdt_kfb_e8, usdt_kfb_paused from rate where merchant_id = 0").fetchall()


def test_a_rate_holds_in_the_apart_cell_when_the_page_has_answered(
    platform: Platform, layout: Layout, owner: ConsoleUser
) -> None:
    # No worker runs, which would compare the copies each second.
    for form, expected in (
        ({"do": "set", "rate-usdt-kfb": "7.05"}, (705_000_000, False)),
        ({"do": "pause"}, (705_000_000, True)),
    ):
        saved = owner.post("/console/rates", {"direction": "USDT:KFB", **form}, seen="/console")
        assert "Saved. It takes effect from the next exchange on." in owner.follow(saved).text
        assert _list_far_rates(layout) == [expected]


def test_finance_pages_leave_out_what_needs_every_book_once_while_books_move(
    platform: Platform, layout: Layout, owner: ConsoleUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporting_cells, "PAGE_PATIENCE", Patience(2, 0.0))
    near, _ = open_shops(platform, layout)
    near.rows(
        "insert into merchant_move"
        " (merchant_id, move_id, state, from_cell_id, to_cell_id, began_ms, changed_ms)"
        " values (%s, gen_random_uuid(), 'switching', 0, 1, 1, 1) returning 1",
        near.merchant_id,
    )
    for path in ("/console/finance", "/console/finance/solvency"):
        page = read_text(owner.page(path))
        assert "Books are being moved between two databases" in page
        assert "Owed to merchants" not in page
    near.rows("delete from merchant_move returning 1")
    assert "Books are being moved" not in owner.page("/console/finance")


def test_held_deposits_of_all_cells_are_decided_by_a_worker_in_their_cell(
    platform: Platform, layout: Layout, owner: ConsoleUser
) -> None:
    for one, decision, status in zip(
        open_shops(platform, layout), ("drop", "release"), ("dropped", "pending"), strict=True
    ):
        one.rows("update deposit set status = 'held', final_ms = 2 where tx_hash = %s", one.tx_hash)
        assert one.tx_hash in owner.page("/console/safety")
        asked = owner.post(f"/console/deposits/ERC20/{one.tx_hash}/0/{decision}", {"reason": "looked at it"})
        assert "/console/safety/acts/" in asked.headers["location"]
        work(platform)
        assert one.rows("select status from deposit where tx_hash = %s", one.tx_hash) == [(status,)]


Entry = tuple[str, object, object]


def _list_audit(platform: Platform, one: CellShop, since: int) -> list[Entry]:
    return [
        (action, before, after)
        for action, before, after in platform.rows(
            "select action, before, after from audit_entry where merchant_id = %s and audit_no > %s"
            " order by audit_no",
            one.merchant_id,
            since,
        )
    ]


def _act(platform: Platform, owner: ConsoleUser, one: CellShop) -> dict[str, list[Entry]]:
    """Make each change of the console about a merchant. Returns what the audit log got of it."""
    user, of = f"/console/merchants/{one.merchant_id}/users/{one.user_id}", one.merchant_id
    callbacks, event = "/console/callbacks", f"/console/callbacks/{one.event}"
    forms: dict[str, tuple[str, dict[str, str]]] = {
        "limits": (user, {"do": "limits", "limit-debit": "5", "limit-day": "50"}),
        "pause debits": (user, {"do": "pause"}),
        "reset PIN": (user, {"do": "reset-pin"}),
        "resend": (f"{event}/resend", {}),
        "pause": (f"{event}/pause", {}),
        "pause again": (f"{event}/pause", {}),
        "resume": (f"{event}/resume", {}),
        "pause all": (f"{callbacks}/merchants/{of}/pause", {}),
        "pause all again": (f"{callbacks}/merchants/{of}/pause", {}),
        "resume all": (f"{callbacks}/merchants/{of}/resume", {}),
        "resend all": (f"{callbacks}/merchants/{of}/resend-parked", {}),
        "cancel": ("/console/withdrawals/cancel", {"order": str(one.order_id), "confirmed": "1"}),
    }
    found = {}
    for name, (path, form) in forms.items():
        ((since,),) = platform.rows("select coalesce(max(audit_no), 0) from audit_entry")
        assert owner.post(path, form).status_code in (200, 303), name
        found[name] = _list_audit(platform, one, since)
    return found


def _normalise(entries: list[Entry]) -> list[tuple[str, str]]:
    return [(action, read_text(f"{before} {after}")) for action, before, after in entries]


def test_changes_reach_the_merchants_cell_and_the_audit_log_has_them(
    platform: Platform, layout: Layout, owner: ConsoleUser
) -> None:
    near, far = open_shops(platform, layout)
    here, there = (_act(platform, owner, one) for one in (near, far))
    for one in (near, far):
        rows = one.rows(
            "select u.paused, u.limit_debit_units, w.status, c.state from sub_user u"
            " join withdrawal w on w.merchant_id = u.merchant_id and w.order_id = %s"
            " join callback c on c.merchant_id = u.merchant_id and c.event_id = %s where u.user_id = %s",
            one.order_id,
            one.event,
            one.user_id,
        )
        assert rows == [(True, 5_000_000, 4, "due")]
    for name, entries in here.items():
        if name == "cancel":
            assert _normalise(there[name]) == _normalise(entries)
            continue
        done = [entry for entry in _normalise(there[name]) if not entry[0].endswith((".asked", ".refused"))]
        assert done == _normalise(entries), name
        action = there[name][0][0].removesuffix(".asked")
        last = action if done else f"{action}.refused"
        assert [entry[0] for entry in there[name]] == [f"{action}.asked", last], name


def test_decisions_about_orders_and_balances_reach_the_merchants_cell(
    platform: Platform, layout: Layout, owner: ConsoleUser, people: People
) -> None:
    other = people.signed_in("operator")
    for one in open_shops(platform, layout):
        form = {"order": str(one.order_id), "confirmed": "1"}
        approved = other.follow(other.post("/console/withdrawals/approve", form))
        assert "1 of 1 went through" in approved.text
        thawed = owner.follow(owner.post(f"/console/withdrawals/{one.frozen_id}/thaw"))
        assert "Resumed. The workers continue the payout." in thawed.text
        form = {
            "merchant": str(one.merchant_id),
            "direction": "credit",
            "currency": "KFB",
            "amount": "25",
            "sub-user": "alice",
            "reason": "goodwill",
        }
        unknown = owner.post("/console/adjustments/new", {**form, "sub-user": "nobody"})
        assert "This merchant has no such sub-user." in unknown.text
        proposal = owner.post("/console/adjustments/new", form).headers["location"]
        assert "Carried out" in other.follow(other.post(f"{proposal}/accept")).text
        rows = one.rows(
            "select w.approved_by, f.frozen_ms, a.balance from withdrawal w"
            " join withdrawal f on f.order_id = %s join account a on a.account_id = %s"
            " where w.order_id = %s",
            one.frozen_id,
            one.user_id,
            one.order_id,
        )
        assert rows == [(f"operator:{other.name}", None, 505_000_000)]


def _says(person: ConsoleUser, path: str, text: str) -> bool:
    return text in person.page(path)


def test_a_statement_and_a_verification_read_the_books_own_cell(
    platform: Platform, layout: Layout, owner: ConsoleUser
) -> None:
    files = []
    for one in open_shops(platform, layout):
        # What only pretends to be there.
        one.rows("delete from deposit")
        one.rows("update withdrawal set frozen_ms = null")
        platform.rows("delete from payout")
        book = f"/console/books/{one.merchant_id}"
        exported = owner.page(f"{book}/export?form=csv").replace(str(one.user_id), "alice")
        files.append([line.split(",")[2:] for line in exported.splitlines()])
        owner.follow(owner.post(f"{book}/verify"))
        state = f"{book}/verify/state"
        wait_until(partial(_says, owner, state, "The book is sound"), "verified")
    assert len(files[0]) == len(files[1]) > 10
    assert files[0] == files[1]


def test_a_merchant_of_the_console_goes_to_the_emptiest_cell_and_its_settings_reach_it(
    platform: Platform, layout: Layout, owner: ConsoleUser
) -> None:
    platform.open_merchant()
    form = {"name": "Newcomer", "currency-mode": "USDT"}
    assert owner.post("/console/merchants/new", form).status_code == 200
    ((merchant_id,),) = platform.rows("select merchant_id from merchant where name = 'Newcomer'")
    url = f"/console/merchants/{merchant_id}"

    def read_copy() -> list[Any]:
        with connect_sync(layout.far_url) as far:
            return far.execute(
                "select m.status, b.settings_version from merchant m join book b using (merchant_id)"
            ).fetchall()

    ((status, version),) = read_copy()
    assert status == "active"
    owner.page(url)
    assert owner.post(f"{url}/status", {"status": "suspended"}).status_code == 303
    assert read_copy() == [("suspended", version + 1)]


def test_a_dead_cell_is_named_on_every_list_and_the_others_are_shown(
    cells: tuple[Layout, Cluster], tmp_path: Path
) -> None:
    layout, cluster = cells
    with running(layout.url, tmp_path) as platform:
        near, far = open_shops(platform, layout)
        people = People(platform)
        owner, its_user = people.signed_in("owner"), people.signed_in("merchant", far.merchant_id)
        neighbour = people.signed_in("merchant", near.merchant_id)
        assert AWAY not in owner.page("/console/withdrawals/all")
        cluster.kill()
        for path in LISTS:
            assert AWAY in owner.page(path), path
            assert AWAY not in neighbour.get(path).text, path
        safety = read_text(owner.page("/console/safety"))
        assert "without far" in safety, "what waits for payouts lacks the cell's orders"
        assert "Every order goes on" not in safety
        for path in near.list_pages().values():
            answer = owner.get(path)
            assert answer.status_code in (200, 303), path
        orders = owner.page("/console/withdrawals/all")
        assert f"/console/withdrawals/{near.order_id}" in orders
        assert f"/console/withdrawals/{far.order_id}" not in orders
        order = owner.get(f"/console/withdrawals/{far.order_id}")
        assert (order.status_code, "Cell far is away" in order.text) == (503, True)
        assert "far" not in read_text(its_user.get("/console").text)
        assert its_user.get("/console").status_code == 503
        resent = owner.post(f"/console/callbacks/{far.event}/resend")
        assert resent.status_code == 503
        cluster.start()
        wait_until(lambda: AWAY not in owner.page("/console/withdrawals/all"), "the cell is back")
        assert f"/console/withdrawals/{far.order_id}" in owner.page("/console/withdrawals/all")
        people.leave()
