"""The built-in source: a list of addresses in a file.

Rules:
- A line is `ADDRESS [hold|refuse] [note]`. Without a word the address is refused. `#` begins a comment.
- Addresses of both families are allowed, in their written forms. They are compared by their 20 bytes: one key
  has the same bytes on EVM chains and on TRON, so a line holds on all chains.
- A file that changes is read again within a second. If it can't be read then, the last good list stays in
  force and the log says so. Without any good list nothing passes.
- The file's size and the number of lines are bounded.
- Replace the file as a whole (`mv`): a half-written list would be read as it is.
"""

import asyncio
import hashlib
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec
import structlog

from merchant_wallet.base.addresses import parse_pasted_address
from merchant_wallet.screening.verdicts import Reason, Source, Verdict, tidy

MAX_BYTES: Final = 16 * 2**20
MAX_ENTRIES: Final = 200_000
MAX_FAULTS: Final = 5
LOOK_S: Final = 1.0
_WORDS: Final = {"hold": Verdict.HOLD, "refuse": Verdict.REFUSE}

log = structlog.get_logger(__name__)


class ListUnreadable(Exception):
    """The file can't be read, or is no list. The text says why, and names lines."""


class AddressList(msgspec.Struct, frozen=True):
    """A list that was read. `digest` is the SHA-256 of the file."""

    entries: Mapping[bytes, Reason]
    digest: str

    def find(self, address: bytes) -> Reason | None:
        """What the list says of an address; None if it is not listed."""
        return self.entries.get(address)


def parse_list(raw: bytes) -> AddressList:
    """The list in a file's bytes. Raises ListUnreadable."""
    if len(raw) > MAX_BYTES:
        raise ListUnreadable(f"it has more than {MAX_BYTES} bytes")
    try:
        lines = raw.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise ListUnreadable("it is not UTF-8 text") from None
    entries: dict[bytes, Reason] = {}
    faults: list[str] = []
    for number, line in enumerate(lines, 1):
        text = line.partition("#")
        words = text[0].split(maxsplit=2)
        if not words:
            continue
        try:
            address, verdict, note = _parse_line(words, text[2])
        except ValueError as error:
            faults.append(f"line {number}: {error}")
            if len(faults) == MAX_FAULTS:
                break
            continue
        known = entries.get(address)
        if known is None or known.verdict is Verdict.HOLD:
            # Of two lines about one address the stricter one holds.
            entries[address] = Reason(Source.LIST, verdict, note)
        if len(entries) > MAX_ENTRIES:
            raise ListUnreadable(f"it has more than {MAX_ENTRIES} addresses")
    if faults:
        raise ListUnreadable("; ".join(faults))
    return AddressList(entries, hashlib.sha256(raw).hexdigest())


def _parse_line(words: list[str], comment: str) -> tuple[bytes, Verdict, str]:
    address = parse_pasted_address(words[0])[1]
    if len(words) == 1:
        return address, Verdict.REFUSE, tidy(comment)
    verdict = _WORDS.get(words[1].lower())
    if verdict is None:
        raise ValueError(f"{words[1][:20]!r} is neither hold nor refuse")
    return address, verdict, tidy(words[2] if len(words) > 2 else comment)


def read_list(path: Path) -> AddressList:
    """Read the file. Raises ListUnreadable."""
    try:
        with path.open("rb") as file:
            return parse_list(file.read(MAX_BYTES + 1))
    except OSError as error:
        raise ListUnreadable(f"{path}: {error.strerror}") from None


class ListFile:
    """A list that is read again when its file changes."""

    def __init__(self, path: Path, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._monotonic = monotonic
        self._looked_s = float("-inf")
        self._seen: tuple[int, int, int] | None = None
        self._list: AddressList | None = None
        self._fault: str | None = None
        self._reading = asyncio.Lock()

    async def get(self) -> AddressList:
        """The list that is in force. Raises ListUnreadable if there never was a good one."""
        async with self._reading:
            if self._monotonic() - self._looked_s >= LOOK_S:
                await self._look()
                self._looked_s = self._monotonic()
        if self._list is None:
            raise ListUnreadable(self._fault or f"{self._path} was not read yet")
        return self._list

    async def _look(self) -> None:
        try:
            found = await asyncio.to_thread(self._path.stat)
            seen = (found.st_mtime_ns, found.st_size, found.st_ino)
            if seen == self._seen:
                return
            self._list = await asyncio.to_thread(read_list, self._path)
        except OSError as error:
            self._note_fault(f"{self._path}: {error.strerror}", None)
        except ListUnreadable as unreadable:
            self._note_fault(str(unreadable), seen)
        else:
            self._seen, self._fault = seen, None
            log.info("screening list read", entries=len(self._list.entries), digest=self._list.digest)

    def _note_fault(self, fault: str, seen: tuple[int, int, int] | None) -> None:
        if (fault, seen) != (self._fault, self._seen):
            log.error("screening list can't be read", reason=fault, has_older=self._list is not None)
        self._fault, self._seen = fault, seen
