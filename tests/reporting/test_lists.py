"""Deposits, callbacks, entries, merchants and sub-users of several merchants, as operators search them."""

from typing import Any, LiteralString

import pytest
from psycopg import AsyncCursor
from tests.reporting.conftest import COIN, TRON_ADDRESS, ReportingScene, evm_of, tron_of

from merchant_wallet.base.addresses import to_eip55, to_tron
from merchant_wallet.base.db import connect_sync
from merchant_wallet.book.journal import FIRST_HASH
from merchant_wallet.reporting import callbacks, deposits, entries, export, merchants, rollup, sub_users
from merchant_wallet.reporting.callbacks import CallbackFilter
from merchant_wallet.reporting.deposits import DepositFilter, DepositLine
from merchant_wallet.reporting.entries import EntryFilter
from merchant_wallet.reporting.paging import MAX_LIMIT, Connection, Page, read_rows

pytestmark = pytest.mark.anyio


async def test_deposits_are_found_by_status_chain_merchant_and_transaction(scene: ReportingScene) -> None:
    shop, stall = await scene.open_shop("Shop"), await scene.open_shop("Stall")
    user = await scene.register(shop, "alice")
    await scene.add_deposit(shop, "t1")
    await scene.add_deposit(shop, "t2", chain="ERC20", status="seen", user_id=user.user_id)
    noon = scene.clock() + 1
    await scene.add_deposit(stall, "t3", status="dust")

    async def hashes(**wanted: object) -> list[str]:
        page = await deposits.list_deposits(scene.conn, scene.cells, DepositFilter(**wanted))  # type: ignore[arg-type]
        return [line.tx_hash for line in page.rows]

    assert await hashes() == ["t3", "t2", "t1"]
    assert await hashes(statuses=("seen", "credited")) == ["t2", "t1"]
    assert await hashes(chain="TRC20") == ["t3", "t1"]
    assert await hashes(merchant_id=shop) == ["t2", "t1"]
    assert await hashes(merchant_id=stall, statuses=("seen",)) == []
    assert await hashes(from_ms=noon) == ["t3"]
    assert await hashes(to_ms=noon, statuses=("credited",)) == ["t1"]
    (found,) = await deposits.find_deposits(scene.conn, scene.cells, "t2")
    assert (found.ext_user_id, found.merchant_name, found.credited_units) == ("alice", "Shop", None)
    assert await deposits.find_deposits(scene.conn, scene.cells, "t2", stall) == []
    with pytest.raises(ValueError, match="status is one of seen"):
        await hashes(statuses=("lost",))


@pytest.mark.parametrize(
    ("status", "head", "expected"),
    [("seen", 104, 5), ("seen", 90, 0), ("undone", 104, None), ("seen", None, None)],
)
async def test_confirmations_count_a_deposits_own_block(
    scene: ReportingScene, status: str, head: int | None, expected: int | None
) -> None:
    await scene.add_deposit(await scene.open_shop("Shop"), "t1", status=status)
    await scene.conn.execute("update deposit set block_number = 100")
    await scene.conn.execute("delete from chain_cursor")
    if head is not None:
        await scene.conn.execute(
            "insert into chain_cursor (chain, final_number, final_hash, head_number, head_hash, moved_ms)"
            " values ('TRC20', 80, 'h', %s, 'h', 1)",
            [head],
        )
    (found,) = await deposits.find_deposits(scene.conn, scene.cells, "t1")
    assert found.confirmations == expected


async def test_a_sub_users_deposits_are_read_page_by_page(scene: ReportingScene) -> None:
    shop = await scene.open_shop("Shop")
    alice, bob = await scene.register(shop, "alice"), await scene.register(shop, "bob")
    for number in range(5):
        status = "seen" if number % 2 else "credited"
        await scene.add_deposit(shop, f"a{number}", status=status, user_id=alice.user_id)
        await scene.add_deposit(shop, f"b{number}", user_id=bob.user_id)

    async def hashes(limit: int, *statuses: str) -> list[str]:
        wanted = DepositFilter(shop, statuses, user_id=alice.user_id)

        async def read(after: str | None, rows: int) -> Page[DepositLine]:
            return await deposits.list_deposits(
                scene.conn, scene.cells, wanted, after=after, limit=min(rows, 2)
            )

        return [line.tx_hash for line in await read_rows(read, limit)]

    assert await hashes(10) == ["a4", "a3", "a2", "a1", "a0"]
    assert await hashes(3) == ["a4", "a3", "a2"]
    assert await hashes(10, "seen") == ["a3", "a1"]


class ChangingConnection:
    """A connection beside which another one commits a change before the second page is read."""

    def __init__(self, conn: Connection, url: str, change: LiteralString) -> None:
        self._conn, self._url, self._change = conn, url, change
        self.pages = 0
        self.transaction, self.execute = conn.transaction, conn.execute

    def cursor(self, **options: Any) -> AsyncCursor[Any]:
        self.pages += 1
        if self.pages == 2:
            with connect_sync(self._url) as other:
                other.execute(self._change)
        cursor: AsyncCursor[Any] = self._conn.cursor(**options)
        return cursor


async def test_a_deposit_that_changes_between_two_pages_is_listed_as_it_was(scene: ReportingScene) -> None:
    shop, count = await scene.open_shop("Shop"), MAX_LIMIT + 5
    for number in range(count):
        await scene.add_deposit(shop, f"t{number}", status="seen")
    change: LiteralString = "update deposit set status = 'credited', final_ms = seen_ms where tx_hash = 't1'"
    changing: Any = ChangingConnection(scene.conn, scene.url, change)
    seen = DepositFilter(statuses=("seen",))
    found = await deposits.read_deposits(scene.conn, changing, seen, count)
    assert changing.pages == 2
    assert [line.tx_hash for line in found] == [f"t{number}" for number in reversed(range(count))]
    # The next list shows the change.
    assert (
        len(await deposits.read_deposits(scene.conn, scene.conn, DepositFilter(statuses=("seen",)), count))
        == count - 1
    )


async def test_deposits_at_an_address_are_its_owners(scene: ReportingScene) -> None:
    shop, stall = await scene.open_shop("Shop"), await scene.open_shop("Stall")
    user = await scene.register(shop, "alice")
    for number, status in enumerate(("dust", "credited", "credited")):
        await scene.add_deposit(shop, f"t{number}", status=status, user_id=user.user_id)
    row = await (await scene.conn.execute("select address from deposit limit 1")).fetchone()
    assert row is not None
    (address,) = row
    await scene.conn.execute(
        "insert into issued_address values (%s, %s) on conflict do nothing", [address, shop]
    )

    async def hashes(merchant_id: int | None, *statuses: str, limit: int = 50) -> list[str]:
        wanted = DepositFilter(merchant_id, statuses, address=address)
        page = await deposits.list_deposits(scene.conn, scene.cells, wanted, limit=limit)
        return [line.tx_hash for line in page.rows]

    assert await hashes(None) == await hashes(shop) == ["t2", "t1", "t0"]
    assert await hashes(None, "dust", limit=1) == ["t0"]
    assert await hashes(stall) == []
    nobody = await deposits.list_deposits(scene.conn, scene.cells, DepositFilter(address=bytes(20)))
    assert nobody.rows == ()


async def test_callbacks_are_found_by_state_merchant_kind_and_last_answer(scene: ReportingScene) -> None:
    shop, stall = await scene.open_shop("Shop"), await scene.open_shop("Stall")
    for merchant_id in (shop, stall, shop):
        await scene.cancel(merchant_id, await scene.order(merchant_id))
    everything = (await callbacks.list_callbacks(scene.cells, CallbackFilter())).rows
    newest, other, oldest = everything
    assert [line.merchant_name for line in everything] == ["Shop", "Stall", "Shop"]
    assert newest.url == "https://example.com/notify"
    await scene.conn.execute(
        "update callback set state = 'dead_letter', attempt_no = 2 where event_id = %s", [oldest.event_id]
    )
    for attempt_no, http_status in ((1, 500), (2, 404)):
        await scene.conn.execute(
            "insert into callback_attempt (merchant_id, order_id, status, attempt_no, at_ms, http_status)"
            " values (%s, %s, %s, %s, 1, %s)",
            [shop, oldest.order_id, oldest.status, attempt_no, http_status],
        )

    async def events(**wanted: object) -> list[str]:
        page = await callbacks.list_callbacks(scene.cells, CallbackFilter(**wanted))  # type: ignore[arg-type]
        return [line.event_id for line in page.rows]

    assert await events(states=("due",)) == [newest.event_id, other.event_id]
    assert await events(states=("dead_letter",)) == await events(http_status=404) == [oldest.event_id]
    assert await events(http_status=500) == await events(event_type="deposit") == []
    assert await events(merchant_id=stall) == [other.event_id]
    assert await events(merchant_id=shop, states=("dead_letter", "due")) == [newest.event_id, oldest.event_id]
    found = await callbacks.find_callback(scene.conn, oldest.event_id, shop)
    assert found is not None
    assert await callbacks.find_owner(scene.conn, oldest.event_id) == shop
    assert (found.attempt_no, found.http_status) == (2, 404)
    assert await callbacks.find_callback(scene.conn, oldest.event_id, stall) is None
    attempts = await callbacks.list_attempts(scene.conn, found)
    assert [attempt.http_status for attempt in attempts] == [404, 500]
    counts = {
        one.state: (one.callbacks, one.oldest_ms) for one in await callbacks.count_by_state(scene.cells)
    }
    assert counts == {
        "due": (2, other.created_ms),
        "dead_letter": (1, oldest.created_ms),
        "paused": (0, None),
    }
    own = await callbacks.count_by_state(scene.cells, stall)
    assert [one.callbacks for one in own] == [1, 0, 0]


async def test_entries_are_found_by_kind_account_period_and_order_id(scene: ReportingScene) -> None:
    shop, stall = await scene.open_shop("Shop"), await scene.open_shop("Stall")
    alice, bob = await scene.register(shop, "alice"), await scene.register(shop, "bob")
    await scene.pay_out(shop, alice, 10 * COIN)
    noon = scene.clock()
    await scene.charge(shop, alice, 5 * COIN, fee_rate_e8=10_000_000)
    await scene.pay_out(shop, bob, COIN)
    order = await scene.order(shop)

    async def kinds(**wanted: object) -> list[str]:
        page = await entries.list_entries(scene.conn, shop, EntryFilter(**wanted))  # type: ignore[arg-type]
        return [line.kind for line in page.rows]

    opening = ["register", "register", "adjust", "adjust"]
    assert await kinds() == ["withdraw", "merchant_to_user", "user_to_merchant", "merchant_to_user", *opening]
    assert await kinds(kinds=("merchant_to_user",)) == ["merchant_to_user", "merchant_to_user"]
    assert await kinds(kinds=("withdraw", "register")) == ["withdraw", "register", "register"]
    assert await kinds(kinds=("withdraw", "user_to_merchant")) == ["withdraw", "user_to_merchant"]
    assert await kinds(account=f"subuser:{alice.user_id}") == ["user_to_merchant", "merchant_to_user"]
    assert await kinds(account="fees:KFB") == ["user_to_merchant"]
    assert await kinds(account="merchant:KFB", kinds=("adjust",)) == ["adjust"]
    assert await kinds(to_ms=noon) == ["merchant_to_user", *opening]
    assert await kinds(from_ms=noon, account="merchant:KFB") == ["merchant_to_user", "user_to_merchant"]
    assert await kinds(from_ms=noon + 10**9) == []
    with pytest.raises(ValueError, match="kind is one of"):
        await kinds(kinds=("gift",))
    with pytest.raises(ValueError, match="is no account"):
        await kinds(account="piggy bank")
    (line,) = await entries.find_entries(scene.cells, order.mc_order_id)
    assert (line.source, line.target, line.amount_units) == ("merchant:USDT", "hold:USDT", 10 * COIN)
    assert await entries.find_entries(scene.cells, order.mc_order_id, stall) == []


async def test_an_account_is_walked_through_although_entries_touch_it_twice(scene: ReportingScene) -> None:
    shop = await scene.open_shop("Shop")
    alice = await scene.register(shop, "alice")
    for _ in range(4):
        await scene.pay_out(shop, alice, 10 * COIN)
        await scene.charge(shop, alice, 5 * COIN, fee_rate_e8=10_000_000)
    wanted, after, found = EntryFilter(account=f"subuser:{alice.user_id}"), None, []
    while True:
        page = await entries.list_entries(scene.conn, shop, wanted, after=after, limit=3)
        found += [line.entry_id for line in page.rows]
        if (after := page.next) is None:
            break
    assert len(found) == 8
    assert found == sorted(set(found), reverse=True)


async def test_an_entry_is_shown_with_the_hash_it_is_chained_to(scene: ReportingScene) -> None:
    shop, stall = await scene.open_shop("Shop"), await scene.open_shop("Stall")
    lines = (await entries.list_entries(scene.conn, shop, EntryFilter())).rows
    second, first = [await entries.show_entry(scene.conn, shop, line.entry_id) for line in lines]
    assert first is not None
    assert second is not None
    assert first.previous_hash == FIRST_HASH
    assert second.previous_hash == first.entry.hash
    assert second.entry.postings[0].amount_units == 1000 * COIN
    assert await entries.show_entry(scene.conn, stall, first.entry.entry_id) is None


async def test_a_statement_is_exported_in_pieces_that_join_to_the_whole(
    scene: ReportingScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = await scene.open_shop("Shop")
    alice = await scene.register(shop, "alice")
    for _ in range(3):
        await scene.pay_out(shop, alice, 10 * COIN)

    async def pieces(**wanted: str) -> list[bytes]:
        return [piece async for piece in export.stream_statement(scene.conn, shop, **wanted)]  # type: ignore[arg-type]

    whole = await pieces()
    assert len(whole) == 1
    monkeypatch.setattr(export, "PIECE_CHARACTERS", 100)
    in_pieces = await pieces()
    assert len(in_pieces) > 5
    assert b"".join(in_pieces) == whole[0]
    assert whole[0].startswith(b"entryId,atMs,kind,")
    assert whole[0].count(b"\r\n") == 1 + 2 * 5
    lines = b"".join(await pieces(form="jsonl", account=f"subuser:{alice.user_id}")).splitlines()
    assert len(lines) == 3
    assert b'"amount":"10"' in lines[0]
    with pytest.raises(ValueError, match="form is one of csv, jsonl"):
        await pieces(form="xls")
    with pytest.raises(LookupError):
        await pieces(account="subuser:999999")


async def test_merchants_are_listed_with_what_they_hold(scene: ReportingScene) -> None:
    shop, stall = await scene.open_shop("Shop"), await scene.open_shop("Arcade")
    alice = await scene.register(shop, "alice")
    await scene.pay_out(shop, alice, 100 * COIN)
    await scene.order(shop, 30 * COIN)
    await scene.conn.execute("update merchant set status = 'suspended' where merchant_id = %s", [stall])
    await rollup.advance_all(scene.conn, scene.clock())
    first, second = (await merchants.list_merchants(scene.conn, scene.cells)).rows
    assert (first.merchant_id, second.merchant_id) == (shop, stall)
    assert (first.usdt_units, first.kfb_units, first.hold_units) == (970 * COIN, 900 * COIN, 30 * COIN)
    assert (first.sub_users, first.sub_user_kfb_units, first.sub_user_usdt_units) == (1, 100 * COIN, 0)
    assert (first.entry_count, second.sub_users, second.sub_user_kfb_units) == (5, 0, 0)
    assert await merchants.show_merchant(scene.conn, scene.conn, shop) == first
    assert await merchants.show_merchant(scene.conn, scene.conn, shop - 1) is None
    by_name = await merchants.list_merchants(scene.conn, scene.cells, sort="name", limit=1)
    assert [line.name for line in by_name.rows] == ["Arcade"]
    rest = await merchants.list_merchants(scene.conn, scene.cells, sort="name", after=by_name.next, limit=1)
    assert [line.name for line in rest.rows] == ["Shop"]
    assert rest.next is None
    active = await merchants.list_merchants(scene.conn, scene.cells, statuses=["active"])
    assert [line.name for line in active.rows] == ["Shop"]


async def test_merchants_are_found_by_id_key_and_part_of_the_name(scene: ReportingScene) -> None:
    shop, stall = await scene.open_shop("Corner Shop"), await scene.open_shop("shop")
    for word, expected in (
        (str(shop), [shop]),
        ("SHOP", [stall, shop]),
        ("orner", [shop]),
        ("%", []),
        ("\0", []),
        (" ", []),
    ):
        found = await merchants.find_merchants(scene.conn, word)
        assert [one.merchant_id for one in found] == expected
    (found_one,) = await merchants.find_merchants(scene.conn, str(stall))
    assert [one.merchant_id for one in await merchants.find_merchants(scene.conn, found_one.app_key)] == [
        stall
    ]


async def test_sub_users_are_listed_by_the_beginning_of_a_name_over_all_shops(scene: ReportingScene) -> None:
    shop, stall = await scene.open_shop("Shop"), await scene.open_shop("Stall")
    for merchant_id, name in (
        (shop, "bob"),
        (stall, "Alice"),
        (shop, "alice"),
        (stall, "alina"),
        (shop, "al%"),
    ):
        await scene.register(merchant_id, name)
    alina = (await sub_users.find_sub_users(scene.conn, scene.cells, "alina"))[0]
    await scene.conn.execute("update sub_user set username = 'Alix' where user_id = %s", [alina.user_id])

    async def names(*, limit: int = 2, **wanted: object) -> list[str]:
        found, after = [], None
        while True:
            page = await sub_users.list_sub_users(scene.cells, after=after, limit=limit, **wanted)  # type: ignore[arg-type]
            found += [line.ext_user_id for line in page.rows]
            if (after := page.next) is None:
                return found

    assert await names() == ["bob", "alice", "al%", "Alice", "alina"]
    assert await names(merchant_id=stall) == ["Alice", "alina"]
    assert await names(ext_prefix="al") == ["al%", "alice", "alina"]
    assert await names(ext_prefix="al%") == ["al%"]
    assert await names(ext_prefix="al", merchant_id=shop) == ["al%", "alice"]
    assert await names(ext_prefix="a\0") == await names(ext_prefix="zz") == []
    assert await names(name_prefix="ali", limit=1) == ["alice", "Alice", "alina"]
    assert await names(name_prefix="ALIX") == ["alina"]
    with pytest.raises(ValueError, match="not by both"):
        await names(ext_prefix="a", name_prefix="a")


async def test_sub_users_by_name_are_walked_backwards_too(scene: ReportingScene) -> None:
    shop, stall = await scene.open_shop("Shop"), await scene.open_shop("Stall")
    for merchant_id, name in ((shop, "a1"), (stall, "a1"), (shop, "a2"), (stall, "a3"), (shop, "b")):
        await scene.register(merchant_id, name)
    for by in ("ext_prefix", "name_prefix"):
        wanted = {by: "a"}
        first = await sub_users.list_sub_users(scene.cells, **wanted, limit=1)  # type: ignore[arg-type]
        second = await sub_users.list_sub_users(scene.cells, **wanted, after=first.next, limit=1)  # type: ignore[arg-type]
        third = await sub_users.list_sub_users(scene.cells, **wanted, after=second.next, limit=2)  # type: ignore[arg-type]
        assert [line.ext_user_id for line in third.rows] == ["a2", "a3"]
        assert third.next is None
        back = await sub_users.list_sub_users(scene.cells, **wanted, after=third.previous, limit=1)  # type: ignore[arg-type]
        assert back.rows == second.rows
        back = await sub_users.list_sub_users(scene.cells, **wanted, after=back.previous, limit=1)  # type: ignore[arg-type]
        assert back.rows == first.rows


async def test_a_sub_user_is_found_by_id_name_and_either_address(scene: ReportingScene) -> None:
    shop, stall = await scene.open_shop("Shop"), await scene.open_shop("Stall")
    alice, other = await scene.register(shop, "alice"), await scene.register(stall, "alice")
    tricky = await scene.register(stall, str(alice.user_id))

    async def found(word: str, merchant_id: int | None = None) -> list[int]:
        return [
            line.user_id
            for line in await sub_users.find_sub_users(scene.conn, scene.cells, word, merchant_id)
        ]

    assert await found("alice") == [alice.user_id, other.user_id]
    assert await found("alice", stall) == [other.user_id]
    assert await found(str(alice.user_id)) == [alice.user_id, tricky.user_id]
    assert await found(str(alice.user_id), stall) == [tricky.user_id]
    assert await found(to_eip55(evm_of(1))) == await found(to_tron(tron_of(1))) == [alice.user_id]
    assert await found(to_eip55(evm_of(1)), stall) == []
    assert await found(TRON_ADDRESS) == await found("9" * 30) == await found("\0") == []
    assert await sub_users.show_sub_user(scene.conn, stall, alice.user_id) is None
