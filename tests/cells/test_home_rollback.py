"""Home is restored from a backup, its apart cell is not. Payouts stop until home knows what the cell has."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest
from tests.book.test_checkpoints import SIGNER
from tests.cells.layout import Layout
from tests.cells.test_workers import open_shop, order, status
from tests.crash_points import before_change, run_killed
from tests.journeys.conftest import MASTER_KEY, Shop, running
from tests.merchants.test_xpub_pool import KEYRING, NOW_MS, accounts
from tests.rollback.test_checkpoint_task import REQUEST

from merchant_wallet.audit.checkpointing.acceptance import EvidenceSources, accept
from merchant_wallet.audit.checkpointing.frozen_orders import NO_PAYOUT
from merchant_wallet.audit.checkpointing.keys import pin, publish
from merchant_wallet.audit.checkpointing.task import CheckpointTask
from merchant_wallet.audit.rollback.evidence import list_evidence
from merchant_wallet.base.cells import Apart, Databases
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.db import connect
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.commands import Approve, TakeUp
from merchant_wallet.book.early_approvals import find_early_approval
from merchant_wallet.merchants import store, xpub_pool
from merchant_wallet.merchants.cells.carrying import carry
from merchant_wallet.merchants.cells.home_restoration import Means, restore
from merchant_wallet.merchants.cells.lost_merchants import MerchantDiffers
from merchant_wallet.merchants.cells.moves import Auditor
from merchant_wallet.merchants.keys import Keyring
from merchant_wallet.merchants.xpub_pool import PoolEmpty
from merchant_wallet.operators.order_approvals import read_eligible_ms

BY = Auditor(REQUEST.actor, REQUEST.source)
FORGOTTEN = ("merchant_address", "account", "book", "issued_address", "id_range", "merchant_secret")
"""What home's own cell and home have of a merchant without an entry, in the order of their foreign keys."""
ISSUED_BY = "select address, merchant_id from issued_address order by 1"
ISSUED = "select address from issued_address where merchant_id = %s order by 1"


class Backup(NamedTuple):
    """What these tests roll back in home, with one merchant."""

    marked_no: int
    addresses: list[bytes]
    versions: tuple[Any, ...]

    @classmethod
    def take(cls, home: psycopg.Connection) -> "Backup":
        [(marked_no,)] = read(home, "select marked_no from cell where name = 'far'")
        addresses = [row[0] for row in read(home, "select address from issued_address")]
        query = "select settings_version, carried_version, next_address_index from merchant"
        return cls(marked_no, addresses, read(home, query)[0])


async def _compare(layout: Layout, folder: Path) -> list[Any]:
    """A worker's comparison. Returns the open evidence."""
    async with await connect(layout.url) as home, await connect(layout.far_url) as far:

        async def reach() -> Apart:
            return {layout.far_id: far}

        await CheckpointTask(SIGNER, folder, None, reach).run_once(home, now_ms())
        return await list_evidence(home)


def open_folder(layout: Layout, parent: Path) -> Path:
    """A folder for checkpoints, whose key the database knows."""

    async def pin_key() -> None:
        async with await connect(layout.url) as home:
            await pin(home, SIGNER, now_ms())

    folder = parent / "checkpoints"
    folder.mkdir(mode=0o700)
    publish(SIGNER, folder)
    asyncio.run(pin_key())
    return folder


def compare(layout: Layout, folder: Path) -> list[str]:
    """The subjects of the open evidence after a comparison."""
    return [found.subject for found in asyncio.run(_compare(layout, folder))]


async def _accept(layout: Layout, folder: Path) -> tuple[int, ...]:
    async with await connect(layout.url) as home, await connect(layout.far_url) as far:
        means = Means(BY, Keyring(MASTER_KEY), is_sandbox=True, secret_wait_ms=DAY_MS)

        async def give_back(databases: Databases) -> None:
            await restore(databases, means)

        accepted = await accept(
            Databases(home, {layout.far_id: far}),
            EvidenceSources(folder),
            REQUEST,
            restore=give_back,
        )
        return accepted.frozen_orders


def read(connection: psycopg.Connection, query: str) -> list[tuple[Any, ...]]:
    return connection.execute(query.encode()).fetchall()


def test_a_home_that_is_behind_its_cell_pays_nothing_until_a_person_accepts_it(
    layout: Layout, tmp_path: Path
) -> None:
    folder = open_folder(layout, tmp_path)
    with running(layout.url, tmp_path) as platform:
        away: Shop = open_shop(platform, layout, away=True)
        for _ in range(2):
            assert compare(layout, folder) == []
        with layout.both() as (home, far):
            assert read(home, "select marked_no from cell where name = 'far'") == [(2,)]
            before = Backup.take(home)

            # After the backup: another merchant, a new address, an order under way, changes of settings.
            assert compare(layout, folder) == []
            lost = open_shop(platform, layout, away=True)
            away.user("carol")
            made = order(away)
            away.ask_book(TakeUp(int(made["orderId"])))
            ranges = read(home, "select range_no from id_range order by 1")
            addresses = read(home, "select count(*) from issued_address")
            newest = f"update book set settings_version = 7 where merchant_id = {away.merchant_id}"
            far.execute(newest.encode())

            _restore(home, before, lost.merchant_id)
            assert compare(layout, folder) == ["home"]
            # A look does not hide it.
            assert compare(layout, folder) == ["home"]
            assert asyncio.run(_accept(layout, folder)) == (int(made["orderId"]),)
            assert read(home, "select frozen_cause from payout") == [(NO_PAYOUT,)]
            assert compare(layout, folder) == []

            assert read(home, "select range_no from id_range order by 1") == ranges
            assert read(home, "select count(*) from issued_address") == addresses
            returned = f"select status from merchant where merchant_id = {lost.merchant_id}"
            assert read(home, returned) == read(far, returned) == [("suspended",)]
            assert read(
                home, f"select settings_version from merchant where merchant_id = {away.merchant_id}"
            ) == [(8,)]
            assert open_shop(platform, layout, away=True).merchant_id > lost.merchant_id
        assert status(away, made) == "1"


def test_of_a_restored_home_nobody_approves_orders_of_secrets_that_it_may_have_lost_or_more_than_a_day_allows(
    layout: Layout, tmp_path: Path
) -> None:
    folder = open_folder(layout, tmp_path)
    with running(layout.url, tmp_path) as platform:
        away, idle = (platform.open_merchant(cell_id=layout.far_id, approval_limit="1") for _ in range(2))
        away.fund("USDT", "100")
        waiting, approved = (int(order(away)["orderId"]) for _ in range(2))
        away.ask_book(Approve(approved, "operator:ann"))
        with layout.both() as (home, far):
            far.execute("update cell_state set home_no = 9")
            home.execute("insert into approved_sum values ('ann', %s, 1)", (now_ms() // DAY_MS,))
            assert asyncio.run(_accept(layout, folder)) == ()
            assert sorted(read(home, "select person, units from approved_sum")) == [("ann", 3_000_000)]

        async def look() -> None:
            async with await connect(layout.url) as home, await connect(layout.far_url) as far:
                held_ms = await read_eligible_ms(home, "operator:ben", away.merchant_id)
                assert held_ms > now_ms() + DAY_MS // 2
                assert await read_eligible_ms(home, "operator:ben", idle.merchant_id) == 0
                find = partial(find_early_approval, home, far, away.merchant_id)
                assert await find(min(waiting, approved), max(waiting, approved)) is None
                # Somebody who gets past the web side is noticed by the payer and by verification.
                away.ask_book(Approve(waiting, "cli:dave"))
                assert await find(waiting, waiting) == (waiting, "cli:dave")
                assert await find(approved, approved) is None

        asyncio.run(look())


def _restore(home: psycopg.Connection, before: Backup, lost: int) -> None:
    """Make home what it was, also the sequence of merchants' ids."""
    with home.transaction():
        home.execute("delete from payout")
        home.execute("delete from issued_address where not address = any (%s)", (before.addresses,))
        for table in ("id_range", "merchant_secret", "merchant"):
            home.execute(f"delete from {table} where merchant_id = %s".encode(), (lost,))
        home.execute(
            "update merchant set settings_version = %s, carried_version = %s, next_address_index = %s",
            before.versions,
        )
        home.execute("update cell set marked_no = %s where name = 'far'", (before.marked_no,))
        home.execute("select setval('merchant_merchant_id_seq', %s)", (lost - 1,))


@pytest.mark.parametrize("number", [0, 5])
def test_a_cell_that_was_told_less_than_home_knows_is_no_evidence(
    layout: Layout, tmp_path: Path, number: int
) -> None:
    with layout.both() as (home, far):
        home.execute("update cell set marked_no = 5 where name = 'far'")
        far.execute("update cell_state set home_no = %s", (number,))
        assert compare(layout, open_folder(layout, tmp_path)) == []
        assert read(far, "select home_no from cell_state") == [(6,)]


@pytest.mark.parametrize("ahead", [0, 32])
def test_a_live_merchant_comes_back_with_its_account_and_no_account_is_given_out_twice(
    layout: Layout, ahead: int
) -> None:
    names = ("Stays", "Lost", "Away")

    async def story() -> None:
        async with await connect(layout.url) as home, await connect(layout.far_url) as far:
            databases = Databases(home, {layout.far_id: far})
            await xpub_pool.add(home, accounts(0, 3))
            made = []
            for name in names:
                cell_id = layout.far_id if name == "Away" else 0
                new = await store.create(home, KEYRING, name, seed=None, at_ms=NOW_MS, cell_id=cell_id)
                made.append(new.merchant.merchant_id)
            _, lost, away = made
            await carry(home, far, layout.far_id, away)
            issued = await _list_rows(home, ISSUED, away)

            # Home is what it was after the first one. The checkpoints of the second one are left.
            for table in FORGOTTEN:
                await home.execute(f"delete from {table} where merchant_id > %s".encode(), (made[0],))
            await home.execute("update xpub_pool set merchant_id = null where account_no > 0")
            await home.execute("delete from merchant where merchant_id > %s", (made[0],))
            # PostgreSQL logs a sequence ahead: a back-up of its files has such a number.
            await home.execute("select setval('merchant_merchant_id_seq', %s)", (made[0] + ahead,))

            means = Means(BY, KEYRING, is_sandbox=False, checkpointed=[lost])
            with pytest.raises(PoolEmpty, match="keys derive"):
                await restore(databases, means)
            await xpub_pool.add(home, accounts(3, 1))
            assert (await restore(databases, means)).merchants == [away]
            # Nothing is counted again.
            assert (await restore(databases, means)).merchants == []
            assert await _list_rows(home, ISSUED, away) == issued
            assert await _list_rows(home, "select account_no, merchant_id from xpub_pool order by 1") == [
                (0, made[0]),
                (2, away),
                (3, None),
            ]
            new = await store.create(home, KEYRING, "Next", seed=None, at_ms=NOW_MS)
            assert new.merchant.merchant_id == max(away, made[0] + ahead) + 1
            assert (await store.load(home, KEYRING, away)) is not None

    asyncio.run(story())


@pytest.mark.parametrize("is_checkpointed", [False, True])
def test_a_lost_merchant_comes_back_whole_when_its_cell_is_named_later(
    layout: Layout, is_checkpointed: bool
) -> None:
    async def story() -> None:
        async with await connect(layout.url) as home, await connect(layout.far_url) as far:
            await xpub_pool.add(home, accounts(0, 5))
            made = [
                (await store.create(home, KEYRING, name, seed=None, at_ms=NOW_MS, cell_id=cell_id)).merchant
                for name, cell_id in (("Stays", 0), ("Empty", layout.far_id), ("Away", layout.far_id))
            ]
            stays, *lost = [merchant.merchant_id for merchant in made]
            for merchant_id in lost:
                await carry(home, far, layout.far_id, merchant_id)
            issued = await _list_rows(home, ISSUED_BY)
            ranges = await _list_rows(home, "select merchant_id, range_no from id_range order by 1")
            for table in FORGOTTEN:
                await home.execute(f"delete from {table} where merchant_id > %s".encode(), (stays,))
            await home.execute("update xpub_pool set merchant_id = null where merchant_id > %s", (stays,))
            await home.execute("delete from merchant where merchant_id > %s", (stays,))

            # A person forgot to name the cell.
            shown = [ranges[-1][1]] if is_checkpointed else []
            means = Means(BY, KEYRING, is_sandbox=False, checkpointed=lost[-1:], ranges=shown)
            assert (await restore(Databases(home, {}), means)).merchants == []
            new = await store.create(home, KEYRING, "Next", seed=None, at_ms=NOW_MS + 1)

            means = Means(BY, KEYRING, is_sandbox=False)
            assert (await restore(Databases(home, {layout.far_id: far}), means)).merchants == lost
            after = await _list_rows(home, "select merchant_id, range_no from id_range order by 1")
            assert after[:3] == ranges
            assert after[3][0] == new.merchant.merchant_id
            assert set(issued) <= set(await _list_rows(home, ISSUED_BY))
            assert await _list_rows(home, "select account_no, merchant_id from xpub_pool order by 1") == [
                (0, stays),
                (1, lost[0]),
                (2, lost[1]),
                (3, new.merchant.merchant_id),
                (4, None),
            ]

    asyncio.run(story())


def test_a_restoration_killed_anywhere_gives_no_account_or_range_twice(layout: Layout) -> None:
    async def give_back(with_cell: bool, means: Means) -> None:
        async with await connect(layout.url) as home, await connect(layout.far_url) as far:
            await restore(Databases(home, {layout.far_id: far} if with_cell else {}), means)

    async def story() -> None:
        async with await connect(layout.url) as home, await connect(layout.far_url) as far:
            await xpub_pool.add(home, accounts(0, 5))
            made = []
            for name, cell_id in (("Stays", 0), ("Near", 0), ("Away", layout.far_id)):
                new = await store.create(home, KEYRING, name, seed=None, at_ms=NOW_MS, cell_id=cell_id)
                made.append(new.merchant.merchant_id)
            stays, near, away = made
            await carry(home, far, layout.far_id, away)
            for table in FORGOTTEN:
                await home.execute(f"delete from {table} where merchant_id > %s".encode(), (stays,))
            await home.execute("update xpub_pool set merchant_id = null where merchant_id > %s", (stays,))
            await home.execute("delete from merchant where merchant_id > %s", (stays,))
            kills = 0
            for with_cell in (False, True):
                means = Means(BY, KEYRING, is_sandbox=False, checkpointed=[near, away], ranges=[2])
                number = 1
                while await run_killed(give_back(with_cell, means), before_change(number)):
                    kills, number = kills + 1, number + 1
            assert kills > 10
            assert await _list_rows(home, "select account_no, merchant_id from xpub_pool order by 1") == [
                (0, stays),
                (2, away),
                (3, None),
                (4, None),
            ]
            assert await _list_rows(home, "select account_no from lost_xpub") == [(1,)]
            new = await store.create(home, KEYRING, "Next", seed=None, at_ms=NOW_MS)
            ranges = await _list_rows(home, "select range_no, merchant_id from id_range order by 1")
            assert ranges == [(1, stays), (3, away), (4, new.merchant.merchant_id)]

    asyncio.run(story())


def test_a_merchant_whose_range_of_ids_was_given_out_again_is_refused(layout: Layout) -> None:
    async def story() -> None:
        async with await connect(layout.url) as home, await connect(layout.far_url) as far:
            await xpub_pool.add(home, accounts(0, 3))
            lost = await store.create(home, KEYRING, "Lost", seed=None, at_ms=NOW_MS, cell_id=layout.far_id)
            merchant_id = lost.merchant.merchant_id
            await carry(home, far, layout.far_id, merchant_id)
            for table in ("issued_address", "id_range", "merchant_secret"):
                await home.execute(f"delete from {table}".encode())
            await home.execute("update xpub_pool set merchant_id = null")
            await home.execute("delete from merchant")
            await store.create(home, KEYRING, "Other", seed=None, at_ms=NOW_MS + 1)
            with pytest.raises(MerchantDiffers, match=f"merchant {merchant_id} in cell .* range 1 of ids"):
                await restore(Databases(home, {layout.far_id: far}), Means(BY, KEYRING, is_sandbox=False))
            assert len(await _list_rows(home, "select merchant_id from merchant")) == 1

    asyncio.run(story())


def test_a_merchant_created_after_the_restore_gets_nothing_of_a_lost_one(layout: Layout) -> None:
    async def story() -> None:
        async with await connect(layout.url) as home, await connect(layout.far_url) as far:
            databases = Databases(home, {layout.far_id: far})
            await xpub_pool.add(home, accounts(0, 2))
            lost = await store.create(home, KEYRING, "Lost", seed=None, at_ms=NOW_MS, cell_id=layout.far_id)
            merchant_id = lost.merchant.merchant_id
            await carry(home, far, layout.far_id, merchant_id)
            # Home is what it was before, and nobody has compared it yet.
            for table in ("issued_address", "id_range", "merchant_secret"):
                await home.execute(f"delete from {table}".encode())
            await home.execute("update xpub_pool set merchant_id = null")
            await home.execute("delete from merchant")
            await home.execute("select setval('merchant_merchant_id_seq', %s, false)", (merchant_id,))
            other = await store.create(home, KEYRING, "Other", seed=None, at_ms=NOW_MS + 1)
            assert other.merchant.merchant_id == merchant_id
            with pytest.raises(PoolEmpty, match="another merchant"):
                await xpub_pool.give(home, 0, merchant_id)
            before = await _list_rows(home, ISSUED_BY)
            with pytest.raises(MerchantDiffers, match=r"\(Other\).*\(Lost\)"):
                await restore(databases, Means(BY, KEYRING, is_sandbox=False))
            assert await _list_rows(home, ISSUED_BY) == before
            assert await _list_rows(home, "select cell_id from merchant") == [(0,)]

    asyncio.run(story())


async def _list_rows(connection: Any, query: str, *values: object) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = await (await connection.execute(query.encode(), values)).fetchall()
    return rows
