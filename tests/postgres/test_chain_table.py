"""The tables of chains and currencies and the database's lists of them say the same."""

import asyncio
from typing import Any

import psycopg
import pytest
from psycopg.errors import CheckViolation

from merchant_wallet.base.chains import CHAINS, CODES, FAMILIES, TABLE, TRON
from merchant_wallet.base.currencies import CURRENCIES, LEDGER_DECIMALS
from merchant_wallet.base.settings import SETTINGS
from merchant_wallet.book.chart import BELOW_ZERO_IDS, FIXED

BEFORE = 25
"""The migrations before the one that knows a third chain."""


async def ask(url: str, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        cursor = await connection.execute(statement.encode(), values)
        return await cursor.fetchall() if cursor.description else []


def test_the_database_lists_the_chains_and_the_currencies_of_the_tables(database_url: str) -> None:
    [(chains, currencies)] = asyncio.run(ask(database_url, "select chain_codes(), currency_codes()"))
    assert (tuple(chains), tuple(currencies)) == (CODES, CURRENCIES)


def test_every_column_that_names_a_chain_has_the_type_that_knows_them(database_url: str) -> None:
    statement = (
        "select table_name, domain_name from information_schema.columns"
        " where table_schema = 'public' and column_name = 'chain'"
    )
    found = asyncio.run(ask(database_url, statement))
    assert len(found) > 20
    assert {domain for _, domain in found} == {"chain_code"}


def test_the_planner_is_told_how_many_chains_there_are(database_url: str) -> None:
    statement = (
        "select attrelid::regclass::text, option from pg_attribute, unnest(attoptions) option"
        " where attname = 'chain' and starts_with(option, 'n_distinct=') order by 1"
    )
    told = f"n_distinct={len(CODES)}"
    assert asyncio.run(ask(database_url, statement)) == [("deposit", told), ("withdrawal", told)]


@pytest.mark.parametrize("kind", ["chain:XRP20", "chain:", "chain", "Chain:ERC20", "vault"])
def test_the_database_refuses_an_account_of_an_unknown_chain(database_url: str, kind: str) -> None:
    with pytest.raises(CheckViolation):
        asyncio.run(ask(database_url, "select %s::account_kind", kind))


@pytest.mark.parametrize("code", ["XRP20", "erc20", ""])
def test_the_database_refuses_an_unknown_chain(database_url: str, code: str) -> None:
    with pytest.raises(CheckViolation):
        asyncio.run(ask(database_url, "insert into chain_cursor values (%s, 1, 'a', 1, 'a', null, 1)", code))


@pytest.mark.parametrize("direction", ["USDT:USDT", "USDT:EUR", "USDT", "USDT:KFB:USDT", "USDT:KFB:", ":"])
def test_the_database_refuses_a_rate_between_other_currencies(database_url: str, direction: str) -> None:
    statement = "insert into rate_history (merchant_id, direction, paused, set_ms) values (0, %s, false, 1)"
    with pytest.raises(CheckViolation, match="rate_history_direction_check"):
        asyncio.run(ask(database_url, statement, direction))


def test_accounts_of_the_chart_have_the_floors_that_the_database_gives_them(database_url: str) -> None:
    statement = """
        with m as (insert into merchant (name, app_key, currency_mode, created_ms)
                   values ('a', 'a', 'KFB', 1) returning merchant_id),
             b as (insert into book (merchant_id, id_range, head_hash, last_ms)
                   select merchant_id, 1, '', 1 from m returning merchant_id)
        insert into account (merchant_id, account_id, kind, currency)
        select merchant_id, u.* from b, unnest(%s::bigint[], %s::text[], %s::text[]) u
        returning account_id, floor < 0"""
    ids, kinds, currencies = (list(column) for column in zip(*FIXED, strict=True))
    found = asyncio.run(ask(database_url, statement, ids, kinds, currencies))
    assert {account_id for account_id, is_below in found if is_below} == BELOW_ZERO_IDS
    assert len(found) == len(FIXED)


def test_each_row_has_its_own_code_and_account_and_its_block_of_settings() -> None:
    assert len(CHAINS) == len(TABLE)
    assert len({account.account_id for account in FIXED}) == len(FIXED)
    for chain in TABLE:
        parts = {name.partition("_")[2] for name in SETTINGS if name.startswith(f"{chain.code.lower()}_")}
        assert {"rpc", "token", "chain_id", "fee_cap", "coin_price", "explorer"} <= parts, chain.code
    assert {family.key_name for family in FAMILIES} <= set(CODES)


def test_a_token_has_the_ledgers_decimals_or_more_and_on_tron_just_those() -> None:
    for chain in TABLE:
        assert chain.base_units >= 1, chain.code
        assert chain.family is not TRON or chain.token_decimals == LEDGER_DECIMALS, chain.code
