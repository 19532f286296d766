"""The service on a database whose administrator has changed every setting that a role may change."""

import re
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from tests.conftest import SharedPostgres
from tests.journeys.conftest import Platform, running
from tests.journeys.every_operation import call_each, open_account
from tests.waits import wait_until

from merchant_wallet.base.db import connect_sync
from merchant_wallet.base.session_settings import SETTINGS
from merchant_wallet.base.units import HOUR_MS
from merchant_wallet.postgres import WEB_ROLE, WORKER_ROLE
from merchant_wallet.postgres.grants import Side, grant
from merchant_wallet.postgres.migrate import migrate

pytestmark = pytest.mark.new_sessions

TEXTS = {
    "DateStyle": "German, DMY",
    "TimeZone": "Asia/Kathmandu",
    "client_encoding": "LATIN1",
    "createrole_self_grant": "set, inherit",
    "default_text_search_config": "pg_catalog.german",
    "restrict_nonsystem_relation_kind": "view, foreign-table",
    "search_path": '"$user", elsewhere',
    "timezone_abbreviations": "Australia",
}
"""Another legal value of each setting that is a text."""
NO_DEFAULTS = frozenset(
    {
        # Only of one transaction or session.
        "application_name",
        "role",
        "seed",
        "session_authorization",
        "transaction_deferrable",
        "transaction_isolation",
        "transaction_read_only",
        # A guard of the administrator, which is kept: nothing is written then.
        "default_transaction_read_only",
        # This installation has one legal value alone.
        "default_table_access_method",
        "default_tablespace",
        "default_toast_compression",
        "lc_monetary",
        "lc_numeric",
        "lc_time",
        "temp_tablespaces",
        "local_preload_libraries",
        "jit_provider",
    }
)
LIST_SETTINGS = """
select name, vartype, setting, enumvals, min_val, max_val, unit from pg_settings
 where context = 'user' and name not like '%%.%%' order by name
"""
TEST_VALUES = ("first", "last")


def choose(which: str, row: tuple[Any, ...]) -> str | None:
    """Another legal value than the present one: the lowest or the highest, the first or the last."""
    name, kind, present, words, low, high, unit = row
    if name in NO_DEFAULTS:
        return None
    if name.endswith("_timeout") and unit == "ms":
        # A short one would end what a busy machine does slowly. That none is in force is looked at.
        return str(HOUR_MS)
    if kind == "bool":
        return "off" if present == "on" else "on"
    if kind == "string":
        return TEXTS[name]
    choices = list(words) if kind == "enum" else [low, high]
    others = [value for value in choices if value != present]
    return str(others[0] if which == "first" else others[-1])


@pytest.fixture(params=TEST_VALUES)
def altered_url(request: pytest.FixtureRequest, postgres: SharedPostgres, empty_database_url: str) -> str:
    """An empty database with other defaults for every session, and schemas that are found before ours."""
    name = str(conninfo_to_dict(empty_database_url)["dbname"])
    with connect_sync(empty_database_url) as connection:
        rows = connection.execute(LIST_SETTINGS.encode()).fetchall()
        for schema in ("elsewhere", "wallet", WEB_ROLE, WORKER_ROLE):
            connection.execute(sql.SQL("create schema {}").format(sql.Identifier(schema)))
            grants = sql.SQL("grant all on schema {} to public").format(sql.Identifier(schema))
            connection.execute(grants)
    for row in rows:
        if (value := choose(request.param, row)) is not None:
            # A list is not one word in quotes.
            words = value if row[0] == "search_path" else f"'{value}'"
            postgres.execute(f'alter database "{name}" set "{row[0]}" = {words}')
    return empty_database_url


def _show(connection: psycopg.Connection[Any], name: str) -> str:
    (found,) = connection.execute("select current_setting(%s)", (name,)).fetchone() or ("",)
    return str(found)


def test_the_service_works_whatever_defaults_a_database_has(altered_url: str, tmp_path: Path) -> None:
    migrate(altered_url, lambda _: None)
    grant(altered_url, {Side.WEB: WEB_ROLE, Side.WORKER: WORKER_ROLE})
    with psycopg.connect(altered_url) as plain, connect_sync(altered_url) as ours:
        assert _show(plain, "bytea_output") == "escape"
        assert _show(plain, "default_transaction_isolation") != "read committed"
        for name, value in SETTINGS.items():
            shown = _show(ours, name)
            assert re.sub("^1min$", "60s", shown).lower() == value.lower(), name
        assert _show(ours, "search_path") == '"public"'
        count = "select count(*) from pg_tables where schemaname = 'public' and tablename = 'book'"
        assert ours.execute(count.encode()).fetchone() == (1,)
    with running(altered_url, tmp_path, working=True) as platform:
        shop = open_account(platform.open_merchant())
        answers = call_each(shop)
        assert {name for name, (code, _) in answers.items() if code != 200} == {
            "too large a debit",
            "unknown order",
        }
        assert answers["balances"][1]["usdtBalance"] == "4"
        wait_until(lambda: _is_paid(platform), "the order is paid")


def _is_paid(platform: Platform) -> bool:
    return platform.rows("select status from withdrawal") == [(2,)]
