"""What `finance` prints and writes: documents of reports and months, and files."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple
from zoneinfo import ZoneInfo

import typer

from merchant_wallet.base.counted import count_of
from merchant_wallet.cli import terminal
from merchant_wallet.cli.failures import CANNOT_RUN, Failure
from merchant_wallet.cli.session import Session

if TYPE_CHECKING:
    from merchant_wallet.reporting.cells import Reach
    from merchant_wallet.reporting.finance.months import MonthReport
    from merchant_wallet.reporting.finance.reports import AccountReport, Report
    from merchant_wallet.web.languages import Language

NO_ISSUER: Final = (
    "WALLET_INVOICE_ISSUER is not set here. If the worker has none either, invoices of the month name no "
    "issuer."
)
ACCOUNT_COLUMNS: Final = terminal.Table("account", "currency", "opening", "in", "out", "closing")
KIND_COLUMNS: Final = terminal.Table("account", "currency", "kind", "in", "out", "postings")
FEE_COLUMNS: Final = terminal.Table("chainType", "purpose", "transactions", "fee", "coin", "paidBy")
VERSION_COLUMNS: Final = terminal.Table("month", "version", *ACCOUNT_COLUMNS.columns)
HOT_COLUMNS: Final = terminal.Table("chainType", "coin", "fees", "toDepositAddresses", "lost")


class Span(NamedTuple):
    """The time of a file, and the zone of its times."""

    since_ms: int
    until_ms: int
    zone: ZoneInfo


def read_zone(zone: str, first: str, last: str) -> Span:
    """The span of two days in a zone. Raises Failure."""
    from merchant_wallet.web.accounting_files import ZoneUnknown, find_zone, read_days

    try:
        found = find_zone(zone)
        since_ms, until_ms = read_days(found, first, last)
    except ZoneUnknown as error:
        raise Failure(f"--zone: {error}.", CANNOT_RUN) from None
    except (ValueError, OverflowError):
        raise Failure("--from and --to are days such as 2026-10-01.", CANNOT_RUN) from None
    if since_ms >= until_ms:
        raise Failure("--from must not be after --to.", CANNOT_RUN)
    return Span(since_ms, until_ms, found)


def read_language(text: str) -> "Language":
    """A language by its name. Raises Failure."""
    from merchant_wallet.web.languages import Language, find_language

    found = find_language(text)
    if found is None:
        raise Failure(f"--lang is {' or '.join(Language)}.", CANNOT_RUN)
    return found


def check_output(output: Path | None, as_json: bool, *, force: bool, is_binary: bool = False) -> None:
    """Check where a file goes, before it is made.

    With --json a document goes to standard output, so the file needs --output. A terminal can't show a binary
    file. An existing file is replaced only with --force. Raises Failure.
    """
    if as_json and output is None:
        raise Failure("With --json, name the file with --output.", CANNOT_RUN)
    if is_binary and output is None and sys.stdout.isatty():
        raise Failure(
            "A PDF can't be shown in a terminal: name a file with --output, or redirect it.", CANNOT_RUN
        )
    if output is not None and not force and output.is_file():
        raise Failure(
            f"{output} exists, nothing was written: --force replaces it, or name another file.", CANNOT_RUN
        )


def open_output(output: Path, *, force: bool) -> BinaryIO:
    """Open a file to write. Raises Failure."""
    try:
        # A device or a named pipe exists and is not replaced.
        return output.open("wb" if force or not output.is_file() else "xb")
    except OSError as error:
        raise Failure(f"{output} can't be written: {error.strerror}.", CANNOT_RUN) from None


def write_pdf(output: Path | None, make: Callable[[], bytes], as_json: bool, *, force: bool) -> None:
    """Make a PDF and write it to a file, or to standard output. Raises Failure."""
    check_output(output, as_json, force=force, is_binary=True)
    content = make()
    if output is None:
        typer.get_binary_stream("stdout").write(content)
        return
    with open_output(output, force=force) as stream:
        stream.write(content)
    print_written(output, as_json)


def print_written(output: Path | None, as_json: bool) -> None:
    """Say which file was written."""
    if output is None:
        return
    if as_json:
        terminal.print_document({"file": str(output), "bytes": output.stat().st_size})
    else:
        terminal.note(f"Written: {output}")


async def describe_report(session: Session, cells: "Reach", report: "Report") -> dict[str, Any]:
    """A period's report as a document, with the desk of the platform and the network's fees."""
    from merchant_wallet.base.clock import now_ms
    from merchant_wallet.base.money import format_units
    from merchant_wallet.cli.rescue import describe_rescue
    from merchant_wallet.custody.rescues.store import list_moved
    from merchant_wallet.reporting.finance import desk, network_fees, reports

    found = await desk.read_desk(session.conn, report, now_ms())
    spent, rescued = network_fees.CoinsSpent([], []), []
    if report.merchant_id is None:
        spent = await network_fees.read_coins_spent(session.conn, report.period)
        rescued = await list_moved(session.conn, report.period.since_ms, report.period.until_ms)

    def shown(units: int | None) -> str | None:
        return None if units is None else format_units(units)

    return {
        "period": report.period.name,
        "firstDay": report.period.first_day,
        "lastDay": report.period.last_day,
        "merchantId": report.merchant_id,
        "problem": None if cells.away else reports.find_problem(report.accounts),
        "missingEntries": report.lag.missing if report.lag else 0,
        "isComplete": report.lag is None or report.lag.is_complete,
        "accounts": reports.describe_accounts(report.accounts),
        "desk": {
            "usdt": format_units(found.closing.usdt_units),
            "kfb": format_units(found.closing.kfb_units),
            "value": shown(found.closing.value_units),
            "result": shown(found.result_units),
            "fromExchanges": shown(found.trading_units),
            "fromRates": shown(found.revaluation_units),
        },
        "networkFees": [
            {
                "chainType": one.chain,
                "purpose": one.purpose,
                "transactions": one.transactions,
                "fee": one.amount,
                "coin": one.coin,
                "paidBy": one.paid_by,
            }
            for one in spent.lines
        ],
        "hotWalletCoins": [
            {
                "chainType": one.chain,
                "coin": one.coin,
                "fees": one.show(one.fees),
                "toDepositAddresses": one.show(one.given),
                "lost": one.show(one.lost),
            }
            for one in spent.hot_wallets
        ],
        "foreignFunds": [describe_rescue(one) for one in rescued],
        "awayCells": list(cells.away),
    }


def print_report(document: dict[str, Any]) -> None:
    """A report for people: each account, and each kind of movement."""
    from merchant_wallet.base.money import format_units
    from merchant_wallet.reporting.finance.reports import parse_signed

    def total(account: dict[str, Any], side: str) -> str:
        return format_units(sum([parse_signed(moved[side]) for moved in account["movements"]]))

    accounts = document["accounts"]
    if not accounts:
        terminal.note("No book had an entry in this period or before it.")
    terminal.print_table(
        ACCOUNT_COLUMNS, [{**one, "in": total(one, "in"), "out": total(one, "out")} for one in accounts]
    )
    kinds = [
        {"account": one["account"], "currency": one["currency"], **moved}
        for one in accounts
        for moved in one["movements"]
    ]
    if accounts:
        terminal.print_table(KIND_COLUMNS, kinds, follows=True)
    for columns, name in ((FEE_COLUMNS, "networkFees"), (HOT_COLUMNS, "hotWalletCoins")):
        if document[name]:
            terminal.print_table(columns, document[name], follows=True)
    if not document["isComplete"]:
        missing = count_of(document["missingEntries"], "entry is", "entries are")
        terminal.note(f"Not complete yet: {missing} not added up.")
    if document["awayCells"]:
        terminal.note(
            f"Cells that are away: {', '.join(document['awayCells'])}. Their merchants are missing."
        )
    if document["problem"] is not None:
        terminal.note(f"It does not add up: {document['problem']}.")


def describe_month(month: "MonthReport") -> dict[str, Any]:
    """A month as a document."""
    return {
        "month": month.month,
        "version": month.version,
        "state": month.state,
        "books": month.books,
        "digest": month.digest.hex(),
        "preparedMs": month.prepared_ms,
        "problem": month.problem,
        "proposedBy": month.proposed_by,
        "acceptedBy": month.accepted_by,
        "closedMs": month.closed_ms,
        "manifest": month.manifest,
        "signature": month.signature,
        "restateMs": month.restate_ms,
        "restateReason": month.restate_reason,
    }


def describe_versions(month: "MonthReport", superseded: "Sequence[MonthReport]") -> dict[str, Any]:
    """A month as a document, with its superseded versions and how each differs from the one after it."""
    from merchant_wallet.base.money import format_units
    from merchant_wallet.reporting.finance.reports import list_changes

    def describe_side(one: "AccountReport") -> dict[str, str]:
        figures = (one.opening_units, one.in_units, one.out_units, one.closing_units)
        return dict(zip(("opening", "in", "out", "closing"), map(format_units, figures), strict=True))

    return {
        **describe_month(month),
        "superseded": [
            {
                **describe_month(former),
                "differences": [
                    {
                        "account": one.after.account,
                        "currency": one.after.currency,
                        "before": describe_side(one.before),
                        "after": describe_side(one.after),
                    }
                    for one in list_changes(former.accounts, later.accounts)
                ],
            }
            for former, later in zip(superseded, (month, *superseded), strict=False)
        ],
    }


def print_superseded(months: Sequence[dict[str, Any]]) -> None:
    """What superseded versions had otherwise, for people."""
    rows = [
        {"month": former["month"], "version": version, **one, **one[side]}
        for month in months
        for former in month["superseded"]
        for one in former["differences"]
        for side, version in (("before", former["version"]), ("after", former["version"] + 1))
    ]
    if rows:
        terminal.print_table(VERSION_COLUMNS, rows, follows=True)
