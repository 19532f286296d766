"""The chart of accounts: which accounts a book has, their numbers, and which may go below zero.

A fixed account has the same small number in every book. A sub-user's account has the sub-user's id, which is
greater than every fixed number. An account never changes its currency.
"""

from collections.abc import Collection
from typing import Final, NamedTuple

from merchant_wallet.base.chains import TABLE
from merchant_wallet.base.currencies import CURRENCIES, KFB, USDT
from merchant_wallet.base.ids import MAX_ID
from merchant_wallet.base.user_input import parse_digits

MERCHANT: Final = "merchant"
SUBUSER: Final = "subuser"
HOLD: Final = "hold"
FEES: Final = "fees"
EXCHANGE: Final = "exchange"
ADJUSTMENT: Final = "adjustment"

MAY_GO_BELOW_ZERO: Final = frozenset({EXCHANGE, ADJUSTMENT, *(chain.account_kind for chain in TABLE)})
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


_BY_KIND: Final = (
    Account(1, MERCHANT, USDT),
    Account(2, MERCHANT, KFB),
    Account(3, HOLD, USDT),
    Account(4, FEES, USDT),
    Account(5, FEES, KFB),
    Account(6, EXCHANGE, USDT),
    Account(7, EXCHANGE, KFB),
    Account(10, ADJUSTMENT, USDT),
    Account(11, ADJUSTMENT, KFB),
    *(Account(chain.account_id, chain.account_kind, USDT) for chain in TABLE),
)
FIXED: Final = tuple(sorted(_BY_KIND))
"""The accounts that every new book has."""

ACCOUNT_ID: Final = {(account.kind, account.currency): account.account_id for account in FIXED}
LAST_FIXED_ID: Final = FIXED[-1].account_id
FIXED_BY_ID: Final = {account.account_id: account for account in FIXED}
FIXED_BY_NAME: Final = {account.name: account for account in FIXED}

BELOW_ZERO_IDS: Final = frozenset(
    account.account_id for account in FIXED if account.kind in MAY_GO_BELOW_ZERO
)
HOLD_ID: Final = ACCOUNT_ID[HOLD, USDT]
MERCHANT_USDT_ID: Final = ACCOUNT_ID[MERCHANT, USDT]
MERCHANT_KFB_ID: Final = ACCOUNT_ID[MERCHANT, KFB]
MERCHANT_ID_OF: Final = {USDT: MERCHANT_USDT_ID, KFB: MERCHANT_KFB_ID}
FEES_ID_OF: Final = {currency: ACCOUNT_ID[FEES, currency] for currency in CURRENCIES}
EXCHANGE_ID_OF: Final = {currency: ACCOUNT_ID[EXCHANGE, currency] for currency in CURRENCIES}
ADJUSTMENT_ID_OF: Final = {currency: ACCOUNT_ID[ADJUSTMENT, currency] for currency in CURRENCIES}
CHAIN_ID_OF: Final = {chain.code: chain.account_id for chain in TABLE}
CHAIN_OF_KIND: Final = {chain.account_kind: chain.code for chain in TABLE}


def is_listed(kind: str, balance_units: int, chains: Collection[str]) -> bool:
    """Whether people see an account: that of another chain than these is left out while nothing is on it."""
    return CHAIN_OF_KIND.get(kind) in {None, *chains} or balance_units != 0


def name_account(account_id: int, currency: str) -> str:
    """The readable name of any account: the name of a fixed one, or `subuser:ID:CURRENCY`."""
    fixed = FIXED_BY_ID.get(account_id)
    return fixed.name if fixed else f"{SUBUSER}:{account_id}:{currency}"


def parse_account(text: str) -> tuple[int, str | None]:
    """The account id and the currency of a name: `merchant:KFB`, `subuser:USERID` or `subuser:USERID:KFB`.

    Raises ValueError with a sentence for the person who typed it.
    """
    fixed = FIXED_BY_NAME.get(text)
    if fixed is not None:
        return fixed.account_id, fixed.currency
    kind, _, rest = text.partition(":")
    digits, _, currency = rest.partition(":")
    # A sub-user's id is greater than every fixed account's number. Fixed accounts have their own names.
    user_id = parse_digits(digits) if kind == SUBUSER else None
    if not LAST_FIXED_ID < (user_id or 0) <= MAX_ID or (currency or CURRENCIES[0]) not in CURRENCIES:
        names = ", ".join(FIXED_BY_NAME)
        raise ValueError(f"{text!r} is no account: use {SUBUSER}:USERID or one of {names}")
    return int(digits), currency or None
