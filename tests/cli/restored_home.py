"""A home that is restored from a back-up while its apart cell is not, as an operator meets it."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from psycopg import AsyncConnection
from tests.cli.conftest import Wallet
from tests.conftest import FAR, SharedPostgres

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.config import load_settings
from merchant_wallet.base.db import connect_sync, place, strip_identity
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.nonce_partitions import ensure_nonce_partitions
from merchant_wallet.merchants.cells.carrying import carry_waiting
from merchant_wallet.merchants.cells.fence import MOVED
from merchant_wallet.merchants.cells.mirroring import mirror
from merchant_wallet.processes.base import Base, make_base
from merchant_wallet.processes.cell_connections import CellConnections
from merchant_wallet.processes.cell_workers import FIGURE_TASKS
from merchant_wallet.processes.worker import open_checkpoint_task
from merchant_wallet.reporting.finance import months
from merchant_wallet.reporting.finance.periods import month_of, previous_month

ACCEPT: Final = ("book", "accept-rollback", "--reason", "home was restored alone")


@dataclass
class Scene:
    """A wallet whose cell `far` is in another database, and copies of databases."""

    postgres: SharedPostgres
    wallet: Wallet
    far: str
    copies: list[str] = field(default_factory=list)

    def copy(self, url: str) -> str:
        """A copy of a database, as a back-up that was restored elsewhere. Nobody is connected to it."""
        name = url.rsplit("/", 1)[1].split("?")[0]
        copy = f"{name}_{len(self.copies)}"
        with self.postgres.closing(url):
            self.postgres.execute(f"create database {copy} template {name} strategy = file_copy")
        self.copies.append(copy)
        self.postgres.execute(f"alter database {copy} allow_connections true")
        return self.postgres.url_of(copy)

    def back_up(self) -> str:
        """A back-up of home."""
        return self.copy(self.wallet.url)

    def restore(self, copy: str) -> None:
        """Home is what it was. Cells, checkpoints and keys stay."""
        self.wallet.url = self.wallet.both_url = self.wallet.variables["WALLET_DATABASE_URL"] = copy

    def move_far(self, *, is_noted: bool = True) -> str:
        """The cell moves, as `cell move` leaves it, but in a moment. Returns the URL of its new place.

        Without `is_noted` the old place does not say where: the mover died before that.
        """
        new, old_url = self.copy(self.far), place(self.far, None, FAR)
        note = f"comment on schema {FAR} is '{MOVED}{strip_identity(new)}'"
        with connect_sync(old_url) as old, connect_sync(self.wallet.url) as home:
            old.execute("update cell_state set version = version + 1, is_open = false")
            if is_noted:
                old.execute(note.encode())
            values = (strip_identity(new),)
            home.execute("update cell set version = version + 1, address = %s where name = 'far'", values)
        with connect_sync(place(new, None, FAR)) as there:
            there.execute("update cell_state set version = version + 1, home_no = 0")
        self.far = new
        return new

    def work(self) -> list[str]:
        """What workers do each minute. Returns the subjects of the open evidence."""
        return asyncio.run(self._work())

    async def _work(self) -> list[str]:
        base = make_base(load_settings(self.wallet.variables), self.wallet.url)
        cells = CellConnections(base.cells.connect_home, base.cells)
        try:
            for cell_id, cell in (await cells.reach_apart()).items():
                home = await cells.get_home()
                await mirror(home, cell)
                await carry_waiting(home, cell, cell_id)
                await _add_up(base, cell)
                await ensure_nonce_partitions(cell, now_ms() // DAY_MS)
            home = await cells.get_home()
            await _add_up(base, home)
            await ensure_nonce_partitions(home, now_ms() // DAY_MS)
            task = await open_checkpoint_task(base, cells.reach_apart)
            await task.run_once(home, now_ms() + 61_000 * len(self.copies))
            rows = await (await home.execute("select subject from rollback_evidence order by 1")).fetchall()
            return [subject for (subject,) in rows]
        finally:
            await cells.close()

    def list_faults(self) -> dict[str, str]:
        """What `doctor` finds wrong, by the name of the check, with its advice."""
        checks = self.wallet.look("doctor")["checks"]
        return {check["name"]: f"{check['text']}: {check['advice']}" for check in checks if not check["ok"]}

    def count_books(self) -> set[int]:
        """The merchants of the last month's report. It is refused unless each has exactly one book."""
        return asyncio.run(self._count_books())

    async def _count_books(self) -> set[int]:
        base = make_base(load_settings(self.wallet.variables), self.wallet.url)
        cells, figures = CellConnections(base.cells.connect_home, base.cells), months._Figures()
        try:
            async for _ in months._read_books(await cells.get(), previous_month(month_of(now_ms())), figures):
                pass
        finally:
            await cells.close()
        return figures.merchants

    def require_sound(self) -> None:
        """Nothing is wrong any more."""
        assert self.work() == []
        self.wallet.run("book", "verify")
        assert (faults := self.list_faults()) == {}, faults
        known = {merchant["merchantId"] for merchant in self.wallet.ask("merchant", "list")["merchants"]}
        assert self.count_books() == known

    def read_far(self, query: str) -> list[tuple[Any, ...]]:
        """Query the cell directly."""
        with connect_sync(place(self.far, None, FAR)) as far:
            return far.execute(query.encode()).fetchall()


async def _add_up(base: Base, cell: AsyncConnection[Any]) -> None:
    for task in FIGURE_TASKS.values():
        await task(cell, now_ms())


@contextmanager
def open_scene(postgres: SharedPostgres, wallet: Wallet, far: str) -> Iterator[Scene]:
    """The wallet with a cell `far` in the database of this URL."""
    scene = Scene(postgres, wallet, far)
    try:
        yield scene
    finally:
        for copy in scene.copies:
            postgres.drop(copy)
