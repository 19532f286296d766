"""The chart of accounts: which accounts a book has, their numbers, and which may go below zero.

A fixed account has the same small number in every book. A sub-user's account has the sub-user's id, which is
greater than every fixed number. An account never changes its currency.
"""

from typing import Final, NamedTuple

from merchant_wallet.base.money import KFB, USDT

MERCHANT: Final = "merchant"
SUBUSER: Final = "subuser"
HOLD: Final = "hold"
FEES: Final = "fees"
EXCHANGE: Final = "exchange"
CHAIN_ERC20: Final = "chain:ERC20"
CHAIN_TRC20: Final = "chain:TRC20"
ADJUSTMENT: Final = "adjustment"

MAY_GO_BELOW_ZERO: Final = frozenset({EXCHANGE, CHAIN_ERC20, CHAIN_TRC20, ADJUSTMENT})
"""Signed sums: what came in from outside, the exchange position, and operators' own entries."""


class Account(NamedTuple):
    """One account of the chart."""

    account_id: int
    kind: str
    currency: str

    @property
    def name(self) -> str:
        """The account's name for people, `kind:currency`."""
        return f"{self.kind}:{self.currency}"


FIXED: Final = (
    Account(1, MERCHANT, USDT),
    Account(2, MERCHANT, KFB),
    Account(3, HOLD, USDT),
    Account(4, FEES, USDT),
    Account(5, FEES, KFB),
    Account(6, EXCHANGE, USDT),
    Account(7, EXCHANGE, KFB),
    Account(8, CHAIN_ERC20, USDT),
    Account(9, CHAIN_TRC20, USDT),
    Account(10, ADJUSTMENT, USDT),
    Account(11, ADJUSTMENT, KFB),
)
"""The accounts that every new book has."""

ACCOUNT_ID: Final = {(account.kind, account.currency): account.account_id for account in FIXED}
FIXED_BY_ID: Final = {account.account_id: account for account in FIXED}
FIXED_BY_NAME: Final = {account.name: account for account in FIXED}

BELOW_ZERO_IDS: Final = frozenset(
    account.account_id for account in FIXED if account.kind in MAY_GO_BELOW_ZERO
)
HOLD_ID: Final = ACCOUNT_ID[HOLD, USDT]
MERCHANT_USDT_ID: Final = ACCOUNT_ID[MERCHANT, USDT]
MERCHANT_KFB_ID: Final = ACCOUNT_ID[MERCHANT, KFB]
MERCHANT_ID_OF: Final = {USDT: MERCHANT_USDT_ID, KFB: MERCHANT_KFB_ID}
FEES_ID_OF: Final = {currency: ACCOUNT_ID[FEES, currency] for currency in (USDT, KFB)}
EXCHANGE_ID_OF: Final = {currency: ACCOUNT_ID[EXCHANGE, currency] for currency in (USDT, KFB)}
ADJUSTMENT_ID_OF: Final = {currency: ACCOUNT_ID[ADJUSTMENT, currency] for currency in (USDT, KFB)}
CHAIN_ID_OF: Final = {"ERC20": ACCOUNT_ID[CHAIN_ERC20, USDT], "TRC20": ACCOUNT_ID[CHAIN_TRC20, USDT]}


def name_account(account_id: int, currency: str) -> str:
    """The readable name of any account: the name of a fixed one, or `subuser:ID:CURRENCY`."""
    fixed = FIXED_BY_ID.get(account_id)
    return fixed.name if fixed else f"{SUBUSER}:{account_id}:{currency}"
