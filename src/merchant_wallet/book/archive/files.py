"""The files of the archive: for each month of a book its entries and a signed manifest.

Rules:
- `<merchant id>/<month>.jsonl.gz` has one JSON object on each line: an entry with its postings. It is a row
  of gzip members, called blocks. So `zcat` reads the file, and a program reads one block without the others.
- `<merchant id>/<month>.json` is the manifest: the place and the SHA-256 of each block, the month's hashes in
  the chain, and the signature of all that. The signature is the checkpoint key's.
- Nothing that was read is believed before it matches the manifest.
- The functions that read raise ArchiveUnreadable, which says which file is wrong and what to do.
"""

import gzip
import hashlib
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from merchant_wallet.book.checkpoint_keys import CheckpointKeys, verify_signature
from merchant_wallet.book.state import Entry, Posting

FORMAT: Final = 1
BLOCK_ENTRIES: Final = 1000
COMPRESSION: Final = 6
"""Level 9 takes twice as long for two percent less."""
MAX_MANIFEST_BYTES: Final = 256 << 20
MAX_BLOCK_BYTES: Final = 64 << 20
"""More than a block can have: texts of an entry are short."""
_RESTORE: Final = "Bring the file back from its copy."


class ArchiveUnreadable(Exception):
    """A file of the archive is missing or is not what was written. The text says which and what to do."""


class Block(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A part of a file, compressed by itself: its place in bytes, its SHA-256 (hex), and its entries."""

    offset: int
    size: int
    sha256: str
    entries: int
    first_id: int
    last_id: int
    first_ms: int
    last_ms: int


class Manifest(
    msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True, kw_only=True
):
    """What a file of one month has. Hashes are hex. `previous_hash` is that of the entry before the first."""

    format: int
    merchant_id: int
    month: str
    entries: int
    postings: int
    first_id: int
    last_id: int
    first_ms: int
    last_ms: int
    previous_hash: str
    last_hash: str
    written_ms: int
    blocks: tuple[Block, ...]
    signature: str = ""

    @property
    def size(self) -> int:
        """The size of the file in bytes."""
        return self.blocks[-1].offset + self.blocks[-1].size


class EntryLine(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", forbid_unknown_fields=True):
    """A line. A posting is source, target, currency, amount and both balances, in units."""

    id: int
    kind: str
    at_ms: int
    hash: str
    mc_order_id: str | None = None
    rate_e8: int = 0
    facts: str = ""
    postings: tuple[tuple[int, int, str, int, int, int], ...] = ()


def encode_entries(entries: Sequence[Entry]) -> bytes:
    """The lines of a block, compressed. The same entries always give the same bytes. Pure."""
    lines = [
        EntryLine(
            one.entry_id,
            one.kind,
            one.at_ms,
            one.hash.hex(),
            one.mc_order_id,
            one.rate_e8,
            one.facts,
            tuple([msgspec.structs.astuple(posting) for posting in one.postings]),
        )
        for one in entries
    ]
    text = b"".join([msgspec.json.encode(line) + b"\n" for line in lines])
    return gzip.compress(text, COMPRESSION, mtime=0)


def decode_entries(packed: bytes) -> list[Entry]:
    """The entries of a block. Raises ValueError."""
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        text = unpacker.decompress(packed, MAX_BLOCK_BYTES)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if not unpacker.eof or unpacker.unused_data:
        raise ValueError("the block is not one whole part")
    return [
        _read_line(line)
        for line in msgspec.json.decode(b"[%s]" % b",".join(text.splitlines()), type=list[EntryLine])
    ]


def _read_line(line: EntryLine) -> Entry:
    postings = tuple([Posting(*posting) for posting in line.postings])
    found_hash = bytes.fromhex(line.hash)
    return Entry(
        line.id, line.kind, line.mc_order_id, line.at_ms, line.rate_e8, line.facts, postings, found_hash
    )


def make_digest(manifest: Manifest) -> bytes:
    """The SHA-256 of a manifest without its signature. The database keeps it. Pure."""
    return hashlib.sha256(msgspec.json.encode(msgspec.structs.replace(manifest, signature=""))).digest()


def format_text_to_sign(manifest: Manifest) -> str:
    """The text that is signed. Pure."""
    return f"archive;{FORMAT};{make_digest(manifest).hex()}"


def is_signed(keys: CheckpointKeys, manifest: Manifest) -> bool:
    """Whether the manifest was signed with the service's key."""
    if keys.public_key is None or keys.problem is not None:
        return False
    return verify_signature(keys.public_key, manifest.signature, format_text_to_sign(manifest))


class ArchiveFolder:
    """The folder of the archive. `WALLET_ARCHIVE_DIR` names it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def file_of(self, merchant_id: int, month: str) -> Path:
        """The file with the entries."""
        return self.path / str(merchant_id) / f"{month}.jsonl.gz"

    def manifest_of(self, merchant_id: int, month: str) -> Path:
        """The file with the manifest."""
        return self.path / str(merchant_id) / f"{month}.json"

    def read_manifest(self, merchant_id: int, month: str) -> Manifest:
        """The manifest of a month. Its signature and its digest are the caller's to compare."""
        path = self.manifest_of(merchant_id, month)
        try:
            with path.open("rb") as file:
                manifest = msgspec.json.decode(file.read(MAX_MANIFEST_BYTES), type=Manifest)
        except OSError as error:
            raise ArchiveUnreadable(f"{path} can't be read ({error.strerror}). {_RESTORE}") from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ArchiveUnreadable(f"{path} is no manifest ({error}). {_RESTORE}") from error
        if (manifest.merchant_id, manifest.month, manifest.format) != (merchant_id, month, FORMAT):
            raise ArchiveUnreadable(f"{path} is the manifest of another month or form. {_RESTORE}")
        if (problem := _find_problem(manifest)) is not None:
            raise ArchiveUnreadable(f"{path} contradicts itself: {problem}. {_RESTORE}")
        return manifest

    def read_block(self, manifest: Manifest, block: Block) -> list[Entry]:
        """The entries of one block, which match the manifest."""
        path = self.file_of(manifest.merchant_id, manifest.month)
        try:
            with path.open("rb") as file:
                file.seek(block.offset)
                packed = file.read(block.size)
        except OSError as error:
            raise ArchiveUnreadable(f"{path} can't be read ({error.strerror}). {_RESTORE}") from error
        if hashlib.sha256(packed).hexdigest() != block.sha256:
            raise ArchiveUnreadable(
                f"{path} was changed: the bytes from {block.offset} on, entries {block.first_id} to"
                f" {block.last_id}, are not those of the manifest. {_RESTORE}"
            )
        try:
            entries = decode_entries(packed)
        except (ValueError, msgspec.DecodeError) as error:
            raise ArchiveUnreadable(f"{path} can't be decoded: {error}. {_RESTORE}") from error
        if [len(entries), *_ends(entries)] != [block.entries, *_ends_of(block)]:
            raise ArchiveUnreadable(f"{path} has other entries than its manifest says. {_RESTORE}")
        return entries


def _ends(entries: Sequence[Entry]) -> list[int]:
    if not entries:
        return []
    first, last = entries[0], entries[-1]
    return [first.entry_id, last.entry_id, first.at_ms, last.at_ms]


def _ends_of(block: Block | Manifest) -> list[int]:
    return [block.first_id, block.last_id, block.first_ms, block.last_ms]


def _find_problem(manifest: Manifest) -> str | None:
    """What the parts of a manifest disagree about."""
    blocks = manifest.blocks
    if not blocks:
        return "it has no block"
    offset, last_id = 0, 0
    for block in blocks:
        if block.offset != offset or block.size <= 0 or block.entries <= 0:
            return f"the block at {block.offset} does not follow the one before"
        if not last_id < block.first_id <= block.last_id:
            return f"the entries of the block at {block.offset} do not follow those before"
        offset, last_id = offset + block.size, block.last_id
    ends = [blocks[0].first_id, last_id, blocks[0].first_ms, blocks[-1].last_ms]
    if ends != _ends_of(manifest) or sum([block.entries for block in blocks]) != manifest.entries:
        return "its blocks have other entries than the whole"
    return None
