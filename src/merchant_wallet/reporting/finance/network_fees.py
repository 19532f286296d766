"""Gas and energy: what the chains took as fees for the platform's own transactions, in each chain's coin.

Rules: a fee is known when its transaction is final. Those of payouts are read from the chains behind the
payments (`custody/payout_fees`). Amounts are whole numbers of the coin's smallest unit
(wei, sun).
"""

import msgspec

from merchant_wallet.base.chains import CHAINS
from merchant_wallet.reporting.finance.periods import Period
from merchant_wallet.reporting.finance.solvency import QUERIES
from merchant_wallet.reporting.paging import Connection, fetch


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


def format_coin(chain: str, amount: int) -> str:
    """An amount of a chain's coin as a plain decimal. Pure."""
    decimals = CHAINS[chain].coin_decimals
    whole, rest = divmod(amount, 10**decimals)
    return f"{whole}.{rest:0{decimals}d}".rstrip("0").rstrip(".")


async def list_network_fees(home: Connection, period: Period) -> list[NetworkFees]:
    """The fees of a period by chain and purpose."""
    values = {"since_ms": period.since_ms, "until_ms": period.until_ms}
    found = [
        NetworkFees(row["chain"], "payout", row["transactions"], int(row["fees"]))
        for row in await fetch(home, QUERIES["sum_payout_fees"].text, values)
    ]
    for row in await fetch(home, QUERIES["sum_sweep_fees"].text, values):
        found += [
            NetworkFees(row["chain"], "sweep", row["transfers"], int(row["token_fees"])),
            NetworkFees(row["chain"], "top_up", row["top_ups"], int(row["top_up_fees"])),
        ]
    return [one for one in found if one.transactions]
