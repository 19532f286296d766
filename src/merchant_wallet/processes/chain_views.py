"""What one reconciliation reads: each chain compared with one snapshot of all books."""

from collections.abc import Mapping

import msgspec

from merchant_wallet.base.chains import TABLE
from merchant_wallet.base.currencies import CURRENCIES, USDT
from merchant_wallet.custody.comparison import (
    Comparison,
    Custody,
    JudgedMovement,
    Remainder,
    find_imbalance,
    sum_liabilities,
    weigh_custody,
)
from merchant_wallet.custody.records import Balances
from merchant_wallet.custody.report import ReportContext


class ChainView(msgspec.Struct, frozen=True):
    """One chain compared with its books, and what to store of it.

    `remainders` are those of blocks that no search has stored yet. `cold` is what each cold wallet holds.
    """

    comparison: Comparison
    judged: tuple[JudgedMovement, ...]
    new_deposits: frozenset[bytes]
    context: ReportContext
    remainders: tuple[Remainder, ...] = ()
    cold: Mapping[bytes, int] = {}


class ChainViews(msgspec.Struct, frozen=True):
    """All chains compared with one snapshot of all books. `failures` has the cause for each other chain."""

    balances: Balances
    views: dict[str, ChainView]
    failures: dict[str, str]

    @property
    def imbalances(self) -> dict[str, int]:
        """The sum of all accounts of a currency, if it is not 0 as it must be."""
        sums = {currency: find_imbalance(self.balances, currency) for currency in CURRENCIES}
        return {currency: units for currency, units in sums.items() if units}

    @property
    def is_explained(self) -> bool:
        """Whether every difference is explained by lines."""
        return all(view.comparison.unexplained_units == 0 for view in self.views.values())

    def weigh(self) -> Custody | None:
        """Compare what is held with what is owed. None unless every chain was read, with its hot wallet.

        A hot wallet is known once a worker that can pay has started.
        """
        used = {kind for (kind, _), units in self.balances.items() if units}
        unseen = {chain.code for chain in TABLE if chain.account_kind in used} - self.views.keys()
        without_wallet = [name for name, view in self.views.items() if not view.context.coin]
        if self.failures or unseen or without_wallet or not self.views:
            return None
        comparisons = [view.comparison for view in self.views.values()]
        return weigh_custody(sum_liabilities(self.balances, USDT), comparisons)
