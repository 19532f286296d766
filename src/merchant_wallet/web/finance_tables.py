"""Tables of finance as CSV: a period's report, and solvency day by day."""

from collections.abc import Sequence

from merchant_wallet.base.money import format_units
from merchant_wallet.reporting.finance.months import FormerFigures
from merchant_wallet.reporting.finance.periods import format_day
from merchant_wallet.reporting.finance.reports import Report, list_changes
from merchant_wallet.reporting.finance.solvency import SolvencyDay
from merchant_wallet.web.accounting_files import BYTE_ORDER_MARK, render_row
from merchant_wallet.web.kinds import Translate, name_account_kind, name_kind


def render_report(report: Report, translate: Translate, former: FormerFigures | None = None) -> str:
    """Opening balance, each kind of movement and closing balance of each account.

    Of a month that was restated, the accounts that differ follow as they were in the version before.
    """
    _ = translate
    head = [_("Account"), _("Currency"), _("Line"), _("Postings")]
    lines = [render_row([*head, _("In"), _("Out"), _("Balance")])]
    for one in report.accounts:
        start = [name_account_kind(one.account, _), one.currency]
        opening, closing = format_units(one.opening_units), format_units(one.closing_units)
        lines.append(render_row([*start, _("Opening balance"), "", "", "", opening]))
        for moved in one.moved:
            units = map(format_units, (moved.in_units, moved.out_units))
            lines.append(render_row([*start, name_kind(moved.kind, _), moved.postings, *units, ""]))
        lines.append(render_row([*start, _("Closing balance"), "", "", "", closing]))
    if former is not None:
        for one in [change.before for change in list_changes(former.accounts, report.accounts)]:
            start = [name_account_kind(one.account, _), one.currency]
            figures = (one.opening_units, one.in_units, one.out_units, one.closing_units)
            opening, *rest = map(format_units, figures)
            line = _("Opening balance in version {version}", version=former.version)
            lines.append(render_row([*start, line, "", "", "", opening]))
            line = _("Closing balance in version {version}", version=former.version)
            lines.append(render_row([*start, line, "", *rest]))
    return BYTE_ORDER_MARK + "".join(lines)


def render_solvency(days: Sequence[SolvencyDay], translate: Translate) -> str:
    """A line for each day and currency. What was not compared on a day is empty, not 0."""
    _ = translate
    head = [_("Day's end (UTC)"), _("Currency"), _("Total owed"), _("Total held"), _("Surplus")]
    lines = [render_row([*head, _("Fees not taken out"), _("Exchange desk")])]
    for one in days:
        held = ["" if units is None else format_units(units) for units in (one.held_units, one.surplus_units)]
        rest = map(format_units, (one.fees_units, one.desk_units))
        lines.append(
            render_row([format_day(one.day), one.currency, format_units(one.owed_units), *held, *rest])
        )
    return BYTE_ORDER_MARK + "".join(lines)
