"""Verification of a book in the background: one at a time, with progress, can be cancelled.

Rules: it runs in a thread with its own connection and event loop, so requests do not wait for it. The last
result of each book is kept in the process that verified it, and shown by its siblings.
"""

import asyncio
import threading
from collections.abc import Callable
from itertools import chain
from typing import Final

import msgspec
import structlog

from merchant_wallet.base import db
from merchant_wallet.base.siblings import Siblings
from merchant_wallet.base.workers import Connect, log_error
from merchant_wallet.book.archive.files import ArchiveFolder
from merchant_wallet.book.checkpoint_keys import load_keys
from merchant_wallet.book.verification.verify import BookReport, verify_book
from merchant_wallet.web.context import PageContext

log = structlog.get_logger("console")

MAX_KEPT: Final = 100
MAX_SHOWN: Final = 20
"""So many are shown to siblings, the newest ones."""
PUBLISH_S: Final = 0.5
RUNNING: Final = "running"
DONE: Final = "done"
CANCELLED: Final = "cancelled"
BROKEN: Final = "broken"


class _Cancelled(Exception):
    """Ends a verification that was cancelled."""


class Verification(msgspec.Struct):
    """One verification: its progress, and at its end the report. `checkpoints`: they were compared too."""

    merchant_id: int
    started_by: str
    started_ms: int
    checkpoints: bool
    state: str = RUNNING
    done: int = 0
    total: int = 0
    is_unwanted: bool = False
    report: BookReport | None = None

    @property
    def percent(self) -> int:
        """The progress, 0 to 100."""
        return 100 * self.done // self.total if self.total else 0


class Shown(msgspec.Struct):
    """What a process shows its siblings: its verifications, and those of others that it wants to end."""

    verifications: list[Verification] = []
    unwanted: list[tuple[int, int]] = []
    """Merchant and start, in milliseconds."""


class Verifier:
    """Runs one verification at a time. Used only from the service's event loop; the thread only writes
    progress.
    """

    def __init__(self, siblings: Siblings | None = None) -> None:
        self._siblings = siblings
        self._current: Verification | None = None
        self._thread: threading.Thread | None = None
        self._following: asyncio.Task[None] | None = None
        self._kept: dict[int, Verification] = {}
        self._unwanted: list[tuple[int, int]] = []

    @property
    def current(self) -> Verification | None:
        """The running verification of any process."""
        return next((each for each in self._list_all() if each.state == RUNNING), None)

    def find(self, merchant_id: int) -> Verification | None:
        """A book's running verification, or its last one."""
        found = (each for each in self._list_all() if each.merchant_id == merchant_id)
        return max(found, key=lambda each: each.started_ms, default=None)

    def start(
        self, context: PageContext, merchant_id: int, connect: Connect, started_by: str, at_ms: int
    ) -> bool:
        """Start to verify a book. `connect` connects to its cell. False if another verification runs."""
        if self.current is not None:
            return False
        folder = context.settings.checkpoint_folder
        made = Verification(merchant_id, started_by, at_ms, checkpoints=folder.is_dir())
        self.show(made)
        self._thread = threading.Thread(
            target=_run, args=(context, made, connect), name="verification", daemon=True
        )
        self._thread.start()
        if self._siblings is not None:
            self._following = asyncio.create_task(self._follow(made))
        return True

    def cancel(self, merchant_id: int) -> bool:
        """Cancel a book's verification at its next page. False if none runs."""
        current = self.current
        if current is None or current.merchant_id != merchant_id:
            return False
        current.is_unwanted = True
        if current is not self._current:
            self._unwanted = [*self._unwanted, (merchant_id, current.started_ms)][-MAX_KEPT:]
            self._publish()
        return True

    async def close(self) -> None:
        """Cancel the running one, and wait for its end."""
        if self._current is not None:
            self._current.is_unwanted = True
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)
        if self._following is not None:
            await self._following

    def _keep(self, made: Verification) -> None:
        self._current = made
        self._kept.pop(made.merchant_id, None)
        self._kept[made.merchant_id] = made
        if len(self._kept) > MAX_KEPT:
            del self._kept[next(iter(self._kept))]

    async def _follow(self, made: Verification) -> None:
        """Show the progress to the siblings, and hear whether one of them wants the end."""
        while made.state == RUNNING:
            await asyncio.sleep(PUBLISH_S)
            self.hear(made)
            self._publish()

    def show(self, made: Verification) -> None:
        """Keep a verification of this process, and show it to the siblings."""
        self._keep(made)
        self._publish()

    def hear(self, made: Verification) -> None:
        """End a verification of this process if a sibling wants it."""
        wanted = (shown.unwanted for shown in self._read_siblings())
        if (made.merchant_id, made.started_ms) in chain.from_iterable(wanted):
            made.is_unwanted = True

    def _list_all(self) -> list[Verification]:
        return [
            *self._kept.values(),
            *chain.from_iterable(each.verifications for each in self._read_siblings()),
        ]

    def _publish(self) -> None:
        siblings = self._siblings
        if siblings is None:
            return
        newest = list(self._kept.values())[-MAX_SHOWN:]
        document = msgspec.json.encode(Shown(newest, self._unwanted))
        with siblings.verifications.lock():
            siblings.verifications.write(siblings.seat, document)

    def _read_siblings(self) -> list[Shown]:
        siblings = self._siblings
        if siblings is None:
            return []
        with siblings.verifications.lock():
            found = siblings.verifications.read_all()
        others = (document for seat, document in found.items() if seat != siblings.seat)
        return [msgspec.json.decode(document, type=Shown) for document in others]


def _run(context: PageContext, made: Verification, connect: Connect) -> None:
    try:
        made.report = asyncio.run(_verify(context, made, connect))
        made.state = DONE
    except _Cancelled:
        made.state = CANCELLED
    except Exception as error:
        # Nobody awaits the thread, so its failure is logged and shown on the page.
        log_error(log, "verification failed", error, merchant_id=made.merchant_id)
        made.state = BROKEN


async def _verify(context: PageContext, made: Verification, connect: Connect) -> BookReport:
    folder = context.settings.checkpoint_folder if made.checkpoints else None
    async with await db.connect(context.database_url) as home, await connect() as cell:
        keys = None if folder is None else await load_keys(home, folder)
        return await verify_book(
            home,
            cell,
            made.merchant_id,
            _note(made),
            checkpoint_dir=folder,
            checkpoint_keys=keys,
            archive=ArchiveFolder(context.settings.archive_folder),
        )


def _note(made: Verification) -> Callable[[int, int, int], None]:
    def note(_: int, done: int, total: int) -> None:
        made.done, made.total = done, total
        if made.is_unwanted:
            raise _Cancelled

    return note


_verifiers: dict[str, Verifier] = {}


def verifier_of(context: PageContext) -> Verifier:
    """The verifier of this process for a database."""
    return _verifiers.setdefault(context.database_url, Verifier(context.siblings))


async def close_verifier(context: PageContext) -> None:
    """Cancel what runs, when the service stops."""
    found = _verifiers.pop(context.database_url, None)
    if found is not None:
        await found.close()
