"""What a command needs: settings, the database, and a book's writer.

Rules:
- WALLET_DATABASE_URL is used if it is set, as `up` does. Otherwise the database of the `up` that runs in the
  data folder is used, wherever that database is.
- No command creates a master key: the service could never open secrets that were sealed with another key.
- No command changes a database of the other mode.
- Imports are made where they are needed, to keep the start fast.
"""

import dataclasses
import os
import pwd
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from merchant_wallet.base.config import has_master_key, load_settings
from merchant_wallet.base.settings import Settings
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.cli.failures import CANNOT_RUN, Failure, describe_database_error

if TYPE_CHECKING:
    from psycopg import AsyncConnection

    from merchant_wallet.audit.records import Author, Hold
    from merchant_wallet.base.cells import Cell, Databases
    from merchant_wallet.book.commands import Command
    from merchant_wallet.book.outcomes import Outcome
    from merchant_wallet.merchants.cells.directory import Directory
    from merchant_wallet.merchants.store import MerchantRef
    from merchant_wallet.processes.base import Base
    from merchant_wallet.reporting.cells import Reach

T = TypeVar("T")

SOURCE = "terminal"
"""The source of changes by commands, in the audit log."""


def read_settings(data: Path | None, **typed: Any) -> Settings:
    """The environment's settings, overridden by typed options. None means "not typed". Raises ConfigError."""
    changes = {name: value for name, value in {"data": data, **typed}.items() if value is not None}
    return load_settings(os.environ, typed=changes)


def read_running(data: Path | None) -> Settings:
    """The settings, completed by those of the `up` that runs in the data folder.

    Raises ConfigError, OSError.
    """
    from merchant_wallet.processes.runtime_file import read_runtime_file

    settings = read_settings(data)
    found = read_runtime_file(settings.data)
    if settings.database_url not in (None, found.database_url):
        # This is another database than the running one, so its checkpoints are not ours.
        return settings
    folder = settings.checkpoint_dir
    if folder is None and found.checkpoint_dir is not None:
        folder = Path(found.checkpoint_dir)
    return dataclasses.replace(
        settings, database_url=found.database_url, checkpoint_dir=folder, **found.list_shared()
    )


def find_database(settings: Settings, side: Literal["owner", "web", "worker"] = "owner") -> str:
    """The database's URL. In our own PostgreSQL: for the tables' owner or for a side's role.

    Raises PostgresError, and Failure if nothing runs in the data folder.
    """
    from merchant_wallet import postgres

    roles = {"owner": postgres.OWNER_ROLE, "web": postgres.WEB_ROLE, "worker": postgres.WORKER_ROLE}
    url = settings.database_url or postgres.locate(settings.data, roles[side])
    if url is None:
        folder = shlex.quote(str(settings.data))
        if not (postgres.has_cluster(settings.data) or has_master_key(settings)):
            raise Failure(
                f"There is no wallet in the folder {folder}. Name the folder of your wallet with --data or "
                "WALLET_DATA, or set WALLET_DATABASE_URL. "
                f"`merchant-wallet up --data {folder}` would make a new, empty one there.",
                CANNOT_RUN,
            )
        raise Failure(
            f"No wallet is running in the folder {folder}. "
            f"Start it with `merchant-wallet up --data {folder}`, or set WALLET_DATABASE_URL.",
            CANNOT_RUN,
        )
    return url


def find_actor() -> str:
    """The person at the terminal, as the journal names it."""
    uid = os.getuid()
    try:
        return f"cli:{pwd.getpwuid(uid).pw_name}"
    except KeyError:
        # In a container the uid may have no name.
        return f"cli:{uid}"


class Reached(NamedTuple):
    """The cells that answer, the default cell first, and the names of those that are away with the cause."""

    cells: "Sequence[tuple[Cell, AsyncConnection]]"
    away: Mapping[str, str]

    @property
    def connections(self) -> "Sequence[AsyncConnection]":
        """The connections alone."""
        return [connection for _, connection in self.cells]

    def note_away(self) -> None:
        """Say on standard error what is missing in the answer."""
        from merchant_wallet.cli.terminal import note

        for name, cause in self.away.items():
            note(f"Cell {name} is away, its merchants are left out: {cause}")


class Session:
    """A command's connection to home, and its settings."""

    def __init__(
        self, settings: Settings, url: str, conn: "AsyncConnection", typed_data: Path | None = None
    ) -> None:
        self.settings = settings
        self._typed_data = typed_data
        self.url = url
        self.conn = conn
        self.away: list[str] = []
        """The names of the cells that did not answer, for the answer of a command that asked all."""

    def name_command(self, words: str) -> str:
        """A command that a person can type next, for the same data folder as this one's."""
        if self._typed_data is None:
            return f"merchant-wallet {words}"
        return f"merchant-wallet {words} --data {shlex.quote(str(self._typed_data))}"

    async def open_base(self) -> "Base":
        """Open settings, database and keys. Raises ConfigError, and Failure without a master key."""
        from merchant_wallet.processes.base import make_base

        if not has_master_key(self.settings):
            raise Failure(
                f"The service's master key is not in {self.settings.data}: "
                "give its own folder with --data, or set WALLET_MASTER_KEY.",
                CANNOT_RUN,
            )
        return make_base(self.settings, self.url)

    @asynccontextmanager
    async def connect_all(self) -> "AsyncIterator[Databases]":
        """The session's connection and one to each apart cell. Raises Failure if a cell is away."""
        from functools import partial

        from merchant_wallet.base import db
        from merchant_wallet.processes.cell_connections import CellAway, CellConnections

        connections = CellConnections(partial(db.connect, self.url), self.cells)
        try:
            yield await connections.get()
        except CellAway as away:
            raise Failure(f"Nothing was done: {away}.", CANNOT_RUN) from away
        finally:
            await connections.close()

    @cached_property
    def cells(self) -> "Directory":
        """Home and all cells, as the user of this session."""
        from merchant_wallet.merchants.cells.directory import Directory

        return Directory(self.url, dict(self.settings.cell_urls))

    @asynccontextmanager
    async def cell(self, merchant_id: int) -> "AsyncIterator[AsyncConnection]":
        """A connection to the cell of a merchant's book. For the default cell it is the session's own.

        Raises Failure if the cell is away, CellClosed if it is being moved.
        """
        import psycopg

        from merchant_wallet.merchants.cells.placement import is_apart

        if not await is_apart(self.conn, merchant_id):
            yield self.conn
            return
        cell = await self.cells.find(merchant_id)
        try:
            connection = await self.cells.connect(cell)
        except psycopg.OperationalError as error:
            text = describe_database_error(error)
            raise Failure(f"Nothing was done: cell {cell.name} is away: {text}", CANNOT_RUN) from error
        async with connection:
            yield connection

    @asynccontextmanager
    async def reach_cells(self) -> AsyncIterator[Reached]:
        """A connection to each cell that answers. A cell that is away is named."""
        import asyncio

        import psycopg

        from merchant_wallet.base.cells import CellClosed

        async def reach(cell: "Cell") -> "AsyncConnection | str":
            if cell.is_home:
                return self.conn
            try:
                return await stack.enter_async_context(await self.cells.connect(cell))
            except (psycopg.OperationalError, CellClosed) as error:
                return describe_database_error(error)

        await self.cells.refresh()
        cells = self.cells.list()
        async with AsyncExitStack() as stack:
            found = list(zip(cells, await asyncio.gather(*map(reach, cells)), strict=True))
            self.away = sorted(cell.name for cell, one in found if isinstance(one, str))
            yield Reached(
                [(cell, one) for cell, one in found if not isinstance(one, str)],
                {cell.name: one for cell, one in found if isinstance(one, str)},
            )

    @asynccontextmanager
    async def reach(self) -> "AsyncIterator[Reach]":
        """The cells that answer, for what pages read too. Those that are away are named."""
        from contextlib import nullcontext

        from merchant_wallet.base.cells import DEFAULT_CELL_ID
        from merchant_wallet.merchants.cells.placement import is_apart
        from merchant_wallet.reporting.cells import COMMAND_PATIENCE, Reach, Source

        async with self.reach_cells() as reached:
            sources = {
                cell.cell_id: Source(cell.name, lambda connection=connection: nullcontext(connection))  # type: ignore[misc]
                for cell, connection in reached.cells
            }

            async def find(merchant_id: int) -> Source:
                cell_id = DEFAULT_CELL_ID
                if await is_apart(self.conn, merchant_id):
                    cell_id = (await self.cells.find(merchant_id)).cell_id
                if cell_id not in sources:
                    raise Failure(f"The cell of merchant {merchant_id} is away.", CANNOT_RUN)
                return sources[cell_id]

            async def list_all() -> list[Source]:
                return list(sources.values())

            cells = Reach(find, list_all, self.conn, COMMAND_PATIENCE)
            for name in reached.away:
                cells.note_away(name)
            yield cells

    async def carry(self, merchant_id: int) -> None:
        """Tell the merchant's cell what home has just committed. Says so if the cell will hear it later."""
        import psycopg

        from merchant_wallet.base.cells import CellClosed
        from merchant_wallet.cli.terminal import note
        from merchant_wallet.merchants.cells.carrying import find_and_carry

        try:
            await find_and_carry(self.cells, merchant_id)
        except (psycopg.OperationalError, CellClosed) as error:
            reason = describe_database_error(error)
            note(f"The merchant's cell does not answer now ({reason}). It is told when it does.")

    async def copy_rates(self) -> None:
        """Tell every cell the rates that home has just committed. Says which cells will hear it later."""
        from merchant_wallet.cli.terminal import note
        from merchant_wallet.reporting.rate_copies import copy_rates

        async with self.reach() as cells:
            for name in await copy_rates(self.conn, cells):
                note(
                    f"Cell {name} does not answer now. Its books may use the former rate for up to a minute, "
                    "then they refuse exchanges until it is told."
                )

    async def find(self, text: str) -> "MerchantRef":
        """Find a merchant by its name or id. Raises MerchantUnknown."""
        from merchant_wallet.merchants import store

        return await store.find(self.conn, text)

    def author(self, facts: Mapping[str, Any] | None = None) -> "Author":
        """The person at the terminal, now. `facts` are stored beside what is changed, such as the reason.

        A person whose operator's account is disabled changes nothing. Whoever disables it now waits until the
        change is committed.
        """
        from merchant_wallet.approvals.decisions import Person
        from merchant_wallet.approvals.standing import hold_of
        from merchant_wallet.audit.records import Author
        from merchant_wallet.base.clock import now_ms

        actor, at_ms = find_actor(), now_ms()
        return Author(actor, SOURCE, at_ms, facts or {}, hold=hold_of(Person(actor, SOURCE), at_ms))

    async def require_right(self) -> None:
        """Check that the person still may, before what lasts too long to keep disabling waiting.

        Raises RightLost.
        """
        async with self.conn.transaction():
            await self.author().held(self.conn)

    async def ask(
        self,
        merchant_id: int,
        command: "Command",
        check: "Hold | None" = None,
        facts: Mapping[str, Any] | None = None,
    ) -> "Outcome":
        """Have a book carry a command out, and give the outcome once it is committed and recorded.

        `check` looks at what else is needed, in the transaction that waits for the book. It raises Refused.
        The audit log keeps `facts` beside the command.
        Raises Refused if the book refuses, RightLost, Unavailable, CommandFailed.
        """
        from functools import partial

        from merchant_wallet.audit.book_commands import ask_book
        from merchant_wallet.audit.records import hold_nothing
        from merchant_wallet.base.clock import now_ms

        base = await self.open_base()
        await self._open_nonce_days(merchant_id, now_ms())
        submit, author = partial(self._submit, base), self.author(facts)
        return await ask_book(author, self.conn, submit, merchant_id, command, check=check or hold_nothing)

    async def _open_nonce_days(self, merchant_id: int, now_ms: int) -> None:
        # Each batch writes its id there. If no service runs on the database, today's may not exist.
        from merchant_wallet.book.nonce_partitions import ensure_nonce_partitions, open_nonce_days

        async with self.cell(merchant_id) as cell:
            if cell is self.conn:
                await ensure_nonce_partitions(cell, now_ms // DAY_MS)
                return
        await open_nonce_days((await self.cells.find(merchant_id)).table_url, now_ms // DAY_MS)

    async def _submit(self, base: "Base", merchant_id: int, command: "Command") -> "Outcome":
        from merchant_wallet.book.commands import Submission
        from merchant_wallet.observability import logs
        from merchant_wallet.processes.base import open_writer

        # Warnings of the writer must not mix with the answer.
        logs.set_up("warning", self.settings.log_format)
        async with open_writer(base) as writer:
            return await writer.submit(merchant_id, Submission(command))


def run(data: Path | None, act: Callable[[Session], Awaitable[T]]) -> T:
    """Connect to the database of a data folder, call `act`, and disconnect. Raises what `act` raises."""
    import asyncio

    settings = read_running(data)
    return asyncio.run(_run(settings, find_database(settings), act, data))


async def _run(
    settings: Settings, url: str, act: Callable[[Session], Awaitable[T]], typed_data: Path | None
) -> T:
    from merchant_wallet.base import db
    from merchant_wallet.merchants.mode import require_mode

    async with await db.connect(url) as conn:
        # Every command passes here. In the sandbox one person is enough for what needs two, so the mode must
        # be right.
        await require_mode(settings, conn)
        return await act(Session(settings, url, conn, typed_data))
