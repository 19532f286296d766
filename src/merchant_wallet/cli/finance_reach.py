"""The files that `finance` makes of what it reads from the cells."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import typer

from merchant_wallet.cli.failures import CANNOT_RUN, Failure
from merchant_wallet.cli.finance_output import Span, open_output, read_language
from merchant_wallet.cli.session import Session
from merchant_wallet.cli.terminal import Progress

if TYPE_CHECKING:
    from merchant_wallet.reporting.finance.periods import Period
    from merchant_wallet.reporting.finance.verification import MonthKeys


async def make_statement_pdf(session: Session, merchant: str, period: "Period", language: str) -> bytes:
    """A merchant's statement. Raises Failure."""
    from merchant_wallet.base.clock import now_ms
    from merchant_wallet.book.archive.files import ArchiveFolder
    from merchant_wallet.reporting.finance.accounting_rows import list_movements
    from merchant_wallet.reporting.finance.reports import read_report
    from merchant_wallet.web.finance_documents import MAX_MOVEMENTS, dress, make_statement
    from merchant_wallet.web.pdf.document import build_pdf

    found = await session.find(merchant)
    archive = ArchiveFolder(session.settings.archive_folder)
    async with session.reach() as cells:
        report = await read_report(cells, period, found.merchant_id)
    span = (period.since_ms, period.until_ms)
    async with session.cell(found.merchant_id) as cell:
        listed = await list_movements(cell, archive, found.merchant_id, *span, MAX_MOVEMENTS)
    issuer = session.settings.invoice_issuer
    document = make_statement(report, found.name, listed, read_language(language), issuer, now_ms())
    return build_pdf(dress(document, session.settings))


async def export_rows(
    session: Session,
    what: str,
    merchant: str | None,
    span: Span,
    language: str,
    output: Path | None,
    *,
    force: bool,
) -> None:
    """Write a file for accountants row by row. Raises Failure."""
    from functools import partial

    from merchant_wallet.console.audit_words import AuditWords
    from merchant_wallet.web import accounting_files
    from merchant_wallet.web.languages import translate

    say = partial(translate, read_language(language))
    reader = accounting_files.Reader(say, span.zone, True, AuditWords(say))
    merchant_id = None if merchant is None else (await session.find(merchant)).merchant_id
    stream: BinaryIO = typer.get_binary_stream("stdout")
    if output is not None:
        stream = open_output(output, force=force)
    try:
        stream.write(accounting_files.render_head(what, reader).encode())
        await _write_books(session, what, merchant_id, span, reader, stream)
        stream.flush()
    finally:
        if output is not None:
            stream.close()


async def _write_books(
    session: Session, what: str, merchant_id: int | None, span: Span, reader: Any, stream: BinaryIO
) -> None:
    from merchant_wallet.book.archive.files import ArchiveFolder
    from merchant_wallet.reporting.finance.accounting_rows import page_merchants
    from merchant_wallet.web.accounting_files import AUDIT, Scope, stream_rows

    archive = ArchiveFolder(session.settings.archive_folder)
    progress, written = Progress(), 0

    async def write(conn: Any, scope: Scope) -> None:
        nonlocal written
        async for piece in stream_rows(conn, archive, what, scope, reader):
            stream.write(piece)
            written += piece.count(b"\n")
            progress.show(f"{written:,} lines are written")

    try:
        if what == AUDIT:
            await write(session.conn, Scope(merchant_id or 0, "", span.since_ms, span.until_ms))
            return
        after = 0
        while page := await page_merchants(session.conn, after, merchant_id):
            for one_id, name in page:
                scope = Scope(one_id, name, span.since_ms, span.until_ms)
                async with session.cell(one_id) as cell:
                    await write(cell, scope)
            after = page[-1][0]
    finally:
        progress.end()


async def verify_months(session: Session, wanted: str | None, given: Sequence[str]) -> dict[str, Any]:
    """Check closed months: all, or one. `given` are public keys of a person. Raises Failure."""
    from merchant_wallet.book.archive.files import ArchiveFolder, ArchiveUnreadable
    from merchant_wallet.reporting.finance import months, verification

    keys, problem = await _load_keys(session, list(map(_read_key, given)))
    archive = ArchiveFolder(session.settings.archive_folder)
    checked, faults, progress = [], [], Progress()
    async with session.connect_all() as databases:
        before = months.AFTER_ALL
        while page := await months.list_months(session.conn, before=before):
            before = page[-1].month
            for one in page:
                versions = await months.list_superseded(session.conn, one.month)
                signed = versions if one.closed_ms is None else [one, *versions]
                if not signed or wanted not in (None, one.month):
                    continue
                progress.show(f"Reading the journal of {one.month}")
                try:
                    for version in signed:
                        faults += await verification.verify_month(databases, keys, archive, version)
                except ArchiveUnreadable as error:
                    raise Failure(str(error)) from None
                checked.append(one.month)
    progress.end()
    if wanted is not None and not checked:
        raise Failure(f"{wanted} is not closed: `merchant-wallet finance months` lists what is.")
    described = [{"month": one.month, "merchantId": one.merchant_id, "text": one.text} for one in faults]
    is_unknown = any(one.text == verification.NOT_SIGNED for one in faults)
    return {
        "ok": not faults,
        "months": checked,
        "faults": described,
        "formerKeys": [{"publicKey": one.public_key.hex(), "untilMs": one.until_ms} for one in keys.former],
        "keyProblem": problem if is_unknown else None,
    }


def _read_key(text: str) -> bytes:
    """A public key as it was typed: hexadecimal digits, or a file with them. Raises Failure."""
    from merchant_wallet.book.checkpoint_keys import parse_public_key

    try:
        path = Path(text)
        return parse_public_key(path.read_text(encoding="ascii") if path.is_file() else text)
    except (OSError, ValueError):
        raise Failure(
            f"--key {text[:80]!r} is neither 64 hexadecimal digits nor a file with them (checkpoint.pub).",
            CANNOT_RUN,
        ) from None


async def _load_keys(session: Session, given: Sequence[bytes]) -> "tuple[MonthKeys, str | None]":
    """Today's key, those that it replaced and those that are given; and why some are not known."""
    from merchant_wallet.audit.checkpointing.former_keys import read_former_keys
    from merchant_wallet.book.checkpoint_keys import FormerKey, load_keys
    from merchant_wallet.reporting.finance.verification import MonthKeys

    base = await session.open_base()
    current = await load_keys(session.conn, base.checkpoint_dir)
    former = await read_former_keys(session.conn, base.checkpoint_dir, current)
    known = {one.public_key for one in former.keys}
    typed = [FormerKey(key) for key in dict.fromkeys(given) if key not in known]
    return MonthKeys(current, (*former.keys, *typed)), former.problem
