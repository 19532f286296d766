"""Why an order is not paid, in words. Pure.

Rules:
- The first reason that applies is shown: frozen, suspended merchant, stopped chain, obstacle, no worker.
- A stop prevents new signatures. An order with a signed transfer goes on.
- After a rollback of the database every order waits.
- A merchant's user sees no cause and no name: these are internal to the platform.
- Every reason says who can free the order, and how: `WAYS`. A new reason needs a row there.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from merchant_wallet.book.rules.withdrawals import FAILED, PENDING, PROCESSING
from merchant_wallet.console import freeing
from merchant_wallet.console.freeing import Way
from merchant_wallet.reporting.orders import OrderLine
from merchant_wallet.reporting.payout_blockers import FROZEN as FROZEN_ORDERS
from merchant_wallet.reporting.payout_blockers import ROLLBACK, WALLET, PayoutBlocker
from merchant_wallet.web.languages import N_

UNCLAIMED_MS: Final = 60_000
"""Workers take up an approved order within seconds. After this time the page says that none has."""

FROZEN: Final = N_("Frozen until an operator has looked")
SUSPENDED: Final = N_("The merchant is suspended")
STOPPED: Final = N_("Payouts on {chain} are stopped")
ROLLED_BACK: Final = N_("The database was rolled back or rewritten: nothing is paid")
WALLET_FROZEN: Final = N_("The hot wallet on {chain} is frozen")
UNCLAIMED: Final = N_("No worker has claimed it yet")
OTHER_OBSTACLE: Final = N_("An obstacle has to pass first")
OBSTACLES: Final[Mapping[str, str]] = {
    "funds": N_("The hot wallet on {chain} holds too little"),
    "fuel": N_("The hot wallet on {chain} holds too little coin for the network fee"),
    "fee": N_("The network fee on {chain} is too high"),
    "token_fee": N_("The token's issuer takes a fee on {chain}, so less would arrive"),
    "paused": N_("The token on {chain} is paused by its issuer"),
    "deprecated": N_("The issuer has replaced the token on {chain} by another contract"),
    "wallet": N_("The token has blacklisted the hot wallet on {chain}"),
    "node": N_("No node of {chain} gives a reliable answer"),
    "stale": N_("The figures of the hot wallet on {chain} are too old"),
    "clock": N_("The figures of the hot wallet on {chain} come from a clock that is ahead"),
    "key": N_("The key here is not that of the hot wallet on {chain}"),
    "limit": N_("The signer's limit on {chain} is reached"),
    "lapsed": N_("Signed transfers on {chain} came to nothing"),
    "stuck": N_("The transfer on {chain} is stuck and can't be replaced"),
    "fault": N_("An attempt to pay on {chain} failed"),
    "alert": N_("An operator must look at the transfer on {chain}"),
    "screening": N_("Held by screening until a person has decided"),
    "screening_away": N_("Screening gives no answer that can be used"),
    "payout_rule": N_("Held by the merchant's payout rules until a person has looked"),
    "payout_hours": N_("Outside the merchant's payout hours"),
}
CHAIN_WIDE: Final = frozenset(OBSTACLES) - {
    *("lapsed", "stuck", "fault", "alert"),
    *("screening", "screening_away", "payout_rule", "payout_hours"),
}
"""Obstacles that affect every order of a chain."""
THEIR_STOP: Final = N_("The platform has stopped payouts on {chain} for now")
THEIR_FROZEN: Final = N_("The platform is looking into this payment")
THEIR_RULE: Final = N_("Your payout rules hold it until the platform has looked")
THEIR_HOURS: Final = N_("It waits for your payout hours")
THEIR_SUSPENDED: Final = N_("Your account is suspended")
THEIR_OBSTACLE: Final = N_("The platform can't pay on {chain} at the moment")


THEIRS: Final[Mapping[str, str]] = {
    FROZEN: THEIR_FROZEN,
    SUSPENDED: THEIR_SUSPENDED,
    STOPPED: THEIR_STOP,
    ROLLED_BACK: THEIR_STOP,
    WALLET_FROZEN: THEIR_STOP,
    OBSTACLES["screening"]: THEIR_FROZEN,
    OBSTACLES["screening_away"]: THEIR_FROZEN,
    OBSTACLES["payout_rule"]: THEIR_RULE,
    OBSTACLES["payout_hours"]: THEIR_HOURS,
}
"""The texts for a merchant's user. Every other obstacle is `THEIR_OBSTACLE`."""


WAYS: Final[Mapping[str, Way]] = {
    FROZEN: freeing.FROZEN,
    SUSPENDED: freeing.SUSPENDED,
    STOPPED: freeing.STOPPED,
    ROLLED_BACK: freeing.ROLLED_BACK,
    WALLET_FROZEN: freeing.STOPPED,
    UNCLAIMED: freeing.UNCLAIMED,
    OTHER_OBSTACLE: freeing.OTHER_OBSTACLE,
    **{text: freeing.OBSTACLES[kind] for kind, text in OBSTACLES.items()},
    THEIR_STOP: freeing.PLATFORM,
    THEIR_FROZEN: freeing.PLATFORM,
    THEIR_RULE: freeing.PLATFORM,
    THEIR_HOURS: freeing.WAITS_FOR_HOURS,
    THEIR_SUSPENDED: freeing.ASK_PLATFORM,
    THEIR_OBSTACLE: freeing.PLATFORM,
}
"""Who can free an order, by the text of its reason."""


class Reason(msgspec.Struct, frozen=True):
    """Why an order waits: an English text with its values. Only the platform's staff see `who` and `why`.

    `is_begun`: the payment has begun, so the order can't be cancelled.
    """

    tone: str
    text: str
    values: Mapping[str, str]
    who: str = ""
    why: str = ""
    since_ms: int | None = None
    is_begun: bool = False

    @property
    def way(self) -> Way:
        """Who can free the order, and how."""
        return freeing.FROZEN_BEGUN if self.is_begun and self.text == FROZEN else WAYS[self.text]


def find_reason(
    order: OrderLine, blockers: Sequence[PayoutBlocker], now_ms: int, *, if_approved: bool = False
) -> Reason | None:
    """Why an order is not paid, for the platform's staff; None if nothing stops it.

    An order that waits for approval has no other reason, unless `if_approved` asks for the one after that.
    """
    is_approved = order.approved_ms is not None or if_approved
    if order.status not in (PENDING, PROCESSING, FAILED) or not (is_approved or order.status != PENDING):
        return None
    values = {"chain": order.chain}
    stops = [one for one in blockers if one.stops_chain and one.chain == order.chain]
    if rollback := next((one for one in stops if one.kind == ROLLBACK), None):
        return describe_blocker(rollback)
    if order.frozen_cause is not None:
        is_begun = order.status != PENDING
        why, since_ms = order.frozen_cause, order.frozen_ms
        return Reason("bad", FROZEN, values, why=why, since_ms=since_ms, is_begun=is_begun)
    if order.status == PENDING and not order.is_merchant_active:
        return Reason("warn", SUSPENDED, values)
    if stops and order.status != FAILED and not order.signed_no:
        return describe_blocker(stops[0])
    return _find_obstacle(order, now_ms, values) or _predict(order, blockers)


def _predict(order: OrderLine, blockers: Sequence[PayoutBlocker]) -> Reason | None:
    """What other orders of the chain wait for, for an order that is not approved yet."""
    if order.approved_ms is not None or order.status != PENDING:
        return None
    others = (one for one in blockers if one.kind in CHAIN_WIDE and one.chain == order.chain)
    return next((describe_blocker(one) for one in others), None)


def find_reasons(
    reader_merchant_id: int | None,
    orders: Iterable[OrderLine],
    blockers: Sequence[PayoutBlocker],
    now_ms: int,
    *,
    if_approved: bool = False,
) -> dict[int, Reason]:
    """The reason of each order that has one, by its id, in words for this reader."""
    found = {}
    for order in orders:
        reason = find_reason(order, blockers, now_ms, if_approved=if_approved)
        told = reason if reader_merchant_id is None else for_merchant(reason)
        if told is not None:
            found[order.order_id] = told
    return found


def describe_blocker(blocker: PayoutBlocker) -> Reason:
    """A blocker as the reason of the orders that wait for it."""
    values = {"chain": blocker.chain}
    if blocker.stops_chain:
        text = {WALLET: WALLET_FROZEN, ROLLBACK: ROLLED_BACK}.get(blocker.kind, STOPPED)
        return Reason("bad", text, values, blocker.actor, blocker.cause, blocker.since_ms)
    text = FROZEN if blocker.kind == FROZEN_ORDERS else OBSTACLES.get(blocker.kind, OTHER_OBSTACLE)
    return Reason("warn", text, values, why=blocker.cause, since_ms=blocker.since_ms)


def _find_obstacle(order: OrderLine, now_ms: int, values: Mapping[str, str]) -> Reason | None:
    # A lifted stop stays stored with the order until the next try.
    if order.obstacle_kind not in (None, "stopped"):
        text = OBSTACLES.get(order.obstacle_kind or "", OTHER_OBSTACLE)
        return Reason("warn", text, values, why=order.obstacle_cause or "", since_ms=order.obstacle_ms)
    since_ms = order.approved_ms
    waits = order.status == PENDING and since_ms is not None and not order.is_taken_up
    if waits and since_ms is not None and now_ms - since_ms > UNCLAIMED_MS:
        return Reason("warn", UNCLAIMED, values, since_ms=since_ms)
    return None


def for_merchant(reason: Reason | None) -> Reason | None:
    """The same for a merchant's user: without names, causes, or what only the platform can fix."""
    if reason is None or reason.text == UNCLAIMED:
        return None
    text = THEIRS.get(reason.text, THEIR_OBSTACLE)
    return Reason("warn", text, reason.values, since_ms=reason.since_ms)
