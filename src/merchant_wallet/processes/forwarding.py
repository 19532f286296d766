"""Forwards commands to the web process that has their book, among the processes of one `serve`.

So each book is cached once, and the commands of all connections make one group. Rules:
- Who has a book follows from the processes that are there (rendezvous hashing). Nothing relies on it: any
  process may write to any book, since the claim compares the book's version.
- A process that leaves hands forwarded commands back, and its siblings execute them themselves.
- If a sibling ends, nobody knows what became of the commands that it has. Their callers get 50300, and may
  repeat them under their mcOrderId. The same holds if it says nothing for `SILENT_TURNS` turns.
- Sockets are files in a folder that belongs to this user alone. Processes of two versions don't see each
  other: the files' names have the version of the messages.
"""

import asyncio
import hashlib
import itertools
import os
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

import structlog

from merchant_wallet.base.workers import log_failure
from merchant_wallet.book import messages
from merchant_wallet.book.commands import Submission
from merchant_wallet.book.errors import CommitUnknown, Unavailable
from merchant_wallet.book.messages import Answered, Asked, HandedBack
from merchant_wallet.book.outcomes import Outcome
from merchant_wallet.book.submissions import Books

log = structlog.get_logger("server")

LOOK_S: Final = 0.5
"""Siblings that come and leave are noticed after this time."""
TURN_S: Final = 1.0
SILENT_TURNS: Final = 4
MAX_WAITING: Final = 16_384
"""So many commands may wait for a sibling."""
MAX_KNOWN: Final = 100_000
"""The owners of so many books are remembered."""
SUFFIX: Final = f".{messages.VERSION}.sock"
_LENGTH: Final = struct.Struct("!I")


class _Stream(asyncio.Protocol):
    """Lists of messages over a socket, each with its length before it.

    What is sent in one turn of the event loop goes out together. An empty list says that somebody is there.
    """

    def __init__(
        self, hear: "Callable[[_Stream, bytes], None]", note_end: "Callable[[_Stream], None]"
    ) -> None:
        self._hear = hear
        self._note_end = note_end
        self._unsent: list[Asked | Answered] = []
        self._received = bytearray()
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._note_end(self)

    def send(self, message: Asked | Answered) -> None:
        """Send a message with the others of this turn of the event loop."""
        if not self._unsent:
            self._loop.call_soon(self.flush)
        self._unsent.append(message)

    def flush(self) -> None:
        """Send what there is, or an empty list."""
        unsent, self._unsent = self._unsent, []
        if self._transport is not None:
            body = messages.encode(unsent)
            self._transport.write(_LENGTH.pack(len(body)) + body)

    def close(self) -> None:
        """Close the socket, when everything is sent."""
        if self._unsent:
            self.flush()
        if self._transport is not None:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        received = self._received
        received += data
        begin = 0
        while len(received) - begin >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(received, begin)
            end = begin + _LENGTH.size + length
            if end > len(received):
                break
            self._hear(self, bytes(received[begin + _LENGTH.size : end]))
            begin = end
        del received[:begin]


class Sibling:
    """Another process, to which commands are forwarded."""

    def __init__(self, seat: int, own: Books, note_change: Callable[[], None]) -> None:
        self.seat = seat
        self.is_silent = self.is_leaving = self.has_ended = False
        self._own = own
        self._note_change = note_change
        self._loop = asyncio.get_running_loop()
        self._stream = _Stream(self._hear, self._end)
        self._waiting: dict[int, tuple[asyncio.Future[Outcome], int, Submission]] = {}
        self._numbers = itertools.count()
        self._silent_turns = 0
        self._timer: asyncio.TimerHandle | None = None

    async def connect(self, path: Path) -> None:
        """Raises OSError."""
        await self._loop.create_unix_connection(lambda: self._stream, str(path))

    @property
    def is_able(self) -> bool:
        """Whether it may get commands."""
        return not (self.is_silent or self.is_leaving or self.has_ended)

    @property
    def is_idle(self) -> bool:
        """Whether no command waits for its answer."""
        return not self._waiting

    def submit(self, merchant_id: int, submission: Submission) -> asyncio.Future[Outcome]:
        """As `Books.submit`."""
        if len(self._waiting) >= MAX_WAITING:
            raise Unavailable("queue full")
        future: asyncio.Future[Outcome] = self._loop.create_future()
        number = next(self._numbers)
        self._waiting[number] = (future, merchant_id, submission)
        self._stream.send(messages.ask(number, merchant_id, submission))
        if self._timer is None:
            self._silent_turns = 0
            self._timer = self._loop.call_later(TURN_S, self._look)
        return future

    def close(self) -> None:
        """Close the connection."""
        self._stream.close()

    def _hear(self, stream: _Stream, body: bytes) -> None:
        self._silent_turns = 0
        if self.is_silent:
            self.is_silent = False
            self._note_change()
        for answered in messages.decode_answered(body):
            waiting = self._waiting.pop(answered.number, None)
            if waiting is None:
                # It was silent for too long, and the caller has got its answer.
                continue
            try:
                _settle(waiting[0], partial(messages.read_answer, answered))
            except HandedBack:
                self._execute(*waiting)

    def _execute(self, future: asyncio.Future[Outcome], merchant_id: int, submission: Submission) -> None:
        """Execute a command here that the sibling did not."""
        try:
            executed = self._own.submit(merchant_id, submission)
        except Unavailable as error:
            _fail(future, error)
        else:
            executed.add_done_callback(lambda done: _settle(future, done.result))

    def _look(self) -> None:
        """Look whether the sibling says something while commands wait."""
        self._timer = None
        if not self._waiting:
            return
        self._silent_turns += 1
        if self._silent_turns > SILENT_TURNS:
            log.error("a web process does not answer", seat=self.seat, commands=len(self._waiting))
            self.is_silent = True
            self._give_up("the web process that has the book does not answer")
            return
        self._stream.flush()
        self._timer = self._loop.call_later(TURN_S, self._look)

    def _end(self, stream: _Stream) -> None:
        self.has_ended = True
        self._give_up("the web process that has the book has ended")

    def _give_up(self, why: str) -> None:
        given_up, self._waiting = self._waiting, {}
        self._note_change()
        for future, _, _ in given_up.values():
            _fail(future, CommitUnknown(why))


def _fail(future: asyncio.Future[Outcome], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)


def _settle(future: asyncio.Future[Outcome], read: Callable[[], Outcome]) -> None:
    """Give a future what `read` returns or raises. Raises HandedBack."""
    try:
        outcome = read()
    except HandedBack:
        raise
    except Exception as error:
        _fail(future, error)
    else:
        if not future.done():
            future.set_result(outcome)


class ForwardingBooks:
    """All books: `own` writes to those that this process has, and siblings to theirs."""

    def __init__(self, own: Books, folder: Path, seat: int) -> None:
        """`folder` is where the sockets of this process and its siblings are."""
        self.own = own
        self._forwarded = 0
        self._folder = folder
        self._seat = seat
        self._folder_fd: int | None = None
        self._siblings: dict[int, Sibling] = {}
        self._owners: dict[int, Books | Sibling] = {}
        self.seats = [seat]
        self._asking: set[_Stream] = set()
        self._server: asyncio.Server | None = None
        self._looking: asyncio.Task[None] | None = None
        self._is_leaving = False

    def _name(self, seat: int) -> Path:
        """The path of a socket. The folder's own may be longer than paths of sockets can be (unix(7))."""
        return Path(f"/proc/self/fd/{self._folder_fd}/{seat}{SUFFIX}")

    async def open(self) -> None:
        """Take commands from siblings, and find them. Without a socket this process goes on by itself.

        What tidies temporary files may have removed the folder.
        """
        loop = asyncio.get_running_loop()
        try:
            self._folder_fd = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
            # The seat's former process may have been killed.
            self._name(self._seat).unlink(missing_ok=True)
            self._server = await loop.create_unix_server(self._make_stream, str(self._name(self._seat)))
        except OSError as error:
            log.warning("web processes can't forward commands to this one", reason=str(error))
        if self._folder_fd is None:
            return
        self._looking = loop.create_task(self._keep_looking())

    def count_forwarded(self) -> int:
        """How many commands went to siblings."""
        return self._forwarded

    def leave(self) -> None:
        """Let siblings have the books of this process: it ends soon."""
        self._is_leaving = True
        with suppress(OSError):
            self._name(self._seat).unlink()
        self._note_change()

    async def close(self) -> None:
        """Close the sockets. What siblings have sent must be answered before."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        for sibling in self._siblings.values():
            sibling.close()
        for stream in self._asking:
            stream.close()
        if self._server is not None:
            self._server.close()
        # Whoever leaves last takes the folder along, also if the supervisor was killed.
        with suppress(OSError):
            self._folder.rmdir()
        if self._folder_fd is not None:
            os.close(self._folder_fd)
            self._folder_fd = None

    def submit(self, merchant_id: int, submission: Submission) -> asyncio.Future[Outcome]:
        """As `Books.submit`, here or at the sibling that has the book."""
        owner = self._owners.get(merchant_id) or self._find_owner(merchant_id)
        self._forwarded += owner is not self.own
        return owner.submit(merchant_id, submission)

    def _find_owner(self, merchant_id: int) -> Books | Sibling:
        if len(self._owners) >= MAX_KNOWN:
            self._owners.clear()
        seat = choose_owner(merchant_id, self.seats)
        owner = self._owners[merchant_id] = self.own if seat == self._seat else self._siblings[seat]
        return owner

    def _note_change(self) -> None:
        """Some sibling may have come, left, ended, become silent or answered again."""
        able = [seat for seat, sibling in self._siblings.items() if sibling.is_able]
        seats = able if able and self._is_leaving else sorted((self._seat, *able))
        if seats != self.seats:
            self.seats = seats
            self._owners.clear()

    async def _keep_looking(self) -> None:
        while True:
            try:
                await self._look()
            except Exception as error:
                log_failure(log, "siblings can't be looked for; trying again", error)
            await asyncio.sleep(LOOK_S)

    async def _look(self) -> None:
        """Connect to siblings that have come, and let go those that have left."""
        assert self._folder_fd is not None, "it is open while this runs"
        # A folder that was removed has no names.
        names = [name for name in os.listdir(self._folder_fd) if name.endswith(SUFFIX)]
        there = {int(name.removesuffix(SUFFIX)) for name in names} - {self._seat}
        for seat, sibling in list(self._siblings.items()):
            sibling.is_leaving = seat not in there
            if sibling.has_ended or (sibling.is_leaving and sibling.is_idle):
                del self._siblings[seat]
                sibling.close()
        for seat in there - self._siblings.keys():
            sibling = Sibling(seat, self.own, self._note_change)
            # A process that was killed leaves its socket's file, until its seat is taken again.
            with suppress(ConnectionRefusedError, FileNotFoundError):
                await sibling.connect(self._name(seat))
                self._siblings[seat] = sibling
        self._note_change()

    def _make_stream(self) -> _Stream:
        stream = _Stream(self._hear, self._asking.discard)
        self._asking.add(stream)
        return stream

    def _hear(self, stream: _Stream, body: bytes) -> None:
        """Execute the commands of a sibling."""
        asked = messages.decode_asked(body)
        if not asked:
            stream.flush()
        for each in asked:
            if self._is_leaving:
                stream.send(messages.fail(each.number, HandedBack()))
            else:
                self._execute(stream, each)

    def _execute(self, stream: _Stream, asked: Asked) -> None:
        try:
            executed = self.own.submit(asked.merchant_id, messages.read_submission(asked))
        except Unavailable as error:
            stream.send(messages.fail(asked.number, error))
        else:
            executed.add_done_callback(partial(_answer, stream, asked.number))


def _answer(stream: _Stream, number: int, executed: asyncio.Future[Outcome]) -> None:
    error: Any = executed.exception()
    stream.send(messages.answer(number, executed.result()) if error is None else messages.fail(number, error))


def choose_owner(merchant_id: int, seats: Sequence[int]) -> int:
    """The seat whose process has a book. When one comes or goes, only its books change hands."""
    return max(
        seats, key=lambda seat: hashlib.blake2b(b"%d %d" % (seat, merchant_id), digest_size=8).digest()
    )
