"""Which deposit addresses are worth sweeping now, the highest cost, and the order. Pure.

Rules:
- A cost is the most that the signed bytes can burn, plus coin left at the address, at the operator's price.
- Costs are rounded up and budgets down, so a sweep never costs more than its share.
- The largest benefit comes first. Sweeps beyond the limit of open sweeps wait.
"""

from collections.abc import Iterable
from typing import Final, Literal

import msgspec

from merchant_wallet.base.money import RATE_SCALE
from merchant_wallet.base.units import MAX_BIGINT
from merchant_wallet.chains.signer import Source
from merchant_wallet.chains.sweeps import Quote

Verdict = Literal["sweep", "later", "small", "dear", "blocked", "failed", "unpriced"]
"""`later`: worth it, when fewer are open. `failed`: the last attempt failed, so an operator must ask
for it.
"""

SWEEP: Final = "sweep"


def describe_request(chain: str, *, again: bool) -> dict[str, str | bool]:
    """What is asked for when a chain is to be swept, as facts."""
    return {"chain": chain, "again": again}


def describe_run(opened: Iterable[int], *, again: bool) -> dict[str, list[int] | bool]:
    """Which sweeps were opened, as facts."""
    return {"sweepIds": sorted(opened), "again": again}


class SweepPolicy(msgspec.Struct, frozen=True, gc=False):
    """An operator's settings for one chain.

    `coin_price_units` is the price of a whole coin of `coin_scale` smallest units, in units of 10^-6 USDT. It
    is None if no price is set. `share_e8` is the highest share of an amount that sweeping it may cost, in
    10^-8. `fee_cap` limits each transaction, in the smallest unit.
    """

    coin_price_units: int | None
    coin_scale: int
    share_e8: int
    minimum_units: int
    max_concurrent: int
    fee_cap: int


class SweepCandidate(msgspec.Struct, frozen=True, gc=False):
    """A deposit address with a balance: its merchant, the path of its key, and the cost of emptying it.

    `blocked_by` says why it can't be emptied now. `failed_cause` is the cause if the last attempt failed.
    """

    chain: str
    address: bytes
    merchant_id: int
    source: Source
    balance_units: int
    quote: Quote | None = None
    blocked_by: str | None = None
    failed_cause: str | None = None


class Terms(msgspec.Struct, frozen=True, gc=False):
    """What a sweep may spend: the coin to send there first, what each transaction may burn, and the most in
    all, further top-ups included.
    """

    top_up: int
    top_up_fee_limit: int
    token_fee_limit: int
    budget: int


class PlannedSweep(msgspec.Struct, frozen=True, gc=False):
    """The plan for one address.

    `top_up` is the coin to send there first. `terms` has the limits of what is swept now. `cost` is the
    highest loss: in coin, in units of USDT, and as a share of the balance, rounded up.
    """

    candidate: SweepCandidate
    verdict: Verdict
    top_up: int = 0
    top_up_fee: int = 0
    token_fee: int = 0
    cost: int = 0
    cost_units: int | None = None
    share_e8: int | None = None
    terms: Terms | None = None

    @property
    def benefit_units(self) -> int:
        """What the hot wallet gains, minus the cost."""
        return self.candidate.balance_units - (self.cost_units or 0)


def make_plan(
    candidates: Iterable[SweepCandidate], policy: SweepPolicy, *, under_way: int = 0, again: bool = False
) -> list[PlannedSweep]:
    """The plan for each address. Those to sweep now come first, the largest benefit first, then all others.

    `under_way` is the number of open sweeps. With `again` failed sweeps are tried again.
    """
    judged = [judge(candidate, policy, again=again) for candidate in candidates]
    ordered = sorted(judged, key=lambda one: (-one.benefit_units, one.candidate.address))
    worth = [one for one in ordered if one.verdict == SWEEP]
    free = max(0, policy.max_concurrent - under_way)
    later = [msgspec.structs.replace(one, verdict="later") for one in worth[free:]]
    return worth[:free] + later + [one for one in ordered if one.verdict != SWEEP]


def judge(candidate: SweepCandidate, policy: SweepPolicy, *, again: bool = False) -> PlannedSweep:
    """Whether an address alone is worth sweeping."""
    if candidate.balance_units < policy.minimum_units or candidate.balance_units <= 0:
        return PlannedSweep(candidate, "small")
    quote = candidate.quote
    if quote is None or candidate.blocked_by is not None:
        return PlannedSweep(candidate, "blocked")
    if policy.coin_price_units is None:
        return _priced(candidate, "unpriced", quote, policy)
    budget = budget_coin(candidate.balance_units, policy.share_e8, policy.coin_price_units, policy.coin_scale)
    terms = make_terms(quote, budget, policy.fee_cap)
    if terms is None:
        return _priced(candidate, "dear", quote, policy)
    if candidate.failed_cause is not None and not again:
        return _priced(candidate, "failed", quote, policy)
    return msgspec.structs.replace(_priced(candidate, SWEEP, quote, policy), terms=terms)


def make_terms(quote: Quote, budget: int, fee_cap: int) -> Terms | None:
    """The terms of a sweep at these prices. None if it may cost more than the budget or the cap."""
    top_up, cost = _top_up_and_cost(quote)
    if cost > budget or max(quote.token_fee, quote.top_up_fee, top_up) > fee_cap:
        return None
    # The rest of the budget may be used to outbid, if the first offer of the top-up is not taken.
    room = min(budget - quote.token_fee, fee_cap) if top_up else 0
    return Terms(top_up, room, quote.token_fee, min(budget, MAX_BIGINT))


def budget_coin(amount_units: int, share_e8: int, price_units: int, coin_scale: int) -> int:
    """The most coin that sweeping an amount may burn, rounded down. The price is above 0."""
    allowed_units = amount_units * share_e8 // RATE_SCALE
    return allowed_units * coin_scale // price_units


def compute_worth_units(coin: int, price_units: int, coin_scale: int) -> int:
    """The value of an amount of coin in units, rounded up."""
    return -(-coin * price_units // coin_scale)


def _top_up_and_cost(quote: Quote) -> tuple[int, int]:
    top_up = max(0, quote.token_fee - quote.held)
    return top_up, quote.token_fee + (quote.top_up_fee if top_up else 0)


def _priced(candidate: SweepCandidate, verdict: Verdict, quote: Quote, policy: SweepPolicy) -> PlannedSweep:
    top_up, cost = _top_up_and_cost(quote)
    top_up_fee = quote.top_up_fee if top_up else 0
    planned = PlannedSweep(candidate, verdict, top_up, top_up_fee, quote.token_fee, cost)
    if policy.coin_price_units is None:
        return planned
    cost_units = compute_worth_units(cost, policy.coin_price_units, policy.coin_scale)
    share_e8 = -(-cost_units * RATE_SCALE // candidate.balance_units)
    return msgspec.structs.replace(planned, cost_units=cost_units, share_e8=share_e8)
