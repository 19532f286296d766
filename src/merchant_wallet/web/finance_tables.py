"""A period's report as CSV: opening balance, each kind of movement and closing balance of each account."""

from merchant_wallet.base.money import format_units
from merchant_wallet.reporting.finance.reports import Report
from merchant_wallet.web.accounting_files import BYTE_ORDER_MARK, render_row
from merchant_wallet.web.kinds import Translate, name_account_kind, name_kind


def render_report(report: Report, translate: Translate) -> str:
    """The whole file. The column of balances of an account adds up from its first line to its last."""
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
    return BYTE_ORDER_MARK + "".join(lines)
