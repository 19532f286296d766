"""A book that is closed is in nobody's way: it is being moved, or it is the old copy of a moved one."""

import re
from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest
from psycopg import AsyncConnection
from tests.cells.test_borders import list_cell_queries, read_tables
from tests.crash.shop import ALICE, MASTER_KEY, Shop, open_shop, run

from merchant_wallet.base.cells import CellClosed, Databases
from merchant_wallet.base.db import connect
from merchant_wallet.book import frozen_orders
from merchant_wallet.book.verification import pages
from merchant_wallet.callbacks import outbox
from merchant_wallet.custody import records
from merchant_wallet.merchants import store
from merchant_wallet.merchants.id_ranges import allocate_range
from merchant_wallet.merchants.keys import Keyring
from merchant_wallet.postgres.places import CELL
from merchant_wallet.sub_users import controls, pins, profile, sessions
from merchant_wallet.withdrawals import payouts

Connection = AsyncConnection[Any]
PIN = "274961"

OF_BOOKS: Final = CELL - {"cell_state", "chain_position", "reference_state", "credited_transaction"}
"""The tables of a cell whose rows belong to a book."""
_WRITES: Final = re.compile(r"\b(insert into|update|delete from)\b")
_OF_ONE: Final = re.compile(r"merchant_id = (%\(merchant_id\)s|\$1::bigint)")

BY_KEY: Final = "who asks names the books, and knows that they are here"
LOCKED: Final = "the transaction has begun with a statement that sees only open books"
GIVEN: Final = "what was given to any copy must be given to nobody else"
SEES_ALL: Final[dict[str, str]] = {
    "audit/rollback/comparison.sql read_books": BY_KEY,
    "audit/rollback/signer_record.sql list_taken_up": "an order that was taken up in any copy was taken up",
    "audit/rollback/home_marks.sql list_copies": "any copy shows whether home was rolled back",
    "merchants/cells/home_restoration.sql list_addresses": GIVEN,
    "merchants/cells/home_restoration.sql list_books": GIVEN,
    "book/archive/removal.sql drop_names": LOCKED,
    "cli/doctor.sql list_archived_months": "both copies of a book have the same files",
    "book/archive/removal.sql keep_names": LOCKED,
    "book/archive/removal.sql move_border": LOCKED,
    "book/archive/removal.sql remove_entries": LOCKED,
    "book/archive/removal.sql remove_postings": LOCKED,
    "book/archive/removal.sql restore_entries": LOCKED,
    "book/archive/removal.sql restore_postings": LOCKED,
    "book/frozen_orders.sql freeze": LOCKED,
    "book/frozen_orders.sql thaw": LOCKED,
    "callbacks/outbox.sql peek_due": BY_KEY,
    "callbacks/outbox.sql insert_attempts": LOCKED,
    "callbacks/outbox.sql read_withdrawals": BY_KEY,
    "callbacks/outbox.sql read_deposits": BY_KEY,
    "merchants/cells/copies.sql read_digest": "a copy of a cell has its closed books, too",
    "merchants/cells/home_restoration.sql list_unapproved": "too many wait, which is harmless",
    "merchants/cells/home_restoration.sql sum_approvals": "too high a sum of one day is harmless",
    "merchants/cells/places.sql find_unknown": "copies are compared, whether open or closed",
    "merchants/cells/places.sql list_heads": "copies are compared, whether open or closed",
    "merchants/addresses.sql insert_addresses": "a copy gets the same addresses",
    "merchants/books.sql insert_accounts": "it changes nothing in a book that is there",
    "merchants/books.sql insert_book": "it changes nothing in a book that is there",
    "reporting/deposits.sql list_uncredited": BY_KEY,
    "reporting/merchants.sql read_books": BY_KEY,
    "reporting/finance/movements.sql sum_before_of_books": BY_KEY,
    "reporting/finance/movements.sql sum_of_books": BY_KEY,
    "reporting/search.sql read_deposits": BY_KEY,
    "reporting/search.sql read_entries": BY_KEY,
    "reporting/search.sql read_orders": BY_KEY,
    "reporting/rollup.sql add_entries": LOCKED,
    "reporting/rollup.sql add_movements": LOCKED,
    "reporting/rollup.sql move_cursors": LOCKED,
    "reporting/rollup.sql open_cursors": "it begins the transaction, and only adds a row of zeros",
    "sub_users/activity.sql read_balances": BY_KEY,
    "sub_users/controls.sql write_controls": LOCKED,
    "sub_users/pins.sql clear_pin": LOCKED,
    "sub_users/pins.sql count_attempt": LOCKED,
    "sub_users/pins.sql write_first_pin": LOCKED,
    "sub_users/profile.sql write_username": LOCKED,
    "sub_users/sessions.sql drop_expired": "it deletes what is of no use anywhere",
    "sub_users/sessions.sql end_oldest": LOCKED,
    "sub_users/sessions.sql find_live": BY_KEY,
    "sub_users/sessions.sql insert_session": LOCKED,
    "deposits/deposits.sql write_final": LOCKED,
    "deposits/deposits.sql move_settled": LOCKED,
    "deposits/deposits.sql note_settled": LOCKED,
    "deposits/deposits.sql hold_settled": LOCKED,
    "deposits/deposits.sql hold_elsewhere": LOCKED,
    "deposits/deposits.sql raise_dust": LOCKED,
}
"""Statements over books, or which write one, that see closed books too, and why that is right."""


def test_every_statement_over_books_leaves_closed_ones_out() -> None:
    found = set()
    for file, query in list_cell_queries():
        text = query.text.lower()
        if not read_tables(text) & OF_BOOKS or file == "book/book.sql":
            continue
        if not _WRITES.search(text) and _OF_ONE.search(text):
            continue
        if "is_open" not in text:
            found.add(f"{file} {query.name}")
    assert found == SEES_ALL.keys()


async def _sign_in(cell: Connection, shop: Shop) -> str:
    opened = (shop.merchant_id, shop.alice_id, 10)
    return await sessions.open_session(cell, *opened, frame=False, link_ms=5)


CHANGES: Final[dict[str, Callable[[Connection, Shop], Awaitable[object]]]] = {
    "controls": lambda cell, shop: controls.set_controls(cell, shop.merchant_id, ALICE, paused=True),
    "first PIN": lambda cell, shop: pins.set_first(
        cell, shop.merchant_id, shop.alice_id, PIN, 1, source="test"
    ),
    "PIN asked for": lambda cell, shop: pins.check(cell, shop.merchant_id, shop.alice_id, PIN, 1),
    "PIN removed": lambda cell, shop: pins.reset(cell, shop.merchant_id, ALICE, lambda: 1),
    "name": lambda cell, shop: profile.rename(cell, shop.merchant_id, shop.alice_id, "Alice"),
    "language": lambda cell, shop: profile.set_language(cell, shop.merchant_id, shop.alice_id, "en"),
    "sign-in": _sign_in,
    "sign-out": lambda cell, shop: sessions.end_session(cell, f"{shop.merchant_id}.{'x' * 43}"),
    "sign-out everywhere": lambda cell, shop: sessions.end_sessions(cell, shop.merchant_id, shop.alice_id),
    "freeze": lambda cell, shop: frozen_orders.freeze(cell, shop.merchant_id, [7], 1),
    "thaw": lambda cell, shop: frozen_orders.thaw(cell, shop.merchant_id, 7),
    "callbacks paused": lambda cell, shop: outbox.pause_merchant(cell, shop.merchant_id, "op", 1),
    "callbacks resumed": lambda cell, shop: outbox.resume_merchant(cell, shop.merchant_id),
    "callback sent again": lambda cell, shop: outbox.send_again(cell, shop.merchant_id, "evt_1_2"),
    "settings": lambda cell, shop: store.change_settings(
        cell, Keyring(MASTER_KEY), shop.merchant_id, {"rate-limit": "7"}
    ),
    "suspension": lambda cell, shop: store.suspend(cell, shop.merchant_id),
}
"""What writes to a book's rows outside its groups."""


@pytest.mark.parametrize("change", CHANGES)
def test_a_closed_book_refuses_every_change_and_stays_as_it_is(database_url: str, change: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        await shop.rows("update book set is_open = false")
        look = (
            "select (select row_to_json(b) from book b)::text, (select row_to_json(s) from sub_user s)::text,"
            " (select count(*) from wallet_session), (select count(*) from callback_pause),"
            " (select row_to_json(m) from merchant m)::text"
        )
        before = await shop.rows(look)
        async with await connect(database_url) as cell:
            with pytest.raises(CellClosed, match="is being moved, or has moved"):
                await CHANGES[change](cell, shop)
        assert await shop.rows(look) == before

    run(scenario())


def test_an_old_copy_counts_nowhere(database_url: str) -> None:
    async def scenario() -> None:
        shop, other = await open_shop(database_url), await open_shop(database_url, "Other")
        async with await connect(database_url) as cell:

            async def look() -> tuple[records.Balances, list[int]]:
                async with cell.transaction():
                    sums = await records.begin_snapshot(Databases(cell))
                rows = await cell.execute(pages.QUERIES["list_books"].text.encode())
                return sums, [merchant_id for (merchant_id,) in await rows.fetchall()]

            both, books = await look()
            assert books == [shop.merchant_id, other.merchant_id]
            await shop.rows("update book set is_open = false where merchant_id = %s", other.merchant_id)
            one, books = await look()
            assert books == [shop.merchant_id]
            assert {name: 2 * units for name, units in one.items()} == both
            assert not await allocate_range(cell, cell, other.merchant_id)

    run(scenario())


def test_a_payer_does_not_look_at_an_order_in_an_old_copy(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        claim = payouts.Claim(shop.merchant_id, 7, 1, 0)
        async with await connect(database_url) as cell:
            with pytest.raises(LookupError, match="is gone"):
                await payouts.read_order(cell, cell, claim)
            await shop.rows("update book set is_open = false")
            with pytest.raises(CellClosed, match="has moved"):
                await payouts.read_order(cell, cell, claim)

    run(scenario())
