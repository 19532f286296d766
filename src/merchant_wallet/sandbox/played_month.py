"""A month to close: a made-up shop gets a book with entries in the month that ended last.

Rules:
- It is for a young sandbox, in which no month was prepared because no book has an entry before its end.
- The shop is a merchant, and its entries are commands to its book. Book and writer have a clock in that
  month, so the journal is as it would be if the shop had traded then.
- `home` is the tables' owner: nobody else may open days of nonces that are over.
- No month is prepared meanwhile. Afterwards everything is as at any month's end: a worker adds the entries up
  and prepares the month, people close it, and a worker signs it and makes the invoices.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final, NamedTuple

from psycopg import AsyncConnection

from merchant_wallet.audit.records import Author
from merchant_wallet.base.cells import DEFAULT_CELL_ID
from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.currencies import KFB
from merchant_wallet.base.money import RATE_SCALE, UNITS_PER_COIN
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.commands import (
    Adjust,
    Command,
    MerchantToUser,
    Register,
    Submission,
    UserToMerchant,
)
from merchant_wallet.book.nonce_partitions import ensure_nonce_partitions
from merchant_wallet.book.submissions import Books
from merchant_wallet.merchants import acts
from merchant_wallet.merchants.issued_addresses import issue_address
from merchant_wallet.merchants.keys import Keyring
from merchant_wallet.reporting.finance import months
from merchant_wallet.reporting.finance.periods import month_of, previous_month

NAME: Final = "Made-up shop"
CUSTOMER: Final = "customer-1"
SIMULATE: Final = "month.simulate"
FEE_RATE_E8: Final = RATE_SCALE // 100
"""1 %."""
THERE_ARE_MONTHS: Final = "Months were prepared already. The next one can be closed after its end."

OpenWriter = Callable[[Callable[[], int]], AbstractAsyncContextManager[Books]]
"""Opens a writer with a clock of its own."""


class MonthRefused(Exception):
    """There is no month to play. The text says why."""


class PlayedMonth(NamedTuple):
    """The month, and the made-up shop that traded in it."""

    month: str
    merchant_id: int


async def play_month(
    home: AsyncConnection, keyring: Keyring, author: Author, open_writer: OpenWriter, *, secret_wait_ms: int
) -> PlayedMonth:
    """Book a month of a made-up shop. Raises MonthRefused, and what the book's writer raises."""
    try:
        async with months.hold_books(home, author.actor):
            if await months.list_months(home, limit=1):
                raise MonthRefused(THERE_ARE_MONTHS)
            return await _play(home, keyring, author, open_writer, secret_wait_ms)
    except months.NotReady as busy:
        raise MonthRefused(str(busy)) from None


async def _play(
    home: AsyncConnection, keyring: Keyring, author: Author, open_writer: OpenWriter, secret_wait_ms: int
) -> PlayedMonth:
    month = previous_month(month_of(author.at_ms - months.READY_AFTER_MS))
    at_ms = month.since_ms + 14 * DAY_MS
    seed = keyring.sandbox_seed()
    async with home.transaction():
        made = await acts.create(
            home,
            keyring,
            author,
            f"{NAME} {month.name}",
            KFB,
            seed=seed,
            cell_id=DEFAULT_CELL_ID,
            secret_wait_ms=secret_wait_ms,
            opened_ms=at_ms,
        )
        merchant = made.merchant
        subject = f"month {month.name}"
        await author.record(home, SIMULATE, subject, merchant.merchant_id, after={"month": month.name})
    await ensure_nonce_partitions(home, at_ms // DAY_MS)
    issued = await issue_address(home, merchant.merchant_id, merchant.account_xpubs)
    async with open_writer(lambda: at_ms) as books:
        for command in _list_commands(author.actor, Register(CUSTOMER, KFB, *issued)):
            outcome = await books.submit(merchant.merchant_id, Submission(command))
            if isinstance(outcome, Refusal):
                raise MonthRefused(f"The book refused: {outcome.msg}")
    return PlayedMonth(month.name, merchant.merchant_id)


def _list_commands(actor: str, register: Register) -> list[Command]:
    """A small trade: money for the shop, a customer who gets some of it and pays, with a fee."""
    return [
        Adjust(KFB, 1000 * UNITS_PER_COIN, "made up for a month's end in the sandbox", actor, None),
        register,
        MerchantToUser("played-1", register.evm_address, KFB, 500 * UNITS_PER_COIN),
        UserToMerchant("played-2", CUSTOMER, KFB, 200 * UNITS_PER_COIN, FEE_RATE_E8, False),
        UserToMerchant("played-3", CUSTOMER, KFB, 100 * UNITS_PER_COIN, FEE_RATE_E8, False),
    ]
