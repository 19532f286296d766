"""The banner on the console's pages: what stops payouts or the service, who did it, why, and since when.

Rules:
- A source is a function in `SOURCES`. It runs one cheap query and returns notices, the most serious first.
- A notice names the parts of the menu that it concerns. Without any it is on every page.
- A merchant's user sees only notices about its own open orders, without names and causes.
- An open page requests its banner again and again, so a stop appears on pages that are already open.
"""

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace
from psycopg import AsyncConnection

from merchant_wallet.base.errors import TransientError
from merchant_wallet.console.freeing import SAFETY
from merchant_wallet.console.wait_reasons import describe_blocker, for_merchant
from merchant_wallet.reporting.cells import Reach
from merchant_wallet.reporting.payout_blockers import FROZEN as FROZEN_ORDERS
from merchant_wallet.reporting.payout_blockers import ROLLBACK, PayoutBlocker, list_blockers
from merchant_wallet.web.languages import N_

Connection = AsyncConnection[Any]

PAYOUTS: Final = "/console/payouts"
ALL_ORDERS: Final = "/console/withdrawals/all"
MONEY_PAGES: Final = ("overview", "withdrawals", "payouts", "reconciliation")
"""Pages with notices about single orders. A stop of a whole chain is on every page."""

ONE_WAITS: Final = N_("One order waits.")
SOME_WAIT: Final = N_("{count} orders wait.")
ORDERS_FROZEN: Final = N_("An operator has to look at frozen orders on {chain}")


class Notice(msgspec.Struct, frozen=True):
    """One line of the banner: an English text with its values, and a link to what can be done.

    `touches` are entries of the menu; none means all. `leads_to` is the entry of `href`.
    """

    tone: str
    text: str
    values: Mapping[str, str]
    who: str = ""
    why: str = ""
    since_ms: int | None = None
    orders: int = 0
    href: str = ""
    link: str = ""
    leads_to: str = ""
    touches: tuple[str, ...] = ()

    @property
    def count_text(self) -> str:
        """How many orders wait, in English; empty if they are not counted."""
        return "" if not self.orders else ONE_WAITS if self.orders == 1 else SOME_WAIT


Source = Callable[[Connection, Reach, int | None], Awaitable[Sequence[Notice]]]
"""Returns the notices for one merchant's user, or with None for the platform's staff."""


async def list_payout_notices(home: Connection, cells: Reach, merchant_id: int | None) -> list[Notice]:
    """What stops payouts."""
    try:
        blockers = await list_blockers(home, cells, merchant_id)
    except TransientError:
        # The merchant's cell is away. Whatever needs it says so, and other pages need no banner.
        return []
    told = [
        _make_notice(blocker) if merchant_id is None else _make_merchant_notice(blocker)
        for blocker in blockers
    ]
    return _merge(told)


def _merge(told: Sequence[Notice]) -> list[Notice]:
    """Merge notices that say the same of several chains into one that names them all. Pure.

    It has all their orders and the earliest time. An order has at most one obstacle, so no order is counted
    twice.
    """
    merged: dict[tuple[str, ...], Notice] = {}
    for one in told:
        key = (one.text, one.who, one.why)
        first = merged.get(key)
        merged[key] = one if first is None else _join(first, one)
    return list(merged.values())


def _join(first: Notice, other: Notice) -> Notice:
    chains = [first.values.get("chain", ""), other.values.get("chain", "")]
    values = {"chain": ", ".join(dict.fromkeys(chains))} if all(chains) else first.values
    return replace(first, values=values, orders=first.orders + other.orders)


def _make_notice(blocker: PayoutBlocker) -> Notice:
    reason = describe_blocker(blocker)
    text = ORDERS_FROZEN if blocker.kind == FROZEN_ORDERS else reason.text
    return Notice(
        reason.tone,
        text,
        {} if blocker.kind == ROLLBACK else reason.values,
        who=reason.who,
        why=reason.why,
        since_ms=reason.since_ms,
        orders=blocker.orders,
        href=SAFETY,
        link=N_("Safety"),
        leads_to="safety",
        touches=() if blocker.stops_chain else MONEY_PAGES,
    )


def _make_merchant_notice(blocker: PayoutBlocker) -> Notice:
    reason = for_merchant(describe_blocker(blocker))
    assert reason is not None, "whatever blocks payouts has words for merchants"
    return Notice(
        reason.tone,
        reason.text,
        reason.values,
        since_ms=reason.since_ms,
        orders=blocker.orders,
        href=ALL_ORDERS,
        link=N_("All withdrawals"),
        touches=MONEY_PAGES,
    )


SOURCES: Final[tuple[Source, ...]] = (list_payout_notices,)


class Banner(msgspec.Struct, frozen=True):
    """The notices of a page. `version` changes when they change."""

    notices: tuple[Notice, ...] = ()

    def for_page(self, active: str) -> "Banner":
        """The notices that concern a part of the menu. A page that has them all itself has no banner."""
        told = [one for one in self.notices if not one.touches or active in one.touches]
        return Banner(tuple([one for one in told if not one.leads_to or active != one.leads_to]))

    @property
    def version(self) -> str:
        """A text that changes when the notices change."""
        return hashlib.sha256(msgspec.json.encode(self.notices)).hexdigest()[:16]


async def read_banner(home: Connection, cells: Reach, merchant_id: int | None) -> Banner:
    """All notices, the most serious first."""
    found = [notice for source in SOURCES for notice in await source(home, cells, merchant_id)]
    return Banner(tuple(sorted(found, key=lambda one: one.tone != "bad")))
