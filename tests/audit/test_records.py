"""The audit log: what is written, in which order, and that every later change of it is found."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from merchant_wallet.audit import checkpoints
from merchant_wallet.audit import verify as verification
from merchant_wallet.audit.checkpointing.signing import CheckpointSigner, write_audit_checkpoint
from merchant_wallet.audit.records import (
    AuditEntry,
    Connection,
    FactsRefused,
    append,
    encode_canonical,
    list_entries,
    show,
)
from merchant_wallet.audit.verify import AuditReport, verify
from merchant_wallet.base.db import connect

pytestmark = pytest.mark.anyio

NOW_MS = 1_763_712_000_000
SIGNER = CheckpointSigner(bytes(range(32)))
OTHER = CheckpointSigner(bytes(32))
ANN, BOB = "operator:ann", "cli:bob"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def conn(database_url: str) -> AsyncIterator[Connection]:
    async with await connect(database_url) as connection:
        for merchant_id in (1001, 1002):
            await connection.execute(
                "insert into merchant (merchant_id, name, app_key, currency_mode, created_ms)"
                " values (%s, 'Shop', %s, 'KFB', 0)",
                [merchant_id, f"mk_{merchant_id}"],
            )
        yield connection


async def note(conn: Connection, action: str = "merchant.set", **changed: Any) -> int:
    """An entry with something in every field."""
    entry: dict[str, Any] = {
        "actor": ANN,
        "action": action,
        "subject": "merchant 1001",
        "merchant_id": 1001,
        "before": {"transferFeeRate": "0", "networks": []},
        "after": {"transferFeeRate": "0.005", "networks": ["192.0.2.0/24"], "requirePin": True},
        "source": "192.0.2.7",
        "at_ms": NOW_MS,
    }
    return await append(conn, **{**entry, **changed})


async def numbers(conn: Connection, **wanted: Any) -> list[int]:
    return [entry.audit_no for entry in await list_entries(conn, **wanted)]


async def test_an_entry_says_who_did_what_from_where_and_what_changed(conn: Connection) -> None:
    assert await note(conn) == 1
    entry = await show(conn, 1)
    assert entry is not None
    assert (entry.actor, entry.action, entry.subject) == (ANN, "merchant.set", "merchant 1001")
    assert (entry.merchant_id, entry.source, entry.at_ms) == (1001, "192.0.2.7", NOW_MS)
    assert entry.before == {"transferFeeRate": "0", "networks": []}
    assert entry.after == {
        "transferFeeRate": "0.005",
        "networks": ["192.0.2.0/24"],
        "requirePin": True,
    }
    assert await show(conn, 2) is None


async def test_numbers_have_no_gap_even_when_a_change_is_undone(conn: Connection) -> None:
    await note(conn)
    async with conn.transaction(force_rollback=True):
        assert await note(conn) == 2
    assert await note(conn) == 2
    assert (await verify(conn)).ok


async def test_an_entry_commits_with_what_it_tells_of(conn: Connection, database_url: str) -> None:
    async with await connect(database_url) as other:
        async with conn.transaction():
            await conn.execute("update merchant set status = 'suspended' where merchant_id = 1001")
            await note(conn, "merchant.suspend")
            assert await numbers(other) == []
        assert await numbers(other) == [1]


async def test_two_at_once_stand_one_after_the_other(conn: Connection, database_url: str) -> None:
    async def write(times: int) -> None:
        async with await connect(database_url) as own:
            for _ in range(times):
                await note(own)

    await asyncio.gather(*[write(10) for _ in range(4)])
    assert await numbers(conn) == list(range(40, 0, -1))
    report = await verify(conn)
    assert (report.entries, report.violation) == (40, None)


async def test_the_logs_clock_never_goes_back(conn: Connection) -> None:
    await note(conn, at_ms=NOW_MS)
    await note(conn, at_ms=NOW_MS - 5000)
    assert [entry.at_ms for entry in await list_entries(conn)] == [NOW_MS, NOW_MS]
    assert (await verify(conn)).ok


async def test_the_log_is_read_newest_first_in_pages_and_by_who_what_and_whose(conn: Connection) -> None:
    await note(conn, "merchant.set")
    await note(conn, "rate.set", actor=BOB, merchant_id=None)
    await note(conn, "merchant.set", actor=BOB)
    await note(conn, "merchant.set", merchant_id=1002)
    assert await numbers(conn) == [4, 3, 2, 1]
    assert await numbers(conn, limit=2) == [4, 3]
    assert await numbers(conn, before_no=3) == [2, 1]
    assert await numbers(conn, actor=BOB) == [3, 2]
    assert await numbers(conn, actor=BOB, action="rate.set") == [2]
    assert await numbers(conn, action="merchant.set", before_no=4) == [3, 1]
    assert await numbers(conn, merchant_id=1001) == [3, 1]
    assert await numbers(conn, merchant_id=1001, actor=ANN, action="merchant.set") == [1]
    assert await numbers(conn, actor="nobody\0") == []


@pytest.mark.parametrize("limit", [0, 501])
async def test_a_page_is_bounded(conn: Connection, limit: int) -> None:
    with pytest.raises(ValueError, match="1 to 500"):
        await list_entries(conn, limit=limit)


@pytest.mark.parametrize(
    "facts",
    [
        {"appSecret": "s3cret"},
        {"password": "x"},
        {"pin_code": 123456},
        {"nested": [{"totp": "1"}]},
        {"PIN": "123456"},
        {"recoveryCodes": ["x"]},
        {"rate": 0.5},
        {"when": b"1"},
        {"text": "a\0b"},
    ],
)
async def test_what_is_a_secret_or_no_plain_value_is_refused(conn: Connection, facts: Any) -> None:
    with pytest.raises(FactsRefused):
        await note(conn, after=facts)
    with pytest.raises(FactsRefused):
        await note(conn, before=facts)
    assert await numbers(conn) == []


async def test_that_there_is_a_secret_and_which_one_may_be_told(conn: Connection) -> None:
    facts = {"hasPin": True, "secretNo": 2, "requirePin": False, "pin": None, "spinning": "yes"}
    await note(conn, after=facts)
    assert (await list_entries(conn))[0].after == facts


async def test_any_text_comes_back_as_it_was_hashed(conn: Connection) -> None:
    odd = {"name": 'Кафе "Ω"\n; 5:x; \\u0000 🙂', "z": 1, "aa": -(2**70), "b": [None, {"k": [[]]}], "": ""}
    await note(conn, before=odd, after={}, subject="商店; 1:")
    await note(conn, before=None, after=None, merchant_id=None)
    assert (await list_entries(conn))[1].before == odd
    assert (await verify(conn)).violation is None


async def test_a_subject_of_any_length_is_cut(conn: Connection) -> None:
    await note(conn, subject="x" * 1000)
    assert (await list_entries(conn))[0].subject == "x" * 400


def entry(**changed: Any) -> AuditEntry:
    values: dict[str, Any] = {
        "audit_no": 1,
        "at_ms": 2,
        "actor": "a",
        "action": "b.c",
        "subject": "d",
        "merchant_id": None,
        "source": "e",
        "before": None,
        "after": None,
        "hash": b"",
    }
    return AuditEntry(**{**values, **changed})


def test_no_two_entries_share_a_canonical_form() -> None:
    changes: list[dict[str, Any]] = [
        {},
        {"audit_no": 12, "at_ms": 2},
        {"audit_no": 1, "at_ms": 22},
        {"actor": "a;1:b", "action": "c"},
        {"actor": "a", "action": "b;1:c"},
        {"subject": "-"},
        {"merchant_id": 1},
        {"merchant_id": 11, "source": ""},
        {"before": {}},
        {"after": {}},
        {"before": {"x": None}},
        {"before": {"x": "None"}},
        {"before": {"x": True}},
        {"before": {"x": 1}},
    ]
    forms = [encode_canonical(entry(**changed)) for changed in changes]
    assert len(set(forms)) == len(forms)


def test_the_order_of_facts_does_not_count_since_the_database_keeps_none() -> None:
    assert encode_canonical(entry(after={"a": 1, "b": 2})) == encode_canonical(entry(after={"b": 2, "a": 1}))


async def tampered(conn: Connection, *statements: str) -> AuditReport:
    """Four entries, then a change behind the program's back."""
    for number in range(4):
        await note(conn, at_ms=NOW_MS + number)
    assert (await verify(conn)).ok
    # As somebody with all rights could do it: without the constraints that prevent it.
    await conn.execute("alter table audit_entry drop constraint audit_entry_previous_no_fkey")
    for statement in statements:
        await conn.execute(statement.encode())
    return await verify(conn)


@pytest.mark.parametrize(
    "change",
    [
        "actor = 'operator:eve'",
        "action = 'merchant.get'",
        "subject = 'merchant 1002'",
        "merchant_id = 1002",
        "merchant_id = null",
        "source = 'terminal'",
        "at_ms = at_ms + 1",
        "before = null",
        "after = jsonb_set(after, '{transferFeeRate}', '\"0.05\"')",
        "hash = sha256('x')",
    ],
)
async def test_a_changed_entry_is_named(conn: Connection, change: str) -> None:
    report = await tampered(conn, f"update audit_entry set {change} where audit_no = 2")
    assert report.violation is not None
    assert (report.violation.audit_no, report.entries) == (2, 1)


async def test_a_missing_entry_is_named(conn: Connection) -> None:
    report = await tampered(conn, "delete from audit_entry where audit_no = 2")
    assert report.violation is not None
    assert (report.violation.audit_no, report.violation.text) == (3, "entry 2 is missing")


async def test_a_missing_first_entry_is_named(conn: Connection) -> None:
    report = await tampered(conn, "delete from audit_entry where audit_no = 1")
    assert report.violation is not None
    assert report.violation.text == "entry 1 is missing"


async def test_a_cut_tail_shows_by_the_head(conn: Connection) -> None:
    report = await tampered(conn, "delete from audit_entry where audit_no > 2")
    assert report.violation is not None
    assert report.violation.text == "by the head the number of entries is 4, the log ends with 2"


async def test_a_head_that_says_something_else_shows(conn: Connection) -> None:
    report = await tampered(conn, "update audit_head set head_hash = sha256('x')")
    assert report.violation is not None
    assert "the last hash" in report.violation.text
    await conn.execute("delete from audit_head")
    assert (await verify(conn)).violation is not None


@pytest.mark.parametrize("page_rows", [1, 2, 3, 4, 5])
async def test_a_log_is_verified_in_pages_of_any_size(
    conn: Connection, monkeypatch: pytest.MonkeyPatch, page_rows: int
) -> None:
    monkeypatch.setattr(verification, "PAGE_ROWS", page_rows)
    # It also verifies the log before the change.
    report = await tampered(conn, "update audit_entry set actor = 'operator:eve' where audit_no = 3")
    assert report.violation is not None
    assert (report.violation.audit_no, report.entries) == (3, 2)


async def test_an_empty_log_is_sound(conn: Connection) -> None:
    assert await verify(conn) == AuditReport(0, bytes(32), None)


async def test_the_database_itself_refuses_a_gap_and_a_hole(conn: Connection) -> None:
    for _ in range(3):
        await note(conn)
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        await conn.execute("delete from audit_entry where audit_no = 2")
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        await conn.execute(
            "insert into audit_entry (audit_no, at_ms, actor, action, subject, source, hash)"
            " values (5, 0, 'a', 'b.c', 'd', 'e', sha256('x'))"
        )
    assert (await verify(conn)).ok


CUT_OFF = (
    "delete from audit_entry where audit_no > 2",
    "update audit_head set entry_count = 2, last_ms = (select at_ms from audit_entry where audit_no = 2),"
    " head_hash = (select hash from audit_entry where audit_no = 2)",
)
"""The last entries removed, and the head repaired."""


async def test_a_cut_tail_shows_by_the_checkpoint_though_the_head_was_mended(
    conn: Connection, tmp_path: Path
) -> None:
    for number in range(4):
        await note(conn, at_ms=NOW_MS + number)
        await write_audit_checkpoint(conn, SIGNER, tmp_path, NOW_MS + number, interval_ms=0)
    seen = await checkpoints.check_checkpoints(conn, SIGNER.keys, tmp_path)
    assert (seen.checked, seen.torn, seen.violation) == (4, False, None)
    for statement in CUT_OFF:
        await conn.execute(statement.encode())
    assert (await verify(conn)).ok
    violation = (await checkpoints.check_checkpoints(conn, SIGNER.keys, tmp_path)).violation
    assert violation is not None
    assert violation.audit_no == 3
    assert "is gone" in violation.text


async def test_a_log_written_anew_shows_by_the_checkpoint(conn: Connection, tmp_path: Path) -> None:
    await note(conn)
    await write_audit_checkpoint(conn, SIGNER, tmp_path, NOW_MS)
    await conn.execute("delete from audit_entry")
    await conn.execute("update audit_head set entry_count = 0, last_ms = 0, head_hash = %s", [bytes(32)])
    await note(conn, actor="operator:eve")
    assert (await verify(conn)).ok
    violation = (await checkpoints.check_checkpoints(conn, SIGNER.keys, tmp_path)).violation
    assert violation is not None
    assert (violation.audit_no, "another hash" in violation.text) == (1, True)


async def test_a_checkpoint_signed_with_another_key_or_mended_is_none(
    conn: Connection, tmp_path: Path
) -> None:
    await note(conn)
    await write_audit_checkpoint(conn, SIGNER, tmp_path, NOW_MS)
    violation = (await checkpoints.check_checkpoints(conn, OTHER.keys, tmp_path)).violation
    assert violation is not None
    assert "not signed with this key" in violation.text
    (tmp_path / checkpoints.FILE).write_text("nonsense\n")
    violation = (await checkpoints.check_checkpoints(conn, SIGNER.keys, tmp_path)).violation
    assert violation is not None
    assert "is no checkpoint" in violation.text


async def test_a_checkpoint_beyond_any_number_is_named_as_unsigned(conn: Connection, tmp_path: Path) -> None:
    await note(conn)
    await write_audit_checkpoint(conn, SIGNER, tmp_path, NOW_MS)
    path = tmp_path / checkpoints.FILE
    path.write_text(path.read_text().replace('"lastEntryId":1', f'"lastEntryId":{2**63}'))
    violation = (await checkpoints.check_checkpoints(conn, SIGNER.keys, tmp_path)).violation
    assert violation is not None
    assert "not signed with this key" in violation.text


async def test_a_page_before_a_number_beyond_any_begins_with_the_newest(conn: Connection) -> None:
    audit_no = await note(conn)
    assert [entry.audit_no for entry in await list_entries(conn, before_no=2**70)] == [audit_no]


async def test_a_checkpoint_is_written_once_a_minute_and_only_when_the_log_has_grown(
    conn: Connection, tmp_path: Path
) -> None:
    async def write(after_ms: int) -> bool:
        return await write_audit_checkpoint(conn, SIGNER, tmp_path, NOW_MS + after_ms)

    assert await write(0) is False
    await note(conn)
    assert await write(0) is True
    assert await write(120_000) is False
    await note(conn)
    assert await write(59_999) is False
    assert await write(60_000) is True
