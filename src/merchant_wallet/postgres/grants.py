"""What the web process and the worker may do in the database. Each has its own role.

`GRANTS` is the only list: each table, and what each of them may do with it. A third role owns the tables. It
migrates, and commands use it.

- Neither can change or delete what is permanent: entries, postings, steps of orders, the audit log, signed
  transactions.
- `update (column, ...)` means that the other columns stay as they were inserted.
- A new table needs a line here. Before that only the owner can read it. A test compares `GRANTS` with the
  queries of both.
- In an apart cell the same holds for the cell's tables. `MIRROR_GRANTS` is about its copies of home's tables.
- PostgreSQL needs no grant to check foreign keys and to fill identity columns.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, LiteralString

import psycopg
from psycopg import sql

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.db import HOME_SCHEMA, connect_sync, place
from merchant_wallet.postgres.places import CELL, OF_EACH_SCHEMA


class Side(StrEnum):
    """A part of the service with a database role of its own."""

    WEB = "web"
    WORKER = "worker"


class GrantRefused(Exception):
    """A role can't be used as the web's or worker's role. The text says which and why."""


@dataclass(frozen=True, slots=True)
class Grant:
    """The privileges of both on one table, in the form of GRANT. Empty means none."""

    web: LiteralString = ""
    worker: LiteralString = ""

    def of(self, side: Side) -> LiteralString:
        """One side's privileges."""
        return self.web if side is Side.WEB else self.worker


_READ: Final = "select"
_ADD: Final = "select, insert"
_CHANGE: Final = "select, insert, update"
_KEEP: Final = "select, insert, update, delete"

_BALANCE: Final = "select, insert, update (balance, day, day_debited)"
_ORDER_STEP: Final = (
    "update (status, step_no, approved_ms, approved_by, approved_eligible_ms, first_approved_ms,"
    " first_approved_by, first_eligible_ms, finished_ms, tx_hash"
)

GRANTS: Final[Mapping[str, Grant]] = {
    # The books.
    "book": Grant(_CHANGE, _CHANGE),
    "account": Grant(_BALANCE, _BALANCE),
    "entry": Grant(_ADD, _ADD),
    "posting": Grant(_ADD, _ADD),
    # Only the owner archives and restores.
    "archived_month": Grant(_READ, _READ),
    "archived_order": Grant(_READ, _READ),
    "nonce": Grant(_ADD, _ADD),
    "withdrawal": Grant(
        f"select, insert, {_ORDER_STEP}, frozen_ms)",
        f"select, {_ORDER_STEP}, notified_ms, is_queued, frozen_ms)",
    ),
    "withdrawal_step": Grant(_ADD, "insert"),
    "callback": Grant(
        "select, insert, update (state, retry_no, next_ms, claimed_by)",
        "select, insert, update (state, attempt_no, retry_no, next_ms, claimed_by, delivered_ms)",
    ),
    "id_range": Grant(_ADD, _ADD),
    "proposal": Grant(
        "select, insert, update (state, decided_by, decided_ms, decider_eligible_ms, outcome, entry_id)",
        "select, update (state, outcome, entry_id)",
    ),
    "cell_state": Grant(_READ, "select, update (version, is_open, home_no)"),
    # Merchants and sub-users.
    "merchant": Grant(_CHANGE, "select, update (carried_version, move_version)"),
    "brand_logo": Grant("select, insert"),
    "merchant_secret": Grant("select, insert, update (retired_ms, expires_ms)", _READ),
    "merchant_key": Grant("select, insert, update (name, operations, networks, revoked_ms)", _READ),
    "merchant_key_secret": Grant("select, insert, update (retired_ms, expires_ms)", _READ),
    "merchant_key_use": Grant("select, insert, update (used_ms)"),
    "merchant_address": Grant(_ADD, _ADD),
    "xpub_pool": Grant("select, update (merchant_id)", _READ),
    # Only the owner accepts a rollback. Two people choose in the console which copy of a book is kept.
    "kept_copy": Grant(_CHANGE),
    "lost_xpub": Grant(),
    "lost_range": Grant(_READ, _READ),
    "sub_user": Grant(
        "select, insert, update (username, language, paused, limit_debit_units, limit_day_units,"
        " pin_hash, pin_set_ms, pin_failures, pin_locked_until_ms, links_void_until_ms)",
        # Two people loosen a sub-user's limits, and a worker carries it out.
        "select, update (paused, limit_debit_units, limit_day_units)",
    ),
    "wallet_address": Grant(_ADD, _READ),
    "issued_address": Grant(_ADD, _ADD),
    "wallet_session": Grant(_KEEP, "select, delete"),
    "refused_request": Grant("select, insert, delete"),
    "request_log": Grant("select, insert, delete", "select, delete"),
    "request_usage": Grant("select, insert, update (requests)", "select, delete"),
    "request_minute": Grant("select, insert, update (requests)", "select, delete"),
    "rate": Grant(_CHANGE, _READ),
    "rate_history": Grant(_ADD, _READ),
    "reference_state": Grant(_CHANGE, _CHANGE),
    # People and what they did.
    # The worker that notifies knows who the people are. Their passwords and second factors it can't read.
    "operator": Grant(
        _CHANGE,
        "select (operator_id, name, role, merchant_id, status, totp_confirmed_ms, language, theme,"
        " created_ms)",
    ),
    "notification_contact": Grant(_CHANGE, _READ),
    "notification_choice": Grant("select, insert, delete", _READ),
    "escalation_step": Grant("select, insert, delete", _READ),
    "escalation_time": Grant("select, insert, delete", _READ),
    "notification": Grant(
        _ADD,
        "select, insert, delete,"
        " update (state, attempt_no, next_ms, claimed_until_ms, is_doubtful, ended_ms, answer)",
    ),
    "notification_told": Grant("", "select, insert, update (gone_ms), delete"),
    "operator_failure": Grant(_KEEP, "select, update, delete"),
    "operator_known_source": Grant(_KEEP),
    "operator_wait": Grant(_ADD, _READ),
    "staff_secret": Grant(_ADD, _READ),
    "approved_sum": Grant("select, insert, update (units), delete"),
    "failed_sign_in": Grant(
        "select, insert, update (failures, last_ms)", "select, update (audit_no), delete"
    ),
    "failed_sign_in_seen": Grant("select, insert, update (failures, seen_by, seen_ms)", "select, delete"),
    "operator_recovery_code": Grant("select, insert, update (used_ms), delete"),
    "operator_session": Grant(_KEEP),
    "audit_entry": Grant(_ADD, _ADD),
    "audit_head": Grant(
        "select, update (entry_count, head_hash, last_ms)", "select, update (entry_count, head_hash, last_ms)"
    ),
    # Payouts.
    "payout": Grant("select, update (frozen_cause, frozen_ms)", _CHANGE),
    "payout_reservation": Grant(_READ, "select, insert, update (ended_no), delete"),
    "wallet_nonce": Grant("", _CHANGE),
    "payout_signed": Grant(_READ, "select, insert, update (broadcast_ms)"),
    "payout_stop": Grant("select, insert, delete", "select, insert, delete"),
    "cancel_signed": Grant("", _ADD),
    "hot_wallet": Grant(
        "select, update (frozen_cause, frozen_ms, next_nonce, funds, funds_ended_payouts, checked_ms)",
        _CHANGE,
    ),
    "sandbox_transfer": Grant("select, update (final_ms, verdict)", _ADD),
    "sandbox_refund": Grant(_CHANGE, _READ),
    # Deposits and sweeps.
    "chain_block": Grant("", _KEEP),
    "chain_cursor": Grant(_READ, _CHANGE),
    "chain_transfer": Grant("", _CHANGE),
    "chain_rewind": Grant("", _ADD),
    "chain_position": Grant("", _CHANGE),
    "deposit": Grant(_READ, _CHANGE),
    "deposit_credit": Grant(_READ, _ADD),
    "credited_transaction": Grant(_READ, _ADD),
    "sandbox_deposit": Grant(_ADD, _READ),
    "sandbox_unconfirmed": Grant(_KEEP, _READ),
    "sweep": Grant(_READ, _CHANGE),
    "sweep_signed": Grant(_READ, _ADD),
    "rescue": Grant(
        "select, insert, update (obstacle, cause, ended_ms, ended_by, ended_by_ms)",
        "select, update (arrived, obstacle, cause, ended_ms)",
    ),
    # Cold money. People decide on the web side, also about bytes that were signed elsewhere.
    "cold_wallet": Grant(
        "select, insert, update (retired_ms)",
        "select, update (opening, opening_block, balance, balance_block, balance_ms)",
    ),
    "cold_limit": Grant("select, insert, update", "select, update (outside_ms)"),
    "cold_transfer": Grant(
        "select, insert, update (version, step, tx_hash, drop_asked_by, obstacle)",
        "select, update (version, claimed_until_ms, step, nonce, reserved_ms, ended_no, unsigned,"
        " unsigned_at_block, unsigned_until_ms, tx_hash, drop_asked_by, obstacle, cause, ended_ms)",
    ),
    "cold_signed": Grant("insert", _ADD),
    # Screening: workers ask, the web side decides.
    "screening": Grant(
        "select, update (round_no, state, reasons, facts, merchant_id, address, amount, changed_ms,"
        " cleared_ms, decided_by, decided_ms, proposal_no, applied_ms)",
        _CHANGE,
    ),
    "screening_question": Grant(_READ, _CHANGE),
    # Callbacks.
    "callback_attempt": Grant(
        _READ, "select, insert, update (address, http_status, error, answer, latency_ms)"
    ),
    "callback_pause": Grant("select, insert, delete", _READ),
    "test_event": Grant(
        "select, insert, delete",
        "select, update (claimed_ms, ended_ms, address, http_status, error, answer, latency_ms)",
    ),
    "sandbox_callback": Grant(_READ, "select, insert, delete"),
    # What tests in a sandbox asked for. A live service has no row.
    "sandbox_count": Grant(_KEEP, _KEEP),
    # Reconciliation and figures.
    "custody_address": Grant(_READ, _ADD),
    "custody_cursor": Grant("", _CHANGE),
    "custody_survey": Grant("", _CHANGE),
    "custody_movement": Grant("", "select, insert, update (explained_ms)"),
    "custody_remainder": Grant("", "select, insert"),
    "reconciliation": Grant(_READ, _ADD),
    "treasury_movement": Grant(_ADD, _READ),
    "daily_figure": Grant(_READ, _CHANGE),
    "daily_movement": Grant(_READ, _CHANGE),
    "figure_cursor": Grant(_READ, _CHANGE),
    "network_fee": Grant(_READ, _ADD),
    "network_fee_cursor": Grant("", _CHANGE),
    # Closed months. The web side notes what two people have decided; a worker prepares and signs.
    "month_report": Grant(
        "select, update (accepted_ms, proposal_no, lone_actor, restate_ms, restate_reason)", _CHANGE
    ),
    "month_book": Grant(_READ, _KEEP),
    "superseded_month": Grant(_READ, _ADD),
    "superseded_book": Grant(_READ, _ADD),
    "invoice": Grant(_READ, _ADD),
    "rollback_evidence": Grant(_READ, _ADD),
    "rollback_acceptance": Grant("", _READ),
    "checkpoint_key": Grant(_READ, _ADD),
    # Cells.
    "cell": Grant(_READ, "select, update (version, compared_ms, marked_no, unfollowed_cause, unfollowed_ms)"),
    "job": Grant("select, insert, delete", "select, insert, delete"),
    "cell_move": Grant(_READ, "select, update (state, changed_ms)"),
    "merchant_move": Grant(_READ, "select, update (state, changed_ms, give_up_ms)"),
    # Traces: the web side keeps them, the workers delete old ones.
    "order_trace": Grant("select, insert", "select, delete"),
    # The programs that run, what they report, and what people ask them to do.
    "instance": Grant(_KEEP, _KEEP),
    "worker_report": Grant(_READ, _KEEP),
    "asked_act": Grant(
        "select, insert, update (state, ended_ms)",
        "select, update (state, fence, worker, begun_ms, claimed_until_ms, expires_ms, progress, result,"
        " cause, ended_ms)",
    ),
    # The schema itself.
    "schema_migration": Grant(_READ, _READ),
    "side_role": Grant(),
}
"""Each table of home's schema, and what web and worker may do with it."""

MIRROR_GRANTS: Final[Mapping[str, Grant]] = {
    # Both carry a merchant's new settings to its cell, and rates to all cells.
    "merchant": Grant(_CHANGE, _CHANGE),
    "rate": Grant(_KEEP, _KEEP),
    "rollback_evidence": Grant(_READ, _KEEP),
}
"""The copies of home's tables in an apart cell."""

FUNCTIONS: Final[Mapping[LiteralString, tuple[Side, ...]]] = {
    "add_nonce_days(int, int)": (Side.WEB, Side.WORKER),
    "drop_nonce_day(int)": (Side.WORKER,),
}
"""The functions that run with the owner's rights, in each schema, and who may call them."""

HOME_FUNCTIONS: Final[Mapping[LiteralString, tuple[Side, ...]]] = {
    "follow_cell(int, bigint, text)": (Side.WORKER,),
}
"""The same, of home's schema alone."""

# Whether a role's own rights would make grants pointless, and who gives it the right to create objects.
_ROLE = """
select r.rolsuper or r.rolcreaterole or r.rolbypassrls
    or pg_has_role(r.oid, (select relowner from pg_class where oid = 'entry'::regclass), 'member'),
       (select string_agg(distinct coalesce(nullif(x.grantee, 0)::regrole::text, 'public'), ', ')
          from pg_namespace n, aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) x
         where n.nspname = %(schema)s::text and x.privilege_type = 'CREATE'
           and (x.grantee = 0 or pg_has_role(r.oid, x.grantee, 'member')))
  from pg_roles r where r.rolname = %(role)s"""
# What a role that signs in still lacks, as statements. The tables' owner may own neither the database nor the
# schema; then PostgreSQL only warns that nothing was granted.
_LACKS: Final = """
select rolname, lacking
  from (select r.rolname, concat_ws('; ',
               case when not has_database_privilege(r.oid, current_database(), 'connect')
                    then format('grant connect on database %%I to %%I', current_database(), rolname) end,
               case when not has_schema_privilege(r.oid, %(schema)s::text::regnamespace, 'usage')
                    then format('grant usage on schema %%I to %%I', %(schema)s::text, rolname) end) as lacking
          from pg_roles r where r.rolname = any(%(roles)s::text[]) and r.rolcanlogin) found
 where lacking <> '' order by rolname"""
# Only the owner's own objects. It may lack rights on those of an extension, and then REVOKE would fail.
_LIST_REVOKES: Final = """
select format('revoke all on %%s %%s from %%I', o.kind, o.name, %(role)s::text)
  from (select case c.relkind when 'S' then 'sequence' else 'table' end as kind,
               c.oid::regclass::text as name, c.relowner as owner
          from pg_class c
         where c.relnamespace = %(schema)s::text::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S')
        union all
        select 'routine', p.oid::regprocedure::text, p.proowner
          from pg_proc p
         where p.pronamespace = %(schema)s::text::regnamespace and p.prokind in ('f', 'p', 'w')) o
 where pg_has_role(o.owner, 'usage') order by o.name"""
_NOTE = """
insert into side_role (side, role_name, granted_ms) values (%s, %s, %s)
on conflict (side) do update set role_name = excluded.role_name, granted_ms = excluded.granted_ms"""


def list_grants(schema: str = HOME_SCHEMA) -> Mapping[str, Grant]:
    """The tables of a schema, and what web and worker may do with each."""
    if schema == HOME_SCHEMA:
        return GRANTS
    return {table: GRANTS[table] for table in sorted(CELL | OF_EACH_SCHEMA)} | dict(MIRROR_GRANTS)


def grant(url: str, roles: Mapping[Side, str] | None = None, schema: str = HOME_SCHEMA) -> dict[Side, str]:
    """Give each role what `list_grants` says, and revoke everything else in the schema. Returns the roles.

    `url` is the owner's. Without `roles`, the ones of the last time are used. It is one transaction, so a
    running process never lacks a right. Raises GrantRefused, psycopg.Error.
    """
    with connect_sync(place(url, None, schema)) as connection, connection.transaction():
        connection.execute("select pg_advisory_xact_lock(hashtext('side_role'))")
        before = _read_roles(connection)
        chosen = {**before, **(roles or {})}
        if len(set(chosen.values())) < len(chosen):
            raise GrantRefused("The web side and the worker side need a role each.")
        for role in sorted(set(before.values()) - set(chosen.values())):
            if _exists(connection, role):
                _revoke(connection, role, schema)
        for side, role in chosen.items():
            _check_role(connection, role, schema)
            _revoke(connection, role, schema)
            connection.execute(_join(_list_statements(side, sql.Identifier(role), schema)))
            connection.execute(_NOTE, (side.value, role, now_ms()))
        _require_entry(connection, list(chosen.values()), schema)
        return chosen


def _read_roles(connection: psycopg.Connection) -> dict[Side, str]:
    rows = connection.execute("select side, role_name from side_role").fetchall()
    return {Side(side): role for side, role in rows}


def _exists(connection: psycopg.Connection, role: str) -> bool:
    return connection.execute("select from pg_roles where rolname = %s", (role,)).fetchone() is not None


def _check_role(connection: psycopg.Connection, role: str, schema: str) -> None:
    row = connection.execute(_ROLE, {"role": role, "schema": schema}).fetchone()
    if row is None:
        raise GrantRefused(f"There is no database role {role}: `create role {role} login password '...'`.")
    if row[0]:
        raise GrantRefused(
            f"The database role {role} is the owner of the tables, a member of the owner, or may do what the"
            " owner may: a side needs a plain role of its own."
        )
    if row[1]:
        # Objects that the role creates there could replace PostgreSQL's functions in the owner's own
        # statements.
        raise GrantRefused(
            f"The database role {role} may create objects in schema {schema}: as the database's owner type"
            f" `revoke create on schema {schema} from {row[1]}`."
        )


def _require_entry(connection: psycopg.Connection, roles: list[str], schema: str) -> None:
    """Refuse roles that could not sign in here, or not see the tables, after everything was granted."""
    rows = connection.execute(_LACKS, {"roles": roles, "schema": schema}).fetchall()
    if rows:
        named = " and ".join(role for role, _ in rows)
        raise GrantRefused(
            f"{named} could not reach the tables: as the database's owner type"
            f" `{'; '.join(lacking for _, lacking in rows)}`, and run `merchant-wallet migrate` again with"
            " the same roles."
        )


def _revoke(connection: psycopg.Connection, role: str, schema: str) -> None:
    named = {"role": role, "schema": schema}
    statements = [text for (text,) in connection.execute(_LIST_REVOKES, named).fetchall()]
    connection.execute("; ".join(statements).encode())


def _list_statements(side: Side, role: sql.Identifier, schema: str) -> Iterator[sql.Composed]:
    yield sql.SQL("grant usage on schema {} to {}").format(sql.Identifier(schema), role)
    for table, granted in list_grants(schema).items():
        if granted.of(side):
            privileges = sql.SQL(granted.of(side))
            yield sql.SQL("grant {} on {} to {}").format(privileges, sql.Identifier(table), role)
    functions = {**FUNCTIONS, **(HOME_FUNCTIONS if schema == HOME_SCHEMA else {})}
    for function, sides in functions.items():
        if side in sides:
            yield sql.SQL("grant execute on function {} to {}").format(sql.SQL(function), role)


def _join(statements: Iterable[sql.Composed]) -> sql.Composed:
    """Join the statements, so that all of them need one round trip."""
    return sql.SQL("; ").join(statements)
