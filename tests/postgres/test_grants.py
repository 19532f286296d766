"""What web and worker may do in the database: tried, and compared with the queries that they run."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from tests.conftest import SharedPostgres
from tests.recycled_databases import as_superuser
from tests.roles import as_web, as_worker

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.db import connect_sync
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.postgres import WEB_ROLE, WORKER_ROLE
from merchant_wallet.postgres.grants import FUNCTIONS, GRANTS, HOME_FUNCTIONS, GrantRefused, Side, grant
from merchant_wallet.postgres.migrate import migrate

pytestmark = pytest.mark.new_database

AS: Mapping[Side, Callable[[str], str]] = {Side.WEB: as_web, Side.WORKER: as_worker}
SOURCE = Path(__file__).parents[2] / "src" / "merchant_wallet"
FOR_EVER = (
    "entry",
    "posting",
    "withdrawal_step",
    "deposit_credit",
    "credited_transaction",
    "operator_wait",
    "audit_entry",
    "rate_history",
    "sweep_signed",
    "cancel_signed",
    "id_range",
    "issued_address",
    "treasury_movement",
    "reconciliation",
    "checkpoint_key",
    "rollback_evidence",
    "rollback_acceptance",
    "schema_migration",
)
"""Tables whose rows neither may change or delete."""


@pytest.fixture
def tables(database_url: str) -> set[str]:
    """Every table of the schema. The partitions of the nonce table count as one."""
    with connect_sync(database_url) as connection:
        rows = connection.execute("select tablename from pg_tables where schemaname = 'public'").fetchall()
    return {name for (name,) in rows if not re.fullmatch(r"nonce_\d+", name)}


def test_every_table_has_its_line(tables: set[str]) -> None:
    assert set(GRANTS) == tables


def _columns(url: str, table: str) -> list[str]:
    query = (
        "select attname from pg_attribute where attrelid = %s::regclass and attnum > 0 and not attisdropped"
        " and attgenerated = '' and attidentity <> 'a'"
    )
    with connect_sync(url) as connection:
        return [name for (name,) in connection.execute(query, (table,)).fetchall()]


def _is_refused(connection: psycopg.Connection, statement: sql.Composed) -> bool:
    """Whether the database refuses a statement for lack of privilege. It is rolled back."""
    try:
        with connection.transaction(force_rollback=True):
            connection.execute(statement)
    except psycopg.errors.InsufficientPrivilege:
        return True
    except psycopg.Error:
        return False
    return False


@pytest.mark.parametrize("side", Side)
def test_what_was_written_for_ever_can_be_neither_changed_nor_deleted(database_url: str, side: Side) -> None:
    with connect_sync(AS[side](database_url)) as connection:
        for table in FOR_EVER:
            name = sql.Identifier(table)
            assert _is_refused(connection, sql.SQL("delete from {}").format(name)), table
            for column in _columns(database_url, table):
                change = sql.SQL("update {} set {} = default").format(name, sql.Identifier(column))
                assert _is_refused(connection, change), f"{table}.{column}"


@pytest.mark.parametrize("side", Side)
def test_no_table_is_a_sides_own(database_url: str, tables: set[str], side: Side) -> None:
    grant(database_url)
    with connect_sync(AS[side](database_url)) as connection:
        for table in sorted(tables):
            name = sql.Identifier(table)
            for statement in (
                "truncate {} cascade",
                "drop table {} cascade",
                "alter table {} add column more int",
                "alter table {} disable trigger all",
                "create index on {} ((1))",
            ):
                assert _is_refused(connection, sql.SQL(statement).format(name)), f"{statement} {table}"
        for statement in (
            "create table made_here (n int)",
            "create function made_here() returns int language sql as 'select 1'",
            "create role made_here",
            "set role wallet",
            "select pg_read_file('/etc/passwd')",
        ):
            assert _is_refused(connection, sql.SQL(statement).format()), statement


@pytest.mark.parametrize(
    ("side", "table", "column"),
    [
        # An order's address and amount are fixed at its creation.
        (Side.WEB, "withdrawal", "address"),
        (Side.WORKER, "withdrawal", "address"),
        (Side.WORKER, "withdrawal", "amount"),
        # Signed bytes never change.
        (Side.WORKER, "payout_signed", "raw"),
        (Side.WEB, "payout_signed", "broadcast_ms"),
        (Side.WEB, "payout", "fence"),
        (Side.WEB, "payout", "signed_no"),
        (Side.WEB, "hot_wallet", "address"),
        # A sub-user keeps its addresses, and a secret its text.
        (Side.WEB, "sub_user", "evm_address"),
        (Side.WEB, "merchant_secret", "sealed"),
        (Side.WORKER, "merchant", "status"),
        (Side.WORKER, "sub_user", "pin_hash"),
    ],
)
def test_a_column_that_a_side_has_no_business_with_stays_as_it_is(
    database_url: str, side: Side, table: str, column: str
) -> None:
    change = sql.SQL("update {} set {} = default").format(sql.Identifier(table), sql.Identifier(column))
    with connect_sync(AS[side](database_url)) as connection:
        assert _is_refused(connection, change)


def test_the_worker_side_sees_nothing_that_somebody_signs_in_with(database_url: str) -> None:
    with connect_sync(as_worker(database_url)) as connection:
        for table in ("operator_session", "operator_recovery_code"):
            assert _is_refused(connection, sql.SQL("select from {}").format(sql.Identifier(table))), table
        for column in ("password_hash", "totp_sealed", "totp_last_step", "signed_in_ms"):
            assert _is_refused(
                connection, sql.SQL("select {} from operator").format(sql.Identifier(column))
            ), column


def test_the_web_side_drops_no_nonces_and_the_worker_side_no_recent_ones(database_url: str) -> None:
    today = now_ms() // DAY_MS
    with connect_sync(as_web(database_url)) as web, connect_sync(as_worker(database_url)) as worker:
        made = web.execute("select add_nonce_days(%s, %s)", (today - 5, today + 1)).fetchone()
        assert made == (list(range(today - 5, today + 2)),)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            web.execute("select drop_nonce_day(%s)", (today - 5,))
        for day in (today - 1, today, today + 1):
            with pytest.raises(psycopg.errors.InvalidParameterValue, match="still needed"):
                worker.execute("select drop_nonce_day(%s)", (day,))
        worker.execute("select drop_nonce_day(%s)", (today - 5,))
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="at most 32 days"):
            web.execute("select add_nonce_days(1, 33)")


@pytest.mark.parametrize("side", Side)
def test_a_side_makes_nonce_days_near_the_databases_own_day_alone(database_url: str, side: Side) -> None:
    today = now_ms() // DAY_MS
    with connect_sync(database_url) as owner, connect_sync(AS[side](database_url)) as connection:
        for first, last in ((-5, -5), (0, 1), (today - 30, today), (today, today + 31), (2**31 - 1,) * 2):
            with pytest.raises(psycopg.errors.InvalidParameterValue, match="compare the clocks"):
                connection.execute("select add_nonce_days(%s, %s)", (first, last))
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="at most 32 days"):
            connection.execute("select add_nonce_days(%s, %s)", (-(2**31), 2**31 - 1))
        # On a machine whose clock is wrong by a week, the partitions are those of that clock.
        for by_its_clock in (today - 7, today + 7):
            days = [by_its_clock - 1, by_its_clock, by_its_clock + 1]
            row = connection.execute("select add_nonce_days(%s, %s)", (days[0], days[-1])).fetchone()
            assert row == (days,)
        assert owner.execute("select add_nonce_days(1, 2)").fetchone() == ([1, 2],)


def test_a_function_that_a_side_made_does_not_run_with_the_owners_rights(database_url: str) -> None:
    """In PostgreSQL 14 and older, everybody may create functions in schema public."""
    today = now_ms() // DAY_MS
    with connect_sync(database_url) as owner:
        owner.execute("grant create on schema public to public")
        with connect_sync(as_web(database_url)) as web:
            web.execute(
                "create function public.format(text, int) returns text language plpgsql as $$"
                " begin execute 'create table taken (by_whom name)'; return pg_catalog.format($1, $2); end $$"
            )
            web.execute("select add_nonce_days(%s, %s)", (today + 2, today + 2))
            owner.execute("select add_nonce_days(%s, %s)", (today - 3, today - 3))
            with connect_sync(as_worker(database_url)) as worker:
                worker.execute("select drop_nonce_day(%s)", (today - 3,))
        assert owner.execute("select to_regclass('taken')").fetchone() == (None,)
        assert owner.execute("select to_regclass(%s)", (f"nonce_{today - 3}",)).fetchone() == (None,)


@pytest.mark.parametrize("who", ["public", WORKER_ROLE])
def test_a_role_that_may_create_in_schema_public_is_refused(database_url: str, who: str) -> None:
    with connect_sync(database_url) as owner:
        owner.execute(f"grant create on schema public to {who}".encode())
    with pytest.raises(GrantRefused, match=f"`revoke create on schema public from {who}`"):
        grant(database_url)
    with connect_sync(database_url) as owner:
        owner.execute(f"revoke create on schema public from public, {WORKER_ROLE}".encode())
    assert grant(database_url) == {Side.WEB: WEB_ROLE, Side.WORKER: WORKER_ROLE}


@pytest.fixture
def other_owner(postgres: SharedPostgres) -> Iterator[tuple[str, dict[Side, str]]]:
    """A database of another owner, for that one, and roles for its sides."""
    owner, web, worker = (f"{name}_{postgres.worker}" for name in ("shop", "shop_web", "shop_worker"))
    with psycopg.connect(as_superuser(postgres.url), autocommit=True) as server:
        for role in (owner, web, worker):
            server.execute(f"create role {role} login password 'shop'".encode())
        server.execute(f"create database {owner} owner {owner}".encode())
        try:
            url = make_conninfo(postgres.url_of(owner), user=owner, password="shop")
            yield url, {Side.WEB: web, Side.WORKER: worker}
        finally:
            server.execute(f"drop database {owner} with (force)".encode())
            server.execute(f"drop role {owner}, {web}, {worker}".encode())


def test_what_belongs_to_others_is_left_alone_and_what_they_must_grant_is_named(
    other_owner: tuple[str, dict[Side, str]],
) -> None:
    """Like the functions of an extension in schema public, on which the tables' owner has no rights."""
    url, roles = other_owner
    name = conninfo_to_dict(url)["dbname"]
    with psycopg.connect(as_superuser(url), autocommit=True) as superuser:
        superuser.execute("create function public.counted() returns int language sql as 'select 1'")
        superuser.execute("revoke all on function public.counted() from public")
        superuser.execute("create table public.figures (n int)")
        superuser.execute("create sequence public.numbers")
    migrate(url, lambda _: None)
    assert grant(url, roles) == roles
    assert grant(url) == roles

    wanted = (f"grant connect on database {name} to {{role}}", "grant usage on schema public to {role}")
    with psycopg.connect(as_superuser(url), autocommit=True) as superuser:
        superuser.execute(f"revoke connect on database {name} from public".encode())
        superuser.execute("alter schema public owner to postgres")
        superuser.execute(f"grant usage, create on schema public to {name}".encode())
        superuser.execute(f"revoke usage on schema public from public, {', '.join(roles.values())}".encode())
        statements = "; ".join(text.format(role=role) for role in sorted(roles.values()) for text in wanted)
        with pytest.raises(GrantRefused, match=f"`{statements}`"):
            grant(url)
        superuser.execute(statements.encode())
    assert grant(url) == roles


def test_what_is_the_owners_own_is_taken_from_a_side_that_must_not_have_it(database_url: str) -> None:
    with connect_sync(database_url) as owner:
        owner.execute("create function ours(int) returns int language sql as 'select 1'")
        owner.execute(f"grant execute on function ours(int) to {WEB_ROLE}".encode())
        owner.execute('create table "Ours, too" (n int)')
        owner.execute(f'grant insert (n) on "Ours, too" to {WEB_ROLE}'.encode())
        grant(database_url)
        row = owner.execute(
            "select has_column_privilege(%s, '\"Ours, too\"', 'n', 'insert'),"
            " (select proacl::text from pg_proc where proname = 'ours')",
            (WEB_ROLE,),
        ).fetchone()
    assert row is not None
    can_insert, may_execute = row
    assert can_insert is False
    assert WEB_ROLE not in may_execute


def test_functions_with_the_owners_rights_find_nothing_of_the_callers(database_url: str) -> None:
    query = "select proname, proconfig, prosecdef from pg_proc where pronamespace = 'public'::regnamespace"
    with connect_sync(database_url) as connection:
        found = {name: config for name, config, definer in connection.execute(query).fetchall() if definer}
    names = [name.partition("(")[0] for name in (*FUNCTIONS, *HOME_FUNCTIONS)]
    assert found == {name: ["search_path=pg_catalog, pg_temp"] for name in names}


@pytest.mark.parametrize(
    ("roles", "told"),
    [
        ({Side.WEB: "nobody_of_that_name"}, "There is no database role nobody_of_that_name"),
        ({Side.WEB: "wallet"}, "owner of the tables"),
        ({Side.WORKER: "postgres"}, "owner of the tables"),
        ({Side.WORKER: WEB_ROLE}, "need a role each"),
    ],
)
def test_a_role_that_can_be_no_sides_is_refused_and_nothing_changes(
    database_url: str, roles: dict[Side, str], told: str
) -> None:
    before = _privileges(database_url)
    with pytest.raises(GrantRefused, match=told):
        grant(database_url, roles)
    assert _privileges(database_url) == before


def _privileges(url: str) -> list[Any]:
    """Everybody's privileges on all tables and columns."""
    query = (
        "select relname, relacl::text from pg_class where relnamespace = 'public'::regnamespace"
        " union all select attrelid::regclass || '.' || attname, attacl::text from pg_attribute"
        " where attacl is not null order by 1, 2"
    )
    with connect_sync(url) as connection:
        return connection.execute(query).fetchall()


def test_roles_are_granted_again_what_was_taken_or_given_by_hand(database_url: str) -> None:
    before = _privileges(database_url)
    with connect_sync(database_url) as connection:
        connection.execute(f"grant all on all tables in schema public to {WEB_ROLE}".encode())
        connection.execute(f"grant update (hash) on entry to {WEB_ROLE}".encode())
        connection.execute(f"revoke all on entry from {WORKER_ROLE}".encode())
    assert _privileges(database_url) != before

    assert grant(database_url) == {Side.WEB: WEB_ROLE, Side.WORKER: WORKER_ROLE}

    assert _mask_order(_privileges(database_url)) == _mask_order(before)


def _mask_order(privileges: list[Any]) -> list[Any]:
    """The same with the holders of each list in order. The database keeps the order of granting."""
    return [(name, sorted((granted or "").strip("{}").split(","))) for name, granted in privileges]


def test_a_side_that_gets_another_role_leaves_the_old_one_with_nothing(database_url: str) -> None:
    # Any existing role will do, if it is not the other one's.
    other = "pg_signal_backend"

    assert grant(database_url, {Side.WEB: other}) == {Side.WEB: other, Side.WORKER: WORKER_ROLE}

    granted = str(_privileges(database_url))
    assert f"{other}=" in granted
    assert f"{WEB_ROLE}=" not in granted
