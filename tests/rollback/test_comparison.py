"""What the last checkpoint of each file shows of a database that is older or different."""

import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from tests.book.fake_writer import COIN, MERCHANT_ID, START_MS, FakeWriter, on
from tests.checkpoints import write_checkpoints
from tests.rows import each_row

from merchant_wallet.audit import records
from merchant_wallet.audit.checkpointing.keys import pin, publish
from merchant_wallet.audit.checkpointing.signing import (
    CheckpointSigner,
    write_audit_checkpoint,
)
from merchant_wallet.audit.rollback import comparison
from merchant_wallet.audit.rollback.comparison import Comparison, compare_journal
from merchant_wallet.audit.rollback.evidence import RollbackEvidence
from merchant_wallet.audit.rollback.reached_cells import ReachedCells
from merchant_wallet.base.cells import NO_CELLS
from merchant_wallet.book import checkpoint_keys
from merchant_wallet.book.checkpoint_keys import PUBLIC_KEY_FILE
from merchant_wallet.book.checkpoints import Checkpoint, file_of

SIGNER = CheckpointSigner(b"k" * 32)
OTHER = CheckpointSigner(b"l" * 32)


@pytest.fixture
def folder(fake_writer: FakeWriter, tmp_path: Path) -> Path:
    """A folder of checkpoints whose key is in the database."""
    made = tmp_path / "checkpoints"
    publish(SIGNER, made)
    on(fake_writer.url, lambda conn: pin(conn, SIGNER, START_MS))
    return made


@pytest.fixture
def others(fake_writer: FakeWriter) -> Iterator[list[FakeWriter]]:
    """Two more books."""
    made = [FakeWriter(fake_writer.url, 1002, 8), FakeWriter(fake_writer.url, 1003, 9)]
    yield made
    for other in made:
        other.close()


def checkpoint(fake_writer: FakeWriter, folder: Path) -> int:
    return on(fake_writer.url, lambda conn: write_checkpoints(conn, SIGNER, folder, START_MS, interval_ms=0))


def compare(fake_writer: FakeWriter, folder: Path) -> list[RollbackEvidence]:
    return on(
        fake_writer.url,
        lambda conn: Comparison(folder).find_evidence(conn, ReachedCells(conn, NO_CELLS), START_MS),
    )


def found(evidence: list[RollbackEvidence]) -> list[tuple[int, str, str]]:
    return [(item.merchant_id, item.subject, item.kind) for item in evidence]


def cut(fake_writer: FakeWriter, count: int) -> None:
    """Cut the book back to its first entries, as a restored backup does."""
    first = fake_writer.entry_ids()[:count]
    fake_writer.tamper(
        "delete from posting where entry_id > %s and merchant_id = %s", (first[-1], fake_writer.merchant_id)
    )
    fake_writer.tamper(
        "delete from entry where entry_id > %s and merchant_id = %s", (first[-1], fake_writer.merchant_id)
    )
    fake_writer.tamper(
        "update book set entry_count = %s, id_counter = id_counter - 2,"
        " head_hash = (select hash from entry e where e.merchant_id = book.merchant_id and e.entry_id = %s)"
        " where merchant_id = %s",
        (count, first[-1], fake_writer.merchant_id),
    )


def test_a_folder_without_checkpoints_and_books_that_went_on_show_nothing(
    fake_writer: FakeWriter, folder: Path, tmp_path: Path
) -> None:
    fake_writer.fund(COIN)
    assert compare(fake_writer, folder) == []
    assert compare(fake_writer, tmp_path / "nowhere") == []
    assert checkpoint(fake_writer, folder) == 1
    assert compare(fake_writer, folder) == []
    fake_writer.fund(COIN)
    assert compare(fake_writer, folder) == []


def test_a_journal_that_lost_its_end_is_behind(fake_writer: FakeWriter, folder: Path) -> None:
    for _ in range(5):
        fake_writer.fund(COIN)
    checkpoint(fake_writer, folder)
    cut(fake_writer, 3)
    [evidence] = compare(fake_writer, folder)
    assert (evidence.merchant_id, evidence.subject, evidence.kind) == (MERCHANT_ID, "book", "behind")
    assert evidence.cause == "the checkpoint of 2024-10-04T00:00:00Z saw 5 entries, the journal has 3"


def test_a_journal_that_grew_again_after_it_lost_its_end_has_diverged(
    fake_writer: FakeWriter, folder: Path
) -> None:
    for _ in range(3):
        fake_writer.fund(COIN)
    checkpoint(fake_writer, folder)
    fake_writer.tamper("update entry set facts = replace(facts, 'ann', 'bob')")
    fake_writer.rechain()
    fake_writer.tamper("update book set entry_count = 9")
    [evidence] = compare(fake_writer, folder)
    assert found([evidence]) == [(MERCHANT_ID, "book", "diverged")]
    assert "another entry" in evidence.cause


def test_a_book_that_is_gone_is_behind_and_others_are_not(
    fake_writer: FakeWriter, others: list[FakeWriter], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for book in (fake_writer, *others):
        book.fund(COIN)
    assert checkpoint(fake_writer, folder) == 3
    for table in ("posting", "entry", "account", "book"):
        fake_writer.tamper(f"delete from {table} where merchant_id = 1002")
    monkeypatch.setattr(comparison, "BOOKS_PER_QUERY", 2)
    assert found(compare(fake_writer, folder)) == [(1002, "book", "behind")]


def test_the_audit_log_is_compared_too(fake_writer: FakeWriter, folder: Path) -> None:
    async def note(conn: records.Connection) -> int:
        return await records.append(
            conn, actor="cli:ann", action="merchant.set", subject="x", source="terminal", at_ms=START_MS
        )

    for _ in range(3):
        on(fake_writer.url, note)
    on(fake_writer.url, lambda conn: write_audit_checkpoint(conn, SIGNER, folder, START_MS))
    assert compare(fake_writer, folder) == []
    fake_writer.tamper("delete from audit_entry where audit_no = 3")
    fake_writer.tamper("update audit_head set entry_count = 2")
    [evidence] = compare(fake_writer, folder)
    assert (evidence.merchant_id, evidence.subject, evidence.kind) == (0, "audit", "behind")
    assert "saw 3 entries, the audit log has 2" in evidence.cause
    on(fake_writer.url, note)
    assert found(compare(fake_writer, folder)) == [(0, "audit", "diverged")]


@pytest.mark.parametrize("line", [b"{}\n", b"x" * 5000 + b"\n"])
def test_a_last_line_that_is_no_checkpoint_is_evidence(
    fake_writer: FakeWriter, folder: Path, line: bytes
) -> None:
    fake_writer.fund(COIN)
    checkpoint(fake_writer, folder)
    with file_of(folder, MERCHANT_ID).open("ab") as file:
        file.write(line)
    [evidence] = compare(fake_writer, folder)
    assert found([evidence]) == [(MERCHANT_ID, "book", "unreadable")]
    assert evidence.cause == "the last line of 1001.jsonl is no checkpoint"


def test_a_torn_last_line_is_no_evidence(fake_writer: FakeWriter, folder: Path) -> None:
    fake_writer.fund(COIN)
    checkpoint(fake_writer, folder)
    path = file_of(folder, MERCHANT_ID)
    os.truncate(path, path.stat().st_size - 3)
    assert compare(fake_writer, folder) == []


def test_whoever_has_another_key_can_make_no_journal_look_sound(
    fake_writer: FakeWriter, folder: Path
) -> None:
    fake_writer.fund(COIN)
    fake_writer.fund(COIN)
    checkpoint(fake_writer, folder)
    cut(fake_writer, 1)
    path = file_of(folder, MERCHANT_ID)
    path.unlink()
    on(fake_writer.url, lambda conn: write_checkpoints(conn, OTHER, folder, START_MS, interval_ms=0))
    [evidence] = compare(fake_writer, folder)
    assert (evidence.kind, "not signed with this key" in evidence.cause) == ("unreadable", True)


def test_a_line_of_another_book_is_evidence(
    fake_writer: FakeWriter, others: list[FakeWriter], folder: Path
) -> None:
    others[0].fund(COIN)
    checkpoint(fake_writer, folder)
    file_of(folder, 1002).rename(file_of(folder, MERCHANT_ID))
    [evidence] = compare(fake_writer, folder)
    assert (evidence.merchant_id, evidence.kind) == (MERCHANT_ID, "unreadable")
    assert "is of merchant 1002" in evidence.cause


@pytest.mark.parametrize("text", ["00" * 32, "no key", "00"])
def test_a_public_key_that_was_swapped_beside_the_checkpoints_is_believed_by_nobody(
    fake_writer: FakeWriter, folder: Path, text: str
) -> None:
    fake_writer.fund(COIN)
    checkpoint(fake_writer, folder)
    (folder / PUBLIC_KEY_FILE).write_text(text)
    [evidence] = compare(fake_writer, folder)
    assert found([evidence]) == [(0, "key", "diverged")]


def test_a_public_key_that_was_swapped_in_the_database_is_believed_by_nobody(
    fake_writer: FakeWriter, folder: Path
) -> None:
    fake_writer.fund(COIN)
    checkpoint(fake_writer, folder)
    on(fake_writer.url, lambda conn: pin(conn, OTHER, START_MS))
    assert found(compare(fake_writer, folder)) == [(0, "key", "diverged")]


def test_files_that_stay_as_they_are_are_read_once(fake_writer: FakeWriter, folder: Path) -> None:
    fake_writer.fund(COIN)
    checkpoint(fake_writer, folder)
    last_checkpoints = comparison.LastCheckpoints(folder)
    [before] = last_checkpoints.read(SIGNER.keys)
    assert last_checkpoints.read(SIGNER.keys)[0] is before
    fake_writer.fund(COIN)
    checkpoint(fake_writer, folder)
    [after] = last_checkpoints.read(SIGNER.keys)
    assert after.checkpoint is not None
    assert (after is before, after.checkpoint.entry_count) == (False, 2)
    # With another key everything is compared again.
    assert [end.problem for end in last_checkpoints.read(OTHER.keys)] == [
        "the last line of 1001.jsonl is not signed with this key"
    ]


def test_other_files_of_the_folder_are_left_alone(fake_writer: FakeWriter, folder: Path) -> None:
    for name in ("notes.jsonl", "1.txt", "\u0661.jsonl", ".jsonl"):
        (folder / name).write_bytes(b"nonsense\n")
    (folder / "evidence").mkdir()
    assert compare(fake_writer, folder) == []


@each_row(
    ("count", "entry_hash", "kind"),
    [
        (None, None, "behind"),
        (0, None, "behind"),
        (4, "ab", "behind"),
        (5, None, "diverged"),
        (6, "cd", "diverged"),
        (5, "ab", None),
        (6, "ab", None),
    ],
)
def test_a_journal_holds_only_with_the_same_entry_and_no_fewer(
    count: int | None, entry_hash: str | None, kind: str | None
) -> None:
    told = compare_journal(Checkpoint(1, 5, 77, "ab", START_MS), count, entry_hash, "journal")
    assert (None if told is None else told[0]) == kind


def test_every_query_of_the_comparison_can_be_planned(database_url: str) -> None:
    values = {"merchant_ids": [1], "entry_ids": [1]}
    with psycopg.connect(database_url, autocommit=True) as conn:
        for queries in (comparison.QUERIES, checkpoint_keys.QUERIES):
            for query in queries.values():
                assert conn.execute(f"explain {query.text}".encode(), values).fetchall(), query.name
