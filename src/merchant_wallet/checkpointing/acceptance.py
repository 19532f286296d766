"""A person's word on a rollback: what was seen is kept as evidence, and payouts may go on.

Rules:
- Files of checkpoints that the database no longer holds are moved to `evidence/<moment>/` beside the others,
  with a list of what was accepted, by whom and why. New checkpoints begin new files.
- The entry in the audit log names that list by its SHA-256, and commits with the acceptance.
- Orders that the signer signed more for than the database knows are frozen: they may have been paid, and on a
  chain without nonces a further signature could pay them again.
- Files are moved first. After a crash in between, the signs still stand, and the command is given again.
"""

import asyncio
import hashlib
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from psycopg import AsyncConnection

from merchant_wallet.audit import checkpoints as audit_checkpoints
from merchant_wallet.audit import records as audit
from merchant_wallet.book.checkpoint_keys import PUBLIC_KEY_FILE, load_keys
from merchant_wallet.book.checkpoints import file_of, list_files
from merchant_wallet.chains.signing_journal import Payment
from merchant_wallet.checkpointing.keys import pin, publish
from merchant_wallet.checkpointing.signing import FOLDER_MODE, CheckpointSigner, sync_folder
from merchant_wallet.db import Queries
from merchant_wallet.ids import COUNTER_BITS
from merchant_wallet.rollback import signs
from merchant_wallet.rollback.comparison import Comparison
from merchant_wallet.rollback.signer_record import find_signer_sign, read_last_payments
from merchant_wallet.rollback.signs import Sign

QUERIES: Final = Queries(Path(__file__).with_name("acceptance.sql"))
EVIDENCE: Final = "evidence"
LIST_FILE: Final = "accepted.json"
MOST_TOLD: Final = 20
"""So many causes stand in the audit log; the list has all."""

Connection = AsyncConnection[Any]


class NothingToAccept(Exception):
    """No sign of a rollback stands or can be found."""


class Word(msgspec.Struct, frozen=True):
    """Who accepts, why, from where and when."""

    actor: str
    reason: str
    source: str
    at_ms: int


class Evidence(msgspec.Struct, frozen=True):
    """A file that was kept: its name, size and hex SHA-256."""

    name: str
    size: int
    sha256: str


class Accepted(msgspec.Struct, frozen=True):
    """What was accepted; `folder` has the evidence, None when there was no file to keep."""

    signs: list[Sign]
    files: list[Evidence]
    folder: Path | None
    frozen_orders: tuple[int, ...] = ()


class Place(msgspec.Struct, frozen=True):
    """Where to look: the checkpoints' folder, the old form's key, and the signer's record."""

    folder: Path
    old_key: bytes
    signer_record: Path | None = None


async def find_all_signs(conn: Connection, place: Place, now_ms: int) -> list[Sign]:
    """The signs that stand, and those that a comparison finds now. Raises OSError, `psycopg.Error`."""
    found = await Comparison(place.folder, place.old_key).find_signs(conn, now_ms)
    if place.signer_record is not None:
        signed = await find_signer_sign(conn, place.signer_record, now_ms)
        found += [] if signed is None else [signed]
    standing = await signs.list_signs(conn)
    known = {(sign.merchant_id, sign.subject) for sign in standing}
    return standing + [sign for sign in found if (sign.merchant_id, sign.subject) not in known]


async def accept(
    conn: Connection, place: Place, word: Word, *, new_signer: CheckpointSigner | None = None
) -> Accepted:
    """Accept every sign there is now, and with `new_signer` begin anew under its key.

    Raises NothingToAccept, OSError, `psycopg.Error`; then nothing is accepted.
    """
    async with signs.locked(conn):
        found = await find_all_signs(conn, place, word.at_ms)
        if not found and new_signer is None:
            raise NothingToAccept
        names = await asyncio.to_thread(_name_files, place.folder, found, new_signer is not None)
        accepted = await asyncio.to_thread(_keep, place.folder, found, names, word)
        if new_signer is not None:
            await _begin_anew(conn, place, new_signer, word.at_ms)
        payments = [] if place.signer_record is None else await _read_payments(place.signer_record)
        frozen = await _freeze_signed(conn, payments, word.at_ms)
        accepted = msgspec.structs.replace(accepted, frozen_orders=frozen)
        await _record(conn, accepted, payments, word, new_key=new_signer is not None)
    return accepted


async def _read_payments(record: Path) -> list[Payment]:
    return await asyncio.to_thread(read_last_payments, record, whole=True)


async def _freeze_signed(conn: Connection, payments: Sequence[Payment], now_ms: int) -> tuple[int, ...]:
    """Freeze the open orders that more was signed for than the database knows; gives their ids."""
    signed = Counter(order_id for order_id, _ in {(one.payout_id, one.digest) for one in payments})
    values = {
        "order_ids": list(signed),
        "counts": list(signed.values()),
        "counter_bits": COUNTER_BITS,
        "cause": "the signer signed more for it than this database knows: it may have been paid",
        "now_ms": now_ms,
    }
    cursor = await conn.execute(QUERIES["freeze_signed"].text, values)
    return tuple(sorted(order_id for (order_id,) in await cursor.fetchall()))


def _name_files(folder: Path, found: Sequence[Sign], new_key: bool) -> list[str]:
    """The files that no longer fit the database, or all when their key is replaced."""
    if new_key:
        merchants = list_files(folder) if folder.is_dir() else []
        names = [PUBLIC_KEY_FILE, audit_checkpoints.FILE]
    else:
        merchants = [sign.merchant_id for sign in found if sign.subject == "book"]
        names = [audit_checkpoints.FILE] if any(sign.subject == "audit" for sign in found) else []
    names += [file_of(folder, merchant_id).name for merchant_id in merchants]
    return [name for name in names if (folder / name).exists()]


def _keep(folder: Path, found: Sequence[Sign], names: Sequence[str], word: Word) -> Accepted:
    if not names:
        return Accepted(list(found), [], None)
    kept = folder / EVIDENCE / str(word.at_ms)
    kept.mkdir(mode=FOLDER_MODE, parents=True)
    files = []
    for name in names:
        with (folder / name).open("rb") as file:
            digest, size = hashlib.file_digest(file, "sha256").hexdigest(), os.fstat(file.fileno()).st_size
        (folder / name).rename(kept / name)
        files.append(Evidence(name, size, digest))
    accepted = Accepted(list(found), files, kept)
    (kept / LIST_FILE).write_bytes(_list(accepted, word))
    for changed in (kept, kept.parent, folder):
        sync_folder(changed)
    return accepted


def _list(accepted: Accepted, word: Word) -> bytes:
    told = {"word": word, "signs": accepted.signs, "files": accepted.files}
    return msgspec.json.format(msgspec.json.encode(told)) + b"\n"


async def _begin_anew(conn: Connection, place: Place, signer: CheckpointSigner, now_ms: int) -> None:
    keys = await load_keys(conn, place.folder, place.old_key)
    await asyncio.to_thread(publish, signer, place.folder)
    if keys.public_key != signer.public_key:
        await pin(conn, signer, now_ms)


async def _record(
    conn: Connection, accepted: Accepted, payments: Sequence[Payment], word: Word, *, new_key: bool
) -> None:
    values = {
        "accepted_ms": word.at_ms,
        "actor": word.actor,
        "reason": word.reason,
        "signed_upto_ms": max((payment.at_ms for payment in payments), default=0),
    }
    await conn.execute(QUERIES["add_acceptance"].text, values)
    await conn.execute(QUERIES["clear_signs"].text)
    folder = accepted.folder
    await audit.append(
        conn,
        actor=word.actor,
        action="rollback.accept",
        subject="database",
        after={
            "reason": word.reason,
            "signs": len(accepted.signs),
            "causes": [_name_cause(sign) for sign in accepted.signs[:MOST_TOLD]],
            "evidence": None if folder is None else folder.name,
            "evidenceSha256": hashlib.sha256(_list(accepted, word)).hexdigest(),
            "frozenOrders": list(accepted.frozen_orders[:MOST_TOLD]),
            "newKey": new_key,
        },
        source=word.source,
        at_ms=word.at_ms,
    )


def _name_cause(sign: Sign) -> str:
    whose = f"{sign.subject} {sign.merchant_id}" if sign.subject == "book" else sign.subject
    return f"{whose}: {sign.cause}"
