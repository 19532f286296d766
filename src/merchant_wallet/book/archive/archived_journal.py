"""Reads the removed entries of one book from its files.

Rules:
- Only entries up to the border are read here. The tables have all others, also those of a month whose rows
  are being removed.
- A manifest must have the digest that the database keeps, so another file of that name is refused.
- A block is read as a whole. The last one stays in memory, so entries that are read in order cost little.
- Files are read in a thread.
"""

import asyncio
from collections.abc import Mapping, Sequence

from merchant_wallet.book.archive.files import ArchiveFolder, ArchiveUnreadable, Block, Manifest, make_digest
from merchant_wallet.book.archive.months import ArchivedMonth, Connection, find_border, list_months
from merchant_wallet.book.state import Entry


class ArchivedJournal:
    """The entries of a book that are in files alone. All methods raise ArchiveUnreadable."""

    def __init__(self, folder: ArchiveFolder | None, months: Sequence[ArchivedMonth]) -> None:
        self._folder = folder
        self.months = [month for month in months if month.is_begun]
        self.border = find_border(months)
        self._manifests: dict[str, Manifest] = {}
        self._last: tuple[Block, list[Entry]] | None = None

    @property
    def last_month(self) -> ArchivedMonth | None:
        """The newest month that has entries in a file alone."""
        return self.months[-1] if self.months else None

    async def read_after(self, entry_id: int, from_ms: int = 0) -> list[Entry]:
        """The next entries after an id; none after the border. Blocks before a moment are passed over."""
        for month in self.months:
            if month.last_id <= entry_id or month.last_ms < from_ms:
                continue
            for block in (await self.read_manifest(month)).blocks:
                if block.last_id <= entry_id or block.last_ms < from_ms:
                    continue
                return self._cut(await self._read(month, block), entry_id)
        return []

    def _cut(self, entries: Sequence[Entry], after_id: int) -> list[Entry]:
        return [one for one in entries if after_id < one.entry_id <= self.border]

    async def find(self, entry_id: int) -> Entry | None:
        """One entry; None if it is not in the archive."""
        found = await self.find_all([entry_id])
        return found.get(entry_id)

    async def find_hash_before(self, entry_id: int) -> bytes | None:
        """The hash of the entry before one of the archive, or before the tables' first one."""
        earlier = [month for month in self.months if month.first_id < entry_id]
        if not earlier:
            return None
        month = earlier[-1]
        if entry_id > month.last_id:
            return month.last_hash
        blocks = [one for one in (await self.read_manifest(month)).blocks if one.first_id < entry_id]
        before = [one for one in await self._read(month, blocks[-1]) if one.entry_id < entry_id]
        return before[-1].hash

    async def find_all(self, entry_ids: Sequence[int]) -> Mapping[int, Entry]:
        """The entries with these ids; those that are not in the archive are left out."""
        found = {}
        for entry_id in sorted(entry_ids):
            if entry_id > self.border:
                break
            for one in await self._read_around(entry_id):
                if one.entry_id == entry_id:
                    found[entry_id] = one
        return found

    async def _read_around(self, entry_id: int) -> list[Entry]:
        """The block that may have an entry."""
        for month in self.months:
            if month.first_id <= entry_id <= month.last_id:
                for block in (await self.read_manifest(month)).blocks:
                    if block.first_id <= entry_id <= block.last_id:
                        return await self._read(month, block)
        return []

    async def read_manifest(self, month: ArchivedMonth) -> Manifest:
        """The manifest that the database means."""
        if month.month not in self._manifests:
            self._manifests[month.month] = await asyncio.to_thread(self._read_manifest, month)
        return self._manifests[month.month]

    def _read_manifest(self, month: ArchivedMonth) -> Manifest:
        return read_known_manifest(self._need_folder(month), month)

    def _need_folder(self, month: ArchivedMonth) -> ArchiveFolder:
        if self._folder is None:
            raise ArchiveUnreadable(
                f"The entries of {month.month} are in the archive, and no folder is named: set"
                " WALLET_ARCHIVE_DIR"
            )
        return self._folder

    async def _read(self, month: ArchivedMonth, block: Block) -> list[Entry]:
        if self._last is None or self._last[0] is not block:
            manifest = await self.read_manifest(month)
            entries = await asyncio.to_thread(self._need_folder(month).read_block, manifest, block)
            self._last = (block, entries)
        return self._last[1]


def read_known_manifest(folder: ArchiveFolder, month: ArchivedMonth) -> Manifest:
    """The manifest that the database means. Raises ArchiveUnreadable."""
    manifest = folder.read_manifest(month.merchant_id, month.month)
    if make_digest(manifest) != month.digest:
        path = folder.manifest_of(month.merchant_id, month.month)
        raise ArchiveUnreadable(
            f"{path} was changed: the database knows the manifest {month.digest.hex()}. Bring the file back"
            " from its copy."
        )
    return manifest


async def open_journal(cell: Connection, folder: ArchiveFolder | None, merchant_id: int) -> ArchivedJournal:
    """A book's archive as it is now."""
    return ArchivedJournal(folder, await list_months(cell, merchant_id))
