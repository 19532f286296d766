"""The console's menu: its entries, their headings, and who sees them. Pure.

Rules: an entry is shown exactly to users who may open its page. The page checks the right again.
"""

from dataclasses import dataclass
from typing import Final

from merchant_wallet.operators.roles import Operator, Right, Role, may
from merchant_wallet.reporting.inbox import Count
from merchant_wallet.web.languages import N_


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the menu. A page names its `key` as `active`; `icon` is a name in the icon sprite.

    `count` is how much waits there for this user.
    """

    key: str
    label: str
    url: str
    icon: str
    group: str
    count: Count | None = None


@dataclass(frozen=True, slots=True)
class _Line:
    key: str
    label: str
    url: str
    icon: str
    right: Right
    group: str
    own: bool = True


INBOX: Final = "inbox"
_MONEY: Final = N_("Money")
_PEOPLE: Final = N_("Merchants")
_PLATFORM: Final = N_("Platform")
_TOOLS: Final = N_("Developers")

_LINES: Final = (
    _Line("overview", N_("Overview"), "/console", "home", Right.READ, ""),
    _Line(INBOX, N_("Inbox"), "/console/inbox", "inbox", Right.READ, ""),
    _Line("safety", N_("Safety"), "/console/safety", "shield-check", Right.READ, "", own=False),
    _Line("withdrawals", N_("Withdrawals"), "/console/withdrawals", "arrow-out", Right.READ, _MONEY),
    _Line("payouts", N_("Payouts"), "/console/payouts", "send", Right.READ, _MONEY, own=False),
    _Line("cold", N_("Cold money"), "/console/cold", "lock", Right.READ, _MONEY, own=False),
    _Line("rescues", N_("Rescues"), "/console/rescues", "search", Right.READ, _MONEY, own=False),
    _Line("deposits", N_("Deposits"), "/console/deposits", "arrow-in", Right.READ, _MONEY),
    _Line("finance", N_("Finance"), "/console/finance", "chart", Right.READ, _MONEY),
    _Line("screening", N_("Screening"), "/console/screening", "eye", Right.READ, _MONEY, own=False),
    _Line("books", N_("Books"), "/console/books", "list", Right.READ, _MONEY),
    _Line("rates", N_("Exchange rates"), "/console/rates", "exchange", Right.READ, _MONEY, own=False),
    _Line("adjustments", N_("Adjustments"), "/console/adjustments", "edit", Right.READ, _MONEY, own=False),
    _Line("merchants", N_("Merchants"), "/console/merchants", "bank", Right.READ, _PEOPLE, own=False),
    _Line("sub-users", N_("Sub-users"), "/console/sub-users", "users", Right.READ, _PEOPLE),
    _Line("callbacks", N_("Callbacks"), "/console/callbacks", "bell", Right.READ, _TOOLS),
    _Line("debugger", N_("Signature debugger"), "/console/debugger", "key", Right.READ, _TOOLS),
    _Line(
        "reconciliation",
        N_("Reconciliation"),
        "/console/reconciliation",
        "chart",
        Right.READ,
        _PLATFORM,
        own=False,
    ),
    _Line(
        "operators",
        N_("Operators"),
        "/console/operators",
        "shield",
        Right.READ_AUDIT,
        _PLATFORM,
        own=False,
    ),
    _Line("proposals", N_("Proposals"), "/console/proposals", "users", Right.READ, _PLATFORM, own=False),
    _Line("audit", N_("Audit log"), "/console/audit", "log", Right.READ_AUDIT, _PLATFORM, own=False),
)


def list_entries(operator: Operator, waiting: Count) -> list[Entry]:
    """The entries for an operator, in order. A merchant's user gets its merchant's page.

    `waiting` is what the inbox has for this operator.
    """
    found = [
        Entry(
            line.key,
            line.label,
            line.url,
            line.icon,
            line.group,
            waiting if line.key == INBOX else None,
        )
        for line in _LINES
        if may(operator, line.right, operator.merchant_id if line.own else None)
    ]
    if operator.role == Role.MERCHANT:
        own = f"/console/merchants/{operator.merchant_id}"
        settings = Entry("merchants", N_("Settings and keys"), own, "bank", _PEOPLE)
        place = next((at for at, entry in enumerate(found) if entry.group == _PEOPLE), len(found))
        found.insert(place, settings)
    return found
