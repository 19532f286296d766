"""Home is restored from a backup, its apart cell is not. Payouts stop until home knows what the cell has."""

import asyncio
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest
from tests.book.test_checkpoints import SIGNER
from tests.cells.layout import Layout
from tests.cells.test_workers import open_shop, order, status
from tests.journeys.conftest import MASTER_KEY, Shop, running
from tests.rollback.test_checkpoint_task import OLD_KEY, REQUEST

from merchant_wallet.audit.checkpointing.acceptance import EvidenceSources, accept
from merchant_wallet.audit.checkpointing.frozen_orders import NO_PAYOUT
from merchant_wallet.audit.checkpointing.keys import pin, publish
from merchant_wallet.audit.checkpointing.task import CheckpointTask
from merchant_wallet.audit.rollback.evidence import list_evidence
from merchant_wallet.base.cells import Apart, Databases
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.db import connect
from merchant_wallet.book.commands import TakeUp
from merchant_wallet.merchants.cells.home_restoration import Means, restore
from merchant_wallet.merchants.cells.moves import Auditor
from merchant_wallet.merchants.keys import Keyring


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
        means = Means(Auditor(REQUEST.actor, REQUEST.source), Keyring(MASTER_KEY), is_sandbox=True)

        async def give_back(databases: Databases) -> None:
            await restore(databases, means)

        accepted = await accept(
            Databases(home, {layout.far_id: far}),
            EvidenceSources(folder, OLD_KEY),
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
