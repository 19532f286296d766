"""The chart of accounts: which accounts a book has, how they are numbered and which may go below zero.

Rules: a fixed account has the same small number in every book; a sub-user's account has the sub-user's own
id, which is above every fixed number. An account has one currency for ever.
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
"""What came in from outside, the exchange desk's position and an operator's own entries are signed sums."""


class Account(NamedTuple):
    """One line of the chart."""

    account_id: int
    kind: str
    currency: str

    @property
    def name(self) -> str:
        """The account's name as people read and type it, `kind:currency`."""
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
"""The accounts every book is opened with."""

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
    """The readable name of any account: a fixed one's own, or `subuser:ID:CURRENCY`."""
    fixed = FIXED_BY_ID.get(account_id)
    return fixed.name if fixed else f"{SUBUSER}:{account_id}:{currency}"
