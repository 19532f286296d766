"""A person accepts a rollback: the evidence is kept, and payouts may continue.

Rules:
- Checkpoint files that no longer match the database are moved to `evidence/<time>/`, with a list of what was
  accepted, by whom and why. New checkpoints begin new files.
- The entry in the audit log has the SHA-256 of that list, and commits with the acceptance.
- If the signer signed more for an order than the database knows, the order is frozen. It may have been paid,
  and on a chain without nonces another signature could pay it again. Without the signer's record nothing is
  accepted, unless every open order is frozen.
- Orders are frozen in their cells first. Then home freezes their payouts and deletes the evidence, in one
  transaction. Until then the evidence stops all books.
- All evidence is committed before any file is moved. After a crash it is still open. The same command then
  continues in the same folder.
- Then home is given what its cells have and it lacks (`restore`, see `merchants.cells.home_restoration`). The
  evidence is committed before, and found anew afterwards: it names what could not be brought back.
- If the key is not the service's, only a new key is accepted. Nothing else would remove that evidence.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from psycopg import AsyncConnection

from merchant_wallet.audit import checkpoints as audit_checkpoints
from merchant_wallet.audit import records as audit
from merchant_wallet.audit.checkpointing.evidence_files import EvidenceFile, choose_folder, move, write_list
from merchant_wallet.audit.checkpointing.frozen_orders import freeze_orders, freeze_payouts
from merchant_wallet.audit.checkpointing.keys import pin, publish
from merchant_wallet.audit.checkpointing.signing import CheckpointSigner
from merchant_wallet.audit.rollback import evidence as rollback_evidence
from merchant_wallet.audit.rollback.comparison import Comparison
from merchant_wallet.audit.rollback.evidence import NO_MERCHANT, RollbackEvidence
from merchant_wallet.audit.rollback.home_marks import FindMoved, find_home_evidence, find_none
from merchant_wallet.audit.rollback.reached_cells import ReachedCells
from merchant_wallet.audit.rollback.signer_record import find_signer_evidence, read_last_payments
from merchant_wallet.base.cells import Databases
from merchant_wallet.base.db import Queries
from merchant_wallet.book.checkpoint_keys import PUBLIC_KEY_FILE, load_keys
from merchant_wallet.book.checkpoints import file_of, list_files
from merchant_wallet.chains.keys.signing_journal import SignedPayment

QUERIES: Final = Queries(Path(__file__).with_name("acceptance.sql"))
ACTION: Final = "rollback.accept"
MAX_LOGGED_CAUSES: Final = 20
"""The audit log gets at most this many causes. The list has all."""
MAX_ACCEPTANCES: Final = 500
"""The folders' names are read from this many of the newest acceptances."""

Connection = AsyncConnection[Any]


class NothingToAccept(Exception):
    """There is no evidence of a rollback."""


class KeyDiffers(Exception):
    """The checkpoint key is not the service's, and no new key was requested. The text says why."""


class RecordMissing(Exception):
    """The signer's record is missing, and nobody asked to freeze every open order. The text is its path."""


class AcceptanceRequest(msgspec.Struct, frozen=True):
    """Who accepts, why, from where and when."""

    actor: str
    reason: str
    source: str
    at_ms: int


class Accepted(msgspec.Struct, frozen=True):
    """What was accepted. `folder` has the files that are kept; None if there was none."""

    evidence: list[RollbackEvidence]
    files: list[EvidenceFile]
    folder: Path | None
    frozen_orders: tuple[int, ...] = ()


class EvidenceSources(msgspec.Struct, frozen=True):
    """Where to look: the folder of checkpoints, and the signer's record.

    `signer_record` is None if no signer keeps one, as in the sandbox. `find_moved` looks at closed cells.
    """

    folder: Path
    signer_record: Path | None = None
    find_moved: FindMoved = find_none


Restore = Callable[[Databases], Awaitable[None]]
"""Gives home what its cells have and it lacks. It may be repeated."""


async def restore_nothing(databases: Databases) -> None:
    """There are no apart cells."""


async def find_all_evidence(
    databases: Databases, sources: EvidenceSources, now_ms: int
) -> list[RollbackEvidence]:
    """The open evidence, and what a comparison finds now. Raises OSError, `psycopg.Error`."""
    open_evidence = await rollback_evidence.list_evidence(databases.home)
    known = {(item.merchant_id, item.subject) for item in open_evidence}
    found = await _compare(databases, sources, now_ms)
    return open_evidence + [item for item in found if (item.merchant_id, item.subject) not in known]


async def _compare(databases: Databases, sources: EvidenceSources, now_ms: int) -> list[RollbackEvidence]:
    home, cells = databases.home, ReachedCells(*databases)
    of_home = await find_home_evidence(home, cells, now_ms, sources.find_moved)
    found = await Comparison(sources.folder).find_evidence(home, cells, now_ms)
    if sources.signer_record is not None:
        signed = await find_signer_evidence(home, cells, sources.signer_record, now_ms)
        found += [] if signed is None else [signed]
    # It explains the others.
    return of_home + found


async def accept(
    databases: Databases,
    sources: EvidenceSources,
    request: AcceptanceRequest,
    *,
    new_signer: CheckpointSigner | None = None,
    freeze_open: bool = False,
    restore: Restore = restore_nothing,
) -> Accepted:
    """Accept all evidence that there is now. With `new_signer`, start again with its key.

    With `freeze_open` every open order is frozen, and the signer's record may be missing. `databases` must
    have all cells. The caller has all books for this job (`jobs.hold`). Raises NothingToAccept, KeyDiffers,
    RecordMissing, RecordUnreadable, OSError, `psycopg.Error`, and what `restore` raises. Then nothing is
    accepted, and the evidence that was found stays open.
    """
    conn = databases.home
    await _check_record(sources, freeze_open)
    is_home = await _record_home(databases, sources, request.at_ms, new_key=new_signer is not None)
    if is_home:
        await restore(databases)
    await _record_found(databases, sources, request.at_ms, new_key=new_signer is not None)
    if not is_home:
        # A cell that was rolled back alone may have books again that have moved since.
        await restore(databases)
    payments = await _read_signed_payments(sources)
    may_be_paid = await freeze_orders(databases, payments, request.at_ms, all_open=freeze_open)
    async with rollback_evidence.locked(conn):
        open_evidence = await rollback_evidence.list_evidence(conn)
        if not open_evidence:
            raise NothingToAccept
        if new_signer is None:
            await _require_key(conn, sources)
        accepted = await _move_evidence(
            conn, sources.folder, open_evidence, request, new_key=new_signer is not None
        )
        if new_signer is not None:
            await _start_new_key(conn, sources, new_signer, request.at_ms)
        frozen = await freeze_payouts(conn, may_be_paid, request.at_ms)
        accepted = msgspec.structs.replace(accepted, frozen_orders=frozen)
        await _record(conn, accepted, payments, request, new_key=new_signer is not None)
    return accepted


async def _check_record(sources: EvidenceSources, freeze_open: bool) -> None:
    """Refuse before anything is done if the record is missing or its end is unreadable."""
    record = sources.signer_record
    if record is None:
        return
    if not freeze_open and not await asyncio.to_thread(record.exists):
        raise RecordMissing(str(record))
    await asyncio.to_thread(read_last_payments, record)


async def _record_home(databases: Databases, sources: EvidenceSources, now_ms: int, *, new_key: bool) -> bool:
    """Commit the evidence that cells give about home. Returns whether home was rolled back without them."""
    conn = databases.home
    async with rollback_evidence.locked(conn):
        if not new_key:
            await _require_key(conn, sources)
        cells = ReachedCells(*databases)
        found = await find_home_evidence(conn, cells, now_ms, sources.find_moved)
        await rollback_evidence.record_evidence(conn, found)
        return any(item.subject == "home" for item in await rollback_evidence.list_evidence(conn))


async def _record_found(
    databases: Databases, sources: EvidenceSources, now_ms: int, *, new_key: bool
) -> None:
    """Commit the evidence that a comparison finds now. Earlier evidence stays open."""
    conn = databases.home
    async with rollback_evidence.locked(conn):
        if not new_key:
            await _require_key(conn, sources)
        found = await _compare(databases, sources, now_ms)
        if new_key:
            # This evidence stays open if the command stops halfway, even if nothing else is wrong.
            found.append(
                RollbackEvidence(
                    NO_MERCHANT, "key", "diverged", "the checkpoint key is being replaced", now_ms
                )
            )
        await rollback_evidence.record_evidence(conn, found)
        if not await rollback_evidence.has_open_evidence(conn):
            raise NothingToAccept


async def _require_key(conn: Connection, sources: EvidenceSources) -> None:
    keys = await load_keys(conn, sources.folder)
    if keys.problem is not None:
        raise KeyDiffers(keys.problem)


async def _read_signed_payments(sources: EvidenceSources) -> list[SignedPayment]:
    if sources.signer_record is None:
        return []
    return await asyncio.to_thread(read_last_payments, sources.signer_record, whole=True)


def _list_evidence_files(folder: Path, found: Sequence[RollbackEvidence], new_key: bool) -> list[str]:
    """The files that no longer match the database, or all of them if the key is replaced."""
    if new_key:
        merchants = list_files(folder) if folder.is_dir() else []
        names = [PUBLIC_KEY_FILE, audit_checkpoints.FILE]
    else:
        merchants = [item.merchant_id for item in found if item.subject == "book"]
        names = [audit_checkpoints.FILE] if any(item.subject == "audit" for item in found) else []
    names += [file_of(folder, merchant_id).name for merchant_id in merchants]
    return [name for name in names if (folder / name).exists()]


async def _move_evidence(
    conn: Connection,
    folder: Path,
    open_evidence: Sequence[RollbackEvidence],
    request: AcceptanceRequest,
    *,
    new_key: bool,
) -> Accepted:
    """Move the files that the evidence names. List them, and those that an interrupted acceptance moved."""
    told = await audit.list_entries(conn, action=ACTION, limit=MAX_ACCEPTANCES)
    named = {str((entry.after or {}).get("evidence")) for entry in told}
    target = choose_folder(folder, min(item.since_ms for item in open_evidence), named)
    names = await asyncio.to_thread(_list_evidence_files, folder, open_evidence, new_key)
    files = await asyncio.to_thread(move, folder, names, target)
    accepted = Accepted(list(open_evidence), files, target if files else None)
    if files:
        await asyncio.to_thread(write_list, target, _format_list(accepted, request))
    return accepted


def _format_list(accepted: Accepted, request: AcceptanceRequest) -> bytes:
    content = {"word": request, "signs": accepted.evidence, "files": accepted.files}
    return msgspec.json.format(msgspec.json.encode(content)) + b"\n"


async def _start_new_key(
    conn: Connection, sources: EvidenceSources, signer: CheckpointSigner, now_ms: int
) -> None:
    keys = await load_keys(conn, sources.folder)
    await asyncio.to_thread(publish, signer, sources.folder)
    if keys.public_key != signer.public_key:
        await pin(conn, signer, now_ms)


async def _record(
    conn: Connection,
    accepted: Accepted,
    payments: Sequence[SignedPayment],
    request: AcceptanceRequest,
    *,
    new_key: bool,
) -> None:
    values = {
        "accepted_ms": request.at_ms,
        "actor": request.actor,
        "reason": request.reason,
        "signed_upto_ms": max((payment.at_ms for payment in payments), default=0),
    }
    await conn.execute(QUERIES["add_acceptance"].text, values)
    await conn.execute(QUERIES["clear_evidence"].text)
    folder = accepted.folder
    await audit.append(
        conn,
        actor=request.actor,
        action=ACTION,
        subject="database",
        after={
            "reason": request.reason,
            "signs": len(accepted.evidence),
            "causes": [_format_cause(item) for item in accepted.evidence[:MAX_LOGGED_CAUSES]],
            "evidence": None if folder is None else folder.name,
            "evidenceSha256": hashlib.sha256(_format_list(accepted, request)).hexdigest(),
            "frozenOrders": list(accepted.frozen_orders[:MAX_LOGGED_CAUSES]),
            "frozen": len(accepted.frozen_orders),
            "newKey": new_key,
        },
        source=request.source,
        at_ms=request.at_ms,
    )


def _format_cause(evidence: RollbackEvidence) -> str:
    whose = f"{evidence.subject} {evidence.merchant_id}" if evidence.subject == "book" else evidence.subject
    return f"{whose}: {evidence.cause}"
