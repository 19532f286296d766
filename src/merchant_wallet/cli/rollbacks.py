"""`book accept-rollback`: let payouts go on after the database was rolled back."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from merchant_wallet.base.counted import count_of
from merchant_wallet.base.user_input import parse_digits
from merchant_wallet.cli import terminal
from merchant_wallet.cli.failures import CANNOT_RUN, Failure
from merchant_wallet.cli.options import DataOption, JsonOption
from merchant_wallet.cli.second_person import describe, describe_lone_change, flatten, propose
from merchant_wallet.cli.session import Session, run

if TYPE_CHECKING:
    from merchant_wallet.approvals.changes import ProposedChange
    from merchant_wallet.audit.checkpointing.acceptance import Accepted
    from merchant_wallet.audit.rollback.evidence import RollbackEvidence
    from merchant_wallet.base.settings import Settings
    from merchant_wallet.merchants.cells.home_restoration import Restored
    from merchant_wallet.merchants.cells.places import RestoredCell

app = typer.Typer()

RECORD_ADVICE: Final = (
    "It says which orders were signed in the lost time. Give its newest copy with --signer-record FILE, or "
    "freeze every open order with --freeze-open."
)
UNREADABLE_ADVICE: Final = (
    "The signer signs nothing with this file either. Restore the newest complete one, or move it away and "
    "use --freeze-open."
)
KEY_ADVICE: Final = (
    "restore the right checkpoint.pub. If the key is lost, --new-key keeps all checkpoints as evidence."
)
RETURNED_ADVICE: Final = (
    "came back from its cell. It is suspended, with default settings and a key that nobody has: set what it"
    " needs, give it a secret (`merchant rotate-secret`), then `merchant resume` it."
)
PROPOSAL_COLUMNS: Final = terminal.Table(
    "proposalNo", "kind", "subject", "before", "after", "proposedBy", "expiresMs"
)
EVIDENCE_COLUMNS: Final = terminal.Table("subject", "merchantId", "kind", "cause", "sinceMs")


class Outcome(NamedTuple):
    """What was accepted, and what home got back from its cells."""

    accepted: "Accepted"
    cells: "Sequence[RestoredCell]"
    restored: "Restored | None"


@app.command("accept-rollback")
def accept_rollback(
    reason: Annotated[
        str,
        typer.Option("--reason", metavar="TEXT", help="What happened. The audit log keeps it for ever."),
    ],
    new_key: Annotated[
        bool, typer.Option("--new-key", help="The checkpoint key is lost: create or use a new one.")
    ] = False,
    signer_record: Annotated[
        Path | None,
        typer.Option(
            "--signer-record",
            metavar="FILE",
            help="The signer's newest signed.jsonl, if the signer has its own data folder.",
        ),
    ] = None,
    freeze_open: Annotated[
        bool,
        typer.Option("--freeze-open", help="Without that record: freeze every open order."),
    ] = False,
    cell_url: Annotated[
        list[str] | None,
        typer.Option(
            "--cell-url",
            metavar="NAME=URL",
            help="Where a cell is now, if it moved or was added after home's back-up. May be repeated.",
            show_default=False,
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            metavar="MERCHANT=CELL",
            help="Which copy of a book is kept, if copies went different ways. Outside the sandbox another"
            " person must agree. May be repeated.",
            show_default=False,
        ),
    ] = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let payouts go on after the database was rolled back, when you know what was lost and why.

    This accepts all evidence of a rollback that `doctor` shows. Checkpoints that do not match the database
    are kept as evidence, in a folder beside the others. Enter what was lost before you do this.

    Open orders for which the signer signed more than the database knows are frozen. The signer's record says
    which. Without the record, --freeze-open freezes all open orders.

    If home was restored without its cells, it gets back what they have: where cells and books are, merchants
    that were created since, ids and addresses. What can't come back is named. Repeat an interrupted command.

    \b
    Examples:
      merchant-wallet book accept-rollback --reason "restored the dump of 02:00, lost orders entered by ann"
      merchant-wallet book accept-rollback --reason "home of 02:00" --cell-url west=postgresql://db3/wallet
    """
    if not reason.strip():
        raise Failure("--reason must say what happened.")

    typed, kept = _parse_places(cell_url or []), _parse_kept(keep or [])

    async def act(session: Session) -> dict[str, Any]:
        if proposed := await _keep(session, kept, reason.strip()):
            return {"proposals": [describe(change) for change in proposed]}
        return _describe(await _accept(session, reason.strip(), new_key, signer_record, freeze_open, typed))

    document = run(data, act)
    if "proposals" in document:
        terminal.print_list(document, "proposals", PROPOSAL_COLUMNS, as_json, show=flatten)
        terminal.note(
            "Nothing was done yet. When another person has accepted the proposals, run the command again"
            " without --keep."
        )
        return
    terminal.print_list(document, "signs", EVIDENCE_COLUMNS, as_json)
    if document["evidence"] is not None:
        terminal.note(f"The checkpoints that do not match the database are kept in {document['evidence']}.")
    for order_id in document["frozenOrders"]:
        terminal.note(
            f"Order {order_id} is frozen because it may have been paid: `withdrawals show {order_id}`."
        )
    _note_restored(document)
    if new_key:
        terminal.note("Restart every `work` and `up`: with the old key they no longer sign checkpoints.")


def _parse_places(typed: Sequence[str]) -> dict[str, str]:
    """The typed places by cell. Raises Failure."""
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    places = {}
    for text in typed:
        name, sign, url = text.partition("=")
        try:
            if not (name and sign and conninfo_to_dict(url)):
                raise ProgrammingError
        except ProgrammingError:
            # The text may contain a password.
            message = "--cell-url must be NAME=URL, such as west=postgresql://db3/wallet."
            raise Failure(message, CANNOT_RUN) from None
        places[name] = url
    return places


def _parse_kept(typed: Sequence[str]) -> dict[int, str]:
    """The typed cells by merchant. Raises Failure."""
    kept = {}
    for text in typed:
        number, _, cell = text.partition("=")
        merchant_id = parse_digits(number)
        if merchant_id is None or not cell:
            raise Failure("--keep must be MERCHANT=CELL, such as 1001=west.", CANNOT_RUN)
        kept[merchant_id] = cell
    return kept


def _note_restored(document: dict[str, Any]) -> None:
    """Say on standard error what a person has yet to do."""
    for cell in document["cells"]:
        terminal.note(f"Cell {cell['name']} is at {cell['address']}.")
        for merchant_id, entry_ids in cell["leftBehind"].items():
            where = f"the closed copy of merchant {merchant_id}'s book at the cell's old place"
            _note_left_behind(where, entry_ids, "cell move")
        for order_ids in cell["closedOrders"].values():
            _note_closed(order_ids)
    for merchant_id in document["merchants"]:
        terminal.note(f"Merchant {merchant_id} {RETURNED_ADVICE}")
    for book in document["books"]:
        terminal.note(f"The book of merchant {book['merchantId']} is in cell {book['cell']}.")
        for cell, entry_ids in book["leftBehind"].items():
            _note_left_behind(f"its closed copy in cell {cell}", entry_ids, "merchant move")
        _note_closed(book["closedOrders"])
    if document["addresses"]:
        found = count_of(document["addresses"], "deposit address", "deposit addresses")
        terminal.note(
            f"{found} came back. If `work` ran since the restore, it may have passed deposits to them:"
            " `merchant-wallet deposits rescan`."
        )
    for merchant_id in document["lost"]:
        terminal.note(
            f"The book of merchant {merchant_id} is in no cell any more. It has begun anew, empty: enter its"
            " balances (`book credit`)."
        )
    for orders in document["lostOrders"]:
        if orders["dropped"]:
            terminal.note(f"Its orders {_join(orders['dropped'])} are lost, and were not paid.")
        _note_closed(orders["closed"])


def _note_closed(order_ids: Sequence[int]) -> None:
    if order_ids:
        terminal.note(
            f"Its orders {_join(order_ids)} are lost, and may have been paid: look for them on the chain"
            " before you enter the balances."
        )


def _note_left_behind(where: str, entry_ids: Sequence[int], command: str) -> None:
    terminal.note(
        f"Only {where} has {count_of(len(entry_ids), 'entry', 'entries')} from {entry_ids[-1]} on. Enter them"
        f" before `{command} --drop-old` removes that copy."
    )


def _join(order_ids: Sequence[int]) -> str:
    return ", ".join(map(str, order_ids))


async def _keep(session: Session, kept: Mapping[int, str], reason: str) -> "list[ProposedChange]":
    """Choose copies of books, or propose that where it needs two people. Raises Failure."""
    from merchant_wallet.approvals.changes import ChangeRefused
    from merchant_wallet.merchants.cells import kept_copies

    proposed = []
    try:
        for merchant_id, cell in kept.items():
            async with session.conn.transaction():
                before = await kept_copies.lock_kept(session.conn, merchant_id, cell)
                facts = kept_copies.describe(before), kept_copies.describe(cell)
                subject = kept_copies.format_subject(merchant_id)
                change = (
                    await propose(session, kept_copies.KEEP, subject, facts, reason, merchant_id=merchant_id)
                    if before != cell
                    else None
                )
                if change is None:
                    author = session.author(describe_lone_change(session, reason))
                    await kept_copies.keep(session.conn, author, merchant_id, cell)
                else:
                    proposed.append(change)
    except ChangeRefused as refused:
        raise Failure(str(refused)) from None
    return proposed


async def _accept(
    session: Session,
    reason: str,
    new_key: bool,
    given: Path | None,
    freeze_open: bool,
    typed: dict[str, str],
) -> Outcome:
    from merchant_wallet.audit.checkpointing.acceptance import (
        ACTION,
        AcceptanceRequest,
        EvidenceSources,
        KeyDiffers,
        NothingToAccept,
        RecordMissing,
        accept,
    )
    from merchant_wallet.audit.checkpointing.keys import open_or_create_signer
    from merchant_wallet.audit.rollback.comparison import LastCheckpoints, list_last_entries
    from merchant_wallet.audit.rollback.signer_record import RecordUnreadable
    from merchant_wallet.base.cells import Databases
    from merchant_wallet.base.ids import range_of
    from merchant_wallet.book.archive.files import ArchiveFolder
    from merchant_wallet.book.checkpoint_keys import load_keys
    from merchant_wallet.book.checkpoints import list_checkpointed
    from merchant_wallet.merchants.cells import home_restoration, kept_copies, places
    from merchant_wallet.merchants.cells.book_placement import CopiesDiffer, NoWholeCopy
    from merchant_wallet.merchants.cells.copies import CheckpointFolder
    from merchant_wallet.merchants.cells.lost_merchants import AccountMissing, MerchantDiffers, list_returned
    from merchant_wallet.merchants.cells.moves import Auditor
    from merchant_wallet.merchants.xpub_pool import PoolEmpty
    from merchant_wallet.postgres import jobs

    base = await session.open_base()
    settings = session.settings
    sources = EvidenceSources(
        base.checkpoint_dir,
        _find_record(settings, given, freeze_open),
        partial(places.find_evidence, directory=session.cells),
    )
    author = session.author()
    async with session.conn.transaction():
        # The acceptance has transactions of its own, over all cells.
        await author.hold(session.conn)
    request = AcceptanceRequest(author.actor, reason, author.source, author.at_ms)
    signer = open_or_create_signer(settings) if new_key else None
    by = Auditor(request.actor, request.source)
    keys = await load_keys(session.conn, base.checkpoint_dir)
    last = await asyncio.to_thread(LastCheckpoints(base.checkpoint_dir).read, keys)
    means = home_restoration.Means(
        by,
        base.keyring,
        settings.sandbox,
        CheckpointFolder(base.checkpoint_dir, keys, ArchiveFolder(settings.archive_folder)),
        await list_checkpointed(base.checkpoint_dir),
        settings.secret_wait_ms,
        [range_of(entry_id) for entry_id in list_last_entries(last)],
    )
    restored: list[Restored] = []

    async def restore(databases: Databases) -> None:
        found = await home_restoration.restore(databases, means)
        # A run that was refused or interrupted may have brought some back.
        returned = sorted({*found.merchants, *await list_returned(databases.home, ACTION)})
        restored.append(found._replace(merchants=returned))

    try:
        async with jobs.hold(session.conn, jobs.Kind.ACCEPTANCE, jobs.EVERYTHING, request.actor):
            own = dict(settings.cell_urls)
            cells = await places.restore_places(session.conn, session.url, own, typed, by, terminal.note)
            async with session.connect_all() as databases:
                accepted = await accept(
                    databases, sources, request, new_signer=signer, freeze_open=freeze_open, restore=restore
                )
                return Outcome(accepted, cells, restored[-1] if restored else None)
    except (
        jobs.JobInTheWay,
        places.PlaceRefused,
        AccountMissing,
        MerchantDiffers,
        PoolEmpty,
        NoWholeCopy,
        CopiesDiffer,
    ) as refused:
        raise Failure(str(refused)) from None
    except NothingToAccept:
        raise Failure(kept_copies.NOT_ROLLED_BACK) from None
    except KeyDiffers as differs:
        raise Failure(f"{differs}: {KEY_ADVICE}") from None
    except RecordMissing as missing:
        raise Failure(f"The signer's record {missing} does not exist. {RECORD_ADVICE}") from None
    except RecordUnreadable as unreadable:
        raise Failure(f"{unreadable}, nothing was accepted. {UNREADABLE_ADVICE}") from None


def _find_record(settings: "Settings", given: Path | None, freeze_open: bool) -> Path | None:
    """The signer's record, or None if there is none. Raises Failure if it must be named."""
    from merchant_wallet.chains.keys.keystore import JOURNAL
    from merchant_wallet.processes.signers import find_keys_folder

    if given is not None or settings.sandbox:
        return given
    if settings.signer_socket is None:
        return find_keys_folder(settings) / JOURNAL
    if not freeze_open:
        raise Failure(f"The signer is a separate process (WALLET_SIGNER_SOCKET). {RECORD_ADVICE}")
    return None


def _describe(outcome: Outcome) -> dict[str, Any]:
    accepted, cells, restored = outcome
    books = [] if restored is None else restored.books
    lost = [] if restored is None else restored.lost
    return {
        "frozenOrders": list(accepted.frozen_orders),
        "signs": [describe_evidence(item) for item in accepted.evidence],
        "evidence": None if accepted.folder is None else str(accepted.folder),
        "files": [{"name": file.name, "bytes": file.size, "sha256": file.sha256} for file in accepted.files],
        "cells": [
            {
                "name": cell.name,
                "address": cell.address,
                "oldAddress": cell.old_address,
                "version": cell.version,
                "leftBehind": {str(number): own for number, own in cell.left_behind.items()},
                "closedOrders": {str(number): orders for number, orders in cell.closed.items() if orders},
            }
            for cell in cells
        ],
        "merchants": [] if restored is None else restored.merchants,
        "books": [
            {
                "merchantId": book.merchant_id,
                "cell": book.cell,
                "entries": book.entries,
                "leftBehind": book.left_behind,
                "closedOrders": book.closed,
            }
            for book in books
        ],
        "lost": [book.merchant_id for book in lost],
        "lostOrders": [
            {"merchantId": book.merchant_id, "dropped": book.dropped, "closed": book.closed} for book in lost
        ],
        "addresses": 0 if restored is None else restored.addresses,
    }


def describe_evidence(evidence: "RollbackEvidence") -> dict[str, Any]:
    """One piece of evidence of a rollback for output."""
    return {
        "subject": evidence.subject,
        "merchantId": evidence.merchant_id or None,
        "kind": evidence.kind,
        "cause": evidence.cause,
        "sinceMs": evidence.since_ms,
    }
