"""What a worker of the old cell had begun before a book moved goes on in the new one, once."""

from functools import partial
from typing import Any

import pytest
from tests.book.accounting import order_of, withdraw
from tests.cells.book_moved import MovableBook, open_book, stop_mover
from tests.cells.killable_book_mover import SWITCH_POINTS
from tests.cells.layout import Layout
from tests.crash.shop import COIN, run
from tests.deposits.conftest import FakeChainReader

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.currencies import USDT
from merchant_wallet.base.db import connect
from merchant_wallet.book.commands import Adjust, Cancel
from merchant_wallet.book.errors import BookClosed
from merchant_wallet.book.outcomes import NONCE_USED
from merchant_wallet.callbacks import outbox
from merchant_wallet.callbacks.answers import Answer
from merchant_wallet.callbacks.outbox import Key
from merchant_wallet.deposits import chain_store, intake
from merchant_wallet.deposits.chain_store import Received
from merchant_wallet.deposits.crediting import CreditingWorker
from merchant_wallet.exchange.rates import USDT_TO_KFB, set_rate
from merchant_wallet.merchants.cells.mirroring import mirror

CHAIN = "ERC20"
CLOSED = SWITCH_POINTS[5]
"""The book is closed in both cells."""


async def read_final(book: MovableBook, chain: FakeChainReader) -> None:
    """Home reads the newest block as final."""
    async with await connect(book.layout.url) as home:
        await chain_store.begin_cursor(home, CHAIN, chain.blocks[0], 1)
        cursor = await chain_store.read_cursor(home, CHAIN)
        assert cursor is not None
        last = chain.blocks[-1]
        received = [Received(book.merchant_id, each) for each in chain.logs[last.hash]]
        await chain_store.move_final(home, CHAIN, cursor, last, received, 1)


async def take_in(book: MovableBook) -> list[int]:
    """Both cells take in what home offers them. Returns how many deposits each has."""
    counts = []
    async with await connect(book.layout.url) as home, await connect(book.layout.far_url) as far:
        for cell_id, cell in enumerate((home, far)):
            where = {"cell_id": cell_id, "minimum_units": COIN, "now_ms": now_ms()}
            while await intake.take_in(home, cell, CHAIN, **where):
                pass
            row = await (await cell.execute("select count(*) from deposit")).fetchone()
            assert row is not None
            counts.append(row[0])
    return counts


async def credit_all(book: MovableBook) -> list[int]:
    """The crediting workers of both cells credit what is due. Returns how many each has credited."""
    urls = (book.layout.url, book.layout.far_url)
    counts = []
    async with book.layout.open_writers() as writers:
        for url in urls:
            worker = CreditingWorker(partial(connect, urls[0]), partial(connect, url), writers)
            try:
                counts.append(await worker.credit_due())
            finally:
                await worker.close()
    return counts


def test_a_deposit_that_arrives_in_the_switch_is_credited_once(layout: Layout) -> None:
    async def scenario() -> None:
        book, chain = await open_book(layout), FakeChainReader()
        async with await connect(layout.url) as home, await connect(layout.far_url) as far:
            await set_rate(home, USDT_TO_KFB, 7_00000000, at_ms=now_ms())
            await mirror(home, far)
        await read_final(book, chain)
        chain.mine((book.shop.alice_address, 3 * COIN))
        await read_final(book, chain)
        assert await take_in(book) == [1, 0]
        before = await book.shop.alice_units()
        await stop_mover(book, CLOSED)
        chain.mine((book.shop.alice_address, 5 * COIN))
        await read_final(book, chain)
        # The first deposit is due, and its book is closed. The second one waits in home.
        assert await credit_all(book) == [0, 0]
        assert await take_in(book) == [1, 1]
        await book.move()
        assert await take_in(book) == [1, 2]
        assert await credit_all(book) == [0, 2]
        assert await credit_all(book) == [0, 0]
        assert await book.shop.alice_units() == before + 7 * 8 * COIN
        await book.verify()

    run(scenario())


def test_a_callback_that_was_sent_from_the_old_cell_is_sent_again_from_the_new_one(layout: Layout) -> None:
    async def claim(url: str, at_ms: int) -> list[Any]:
        async with await connect(url) as cell:
            rows = await (await cell.execute("select merchant_id, order_id, status from callback")).fetchall()
            keys = [Key(*row) for row in rows]
            return await outbox.claim(cell, keys, claimed_by="test", now_ms=at_ms, until_ms=at_ms + 30_000)

    async def record(url: str, claimed: Any) -> tuple[Any, ...] | None:
        async with await connect(url) as cell:
            await outbox.record_success(cell, claimed, Answer(5, "203.0.113.7", 200, b"SUCCESS"), now_ms())
            return await (await cell.execute("select state, attempt_no from callback")).fetchone()

    async def scenario() -> None:
        book, at_ms = await open_book(layout), now_ms()
        async with layout.open_writers() as writers:
            for command in (Adjust(USDT, 1000 * COIN, "more", "test", None), withdraw()):
                answer = await book.shop.ask(writers, command)  # type: ignore[arg-type]  # the same interface
            await book.shop.ask(writers, Cancel(order_of(answer).order_id, "cli:test"))  # type: ignore[arg-type]
        [sent] = await claim(layout.url, at_ms)
        assert sent.attempt_no == 1
        await book.move()
        # The answer comes after the move. The old copy stays as it is, and the merchant gets the event again.
        assert await record(layout.url, sent) == ("due", 1)
        assert await claim(layout.far_url, at_ms + 1_000) == []
        assert await claim(layout.url, at_ms + 60_000) == []
        [again] = await claim(layout.far_url, at_ms + 60_000)
        assert (again.key, again.attempt_no) == (sent.key, 2)
        assert await record(layout.far_url, again) == ("delivered", 2)
        await book.verify()

    run(scenario())


def test_a_nonce_of_the_old_cell_is_refused_in_the_new_one(layout: Layout) -> None:
    async def scenario() -> None:
        book = await open_book(layout)
        async with layout.open_writers() as writers:
            await book.shop.ask(writers, book.shop.credit("one"), "the nonce")  # type: ignore[arg-type]
            await book.move()
            # The writers learn from the refusal where the book is.
            with pytest.raises(BookClosed):
                await book.shop.ask(writers, book.shop.credit("two"), "the nonce")  # type: ignore[arg-type]
            again = await book.shop.ask(writers, book.shop.credit("two"), "the nonce")  # type: ignore[arg-type]
        assert again == NONCE_USED
        assert set(await book.shop.orders()) == {"one"}

    run(scenario())
