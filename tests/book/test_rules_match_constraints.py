"""Rules and database constraints agree: steps, floors, kinds."""

import ast
from pathlib import Path

import pytest
from psycopg import errors
from tests.book.fake_writer import MERCHANT_ID, FakeWriter, write_history

from merchant_wallet.base.currencies import KFB, USDT
from merchant_wallet.base.money import MAX_BALANCE_UNITS
from merchant_wallet.book import rules
from merchant_wallet.book.chart import BELOW_ZERO_IDS, FIXED, MAY_GO_BELOW_ZERO, SUBUSER
from merchant_wallet.book.rules.withdrawals import CALLED_BACK, LEGAL_STEPS

STATUSES = range(7)
ORDER_ID = 5
WALLET_ID = 4242


def is_refused(fake_writer: FakeWriter, table: str, **row: object) -> bool:
    """Whether a constraint refuses a row. An accepted row is rolled back."""
    try:
        with fake_writer.conn.transaction(force_rollback=True):
            fake_writer.insert(table, **row)
    except (errors.CheckViolation, errors.NotNullViolation):
        return True
    return False


def write_step(fake_writer: FakeWriter, number: int, before: int | None, after: int) -> bool:
    """Whether the database accepts a step of an order."""
    row = {"order_id": ORDER_ID, "step_no": number, "from_status": before, "to_status": after}
    return not is_refused(fake_writer, "withdrawal_step", **row, at_ms=1, cause="a test")


def test_the_database_takes_the_legal_steps_and_no_other(fake_writer: FakeWriter) -> None:
    # Without the keys, which require the step before, only the check decides.
    fake_writer.run(
        "alter table withdrawal drop constraint withdrawal_merchant_id_order_id_step_no_status_fkey"
    )
    found = fake_writer.run(
        "select conname from pg_constraint where conrelid = 'withdrawal_step'::regclass and contype = 'f'"
    )
    for (name,) in found.fetchall():
        fake_writer.run(f"alter table withdrawal_step drop constraint {name}")
    pairs = [(before, after) for before in (None, *STATUSES) for after in STATUSES]
    assert {pair for pair in pairs if write_step(fake_writer, 0, *pair)} == {(None, 0)}
    taken = {pair for pair in pairs if write_step(fake_writer, 1, *pair)}
    # Written out, so that both lists can't be wrong in the same way.
    assert taken == {(0, 1), (0, 4), (0, 5), (1, 2), (1, 3), (3, 6)}
    assert taken == LEGAL_STEPS


def test_the_database_keeps_callbacks_for_the_statuses_that_are_told(fake_writer: FakeWriter) -> None:
    found = fake_writer.run(
        "select conname from pg_constraint where conrelid = 'callback'::regclass and contype = 'f'"
    )
    for (name,) in found.fetchall():
        fake_writer.run(f"alter table callback drop constraint {name}")
    taken = {
        status
        for status in STATUSES
        if not is_refused(
            fake_writer, "callback", order_id=ORDER_ID, status=status, event_id="e", created_ms=1
        )
    }
    assert taken == CALLED_BACK


@pytest.mark.parametrize("kind", sorted({account.kind for account in FIXED} | {SUBUSER}))
@pytest.mark.parametrize("currency", [USDT, KFB])
def test_the_database_has_the_floors_of_the_chart(fake_writer: FakeWriter, kind: str, currency: str) -> None:
    def takes(balance: int) -> bool:
        row = {"account_id": WALLET_ID, "kind": kind, "currency": currency, "balance": balance}
        return not is_refused(fake_writer, "account", **row)

    assert takes(0)
    assert takes(MAX_BALANCE_UNITS)
    assert takes(-1) is (kind in MAY_GO_BELOW_ZERO)
    assert takes(-MAX_BALANCE_UNITS) is (kind in MAY_GO_BELOW_ZERO)
    assert not takes(-MAX_BALANCE_UNITS - 1)


def test_a_book_is_opened_with_the_accounts_of_the_chart(fake_writer: FakeWriter) -> None:
    rows = fake_writer.run(
        "select account_id, kind, currency, floor from account where merchant_id = %s", [MERCHANT_ID]
    )
    floors = {account_id: floor for account_id, _, _, floor in rows}
    assert {key for key, floor in floors.items() if floor < 0} == BELOW_ZERO_IDS


@pytest.mark.parametrize("kind", ["deposit", "chain:SOL", "", "Merchant"])
def test_the_database_knows_no_other_kind_of_account(fake_writer: FakeWriter, kind: str) -> None:
    assert is_refused(fake_writer, "account", account_id=WALLET_ID, kind=kind, currency=USDT)


@pytest.mark.parametrize("currency", ["EUR", "", "usdt"])
def test_the_database_knows_no_other_currency(fake_writer: FakeWriter, currency: str) -> None:
    assert is_refused(fake_writer, "account", account_id=WALLET_ID, kind=SUBUSER, currency=currency)


def recorded_kinds() -> set[str]:
    """The kinds of entry in the rules' source, passed to `record`, `_record`, `_move` or as a release."""
    folder = Path(rules.__file__).parent
    kinds = set()
    for path in folder.glob("*.py"):
        tree = ast.parse(path.read_text())
        constants = {
            target.id: node.value.value
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            name = getattr(call.func, "id", "")
            given = [keyword.value for keyword in call.keywords if keyword.arg == "release"]
            if name in ("record", "_record", "_move") and len(call.args) > 1:
                given.append(call.args[1])
            values = [
                constants.get(v.id) if isinstance(v, ast.Name) else getattr(v, "value", None) for v in given
            ]
            kinds |= {value for value in values if isinstance(value, str)}
    return kinds


def known_kinds(fake_writer: FakeWriter) -> set[str]:
    """The kinds of entry in the database's own check."""
    (definition,) = fake_writer.run(
        "select pg_get_constraintdef(oid) from pg_constraint where contypid = 'entry_kind'::regtype"
    ).fetchone() or ("",)
    return {part.split("'")[1] for part in definition.split("ARRAY[")[1].split(",")}


def test_the_rules_and_the_database_know_the_same_kinds_of_entry(fake_writer: FakeWriter) -> None:
    assert recorded_kinds() == known_kinds(fake_writer)


def test_every_kind_of_entry_can_be_written(fake_writer: FakeWriter) -> None:
    write_history(fake_writer)
    written = {row[0] for row in fake_writer.run("select distinct kind from entry")}
    assert written == known_kinds(fake_writer)


def test_the_database_refuses_any_other_kind_of_entry(fake_writer: FakeWriter) -> None:
    assert is_refused(fake_writer, "entry", entry_id=1, kind="gift", at_ms=1, hash=bytes(32))


def test_the_database_keeps_a_reference_once_over_all_kinds_of_operators_entries(
    fake_writer: FakeWriter,
) -> None:
    def write(entry_id: int, kind: str, name: str | None) -> bool:
        row = {"entry_id": entry_id, "kind": kind, "mc_order_id": name, "at_ms": 1, "hash": b"x"}
        try:
            fake_writer.insert("entry", **row)
        except errors.UniqueViolation:
            return False
        return True

    assert write(1, "adjust", "bank 4711")
    assert not write(2, "adjust", "bank 4711")
    assert not write(2, "fee_withdraw", "bank 4711")
    assert write(3, "fee_withdraw", "bank 4712")
    assert not write(4, "adjust", "bank 4712")
    # Order ids are unique for each merchant and kind. Any number of entries may have none.
    assert write(5, "exchange", "bank 4711")
    assert write(6, "adjust", None)
    assert write(7, "adjust", None)
