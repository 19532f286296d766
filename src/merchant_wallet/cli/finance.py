"""`finance`: reports of days and months, closing a month, invoices, statements and files for accountants.

Rules: the same as on the console's pages, by the same code. Files go to standard output, or to --output.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

import typer

from merchant_wallet.cli import finance_simulation, finance_solvency, terminal
from merchant_wallet.cli.failures import CANNOT_RUN, REFUSED, Failure
from merchant_wallet.cli.finance_output import (
    NO_ISSUER,
    check_output,
    describe_month,
    describe_report,
    describe_versions,
    print_report,
    print_superseded,
    print_written,
    read_zone,
    write_pdf,
)
from merchant_wallet.cli.options import (
    DataOption,
    ForceOption,
    JsonOption,
    LimitOption,
    MerchantArgument,
    MerchantOption,
)
from merchant_wallet.cli.session import Session, find_actor, run

if TYPE_CHECKING:
    from merchant_wallet.approvals.changes import ProposedChange
    from merchant_wallet.reporting.finance.periods import Period

app = typer.Typer(help="Reports, months, invoices and files for accountants.", no_args_is_help=True)
app.add_typer(finance_solvency.app)
app.add_typer(finance_simulation.app)

MONTH_COLUMNS: Final = terminal.Table(
    *("month", "version", "state", "books", "preparedMs", "proposedBy", "acceptedBy", "closedMs"),
)
INVOICE_COLUMNS: Final = terminal.Table(
    "number", "merchantId", "merchantName", "month", "totals", "issuedMs", "corrects"
)
FAULT_COLUMNS: Final = terminal.Table("month", "merchantId", "text")
KEY_ADVICE: Final = (
    "Give the public key that `doctor` showed then and you noted down, with --key; or bring back"
    " the checkpoints' folder `evidence`."
)

PeriodArgument = Annotated[
    str, typer.Argument(metavar="PERIOD", help="2026-10, 2026-10-05 or 2026-10-05..2026-10-12, in UTC.")
]
MonthArgument = Annotated[str, typer.Argument(metavar="MONTH", help="A month as 2026-10.")]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write to this file.", show_default=False),
]
LanguageOption = Annotated[str, typer.Option("--lang", metavar="LANG", help="en or zh-CN.")]
if TYPE_CHECKING:
    FileName: TypeAlias = str
else:
    FileName = Literal["movements", "postings", "withdrawals", "deposits", "callbacks", "audit"]


def _read_period(text: str) -> "Period":
    from merchant_wallet.reporting.finance.periods import parse_period

    try:
        return parse_period(text)
    except ValueError as error:
        raise Failure(f"{error}.", CANNOT_RUN) from None


def _read_month(text: str) -> "Period":
    period = _read_period(text)
    if not period.is_month:
        raise Failure(f"{text} is no month; give one as 2026-10.", CANNOT_RUN)
    return period


@app.command()
def report(
    period: PeriodArgument,
    merchant: MerchantOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a period's report: opening balance, movements and closing balance of each kind of account.

    Exit status 1 if it does not add up.

    \b
    Examples:
      merchant-wallet finance report 2026-10
      merchant-wallet finance report 2026-10-05 --merchant Shop --json
    """
    asked = _read_period(period)

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.reporting.finance.reports import read_report

        merchant_id = None if merchant is None else (await session.find(merchant)).merchant_id
        async with session.reach() as cells:
            return await describe_report(session, cells, await read_report(cells, asked, merchant_id))

    document = run(data, act)
    if as_json:
        terminal.print_document(document)
    else:
        print_report(document)
    if document["problem"] is not None:
        raise typer.Exit(REFUSED)


@app.command("months")
def list_months(limit: LimitOption = 36, data: DataOption = None, as_json: JsonOption = False) -> None:
    """List prepared and closed months, newest first, and what their superseded versions had otherwise.

    \b
    Example:
      merchant-wallet finance months
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.reporting.finance import months

        found = await months.list_months(session.conn, limit=limit)
        superseded = [await months.list_superseded(session.conn, one.month) for one in found]
        return {"months": list(map(describe_versions, found, superseded))}

    document = run(data, act)
    terminal.print_list(document, "months", MONTH_COLUMNS, as_json)
    if not as_json:
        print_superseded(document["months"])


@app.command()
def prepare(month: MonthArgument, data: DataOption = None, as_json: JsonOption = False) -> None:
    """Prepare a month that has ended. The worker does this by itself for the last one.

    \b
    Example:
      merchant-wallet finance prepare 2026-10
    """
    period = _read_month(month)

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.base.clock import now_ms
        from merchant_wallet.reporting.finance import months

        async with session.connect_all() as databases:
            try:
                made = await months.prepare(databases, period, now_ms(), actor=find_actor())
            except months.NotReady as cause:
                raise Failure(str(cause)) from None
        await session.author().afterwards.record(
            session.conn, "month.prepare", f"month {period.name}", after={"digest": made.digest.hex()}
        )
        return describe_month(made)

    terminal.print_answer(run(data, act), as_json)


@app.command()
def close(
    month: MonthArgument,
    reason: Annotated[
        str | None,
        typer.Option("--reason", metavar="TEXT", help="Why; the second person sees it.", show_default=False),
    ] = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Propose to close a prepared month. Another person accepts it; then a worker signs it.

    Where nobody else could accept, and in a sandbox of one person, it is closed at once.

    \b
    Example:
      merchant-wallet finance close 2026-10 --reason "October agrees with the bank"
    """
    period = _read_month(month)

    async def act(session: Session) -> "tuple[dict[str, Any], ProposedChange | None]":
        from merchant_wallet.approvals.changes import ChangeRefused
        from merchant_wallet.base.clock import now_ms
        from merchant_wallet.cli.second_person import describe_lone_change, propose
        from merchant_wallet.reporting.finance import closing, months

        found = await months.read_month(session.conn, period.name)
        if found is None:
            try:
                months.check_ended(period, now_ms())
            except months.NotReady as cause:
                raise Failure(str(cause)) from None
            raise Failure(f"{period.name} was not prepared: `merchant-wallet finance prepare {period.name}`.")
        subject = closing.format_subject(found.month)
        facts = closing.describe_open(found), closing.describe_closed(found)
        proposed = await propose(session, closing.CLOSE, subject, facts, reason)
        if proposed is None:
            try:
                author = session.author(describe_lone_change(session, reason))
                await closing.accept_month(session.conn, author, found.month)
            except ChangeRefused as refused:
                raise Failure(str(refused)) from None
            found = await months.read_month(session.conn, period.name)
        assert found is not None, "it was there"
        if not session.settings.invoice_issuer:
            terminal.note(NO_ISSUER)
        return describe_month(found), proposed

    _print_decided(run(data, act), as_json, "It is accepted, and a worker signs it within a minute.")


@app.command()
def restate(
    month: MonthArgument,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="Why; it is signed with the next version.")
    ],
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Propose to restate a closed month that the journal no longer gives, and the closed months after it.

    Another person accepts it, or it is done at once where nobody else could. Then a worker makes the figures
    of their next versions from the books, and each is closed as before. What was signed stays, and is marked
    as superseded.

    \b
    Example:
      merchant-wallet finance restate 2026-10 --reason "a machine's clock had gone back into October"
    """
    period = _read_month(month)

    async def act(session: Session) -> "tuple[dict[str, Any], ProposedChange | None]":
        from merchant_wallet.approvals.changes import ChangeRefused
        from merchant_wallet.cli.second_person import describe_lone_change, propose
        from merchant_wallet.reporting.finance import closing, months

        try:
            facts = await closing.read_restatement(session.conn, period.name)
            subject = closing.format_subject(period.name)
            proposed = await propose(session, closing.RESTATE, subject, facts, reason)
            if proposed is None:
                author = session.author(describe_lone_change(session, reason))
                await closing.restate_month(session.conn, author, period.name, reason)
        except ChangeRefused as refused:
            raise Failure(str(refused)) from None
        found = await months.read_month(session.conn, period.name)
        assert found is not None, "it is closed"
        return describe_month(found), proposed

    _print_decided(run(data, act), as_json, "A worker prepares its next version within a minute.")


def _print_decided(
    done: "tuple[dict[str, Any], ProposedChange | None]", as_json: bool, afterwards: str
) -> None:
    """Print a month that was decided about, or the proposal that was made instead."""
    from merchant_wallet.cli.second_person import print_proposed

    document, proposed = done
    if proposed is not None:
        print_proposed(proposed, as_json)
        return
    terminal.print_answer(document, as_json)
    terminal.note(afterwards)


@app.command()
def verify(
    month: Annotated[
        str | None,
        typer.Argument(metavar="[MONTH]", help="One month. Default: every closed one.", show_default=False),
    ] = None,
    keys: Annotated[
        list[str] | None,
        typer.Option(
            "--key",
            metavar="KEY",
            help="A former public checkpoint key, or its file. May be given several times.",
            show_default=False,
        ),
    ] = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make closed months again from the journal and its archive, and compare them with what was signed.

    Exit status 1 if a closed month is not what was signed, or the journal no longer gives it. Months that
    were signed with a checkpoint key that was replaced verify with that key, which the acceptance of the
    new one has kept. If it is not there, give the public key that you have noted down.

    \b
    Examples:
      merchant-wallet finance verify
      merchant-wallet finance verify 2026-10 --json
      merchant-wallet finance verify --key /backup/checkpoint.pub
    """
    wanted = None if month is None else _read_month(month).name

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.cli.finance_reach import verify_months

        return await verify_months(session, wanted, keys or ())

    document = run(data, act)
    if as_json:
        terminal.print_document(document)
    else:
        terminal.print_table(FAULT_COLUMNS, document["faults"])
        terminal.note(f"Months checked: {len(document['months'])}.")
    if document["keyProblem"] is not None:
        terminal.note(f"A former checkpoint key is not known: {document['keyProblem']}. {KEY_ADVICE}")
    if document["faults"]:
        raise typer.Exit(REFUSED)


@app.command()
def statement(
    merchant: MerchantArgument,
    period: PeriodArgument,
    output: OutputOption = None,
    force: ForceOption = False,
    language: LanguageOption = "en",
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write a merchant's statement of a period as PDF.

    \b
    Example:
      merchant-wallet finance statement Shop 2026-10 --output shop-2026-10.pdf
    """
    asked = _read_period(period)

    async def act(session: Session) -> bytes:
        from merchant_wallet.cli.finance_reach import make_statement_pdf

        return await make_statement_pdf(session, merchant, asked, language)

    write_pdf(output, lambda: run(data, act), as_json, force=force)


@app.command("invoices")
def list_all_invoices(
    merchant: MerchantOption = None,
    limit: LimitOption = 50,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """List invoices of fees, newest first.

    \b
    Example:
      merchant-wallet finance invoices --merchant Shop
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.base.money import format_units
        from merchant_wallet.reporting.finance import invoices

        merchant_id = None if merchant is None else (await session.find(merchant)).merchant_id
        found = await invoices.list_invoices(session.conn, merchant_id, limit=limit)
        return {
            "invoices": [
                {
                    "number": one.name,
                    "merchantId": one.merchant_id,
                    "merchantName": one.merchant_name,
                    "month": one.month,
                    "totals": [f"{format_units(units)} {code}" for code, units in one.totals],
                    "issuedMs": one.issued_ms,
                    "dueOn": None if one.due_on is None else str(one.due_on),
                    "corrects": one.corrected_name,
                }
                for one in found
            ]
        }

    terminal.print_list(run(data, act), "invoices", INVOICE_COLUMNS, as_json)


@app.command()
def invoice(
    number: Annotated[str, typer.Argument(metavar="NUMBER", help="An invoice's number, as 2026-000017.")],
    output: OutputOption = None,
    force: ForceOption = False,
    language: LanguageOption = "en",
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write an invoice of fees as PDF.

    \b
    Example:
      merchant-wallet finance invoice 2026-000001 --output invoice.pdf
    """

    async def act(session: Session) -> bytes:
        from merchant_wallet.cli.finance_output import read_language
        from merchant_wallet.reporting.finance import invoices
        from merchant_wallet.web.finance_documents import dress, make_invoice
        from merchant_wallet.web.pdf.document import build_pdf

        found = await invoices.find_invoice(session.conn, number)
        if found is None:
            raise Failure(
                f"There is no invoice {number[:20]}: `merchant-wallet finance invoices` lists them."
            )
        document = make_invoice(found, read_language(language), found.issued_ms)
        return build_pdf(dress(document, session.settings))

    write_pdf(output, lambda: run(data, act), as_json, force=force)


@app.command()
def export(
    what: Annotated[FileName, typer.Argument(metavar="FILE", help="What the rows are.")],
    first: Annotated[str, typer.Option("--from", metavar="DAY", help="The first day: 2026-10-01.")],
    last: Annotated[str, typer.Option("--to", metavar="DAY", help="The last day: 2026-10-31.")],
    merchant: MerchantOption = None,
    zone: Annotated[str, typer.Option("--zone", metavar="ZONE", help="UTC, or as Asia/Shanghai.")] = "UTC",
    language: LanguageOption = "en",
    output: OutputOption = None,
    force: ForceOption = False,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write a CSV file for accountants: movements, postings, withdrawals, deposits, callbacks or audit.

    \b
    Examples:
      merchant-wallet finance export movements --from 2026-10-01 --to 2026-10-31 --output october.csv
      merchant-wallet finance export postings --merchant Shop --from 2026-10-05 --to 2026-10-05
    """
    span = read_zone(zone, first, last)

    async def act(session: Session) -> None:
        from merchant_wallet.cli.finance_reach import export_rows

        await export_rows(session, what, merchant, span, language, output, force=force)

    check_output(output, as_json, force=force)
    run(data, act)
    print_written(output, as_json)
