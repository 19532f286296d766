"""What transactions cost on TRON: bandwidth, energy and the activation of accounts. Pure.

Rules:
- An account has 600 free bytes, which come back evenly within a day. A transaction takes all its bytes from
  them, or burns TRX for all.
- A transfer of TRX that creates its recipient's account burns two fixed fees instead of bandwidth.
- Staked energy is used first, the rest is burnt. The fee limit covers both.
- A contract in great demand costs a penalty: its energy is multiplied by a factor that maintenance changes.
"""

from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Self

ENERGY_SUN: Final = 100
BANDWIDTH_SUN: Final = 1_000
ACTIVATION_BANDWIDTH_SUN: Final = 100_000
ACTIVATION_SUN: Final = 1_000_000
FREE_BYTES: Final = 600
MAX_FEE_LIMIT_SUN: Final = 15_000_000_000

# The token's energy on the main chain without the penalty.
TRANSFER_ENERGY: Final = 14_610
NEW_HOLDER_ENERGY: Final = 29_610
VIEW_ENERGY: Final = 242
REVERT_ENERGY: Final = 1_159

FACTOR_SCALE: Final = 10_000
MAX_FACTOR: Final = 34_000
"""Where the token stands on the main chain."""
INCREASE_PER_MAINTENANCE: Final = 2_000
_DECREASE_PER_MAINTENANCE: Final = 500
_DAY_MS: Final = 24 * 3600 * 1000


class Energy(NamedTuple):
    """The energy of a call, the penalty included."""

    total: int
    penalty: int

    @classmethod
    def of(cls, base: int, factor: int) -> Self:
        """The energy of a call that costs `base` without a penalty."""
        penalty = base * factor // FACTOR_SCALE
        return cls(base + penalty, penalty)


class Bandwidth(NamedTuple):
    """What a transaction costs before it runs. Of a receipt, `activation_sun` is only in the fee."""

    free_bytes: int
    net_fee_sun: int
    activation_sun: int = 0

    @property
    def burnt_sun(self) -> int:
        """All TRX that it burns."""
        return self.net_fee_sun + self.activation_sun


@dataclass(frozen=True)
class Usage:
    """The free bytes and the staked energy that an account has used, as of a time."""

    time_ms: int = 0
    free_bytes: int = 0
    staked_energy: int = 0
    used_energy: int = 0

    def at(self, now_ms: int) -> "Usage":
        """The same at a later time: what was used comes back evenly within a day."""
        left_ms = max(0, _DAY_MS - max(0, now_ms - self.time_ms))
        return replace(
            self,
            time_ms=now_ms,
            free_bytes=self.free_bytes * left_ms // _DAY_MS,
            used_energy=self.used_energy * left_ms // _DAY_MS,
        )

    @property
    def energy(self) -> int:
        """The staked energy that is left."""
        return max(0, self.staked_energy - self.used_energy)

    def price(self, size: int, *, activates: bool) -> Bandwidth:
        """What the bandwidth of a transaction of `size` bytes costs now."""
        if activates:
            return Bandwidth(0, ACTIVATION_BANDWIDTH_SUN, ACTIVATION_SUN)
        if size <= FREE_BYTES - self.free_bytes:
            return Bandwidth(size, 0)
        return Bandwidth(0, size * BANDWIDTH_SUN)

    def spend(self, *, free_bytes: int = 0, energy: int = 0) -> "Usage":
        """The same after a transaction."""
        return replace(self, free_bytes=self.free_bytes + free_bytes, used_energy=self.used_energy + energy)


def next_factor(factor: int, *, is_busy: bool) -> int:
    """A contract's factor after a maintenance. `is_busy` says that it used much energy since the last one."""
    scaled = FACTOR_SCALE + factor
    if is_busy:
        return min(MAX_FACTOR, scaled + scaled * INCREASE_PER_MAINTENANCE // FACTOR_SCALE - FACTOR_SCALE)
    return max(0, scaled - scaled * _DECREASE_PER_MAINTENANCE // FACTOR_SCALE - FACTOR_SCALE)
