"""A writer that has cached a book, and what other processes do meanwhile."""

from tests.crash.shop import COIN, Shop

from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.currencies import USDT
from merchant_wallet.base.db import connect
from merchant_wallet.book.commands import (
    Adjust,
    Command,
    ReadBalances,
)
from merchant_wallet.book.outcomes import (
    Balances,
    Outcome,
)
from merchant_wallet.book.writer import Writer
from merchant_wallet.exchange import rates

RATE_E8 = 14 * 10**6


async def open_cached_writer(shop: Shop) -> Writer:
    """A writer that has cached the shop's book. Its next batch would be judged on the cache."""
    book = Writer(shop.url)
    await shop.ask(book, shop.credit("cached", 10 * COIN))
    assert isinstance(await shop.ask(book, ReadBalances()), Balances)
    return book


async def is_next_optimistic(shop: Shop, book: Writer, command: Command, nonce: str | None = None) -> bool:
    """Ask, and tell whether the batch was judged on the cache without a read."""
    before = book.optimistic_count
    await shop.ask(book, command, nonce)
    return book.optimistic_count > before


async def cache_again(shop: Shop, book: Writer) -> None:
    """After conflicts some batches are read. Wait until they are over."""
    for _ in range(20):
        if await is_next_optimistic(shop, book, ReadBalances()):
            return
    raise AssertionError("read for ever")


def code_of(outcome: object) -> int:
    """200 for a success, else the refusal's code."""
    return outcome.code if isinstance(outcome, Refusal) else 200


async def ask_elsewhere(shop: Shop, *commands: Command) -> list[Outcome]:
    """Commands in another process: each must succeed."""
    other = Writer(shop.url)
    outcomes = [await shop.ask(other, command) for command in commands]
    await other.close()
    assert [code_of(outcome) for outcome in outcomes] == [200] * len(commands)
    return outcomes


async def give_usdt(shop: Shop, amount_units: int = 1000 * COIN) -> None:
    """An operator's credit to the merchant's balance, in another process."""
    await ask_elsewhere(shop, Adjust(USDT, amount_units, "funds", "ann", None))


async def set_kfb_rate(shop: Shop) -> None:
    """The platform's rate for an exchange of KFB for USDT."""
    async with await connect(shop.url) as connection:
        await rates.set_rate(connection, rates.KFB_TO_USDT, RATE_E8, at_ms=1)
