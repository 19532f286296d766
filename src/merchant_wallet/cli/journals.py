"""`book entry`, `book statement` and `book verify`: the commands that read a journal."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple

import typer

from merchant_wallet.base.user_input import parse_digits
from merchant_wallet.cli import terminal
from merchant_wallet.cli.failures import CANNOT_RUN, REFUSED, Failure
from merchant_wallet.cli.options import DataOption, JsonOption, MerchantArgument
from merchant_wallet.cli.session import Session, run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from merchant_wallet.book.verification.verify import BookReport, Progress
    from merchant_wallet.reporting.entries import EntryShown
    from merchant_wallet.reporting.statements import StatementRow

app = typer.Typer()

WRITE_ROWS: Final = 1000
MAX_MS: Final = 2**53
SECONDS_DIGITS: Final = 10
BOOK_COLUMNS: Final = terminal.Table(
    "merchantId",
    "ok",
    "entries",
    "openOrders",
    "checkpoints",
    "headHash",
    spare=("checkpoints", "openOrders"),
)

UNIT_FACTS: Final = ("arrival", "fee", "secondLimit")
"""Facts of an entry that are amounts in units."""
FEE_KINDS: Final = ("withdraw", "user_to_merchant")
"""Entries whose rate is that of a fee. The rate of others is what a currency was worth."""
DEADLINE: Final = "deadline"
"""The fact of an entry that is a moment."""
POSTING_COLUMNS: Final = terminal.Table(
    "source", "sourceBalance", "target", "targetBalance", "amount", "currency"
)


@app.command()
def entry(
    entry_id: Annotated[
        str,
        typer.Argument(
            metavar="ENTRY", help="Its entryId, or the order number or reference that only one entry has."
        ),
    ],
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one entry of a journal: what it moved, each account's balance after it, its facts and hashes.

    An entry is never changed. An archived one is read from its file.

    \b
    Examples:
      merchant-wallet book entry 8589934594
      merchant-wallet book entry "bank 4711"
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.book.archive.files import ArchiveFolder, ArchiveUnreadable
        from merchant_wallet.reporting.entries import show_entry

        merchant_id, number = await _locate_entry(session, entry_id)
        archive = ArchiveFolder(session.settings.archive_folder)
        async with session.cell(merchant_id) as cell:
            try:
                shown = await show_entry(cell, merchant_id, number, archive)
            except ArchiveUnreadable as error:
                raise Failure(f"The entry is archived, and its file can't be read: {error}") from None
        if shown is None:
            raise Failure(f"Merchant {merchant_id} has no entry {number}.")
        return describe_entry(shown)

    document = run(data, act)
    if as_json:
        terminal.print_document(document)
        return
    facts = {name: value for name, value in document["facts"].items() if name not in document}
    # People read an exchange's rate, or a fee's percentage.
    rate = "rate" if document["feePercent"] is None else "feePercent"
    left_out = {"facts", "postings", "rate", "feePercent"} - {rate}
    fields = {name: value for name, value in document.items() if name not in left_out}
    terminal.print_answer({**fields, **facts}, as_json)
    terminal.print_table(POSTING_COLUMNS, document["postings"], follows=True)


async def _locate_entry(session: Session, text: str) -> tuple[int, int]:
    """Merchant and id of an entry. The id is looked at first. Raises Failure."""
    from merchant_wallet.cli.search import resolve
    from merchant_wallet.reporting import books, entries

    number = parse_digits(text)
    owner_id = None if number is None else await books.find_book(session.conn, number)
    if number is not None and owner_id is not None:
        async with session.cell(owner_id) as cell:
            if await entries.find_kind(cell, owner_id, number):
                return owner_id, number
    hit = await resolve(session, text, "entry")
    return hit.merchant_id, int(hit.key)


def describe_entry(shown: "EntryShown") -> dict[str, Any]:
    """An entry for output. `reference` is the merchant's order number, or the name that an operator gave."""
    from merchant_wallet.base.money import format_rate, format_units
    from merchant_wallet.book.chart import name_account

    one = shown.entry
    return {
        "merchantId": shown.merchant_id,
        "entryId": one.entry_id,
        "kind": one.kind,
        "atMs": one.at_ms,
        "reference": one.mc_order_id,
        "orderId": shown.order_id,
        "rate": format_rate(one.rate_e8) if one.rate_e8 else None,
        "feePercent": format_rate(one.rate_e8 * 100) if one.kind in FEE_KINDS else None,
        "archived": shown.is_archived,
        "hash": one.hash.hex(),
        "previousHash": shown.previous_hash.hex(),
        "facts": _describe_facts(shown.facts),
        "postings": [
            {
                "source": name_account(posting.source_id, posting.currency),
                "sourceBalance": format_units(posting.source_balance),
                "target": name_account(posting.target_id, posting.currency),
                "targetBalance": format_units(posting.target_balance),
                "amount": format_units(posting.amount_units),
                "currency": posting.currency,
            }
            for posting in one.postings
        ],
    }


def _describe_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """Facts for output: a journal has units and milliseconds under names that do not say so."""
    from merchant_wallet.base.money import format_units

    said = {
        name: format_units(value) if name in UNIT_FACTS and isinstance(value, int) else value
        for name, value in facts.items()
    }
    if DEADLINE in said:
        said[f"{DEADLINE}Ms"] = said.pop(DEADLINE)
    return said


@app.command()
def statement(
    merchant: MerchantArgument,
    account: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="merchant:KFB, fees:USDT, subuser:USERID … Default: the whole book."
        ),
    ] = None,
    since: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="2025-11-21, 2025-11-21T08:00:00Z or ms.")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="Up to before this moment; as --from, in UTC.")
    ] = None,
    form: Annotated[
        Literal["csv", "jsonl"] | None, typer.Option("--format", help="Default: csv.", show_default=False)
    ] = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write every movement to standard output, oldest first, without a limit.

    With --json the output is one document, {"merchantId": …, "rows": […]}. With --format jsonl it is one
    document per movement. For a whole book each movement is written twice: from the side of the paying
    account, and from the side of the receiving account. Archived months are read from their files, which
    takes longer.

    \b
    Examples:
      merchant-wallet book statement Shop --account merchant:KFB > kfb.csv
      merchant-wallet book statement Shop --from 2025-11-01 --to 2025-12-01 --format jsonl
    """
    if as_json and form:
        raise Failure("--json and --format contradict each other.", CANNOT_RUN)
    from_ms, to_ms = read_moment(since, "--from"), read_moment(until, "--to")

    async def act(session: Session) -> None:
        from merchant_wallet.book.archive.files import ArchiveFolder
        from merchant_wallet.reporting import statements

        merchant_id = (await session.find(merchant)).merchant_id
        async with session.cell(merchant_id) as cell:
            archive = ArchiveFolder(session.settings.archive_folder)
            rows = statements.read_statement(cell, merchant_id, account, from_ms, to_ms, archive)
            await _write_statement(rows, _choose_frame(merchant_id, form, as_json))

    run(data, act)


def read_moment(text: str | None, option: str) -> int | None:
    """Parse a typed time into milliseconds: an ISO 8601 date or time (UTC by default), or a number.

    A number with at most 10 digits is seconds, as in requests. Raises Failure.
    """
    if text is None:
        return None
    try:
        if (number := parse_digits(text)) is not None:
            at_ms = number * (1000 if len(text) <= SECONDS_DIGITS else 1)
        else:
            moment = datetime.fromisoformat(text)
            zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            at_ms = int(zoned.timestamp()) * 1000 + zoned.microsecond // 1000
        if not 0 <= at_ms <= MAX_MS:
            raise ValueError(text)
    except ValueError:
        raise Failure(
            f"{option}: {text!r} is no moment; give 2025-11-21, 2025-11-21T08:00:00Z or milliseconds.",
            CANNOT_RUN,
        ) from None
    return at_ms


class Frame(NamedTuple):
    """How rows become text: the form of a row, `between` two rows, and around all rows."""

    head: str
    render: "Callable[[StatementRow], str]"
    between: str = ""
    foot: str = ""


def _choose_frame(merchant_id: int, form: str | None, as_json: bool) -> Frame:
    from merchant_wallet.reporting import export

    if as_json:
        head = f'{{"merchantId": {merchant_id}, "rows": ['
        return Frame(head, lambda row: export.render_jsonl(row).rstrip("\n"), ", ", "]}\n")
    if form == "jsonl":
        return Frame("", export.render_jsonl)
    return Frame(export.render_csv_header(), export.render_csv)


async def _write_statement(rows: "AsyncIterator[StatementRow]", frame: Frame) -> None:
    from merchant_wallet.book.archive.files import ArchiveUnreadable

    pieces = [frame.head]
    progress, count = terminal.Progress(), 0
    output = typer.get_binary_stream("stdout")
    try:
        async for row in rows:
            if count:
                pieces.append(frame.between)
            pieces.append(frame.render(row))
            count += 1
            if count % WRITE_ROWS == 0:
                output.write("".join(pieces).encode())
                pieces = []
                progress.show(f"{count} lines")
    except ArchiveUnreadable as error:
        output.write("".join(pieces).encode())
        output.flush()
        raise Failure(f"The statement is not complete: {error}") from None
    except (ValueError, LookupError) as error:
        # Only the account's name is checked before the first row.
        raise Failure(f"--account: {error}.") from None
    output.write("".join([*pieces, frame.foot]).encode())
    output.flush()
    progress.end()


@app.command()
def verify(
    merchant: Annotated[
        str | None,
        typer.Argument(metavar="[MERCHANT]", help="One book. Default: every book.", show_default=False),
    ] = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Replay journals and compare everything with them, including the signed checkpoints.

    Exit status 1 if something is wrong; the first wrong entry is named. Books may be in use.

    \b
    Examples:
      merchant-wallet book verify
      merchant-wallet book verify Shop --json
    """
    reports = run(data, lambda session: _verify(session, merchant))
    sound = all(report.ok for report in reports)
    books = [describe(report) for report in reports]
    if as_json:
        terminal.print_document({"ok": sound, "books": books})
    else:
        terminal.print_table(BOOK_COLUMNS, books)
    for report in reports:
        note_fault(report)
    if not sound:
        raise typer.Exit(REFUSED)


async def _verify(session: Session, merchant: str | None) -> "list[BookReport]":
    from merchant_wallet.book.archive.files import ArchiveFolder
    from merchant_wallet.book.checkpoint_keys import load_keys
    from merchant_wallet.book.verification.verify import verify_book

    base = await session.open_base()
    keys = await load_keys(session.conn, base.checkpoint_dir)
    archive = ArchiveFolder(session.settings.archive_folder)
    where: dict[str, Any] = {
        "checkpoint_dir": base.checkpoint_dir,
        "checkpoint_keys": keys,
        "archive": archive,
    }
    progress = terminal.Progress()

    def show_progress(merchant_id: int, done: int, total: int) -> None:
        progress.show(f"merchant {merchant_id}: {done} of {total} entries")

    try:
        if merchant is None:
            return await _verify_all(session, show_progress, where)
        merchant_id = (await session.find(merchant)).merchant_id
        async with session.cell(merchant_id) as cell:
            return [await verify_book(session.conn, cell, merchant_id, show_progress, **where)]
    finally:
        progress.end()


async def _verify_all(session: Session, progress: "Progress", where: dict[str, Any]) -> "list[BookReport]":
    """Verify the books of all cells. Raises Failure for a cell that is away: its books were not verified."""
    from merchant_wallet.book.verification.verify import verify_all

    async with session.reach_cells() as reached:
        if reached.away:
            away = "; ".join(f"cell {name} is away: {cause}" for name, cause in reached.away.items())
            raise Failure(f"Nothing was verified: {away}. One book is verified by its name.", CANNOT_RUN)
        found = [
            report
            for cell, connection in reached.cells
            for report in await verify_all(session.conn, connection, progress, cell_id=cell.cell_id, **where)
        ]
    return sorted(found, key=lambda report: report.merchant_id)


def note_fault(report: "BookReport") -> None:
    """Say on standard error what is wrong with a book."""
    if report.torn_checkpoint:
        terminal.note(
            f"Merchant {report.merchant_id}: the last checkpoint is half written, as after a crash."
        )
    violation = report.violation
    if violation is not None:
        places = {"entry": violation.entry_id, "order": violation.order_id, "account": violation.account}
        where = ", ".join(f"{name} {value}" for name, value in places.items() if value is not None)
        place = f" at {where}" if where else ""
        terminal.note(f"WRONG: merchant {report.merchant_id}{place} ({violation.rule}): {violation.text}.")


def describe(report: "BookReport") -> dict[str, Any]:
    """The result of a verification for output."""
    from merchant_wallet.base.money import format_units

    violation = report.violation
    return {
        "merchantId": report.merchant_id,
        "ok": report.ok,
        "entries": report.entries,
        "lastEntryId": report.last_entry_id,
        "headHash": report.head_hash.hex(),
        "balances": {name: format_units(units) for name, units in report.balances.items()},
        "openOrders": report.open_orders,
        "checkpoints": report.checkpoints,
        "tornCheckpoint": report.torn_checkpoint,
        "fault": None
        if violation is None
        else {
            "rule": violation.rule,
            "text": violation.text,
            "entryId": violation.entry_id,
            "orderId": violation.order_id,
            "account": violation.account,
        },
    }
