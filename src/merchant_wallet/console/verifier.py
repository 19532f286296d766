"""Verifying a book while others go on working: one at a time, seen as it goes, ended when asked to.

Rules: it runs in a thread with a connection and a loop of its own, so requests don't wait for it. What came
of the last one of each book is kept in this process until the next.
"""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import structlog

from merchant_wallet.base import db
from merchant_wallet.book.checkpoint_keys import OLD_KEY, load_keys
from merchant_wallet.book.verification.verify import BookReport, verify_book
from merchant_wallet.web.context import PageContext

log = structlog.get_logger("console")

MOST_KEPT: Final = 100
RUNNING: Final = "running"
DONE: Final = "done"
CANCELLED: Final = "cancelled"
BROKEN: Final = "broken"


class _Cancelled(Exception):
    """Ends a verification that nobody wants any more."""


@dataclass(slots=True)
class Verification:
    """One verification: how far it is and, at its end, its report. `checkpoints`: they were compared too."""

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
        """How far it is, 0 to 100."""
        return 100 * self.done // self.total if self.total else 0


class Verifier:
    """Runs one verification at a time. Used from the service's loop alone, but for what the thread notes."""

    def __init__(self) -> None:
        self._current: Verification | None = None
        self._thread: threading.Thread | None = None
        self._kept: dict[int, Verification] = {}

    @property
    def current(self) -> Verification | None:
        """The one that runs."""
        current = self._current
        return current if current is not None and current.state == RUNNING else None

    def find(self, merchant_id: int) -> Verification | None:
        """The one of a book that runs, else the last."""
        return self._kept.get(merchant_id)

    def start(self, context: PageContext, merchant_id: int, started_by: str, at_ms: int) -> bool:
        """Begin to verify a book; False while another verification runs."""
        if self.current is not None:
            return False
        folder = context.settings.checkpoint_folder
        made = Verification(merchant_id, started_by, at_ms, checkpoints=folder.is_dir())
        self._keep(made)
        self._thread = threading.Thread(target=_run, args=(context, made), name="verification", daemon=True)
        self._thread.start()
        return True

    def cancel(self, merchant_id: int) -> bool:
        """End a book's verification at its next page; False when none runs."""
        current = self.current
        if current is None or current.merchant_id != merchant_id:
            return False
        current.is_unwanted = True
        return True

    async def close(self) -> None:
        """End what runs, and wait for its end."""
        if self._current is not None:
            self._current.is_unwanted = True
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)

    def _keep(self, made: Verification) -> None:
        self._current = made
        self._kept.pop(made.merchant_id, None)
        self._kept[made.merchant_id] = made
        if len(self._kept) > MOST_KEPT:
            del self._kept[next(iter(self._kept))]


def _run(context: PageContext, made: Verification) -> None:
    try:
        made.report = asyncio.run(_verify(context, made))
        made.state = DONE
    except _Cancelled:
        made.state = CANCELLED
    except Exception as error:
        # Nobody waits for the thread: what it fails of is told in the log and on the page.
        log.error("verification failed", merchant_id=made.merchant_id, exc_info=error)
        made.state = BROKEN


async def _verify(context: PageContext, made: Verification) -> BookReport:
    folder = context.settings.checkpoint_folder if made.checkpoints else None
    async with await db.connect(context.database_url) as conn:
        keys = None if folder is None else await load_keys(conn, folder, context.keyring.derive(OLD_KEY))
        return await verify_book(
            conn, made.merchant_id, _note(made), checkpoint_dir=folder, checkpoint_keys=keys
        )


def _note(made: Verification) -> Callable[[int, int, int], None]:
    def note(_: int, done: int, total: int) -> None:
        made.done, made.total = done, total
        if made.is_unwanted:
            raise _Cancelled

    return note


_verifiers: dict[str, Verifier] = {}


def verifier_of(context: PageContext) -> Verifier:
    """The one verifier of this process for a database."""
    return _verifiers.setdefault(context.database_url, Verifier())


async def close_verifier(context: PageContext) -> None:
    """End what a service that stops has running."""
    found = _verifiers.pop(context.database_url, None)
    if found is not None:
        await found.close()
