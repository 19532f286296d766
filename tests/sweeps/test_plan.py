"""What a plan says: by examples, and for any addresses and prices."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from merchant_wallet.base.money import RATE_SCALE
from merchant_wallet.chains.signer import Source
from merchant_wallet.chains.sweeps import Quote
from merchant_wallet.custody.sweeps.plan import (
    PlannedSweep,
    SweepCandidate,
    SweepPolicy,
    budget_coin,
    compute_worth_units,
    judge,
    make_plan,
)

USDT = 1_000_000
ETH = 10**18
GWEI = 10**9
# An ETH costs 3000 USDT, so one USDT buys 333,333 gwei.
POLICY = SweepPolicy(
    coin_price_units=3_000 * USDT,
    coin_scale=ETH,
    share_e8=RATE_SCALE // 100,
    minimum_units=20 * USDT,
    max_concurrent=3,
    fee_cap=ETH // 50,
)
# 100,000 gwei (0.30 USDT) to move the token, 20,000 gwei (0.06 USDT) to send the coin there.
FEES = Quote(held=0, token_fee=100_000 * GWEI, top_up_fee=20_000 * GWEI)


def candidate(units: int, *, number: int = 1, quote: Quote | None = FEES, **others: str) -> SweepCandidate:
    return SweepCandidate("ERC20", bytes([number]) * 20, 1001, Source(0, 0, number), units, quote, **others)


@each_row(
    ("usdt", "held_gwei", "verdict", "top_up_gwei", "cost_usdt", "share"),
    [
        # Token amount, coin there already, verdict, coin to send, cost, share.
        (19, 0, "small", 0, None, None),
        (20, 0, "dear", 100_000, "0.36", "0.018"),
        (35, 0, "dear", 100_000, "0.36", "0.01028572"),
        (36, 0, "sweep", 100_000, "0.36", "0.01"),
        (3_600, 0, "sweep", 100_000, "0.36", "0.0001"),
        # Coin that is there already costs the same when it is burnt, but nothing to send.
        (30, 100_000, "sweep", 0, "0.3", "0.01"),
        (36, 99_999, "sweep", 1, "0.36", "0.01"),
        (29, 500_000, "dear", 0, "0.3", "0.01034483"),
    ],
)
def test_an_address_is_worth_sweeping_when_it_costs_no_more_than_the_share(
    usdt: int, held_gwei: int, verdict: str, top_up_gwei: int, cost_usdt: str | None, share: str | None
) -> None:
    quote = msgspec.structs.replace(FEES, held=held_gwei * GWEI)
    judged = judge(candidate(usdt * USDT, quote=quote), POLICY)
    assert (judged.verdict, judged.top_up) == (verdict, top_up_gwei * GWEI)
    assert judged.cost_units == (None if cost_usdt is None else round(float(cost_usdt) * USDT))
    assert judged.share_e8 == (None if share is None else round(float(share) * RATE_SCALE))


def test_what_the_share_leaves_is_room_to_outbid_and_no_more() -> None:
    # One percent of 360 USDT is 3.60 USDT, or 1,200,000 gwei. The token transfer takes 100,000 of them.
    def find_room(planned: PlannedSweep) -> int | None:
        return None if planned.terms is None else planned.terms.top_up_fee_limit

    assert find_room(judge(candidate(360 * USDT), POLICY)) == 1_100_000 * GWEI
    assert find_room(judge(candidate(36 * USDT), POLICY)) == 20_000 * GWEI
    # The chain's own fee cap applies too.
    assert find_room(judge(candidate(100_000 * USDT), POLICY)) == POLICY.fee_cap
    held = msgspec.structs.replace(FEES, held=ETH)
    assert find_room(judge(candidate(360 * USDT, quote=held), POLICY)) == 0


def test_without_a_price_nothing_is_worth_it_and_the_cost_is_told_in_coin_alone() -> None:
    judged = judge(candidate(1_000 * USDT), msgspec.structs.replace(POLICY, coin_price_units=None))
    assert (judged.verdict, judged.cost, judged.cost_units) == ("unpriced", 120_000 * GWEI, None)


def test_a_transaction_above_the_chains_fee_cap_is_dear_whatever_it_moves() -> None:
    dear = msgspec.structs.replace(FEES, token_fee=POLICY.fee_cap + 1)
    assert judge(candidate(10**6 * USDT, quote=dear), POLICY).verdict == "dear"


def test_what_stands_in_the_way_or_failed_before_is_left_alone() -> None:
    assert judge(candidate(1_000 * USDT, quote=None, blocked_by="paused"), POLICY).verdict == "blocked"
    failed = candidate(1_000 * USDT, failed_cause="reverted")
    assert judge(failed, POLICY).verdict == "failed"
    assert judge(failed, POLICY, again=True).verdict == "sweep"


def test_the_largest_benefit_comes_first_and_the_rest_waits() -> None:
    amounts = [40, 500, 10, 90, 70, 36]
    candidates = [candidate(usdt * USDT, number=number) for number, usdt in enumerate(amounts)]
    plan = make_plan(candidates, POLICY)
    assert [(one.candidate.balance_units // USDT, one.verdict) for one in plan] == [
        (500, "sweep"),
        (90, "sweep"),
        (70, "sweep"),
        (40, "later"),
        (36, "later"),
        (10, "small"),
    ]
    assert [one.verdict for one in make_plan(candidates, POLICY, under_way=2)][:2] == ["sweep", "later"]
    assert not any(one.verdict == "sweep" for one in make_plan(candidates, POLICY, under_way=9))


COIN_SCALES = st.sampled_from([10**6, 10**18])
AMOUNTS = st.integers(0, 10**13)


@st.composite
def policy(draw: st.DrawFn) -> SweepPolicy:
    return SweepPolicy(
        coin_price_units=draw(st.one_of(st.none(), st.integers(1, 10**12))),
        coin_scale=draw(COIN_SCALES),
        share_e8=draw(st.integers(0, RATE_SCALE)),
        minimum_units=draw(AMOUNTS),
        max_concurrent=draw(st.integers(1, 5)),
        fee_cap=draw(st.integers(0, 10**18)),
    )


@st.composite
def any_holdings(draw: st.DrawFn) -> list[SweepCandidate]:
    fees = st.one_of(st.integers(0, 10**7), st.integers(0, 10**18))
    quotes = st.one_of(st.none(), st.builds(Quote, fees, st.integers(1, 10**18) | fees, fees))
    return [
        candidate(draw(AMOUNTS), number=number, quote=draw(quotes))
        for number in range(draw(st.integers(0, 8)))
    ]


@given(any_holdings(), policy(), st.integers(0, 6))
def test_whatever_there_is_a_plan_keeps_its_rules(
    candidates: list[SweepCandidate], laid_down: SweepPolicy, under_way: int
) -> None:
    plan = make_plan(candidates, laid_down, under_way=under_way)
    assert sorted(one.candidate.address for one in plan) == sorted(one.address for one in candidates)
    swept = [one for one in plan if one.verdict == "sweep"]
    assert len(swept) <= max(0, laid_down.max_concurrent - under_way)
    assert plan[: len(swept)] == swept
    for one in swept:
        units, price, quote = one.candidate.balance_units, laid_down.coin_price_units, one.candidate.quote
        assert units >= laid_down.minimum_units
        assert units > 0
        assert price is not None
        assert quote is not None
        # The most that can be burnt, replacements included, is worth no more than the share.
        assert one.terms is not None
        room = one.terms.top_up_fee_limit
        most = (room if one.top_up else 0) + quote.token_fee
        assert (
            compute_worth_units(most, price, laid_down.coin_scale) * RATE_SCALE <= units * laid_down.share_e8
        )
        assert one.cost <= most
        assert one.top_up + quote.held >= quote.token_fee
        assert one.top_up_fee <= room <= laid_down.fee_cap
        assert most <= one.terms.budget
    worth = [one.benefit_units for one in plan if one.verdict in ("sweep", "later")]
    assert worth == sorted(worth, reverse=True)


@given(AMOUNTS, st.integers(0, RATE_SCALE), st.integers(1, 10**12), COIN_SCALES)
def test_a_budget_is_all_that_the_share_buys_and_not_a_coin_more(
    units: int, share_e8: int, price: int, scale: int
) -> None:
    budget = budget_coin(units, share_e8, price, scale)
    assert compute_worth_units(budget, price, scale) * RATE_SCALE <= units * share_e8
    assert compute_worth_units(budget + 1, price, scale) > units * share_e8 // RATE_SCALE
