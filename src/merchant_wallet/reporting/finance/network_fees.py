"""Gas and energy: what the chains took as fees for the platform's own transactions, in each chain's coin.

Rules:
- A fee is known when its transaction is final (`custody/network_fees`). Those of payouts, cancelled nonces
  and cold transfers count when they were signed, those of a sweep when it ended.
- Each line says whose coins paid it. The fees of the hot wallet and what it gave to deposit addresses are all
  that its balance of coins loses.
- Amounts are whole numbers of the coin's smallest unit (wei, sun).
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from merchant_wallet.base.chains import CHAINS
from merchant_wallet.reporting.finance.periods import Period
from merchant_wallet.reporting.finance.solvency import QUERIES
from merchant_wallet.reporting.paging import Connection, fetch

HOT: Final = "hot"
DEPOSIT: Final = "deposit"
COLD: Final = "cold"
PAID_BY: Final = {
    "payout": HOT,
    "cancel": HOT,
    "top_up": HOT,
    "sweep": DEPOSIT,
    "cold": HOT,
    "refill": COLD,
}
"""Whose coins pay a purpose: the hot wallet's, a deposit address's or a cold wallet's. In the shown order."""


class NetworkFees(msgspec.Struct, frozen=True):
    """What one kind of transaction has cost on a chain in a period."""

    chain: str
    purpose: str
    transactions: int
    fee: int

    @property
    def coin(self) -> str:
        """The chain's coin."""
        return CHAINS[self.chain].coin

    @property
    def amount(self) -> str:
        """The fee in whole coins, as a decimal."""
        return format_coin(self.chain, self.fee)

    @property
    def paid_by(self) -> str:
        """Whose coins paid it."""
        return PAID_BY[self.purpose]


class HotWalletCoins(msgspec.Struct, frozen=True):
    """What the hot wallet of a chain lost of its coins: fees, and what it gave to deposit addresses."""

    chain: str
    fees: int
    given: int

    @property
    def coin(self) -> str:
        """The chain's coin."""
        return CHAINS[self.chain].coin

    @property
    def lost(self) -> int:
        """Both together."""
        return self.fees + self.given

    def show(self, units: int) -> str:
        """An amount of it in whole coins, as a decimal."""
        return format_coin(self.chain, units)


class CoinsSpent(NamedTuple):
    """The lines of a period, and what the hot wallets lost, each by chain."""

    lines: list[NetworkFees]
    hot_wallets: list[HotWalletCoins]


def format_coin(chain: str, amount: int) -> str:
    """An amount of a chain's coin as a plain decimal. Pure."""
    decimals = CHAINS[chain].coin_decimals
    whole, rest = divmod(amount, 10**decimals)
    return f"{whole}.{rest:0{decimals}d}".rstrip("0").rstrip(".")


async def read_coins_spent(home: Connection, period: Period) -> CoinsSpent:
    """The fees of a period by chain and purpose, and what they and top-ups took from the hot wallets."""
    values = {"since_ms": period.since_ms, "until_ms": period.until_ms}
    found = [
        NetworkFees(row["chain"], row["purpose"], row["transactions"], int(row["fees"]))
        for row in await fetch(home, QUERIES["sum_network_fees"].text, values)
    ]
    given: Counter[str] = Counter()
    for row in await fetch(home, QUERIES["sum_sweep_fees"].text, values):
        found += [
            NetworkFees(row["chain"], "sweep", row["transfers"], int(row["token_fees"])),
            NetworkFees(row["chain"], "top_up", row["top_ups"], int(row["top_up_fees"])),
        ]
        given[row["chain"]] += int(row["given"])
    lines = sorted([one for one in found if one.transactions], key=_rank)
    return CoinsSpent(lines, add_up_hot(lines, given))


def add_up_hot(lines: Sequence[NetworkFees], given: Counter[str]) -> list[HotWalletCoins]:
    """What the hot wallet of each chain lost. Pure."""
    fees: Counter[str] = Counter()
    for one in lines:
        if one.paid_by == HOT:
            fees[one.chain] += one.fee
    chains = [chain for chain in CHAINS if fees[chain] or given[chain]]
    return [HotWalletCoins(chain, fees[chain], given[chain]) for chain in chains]


def _rank(one: NetworkFees) -> tuple[int, int]:
    return list(CHAINS).index(one.chain), list(PAID_BY).index(one.purpose)
