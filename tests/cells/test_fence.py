"""A closed book and a closed cell take no commands, whatever a writer has cached."""

import asyncio

import pytest
from psycopg.errors import UniqueViolation
from tests.book.cached_writer import cache_again, open_cached_writer
from tests.crash.shop import COIN, Shop, open_shop, run
from tests.plans import explain_prepared, list_nodes

from merchant_wallet.base.db import connect_sync
from merchant_wallet.book.connection import SESSION
from merchant_wallet.book.errors import BookClosed, Unavailable
from merchant_wallet.book.outcomes import Transferred
from merchant_wallet.book.store import STATEMENTS
from merchant_wallet.book.writer import Writer

CLOSE_CELL = "update cell_state set is_open = false"
OPEN_CELL = "update cell_state set is_open = true"


async def _close_book(shop: Shop) -> None:
    await shop.rows(
        "update book set is_open = false, version = gen_random_uuid() where merchant_id = %s",
        shop.merchant_id,
    )


async def _open_book(shop: Shop) -> None:
    await shop.rows(
        "update book set is_open = true, version = gen_random_uuid() where merchant_id = %s",
        shop.merchant_id,
    )


@pytest.mark.parametrize("cached", [False, True])
def test_a_closed_book_takes_no_command_until_it_is_open_again(database_url: str, cached: bool) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        writer = await open_cached_writer(shop) if cached else Writer(database_url)
        orders = await shop.orders()
        await _close_book(shop)
        for answer in await shop.gather(writer, [shop.credit("a"), shop.credit("b")]):
            assert isinstance(answer, BookClosed)
        assert await shop.orders() == orders

        await _open_book(shop)
        assert isinstance(await shop.ask(writer, shop.credit("a")), Transferred)
        await writer.close()
        await shop.verify()

    run(scenario())


def test_a_closed_book_does_not_hold_up_the_others_of_its_group(database_url: str) -> None:
    async def scenario() -> None:
        shops = [await open_shop(database_url, name) for name in ("First", "Second", "Third")]
        writer = Writer(database_url)
        await _close_book(shops[1])
        sent = [shop.send(writer, shop.credit("a")) for shop in shops]
        first, second, third = await asyncio.gather(*sent, return_exceptions=True)
        assert isinstance(first, Transferred)
        assert isinstance(second, BookClosed)
        assert isinstance(third, Transferred)
        await writer.close()

    run(scenario())


@pytest.mark.parametrize("cached", [False, True])
def test_a_closed_cell_takes_no_command_until_it_is_open_again(database_url: str, cached: bool) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        writer = await open_cached_writer(shop) if cached else Writer(database_url)
        before = await shop.alice_units()
        await shop.rows(CLOSE_CELL)
        with pytest.raises(Unavailable):
            await shop.ask(writer, shop.credit("a"))
        assert await shop.alice_units() == before

        await shop.rows(OPEN_CELL)
        await cache_again(shop, writer)
        assert isinstance(await shop.ask(writer, shop.credit("b")), Transferred)
        assert await shop.alice_units() == before + COIN
        await writer.close()
        await shop.verify()

    run(scenario())


def test_a_cell_without_a_state_is_closed(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        await shop.rows("delete from cell_state")
        writer = Writer(database_url)
        with pytest.raises(Unavailable):
            await shop.ask(writer, shop.credit("a"))
        await writer.close()

    run(scenario())


def test_a_cell_has_one_state(database_url: str) -> None:
    with connect_sync(database_url) as connection, pytest.raises(UniqueViolation, match="cell_state_one_row"):
        connection.execute("insert into cell_state values (1, 1, true)")


@pytest.mark.parametrize("name", ["read_books", "lock_book", "write_books"])
def test_the_cells_state_is_read_once_for_each_statement(database_url: str, name: str) -> None:
    text = STATEMENTS[name.encode()].decode()
    with connect_sync(database_url) as connection:
        connection.execute(SESSION.encode())
        connection.execute(f"prepare looked_at as {text}".encode())
        plan = explain_prepared(connection, "looked_at", text)

    (state,) = [node for node in list_nodes(plan) if node.get("Relation Name") == "cell_state"]
    assert state["Parent Relationship"] == "InitPlan"
    assert state["Node Type"] in ("Index Scan", "Index Only Scan")
