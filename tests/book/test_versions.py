"""Whatever a rule may look at and the cache keeps changes only with the book's version, under its lock.

The list of statements is taken from all queries of the package. A new statement that changes such a table
fails here until it has a case that shows that the version moves.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any, Final
from uuid import uuid4

import pytest
from psycopg import AsyncConnection
from tests.book.accounting import withdraw
from tests.crash.shop import ALICE, COIN, MASTER_KEY, Shop, open_shop, run
from tests.query_files import SOURCE, read_queries
from tests.waits import eventually

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.currencies import KFB, USDT
from merchant_wallet.base.db import connect
from merchant_wallet.book import frozen_orders
from merchant_wallet.book.commands import Adjust, Command, Exchange, ReadBalances, ReadSubUser, Register
from merchant_wallet.book.state import Head
from merchant_wallet.book.sub_user import CONTROLS, SubUser
from merchant_wallet.book.writer import Writer
from merchant_wallet.exchange import rates
from merchant_wallet.merchants import store as merchants
from merchant_wallet.merchants.cells import book_fence
from merchant_wallet.merchants.id_ranges import allocate_range
from merchant_wallet.merchants.keys import Keyring
from merchant_wallet.reporting.finance import movements
from merchant_wallet.sub_users import pins, profile
from merchant_wallet.sub_users.controls import set_controls, set_controls_by_user

Connection = AsyncConnection[Any]
PIN = "274961"
KEYRING = Keyring(MASTER_KEY)

WATCHED: Final[dict[str, set[str] | None]] = {
    "book": None,
    "account": None,
    "entry": None,
    "posting": None,
    "nonce": None,
    "withdrawal": None,
    "withdrawal_step": None,
    "wallet_address": None,
    "deposit_credit": None,
    "merchant": None,
    "sub_user": {"username", "pin_hash", *CONTROLS},
}
"""The tables that batches are judged on and that no batch reads each time; of `sub_user` these columns.

Withdrawals are read each time, but their names are looked up by the claim alone.
"""

GROUP_STATEMENTS: Final = "book/book.sql"
"""Statements of groups, after the claim, which moves the version."""

NO_RULE: Final = {
    "callbacks/outbox.sql note_order": "no rule judges when a callback was delivered",
    "merchants/merchants.sql insert_merchant": "nobody has cached a book that is not there yet",
    "merchants/books.sql insert_book": "as above",
    "merchants/books.sql insert_accounts": "as above",
    "merchants/merchants.sql write_account_xpubs": "as above",
    "merchants/cells/carrying.sql insert_copy": "as above",
    "merchants/cells/carrying.sql write_copy": "the book has its new version in the same transaction",
    "merchants/cells/carrying.sql note_carried": "it says what the book was told",
    "merchants/merchants.sql take_address_index": "the index comes with the command",
    "merchants/cells/book_moves.sql set_cell": "it says where the book is, which is closed then",
    "merchants/cells/book_moves.sql raise_version": "no rule judges the steps of a move",
    "merchants/cells/book_fence.sql take_up_copy": "the book is closed here; opening gives it a new version",
    "merchants/cells/book_fence.sql lock_copy": "as above",
    "merchants/cells/book_fence.sql write_settings_version": "as above",
    "merchants/cells/book_placement.sql raise_version": "no rule judges the steps of a move",
    "merchants/cells/book_placement.sql begin_anew": "there is no book",
    "merchants/cells/book_placement.sql write_place": "it says where the book is; other copies are closed",
    "merchants/cells/lost_merchants.sql insert_merchant": "its settings are carried under a new version",
    "merchants/cells/home_restoration.sql raise_versions": "books have them, or are told by `carrying`",
    "merchants/cells/home_restoration.sql raise_indexes": "the index comes with the command",
    "book/archive/removal.sql remove_entries": "the name of an entry is kept, and gives the same outcome",
    "book/archive/removal.sql remove_postings": "as above",
    "book/archive/removal.sql restore_entries": "as above",
    "book/archive/removal.sql restore_postings": "as above",
    "audit/checkpointing/frozen_orders.sql forget_queued": "as below",
    "withdrawals/payouts.sql mark_queued": "no rule judges whether the payer's queue has an order",
    "sub_users/pins.sql change_pin": "a PIN stays a PIN: the rules know only whether there is one",
}
"""Statements that change nothing that a rule looks at, and why."""

_CHANGE: Final = re.compile(r"\b(insert\s+into|update|delete\s+from)\s+(?:only\s+)?([a-z_]+)\b(.*)", re.S)


def _changed_tables(text: str) -> set[str]:
    """The watched tables that a statement changes. `for no key update` and `do update` change none."""
    tables = set()
    bare = re.sub(r"for\s+(no\s+key\s+)?update|do\s+update", "", re.sub(r"--[^\n]*", "", text))
    while found := _CHANGE.search(bare):
        verb, table, bare = found.groups()
        if table not in WATCHED:
            continue
        columns = WATCHED[table]
        assigned = set(re.findall(r"\b(\w+)\s*=", re.split(r"\b(?:where|from|returning)\b", bare)[0]))
        if columns is None or not verb.startswith("update") or assigned & columns:
            tables.add(table)
    return tables


def _list_statements() -> dict[str, set[str]]:
    """The watched tables that each query of the package changes, by file and name."""
    changing = {}
    for path in sorted(SOURCE.rglob("*.sql")):
        if path.parent.name == "migrations":
            continue
        name = path.relative_to(SOURCE).as_posix()
        for query, statement in read_queries(path).items():
            if tables := _changed_tables(statement.text):
                changing[f"{name} {query}"] = tables
    return changing


async def _set_pin(connection: Connection, shop: Shop) -> None:
    await pins.set_first(connection, shop.merchant_id, shop.alice_id, PIN, now_ms(), source="test")


async def _reset_pin(connection: Connection, shop: Shop) -> None:
    await pins.reset(connection, shop.merchant_id, ALICE)


async def _rename(connection: Connection, shop: Shop) -> None:
    await profile.rename(connection, shop.merchant_id, shop.alice_id, "Alice")


def _control(name: str) -> Callable[[Connection, Shop], Awaitable[None]]:
    async def change(connection: Connection, shop: Shop) -> None:
        value = True if name == "paused" else 5
        await set_controls(connection, shop.merchant_id, ALICE, **{name: value})

    return change


async def _control_by_user(connection: Connection, shop: Shop) -> None:
    await shop.rows("update sub_user set pin_hash = 'x', pin_set_ms = 1")
    at = shop.merchant_id, shop.alice_id
    await set_controls_by_user(connection, *at, source="test", at_ms=1, limit_day_units=5)


async def _change_settings(connection: Connection, shop: Shop) -> None:
    await merchants.change_settings(connection, KEYRING, shop.merchant_id, {"rate-limit": "7"})


async def _suspend(connection: Connection, shop: Shop) -> None:
    await merchants.suspend(connection, shop.merchant_id)


async def _resume(connection: Connection, shop: Shop) -> None:
    await shop.rows("update merchant set status = 'suspended'")
    await merchants.resume(connection, shop.merchant_id)


async def _rotate(connection: Connection, shop: Shop) -> None:
    await merchants.rotate_secret(connection, KEYRING, shop.merchant_id, at_ms=1)


async def _freeze(connection: Connection, shop: Shop) -> None:
    await frozen_orders.freeze(connection, shop.merchant_id, [7], 1)


async def _thaw(connection: Connection, shop: Shop) -> None:
    await frozen_orders.thaw(connection, shop.merchant_id, 7)


async def _allocate(connection: Connection, shop: Shop) -> None:
    assert await allocate_range(connection, connection, shop.merchant_id)


async def _close_clock(connection: Connection, shop: Shop) -> None:
    values = {"merchant_ids": [shop.merchant_id], "until_ms": 5, "version": uuid4()}
    await connection.execute(movements.QUERIES["close_clocks"].text, values)


async def _close(connection: Connection, shop: Shop) -> None:
    assert await book_fence.close_copy(connection, shop.merchant_id, 1)


CASES: Final[dict[str, tuple[list[str], Callable[[Connection, Shop], Awaitable[None]]]]] = {
    **{
        name: (["sub_users/controls.sql lock_book", "sub_users/controls.sql write_controls"], _control(name))
        for name in CONTROLS
    },
    "by the sub-user": (["sub_users/controls.sql write_controls"], _control_by_user),
    "first PIN": (["sub_users/pins.sql write_first_pin"], _set_pin),
    "PIN reset": (["sub_users/pins.sql clear_pin"], _reset_pin),
    "name": (["sub_users/profile.sql write_username"], _rename),
    "settings": (
        [
            "merchants/merchants.sql raise_settings_version",
            "merchants/books.sql change_book",
            "merchants/merchants.sql write_settings",
        ],
        _change_settings,
    ),
    "suspended": (["merchants/books.sql change_book", "merchants/merchants.sql write_status"], _suspend),
    "resumed": (["merchants/books.sql change_book", "merchants/merchants.sql write_status"], _resume),
    "secret": (["merchants/books.sql change_book"], _rotate),
    "frozen": (["book/frozen_orders.sql outdate_book", "book/frozen_orders.sql freeze"], _freeze),
    "thawed": (["book/frozen_orders.sql outdate_book", "book/frozen_orders.sql thaw"], _thaw),
    "closed": (["merchants/cells/book_fence.sql set_open"], _close),
    "a month's end": (["reporting/finance/movements.sql close_clocks"], _close_clock),
    "next range": (
        ["merchants/id_ranges.sql write_next_range"],
        _allocate,
    ),
}
"""A change, and the statements that it runs."""


def test_every_statement_that_changes_what_rules_look_at_has_a_case_here() -> None:
    found = _list_statements()
    outside = {name for name in found if not name.startswith(f"{GROUP_STATEMENTS} ")}
    shown = {statement for statements, _ in CASES.values() for statement in statements}
    assert outside == shown | NO_RULE.keys()
    assert not shown & NO_RULE.keys()
    # The search finds what it must: the statements of groups.
    of_groups = {name.split()[1] for name in found if name.startswith(f"{GROUP_STATEMENTS} ")}
    assert of_groups >= {
        "write_books",
        "update_withdrawals",
    }


def test_every_statement_of_a_group_that_changes_these_tables_writes_for_claimed_books_alone() -> None:
    queries = read_queries(SOURCE / GROUP_STATEMENTS)
    # The first one claims them.
    exempt = {"write_books", "lock_book", "outdate_books"}
    for name, tables in _list_statements().items():
        file, query = name.split()
        if file == GROUP_STATEMENTS and query not in exempt:
            assert "version = $1::uuid" in queries[query].text, (query, tables)


def test_no_module_has_such_a_statement_of_its_own() -> None:
    for path in SOURCE.rglob("*.py"):
        for line in path.read_text().splitlines():
            if '"' in line and re.search(r"\b(insert into|update|delete from) [a-z_]+ (set|\(|where)", line):
                assert not _changed_tables(line), f"{path}: {line}"


def test_every_field_that_the_rules_see_is_in_a_watched_table() -> None:
    """A new field of a sub-user or of the head needs a thought here."""
    columns = WATCHED["sub_user"]
    assert columns is not None
    fixed = {"user_id", "ext_user_id", "currency", "evm_address", "tron_address"}
    counted = {"day", "day_debited"}
    assert set(SubUser.__struct_fields__) == columns - {"pin_hash"} | {"has_pin"} | fixed | counted
    in_the_book = {
        "last_ms",
        "range_no",
        "counter",
        "next_range",
        "entry_count",
        "head_hash",
        "settings_version",
    }
    assert set(Head._fields) == in_the_book | {"withdrawn_day", "withdrawn_units", "version"}


async def _version(shop: Shop) -> str:
    ((version,),) = await shop.rows("select version from book where merchant_id = %s", shop.merchant_id)
    return str(version)


@pytest.mark.parametrize("case", CASES)
def test_a_change_moves_the_version_and_waits_for_the_lock_before_it_writes(
    database_url: str, case: str
) -> None:
    async def scenario() -> None:
        shop, other = await open_shop(database_url), await open_shop(database_url, "Other")
        before, others = await _version(shop), await _version(other)
        async with await connect(database_url) as changing, await connect(database_url) as holder:
            ((pid,),) = await (await changing.execute("select pg_backend_pid()")).fetchall()
            async with holder.transaction():
                query = b"select from book where merchant_id = %s for no key update"
                await holder.execute(query, [shop.merchant_id])
                task = asyncio.create_task(_run(CASES[case][1], changing, shop))
                waits = f"select 1 from pg_stat_activity where pid = {pid} and wait_event_type = 'Lock'"
                await eventually(lambda: shop.rows(waits))
                # It waits for the book, and has begun to change no other table. Only a change of settings
                # has raised the merchant's own version before.
                locks = f"select relation::regclass::text from pg_locks where pid = {pid}"
                tables = await shop.rows(f"{locks} and mode = 'RowExclusiveLock' and relation is not null")
                first = {"merchant"} if "merchants/books.sql change_book" in CASES[case][0] else set()
                changed = {name for (name,) in tables if not name.startswith(("book_", "merchant_"))}
                assert changed == {"book"} | first
            await task
        assert await _version(shop) != before
        assert await _version(other) == others

    run(scenario())


async def _run(
    change: Callable[[Connection, Shop], Awaitable[None]], connection: Connection, shop: Shop
) -> None:
    await change(connection, shop)


COMMANDS: Final[dict[str, Callable[[Shop], Command]]] = {
    "a transfer": lambda shop: shop.credit("c1"),
    "a refused transfer": lambda shop: shop.debit("d1", 999 * COIN),
    "an exchange": lambda shop: Exchange("x1", KFB, USDT, 7 * COIN, None, None),
    "a withdrawal": lambda shop: withdraw("w1", "20"),
    "an adjustment": lambda shop: Adjust(KFB, COIN, "funds", "ann", None),
    "a registration": lambda shop: Register("bob", KFB, 9, b"E" * 20, b"T" * 20),
    "a look-up with a nonce": lambda shop: ReadBalances(),
    "a look-up of a sub-user": lambda shop: ReadSubUser(ALICE),
}


def test_every_group_gives_the_book_a_version_of_its_own(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        async with await connect(database_url) as connection:
            await rates.set_rate(connection, rates.KFB_TO_USDT, 14 * 10**6, at_ms=1)
        writer = Writer(database_url)
        await shop.ask(writer, Adjust(USDT, 100 * COIN, "funds", "ann", None))
        seen = [await _version(shop)]
        for make in COMMANDS.values():
            await shop.ask(writer, make(shop), f"nonce {len(seen)}")
            seen.append(await _version(shop))
        assert len(set(seen)) == len(COMMANDS) + 1
        marks = await shop.rows("select group_id from nonce where nonce like 'nonce%%'")
        assert {str(mark) for (mark,) in marks} == set(seen[1:])
        await writer.close()

    run(scenario())


def test_the_search_finds_changes_in_any_form() -> None:
    """Otherwise the list above could be complete only because the search is blind."""
    assert _changed_tables("UPDATE sub_user SET x = 1".lower()) == set()
    assert _changed_tables("update sub_user s set paused = true where a = b") == {"sub_user"}
    assert _changed_tables("update sub_user set language = 'x' where paused = true") == set()
    assert _changed_tables("with c as (insert into entry select 1) update account a set b = 1") == {
        "entry",
        "account",
    }
    assert _changed_tables("delete from  nonce") == {"nonce"}
    assert _changed_tables("select 1 from book for no key update") == set()
