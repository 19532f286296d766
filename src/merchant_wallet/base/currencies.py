"""The currencies: one row for each. Everything else asks this table.

Rules:
- Pure data. Nothing is imported from the project.
- `code` is the interface's own word. The database's domain `currency` lists the same codes.
- In the ledger every currency has `LEDGER_DECIMALS` decimals. A token on a chain may have more: see `chains`.
"""

from typing import Final, NamedTuple

LEDGER_DECIMALS: Final = 6
"""Decimals of every amount in the books and on the wire."""


class Currency(NamedTuple):
    """One row. `is_on_chain`: deposits and withdrawals move it. Otherwise it exists in the books alone."""

    code: str
    is_on_chain: bool = False


USDT: Final = "USDT"
KFB: Final = "KFB"

TABLE: Final = (Currency(USDT, is_on_chain=True), Currency(KFB))
CURRENCIES: Final = tuple(row.code for row in TABLE)
