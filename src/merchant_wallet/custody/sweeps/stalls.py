"""What becomes of a sweep whose present transaction can't be signed now. Pure.

Rules:
- It is asked only while nothing that was signed for the transaction can count: nothing was signed, or all of
  it has expired.
- Tokens that have left the address end the sweep at once, because a final balance shows it.
- Coin that has left the address is not sent again: somebody else may have the key.
- If fees are too high after `TOP_UP_AGAIN_MS`, a successor sends another top-up. Everything that both burn
  stays within the budget of the first decision.
- A rescue of coin gets no top-up: its fee is paid from what it leaves there.
- Whatever the reason is, a sweep waits at most `STALLED_MS`. Then it fails, and an operator may ask again.
"""

from typing import Final

import msgspec

from merchant_wallet.base.chains import CHAINS
from merchant_wallet.base.money import format_units
from merchant_wallet.base.setting_types import show_coins
from merchant_wallet.base.units import MINUTE_MS
from merchant_wallet.chains.protocol import Obstacle
from merchant_wallet.chains.sweeps import Quote
from merchant_wallet.custody.sweeps.plan import Terms, make_terms
from merchant_wallet.custody.sweeps.store import Sweep

TOP_UP_AGAIN_MS: Final = 60_000
STALLED_MS: Final = 600_000


class Held(msgspec.Struct, frozen=True, gc=False):
    """What the deposit address holds: units of the token in the last final block, and coin now.

    For a rescue `units` are the smallest units of what it moves, now.
    """

    units: int
    coin: int


class Stall(msgspec.Struct, frozen=True, gc=False):
    """Why a sweep can't be signed, and for how long. `held` is None if the token is not next."""

    obstacle: Obstacle
    lasted_ms: int
    sweep: Sweep
    held: Held | None

    @property
    def lacks_token(self) -> bool:
        """Whether tokens have left the address."""
        return self.held is not None and self.held.units < self.sweep.sweep_tx.amount

    @property
    def lacks_coin(self) -> bool:
        """Whether coin has left the address. With the top-up it held all that the token may burn."""
        return self.held is not None and self.held.coin < self.sweep.token_fee_limit

    @property
    def may_top_up(self) -> bool:
        """Whether another top-up may help, so that its price is worth asking for."""
        is_token_next = self.held is not None and not self.lacks_token and not self.lacks_coin
        if self.sweep.rescue is not None and self.sweep.rescue.contract is None:
            return False
        return is_token_next and self.obstacle.kind == "fee" and self.lasted_ms >= TOP_UP_AGAIN_MS

    def __str__(self) -> str:
        """The obstacle, and what has left the address."""
        sweep, held, obstacle = self.sweep, self.held, self.obstacle.cause
        if held is not None and self.lacks_token and sweep.rescue is not None:
            there, wanted = str(held.units), str(sweep.rescue.amount)
            return f"it has left the address, which holds {there} of {wanted} smallest units; {obstacle}"
        if held is not None and self.lacks_token:
            there, wanted = format_units(held.units), format_units(sweep.amount_units)
            return f"tokens have left the address: it holds {there} of {wanted} USDT; {obstacle}"
        if held is not None and self.lacks_coin:
            chain = CHAINS[sweep.chain]
            show = show_coins(chain.coin_decimals)
            there, wanted = show(held.coin), show(sweep.token_fee_limit)
            return f"coin has left the address: it holds {there} of {wanted} {chain.coin}; {obstacle}"
        return obstacle


class Wait(msgspec.Struct, frozen=True):
    """The sweep waits. The text says for what."""

    obstacle: str


class Fail(msgspec.Struct, frozen=True):
    """The sweep ends without having moved the token. The text says why."""

    cause: str


class Continue(msgspec.Struct, frozen=True):
    """A successor continues it, on these terms."""

    terms: Terms
    cause: str


Outcome = Wait | Fail | Continue


def judge_stall(stall: Stall, quote: Quote | None, fee_cap: int) -> Outcome:
    """What becomes of the sweep. `quote` has the present price if `may_top_up`."""
    sweep, text = stall.sweep, str(stall)
    if stall.lacks_token:
        return Fail(text)
    if stall.may_top_up and quote is not None:
        terms = make_terms(quote, sweep.budget_left, fee_cap)
        # Without another top-up the wait would only begin again.
        if terms is not None and terms.top_up:
            return Continue(terms, f"fees have risen: {text}")
    if stall.lasted_ms >= STALLED_MS:
        return Fail(f"it could not go on for {stall.lasted_ms // MINUTE_MS} minutes: {text}")
    return Wait(text)
