"""PDF documents of finance: a period's report, a merchant's statement, an invoice of fees.

Rules: the caller passes what was read, and the time. A statement with too many movements says how many there
are, and that the CSV file has them.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Final

import msgspec

from merchant_wallet.base.currencies import CURRENCIES
from merchant_wallet.base.money import format_rate, format_units
from merchant_wallet.base.settings import Settings
from merchant_wallet.book.chart import FEES, HOLD, MERCHANT, SUBUSER
from merchant_wallet.reporting.finance.accounting_rows import Movement
from merchant_wallet.reporting.finance.invoices import Invoice
from merchant_wallet.reporting.finance.months import FormerFigures
from merchant_wallet.reporting.finance.periods import Period, parse_month
from merchant_wallet.reporting.finance.reports import AccountReport, Report, list_changes
from merchant_wallet.web.kinds import Translate, name_account_kind, name_kind
from merchant_wallet.web.languages import Language, translate
from merchant_wallet.web.pdf.document import (
    Column,
    Document,
    Facts,
    Figure,
    Part,
    Parties,
    Table,
    Text,
    choose_accent,
)
from merchant_wallet.web.templates import group_digits, show_money
from merchant_wallet.web.typed_values import show_percent

MAX_MOVEMENTS: Final = 500
"""A statement lists at most so many movements."""
MAX_LINES: Final = 10
"""A party has at most so many lines, so that it fits on a page."""
NOT_KNOWN: Final = "\u2013"
OWN_ACCOUNTS: Final = (MERCHANT, SUBUSER, HOLD, FEES)
"""The accounts of a merchant's statement. The others are the platform's side of its book."""


def _moment(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M} UTC"


def describe_period(period: Period) -> str:
    """A period with its first and last day."""
    if period.first_day == period.last_day:
        return f"{period.first_day} UTC"
    return f"{period.first_day} \u2013 {period.last_day} UTC"


def _describe_known(period: Period, made_ms: int, _: Translate) -> str:
    """A period, and whether it is not over."""
    text = describe_period(period)
    return text if made_ms >= period.until_ms else f"{text} \u00b7 {_('so far')}"


def _split_lines(text: str) -> list[str]:
    """The lines of a setting in which a semicolon begins a new line. The last one has what is left."""
    return [line.strip() for line in text.split(";", MAX_LINES - 1) if line.strip()]


def _split_issuer(issuer: str, _: Translate) -> tuple[str, list[str]]:
    """The name and the lines of the address."""
    name, *address = _split_lines(issuer) or [_("Merchant Wallet")]
    return name, address


def dress(document: Document, settings: Settings) -> Document:
    """The document in the platform's colour. In a sandbox each page says that it is one."""
    accent = choose_accent(settings.brand_colour)
    return msgspec.structs.replace(document, accent=accent, is_sandbox=settings.sandbox)


def make_report(
    report: Report,
    whose: str,
    language: Language,
    issuer: str,
    made_ms: int,
    notes: Sequence[str] = (),
    former: FormerFigures | None = None,
) -> Document:
    """A period's report of one book or of all, with every kind of account.

    Of a month that was restated, it also says what differs from the version before.
    """
    _ = partial(translate, language)
    described = [(_("Books"), whose), (_("Period"), _describe_known(report.period, made_ms, _))]
    if former is not None:
        described.append((_("Version"), str(former.version + 1)))
    facts = Facts("", tuple(described))
    tables = [
        Table(currency, _account_columns(_), tuple(_list_accounts(report.accounts, currency, _)))
        for currency in CURRENCIES
        if any(one.currency == currency for one in report.accounts)
    ]
    moved = [_make_moved(one, _) for one in report.accounts if one.moved]
    if former is not None:
        tables.append(_make_changes(report, former, _))
    parts: list[Part] = [facts, *tables, *moved, *[Text(note, is_quiet=True) for note in notes]]
    is_whole = report.period.is_month and made_ms >= report.period.until_ms
    title = _("Month's report") if is_whole else _("Report")
    footer = _("Made {moment} from the books", moment=_moment(made_ms))
    return Document(
        title, report.period.name, _split_issuer(issuer, _)[0], language, made_ms, tuple(parts), footer=footer
    )


def _make_changes(report: Report, former: FormerFigures, _: Translate) -> Table:
    """Each account that differs, as it was and as it is."""
    versions = (str(former.version), str(former.version + 1))
    account, *columns = _account_columns(_)
    rows = [
        (f"{row[0]} {one.currency}", version, *row[1:])
        for change in list_changes(former.accounts, report.accounts)
        for version, one in zip(versions, change, strict=True)
        for row in _list_accounts([one], one.currency, _)
    ]
    title = _("What differs from version {version}", version=former.version)
    return Table(title, (account, Column(_("Version")), *columns), tuple(rows))


def _account_columns(_: Translate) -> tuple[Column, ...]:
    return (
        Column(_("Account"), 2.2),
        Column(_("Opening balance"), 1.4, is_number=True),
        Column(_("In"), 1.4, is_number=True),
        Column(_("Out"), 1.4, is_number=True),
        Column(_("Closing balance"), 1.4, is_number=True),
    )


def _list_accounts(accounts: Sequence[AccountReport], currency: str, _: Translate) -> list[tuple[str, ...]]:
    found = [one for one in accounts if one.currency == currency]
    columns = (
        _show_column([one.opening_units for one in found]),
        _show_column([one.in_units for one in found]),
        _show_column([one.out_units for one in found]),
        _show_column([one.closing_units for one in found]),
    )
    return [
        (name_account_kind(one.account, _), *row)
        for one, row in zip(found, zip(*columns, strict=True), strict=True)
    ]


def _show_column(amounts: Sequence[int]) -> list[str]:
    """Amounts of one currency below each other, all with as many decimals as the longest needs."""
    decimals = max([len(format_units(units).partition(".")[2]) for units in amounts], default=0)
    return [show_money(units, decimals=max(2, decimals)) for units in amounts]


def _make_moved(one: AccountReport, _: Translate) -> Table:
    columns = (
        Column(_("Kind"), 2.4),
        Column(_("Postings"), is_number=True),
        Column(_("In"), 1.5, is_number=True),
        Column(_("Out"), 1.5, is_number=True),
    )
    names = [*[name_kind(moved.kind, _) for moved in one.moved], _("Total")]
    counts = [moved.postings for moved in one.moved]
    rows = zip(
        names,
        [f"{count:,}" for count in [*counts, sum(counts)]],
        _show_column([*[moved.in_units for moved in one.moved], one.in_units]),
        _show_column([*[moved.out_units for moved in one.moved], one.out_units]),
        strict=True,
    )
    title = f"{name_account_kind(one.account, _)} {one.currency}"
    return Table(title, columns, tuple(rows), totals=1)


def make_statement(
    report: Report,
    merchant: str,
    movements: Sequence[Movement] | None,
    language: Language,
    issuer: str,
    made_ms: int,
) -> Document:
    """A merchant's statement of a period. `movements` is None if there are too many to list."""
    _ = partial(translate, language)
    own = tuple([one for one in report.accounts if one.account in OWN_ACCOUNTS])
    parts: list[Part] = [
        Facts(
            "",
            (
                (_("Merchant"), f"{merchant} ({report.merchant_id})"),
                (_("Period"), _describe_known(report.period, made_ms, _)),
            ),
        )
    ]
    for currency in CURRENCIES:
        rows = _list_accounts(own, currency, _)
        if rows:
            parts.append(Table(currency, _account_columns(_), tuple(rows)))
    parts += [_make_moved(one, _) for one in own if one.account == MERCHANT and one.moved]
    if movements is None:
        text = _("There are more than {most} movements. The CSV file has each of them.", most=MAX_MOVEMENTS)
        parts.append(Text(text, is_quiet=True))
    elif movements:
        parts.append(_make_movements(movements, _))
    footer = _("Made {moment} from the books", moment=_moment(made_ms))
    title = _("Account statement")
    return Document(
        title, report.period.name, _split_issuer(issuer, _)[0], language, made_ms, tuple(parts), footer=footer
    )


def _make_movements(movements: Sequence[Movement], _: Translate) -> Table:
    columns = (
        Column(_("Time (UTC)"), 1.7),
        Column(_("Kind"), 1.75),
        Column(_("Sub-user or order"), 2.5),
        Column(_("Own balance"), 1.5, is_number=True),
        Column(_("Sub-users"), 1.5, is_number=True),
    )
    rows = [
        (
            f"{datetime.fromtimestamp(one.at_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}",
            name_kind(one.kind, _),
            " · ".join([text for text in (one.ext_user_id, one.mc_order_id) if text]),
            _list_changes(one, MERCHANT),
            _list_changes(one, SUBUSER),
        )
        for one in movements
    ]
    return Table(_("Movements"), columns, tuple(rows))


def _list_changes(one: Movement, account: str) -> str:
    found = [(units, code) for (kind, code), units in one.sum_changes().items() if kind == account and units]
    return ", ".join([f"{show_money(units, signed=True)} {code}" for units, code in found])


def make_invoice(invoice: Invoice, language: Language, made_ms: int) -> Document:
    """An invoice of fees, or a correction. Fees are paid from the merchant's book when they are charged."""
    _ = partial(translate, language)
    title = _("Invoice")
    if invoice.corrects is not None:
        title = _("Credit note") if invoice.is_credit else _("Supplementary invoice")
    issuer, address = _split_issuer(invoice.issuer, _)
    parts: tuple[Part, ...] = (
        Parties(
            (
                (_("Issued by"), _list_party(issuer, address, invoice.issuer_tax_id, _)),
                (
                    _("Billed to"),
                    _list_party(
                        f"{invoice.merchant_name} ({invoice.merchant_id})",
                        _split_lines(invoice.merchant_address or ""),
                        invoice.merchant_tax_id,
                        _,
                    ),
                ),
            )
        ),
        Facts("", tuple(_list_invoice_facts(invoice, _))),
        *[
            Figure(_("Total in {currency}", currency=code), f"{show_money(units)} {code}")
            for code, units in invoice.totals
        ],
        _make_fees(invoice, _),
        Text(_("The fees were charged with each operation, so nothing is to be paid.")),
    )
    footer = _("Invoice {number}", number=invoice.name)
    return Document(title, invoice.name, issuer, language, made_ms, parts, footer=footer)


def _list_party(name: str, address: Sequence[str], tax_id: str | None, _: Translate) -> tuple[str, ...]:
    return (name, *address, *([] if not tax_id else [_("Tax ID: {number}", number=tax_id)]))


def _list_invoice_facts(invoice: Invoice, _: Translate) -> list[tuple[str, str]]:
    facts = [(_("Invoice number"), invoice.name)]
    if invoice.corrected_name is not None:
        facts.append((_("Corrects invoice"), invoice.corrected_name))
    facts.append((_("Issued"), _moment(invoice.issued_ms)))
    if invoice.due_on is not None:
        facts.append((_("Due date"), _("{day} UTC, already paid", day=str(invoice.due_on))))
    return [*facts, (_("Period"), describe_period(parse_month(invoice.month)))]


def _make_fees(invoice: Invoice, _: Translate) -> Table:
    """Each line with what its fees were charged on, and their average rate."""
    columns = (
        Column(_("Fees for"), 2.2),
        Column(_("How many"), is_number=True),
        Column(_("Base amount"), 1.6, is_number=True),
        Column(_("Average rate"), 1.1, is_number=True),
        Column(_("Fee"), 1.5, is_number=True),
        Column(_("Currency"), 0.9),
    )
    rows: list[tuple[str, ...]] = []
    totals: list[tuple[str, ...]] = []
    for code in CURRENCIES:
        lines = [line for line in invoice.lines if line.currency == code]
        if not lines:
            continue
        *fees, total = _show_column([*[line.amount_units for line in lines], invoice.sum_units(code)])
        bases = _show_column([line.base_units or 0 for line in lines])
        rows += [
            (
                name_kind(line.kind, _),
                group_digits(str(line.count)),
                NOT_KNOWN if line.base is None else base,
                NOT_KNOWN if line.rate_e8 is None else show_average(line.rate_e8),
                fee,
                code,
            )
            for line, base, fee in zip(lines, bases, fees, strict=True)
        ]
        totals.append((_("Total"), "", "", "", total, code))
    return Table(_("Fees"), columns, (*rows, *totals), totals=len(totals))


def show_average(rate_e8: int) -> str:
    """An average rate as a percentage with at most 4 decimals, rounded half up."""
    return show_percent(format_rate((rate_e8 + 50) // 100 * 100))
