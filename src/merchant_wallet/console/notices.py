"""The banner over the console's pages: what stops payouts or the service, who did it, why, and since when.

Rules:
- A source is a function in `SOURCES`. It asks one cheap question and gives notices, the gravest first.
- A notice names the parts of the menu that it touches; without any it stands on every page.
- A merchant's user reads of its own open orders alone, without names and causes.
- An open page asks for its banner again, so that a stop shows on pages that were open before it.
"""

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace
from psycopg import AsyncConnection

from merchant_wallet.console.wait_reasons import for_merchant, tell_halt
from merchant_wallet.reporting.halts import FROZEN as FROZEN_ORDERS
from merchant_wallet.reporting.halts import ROLLBACK, Halt, list_halts
from merchant_wallet.web.languages import N_

Connection = AsyncConnection[Any]

PAYOUTS: Final = "/console/payouts"
ALL_ORDERS: Final = "/console/withdrawals/all"
MONEY_PAGES: Final = ("overview", "withdrawals", "payouts", "reconciliation")
"""Where it is told what keeps single orders; what stops a whole chain is told everywhere."""

ONE_WAITS: Final = N_("One order waits.")
SOME_WAIT: Final = N_("{count} orders wait.")
ORDERS_FROZEN: Final = N_("Payouts on {chain} are frozen until somebody has looked")


class Notice(msgspec.Struct, frozen=True):
    """One line of the banner: an English text and what fills it, and the way to what can be done.

    `touches` are entries of the menu, none: all of them. `leads_to` is the entry that `href` belongs to.
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
        """How many orders wait, in English; empty when that is not counted."""
        return "" if not self.orders else ONE_WAITS if self.orders == 1 else SOME_WAIT


Source = Callable[[Connection, int | None], Awaitable[Sequence[Notice]]]
"""Gives the notices for one merchant's user, or with None for the platform's own people."""


async def tell_payouts(conn: Connection, merchant_id: int | None) -> list[Notice]:
    """What keeps payouts from going on."""
    halts = await list_halts(conn, merchant_id)
    told = [_tell(halt) if merchant_id is None else _tell_merchant(halt) for halt in halts]
    return _merge(told)


def _merge(told: Sequence[Notice]) -> list[Notice]:
    """One notice for those that read alike, with all their orders and the oldest one's moment. Pure.

    A merchant reads the same of every stop and of every obstacle, and a rollback stops all chains for one
    cause. An order has one obstacle at most, so that none is counted twice.
    """
    merged: dict[tuple[str, ...], Notice] = {}
    for one in told:
        key = (one.text.format(**one.values), one.who, one.why)
        first = merged.get(key)
        merged[key] = one if first is None else replace(first, orders=first.orders + one.orders)
    return list(merged.values())


def _tell(halt: Halt) -> Notice:
    reason = tell_halt(halt)
    text = ORDERS_FROZEN if halt.kind == FROZEN_ORDERS else reason.text
    return Notice(
        reason.tone,
        text,
        {} if halt.kind == ROLLBACK else reason.values,
        who=reason.who,
        why=reason.why,
        since_ms=reason.since_ms,
        orders=halt.orders,
        href=PAYOUTS,
        link=N_("Payouts"),
        leads_to="payouts",
        touches=() if halt.stops_chain else MONEY_PAGES,
    )


def _tell_merchant(halt: Halt) -> Notice:
    reason = for_merchant(tell_halt(halt))
    assert reason is not None, "whatever halts payouts has words for merchants"
    return Notice(
        reason.tone,
        reason.text,
        reason.values,
        since_ms=reason.since_ms,
        orders=halt.orders,
        href=ALL_ORDERS,
        link=N_("All withdrawals"),
        touches=MONEY_PAGES,
    )


SOURCES: Final[tuple[Source, ...]] = (tell_payouts,)


class Banner(msgspec.Struct, frozen=True):
    """What one page shows of all notices; `version` changes with what is shown."""

    notices: tuple[Notice, ...] = ()

    def for_page(self, active: str) -> "Banner":
        """What of it touches a part of the menu."""
        return Banner(tuple([one for one in self.notices if not one.touches or active in one.touches]))

    @property
    def version(self) -> str:
        """What tells one state from another."""
        return hashlib.sha256(msgspec.json.encode(self.notices)).hexdigest()[:16]


async def read_banner(conn: Connection, merchant_id: int | None) -> Banner:
    """All notices, what is bad before what only waits."""
    found = [notice for source in SOURCES for notice in await source(conn, merchant_id)]
    return Banner(tuple(sorted(found, key=lambda one: one.tone != "bad")))
