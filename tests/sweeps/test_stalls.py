"""What becomes of a sweep that can't be signed, and the states that it may go through. Pure."""

import msgspec
import pytest
from tests.chains.evm_scene import WALLET
from tests.rows import each_row
from tests.sweeps.sweep_scene import NOW_MS, USDT

from merchant_wallet.base.chains import ERC20
from merchant_wallet.base.state_table import IllegalStep
from merchant_wallet.chains.protocol import Obstacle
from merchant_wallet.chains.signer import Source
from merchant_wallet.chains.sweeps import Quote
from merchant_wallet.custody.sweeps.stalls import (
    STALLED_MS,
    TOP_UP_AGAIN_MS,
    Continue,
    Fail,
    Held,
    Stall,
    Wait,
    judge_stall,
)
from merchant_wallet.custody.sweeps.store import Sweep
from merchant_wallet.custody.sweeps.sweep_states import STEPS, Event, State, step

SWEEP = Sweep(
    *(
        ERC20,
        1,
        b"D" * 20,
        1001,
        Source(0, 0, 0),
        None,
        WALLET,
        70 * USDT,
        1,
        40,
        50,
        100,
        "token",
        3,
        1,
        None,
    ),
    *(NOW_MS, True, None, None, 1_000, 0),
)
DEAR, PAUSED = Obstacle("fee", "dear"), Obstacle("token", "paused")
FULL = Held(70 * USDT, 100)


@each_row(
    ("obstacle", "lasted_ms", "held", "quote", "budget", "outcome"),
    [
        (DEAR, 0, FULL, None, 1_000, Wait),
        (DEAR, TOP_UP_AGAIN_MS, FULL, Quote(100, 300, 10), 1_000, Continue),
        # The budget, or the cap of a transaction, does not allow it.
        (DEAR, TOP_UP_AGAIN_MS, FULL, Quote(100, 1_000, 10), 1_000, Wait),
        (DEAR, TOP_UP_AGAIN_MS, FULL, Quote(100, 1_901, 10), 9_999, Wait),
        # The address has enough already.
        (DEAR, TOP_UP_AGAIN_MS, FULL, Quote(300, 300, 10), 1_000, Wait),
        (PAUSED, STALLED_MS - 1, FULL, None, 1_000, Wait),
        (PAUSED, STALLED_MS, FULL, None, 1_000, Fail),
        (PAUSED, STALLED_MS, None, None, 1_000, Fail),
        (PAUSED, 0, Held(70 * USDT - 1, 100), None, 1_000, Fail),
        # Coin has left, though more is there than was sent: the address had some before.
        (DEAR, TOP_UP_AGAIN_MS, Held(70 * USDT, 99), Quote(99, 300, 10), 1_000, Wait),
        (DEAR, STALLED_MS, Held(70 * USDT, 99), Quote(99, 300, 10), 1_000, Fail),
    ],
)
def test_what_becomes_of_a_sweep_that_cannot_be_signed(
    obstacle: Obstacle,
    lasted_ms: int,
    held: Held | None,
    quote: Quote | None,
    budget: int,
    outcome: type[Wait | Fail | Continue],
) -> None:
    stall = Stall(obstacle, lasted_ms, msgspec.structs.replace(SWEEP, budget_left=budget), held)
    assert isinstance(judge_stall(stall, quote, 1_900), outcome)


def test_only_a_transfer_from_the_address_is_continued_and_nothing_follows_an_end() -> None:
    assert [state for state in State if Event.CONTINUED in STEPS[state]] == [State.TOKEN, State.RESCUE]
    for state in (State.DONE, State.CONTINUED, State.FAILED, State.DROPPED):
        for event in Event:
            with pytest.raises(IllegalStep):
                step(state, event)
