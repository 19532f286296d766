"""Checkpoints: when one is written, and how changes of the journal, the file or the key are found."""

import asyncio
import os
from pathlib import Path

import msgspec
import psycopg
import pytest
from tests.book.fake_writer import COIN, MERCHANT_ID, RANGE_NO, START_MS, FakeWriter, on
from tests.checkpoints import write_checkpoints

from merchant_wallet.audit.checkpointing.signing import CheckpointSigner
from merchant_wallet.base import ids
from merchant_wallet.base.db import connect
from merchant_wallet.book import checkpoints
from merchant_wallet.book.checkpoint_keys import CheckpointKeys
from merchant_wallet.book.checkpoints import (
    Checkpoint,
    CheckpointReport,
    check_checkpoints,
    is_signed,
    list_checkpointed,
)

SIGNER = CheckpointSigner(b"k" * 32)
OTHER = CheckpointSigner(b"l" * 32)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / f"{MERCHANT_ID}.jsonl"


def write(fake_writer: FakeWriter, directory: Path, at_ms: int = START_MS, interval_ms: int = 0) -> int:
    return on(
        fake_writer.url,
        lambda conn: write_checkpoints(conn, SIGNER, directory, at_ms, interval_ms=interval_ms),
    )


def check(fake_writer: FakeWriter, directory: Path, keys: CheckpointKeys = SIGNER.keys) -> CheckpointReport:
    return on(
        fake_writer.url, lambda conn: check_checkpoints(conn, conn, keys, directory, fake_writer.merchant_id)
    )


def move_and_write(fake_writer: FakeWriter, directory: Path, times: int) -> None:
    for _ in range(times):
        fake_writer.fund(COIN)
        assert write(fake_writer, directory) == 1


def test_a_checkpoint_says_what_the_head_was(fake_writer: FakeWriter, tmp_path: Path, file: Path) -> None:
    last_id = [fake_writer.fund(COIN).entry_id for _ in range(3)][-1]
    assert write(fake_writer, tmp_path, at_ms=77) == 1
    checkpoint = msgspec.json.decode(file.read_bytes(), type=Checkpoint)
    assert checkpoint.merchant_id == MERCHANT_ID
    assert (checkpoint.entry_count, checkpoint.last_entry_id, checkpoint.at_ms) == (3, last_id, 77)
    assert checkpoint.head_hash == fake_writer.draft.head_hash.hex()
    assert is_signed(SIGNER.keys, checkpoint)
    assert not is_signed(OTHER.keys, checkpoint)


def test_a_book_that_did_not_move_gets_no_second_checkpoint(fake_writer: FakeWriter, tmp_path: Path) -> None:
    assert write(fake_writer, tmp_path) == 0
    fake_writer.fund(COIN)
    assert write(fake_writer, tmp_path) == 1
    assert write(fake_writer, tmp_path) == 0
    fake_writer.fund(COIN)
    assert write(fake_writer, tmp_path) == 1


def test_a_book_that_moves_gets_one_checkpoint_per_interval(fake_writer: FakeWriter, tmp_path: Path) -> None:
    written = []
    for at_ms in (1000, 1999, 2000, 2500, 3100):
        fake_writer.fund(COIN)
        written.append(write(fake_writer, tmp_path, at_ms, interval_ms=1000))
    assert written == [1, 0, 1, 0, 1]


def test_a_clock_that_was_set_back_does_not_stop_the_writing(fake_writer: FakeWriter, tmp_path: Path) -> None:
    fake_writer.fund(COIN)
    assert write(fake_writer, tmp_path, at_ms=10**6, interval_ms=1000) == 1
    fake_writer.fund(COIN)
    assert write(fake_writer, tmp_path, at_ms=5000, interval_ms=1000) == 1


def test_a_sound_file_is_counted_and_a_missing_one_too(
    fake_writer: FakeWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert check(fake_writer, tmp_path) == CheckpointReport(0, False, None)
    move_and_write(fake_writer, tmp_path, 5)
    monkeypatch.setattr(checkpoints, "LINES_PER_READ", 2)
    assert check(fake_writer, tmp_path) == CheckpointReport(5, False, None)


def test_each_book_has_its_own_file_readable_by_its_owner_and_group(
    fake_writer: FakeWriter, tmp_path: Path
) -> None:
    folder = tmp_path / "new" / "checkpoints"
    other = FakeWriter(fake_writer.url, 1002, 8)
    for each in (fake_writer, other):
        each.fund(COIN)
    other.close()
    assert write(fake_writer, folder) == 2
    assert sorted(path.name for path in folder.iterdir()) == ["1001.jsonl", "1002.jsonl"]
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o640}
    (folder / "notes.jsonl").touch()
    assert asyncio.run(list_checkpointed(folder)) == [1001, 1002]


@pytest.mark.parametrize("cut", [1, 2, 40])
def test_a_torn_last_line_is_no_tampering_and_the_next_writer_removes_it(
    fake_writer: FakeWriter, tmp_path: Path, file: Path, cut: int
) -> None:
    move_and_write(fake_writer, tmp_path, 3)
    os.truncate(file, file.stat().st_size - cut)
    assert check(fake_writer, tmp_path) == CheckpointReport(2, True, None)
    fake_writer.fund(COIN)
    assert write(fake_writer, tmp_path) == 1
    assert check(fake_writer, tmp_path) == CheckpointReport(3, False, None)


def test_a_file_with_nothing_but_a_torn_line_begins_anew(
    fake_writer: FakeWriter, tmp_path: Path, file: Path
) -> None:
    file.write_bytes(b'{"merchantId":10')
    fake_writer.fund(COIN)
    assert check(fake_writer, tmp_path) == CheckpointReport(0, True, None)
    assert write(fake_writer, tmp_path) == 1
    assert check(fake_writer, tmp_path) == CheckpointReport(1, False, None)


def test_a_changed_line_is_found(fake_writer: FakeWriter, tmp_path: Path, file: Path) -> None:
    move_and_write(fake_writer, tmp_path, 3)
    lines = file.read_bytes().splitlines(keepends=True)
    changed = lines[1].replace(b'"entryCount":2', b'"entryCount":1')
    assert changed != lines[1]
    file.write_bytes(lines[0] + changed + lines[2])
    report = check(fake_writer, tmp_path)
    assert report.checked == 1
    assert report.violation is not None
    assert "line 2 is not signed" in report.violation.text


@pytest.mark.parametrize("line", [b"\n", b"{}\n", b"\xff\xfe\n", b"[1]\n", b"x" * 5000 + b"\n"])
def test_a_whole_line_of_another_form_is_found(
    fake_writer: FakeWriter, tmp_path: Path, file: Path, line: bytes
) -> None:
    move_and_write(fake_writer, tmp_path, 1)
    with file.open("ab") as out:
        out.write(line)
    report = check(fake_writer, tmp_path)
    assert report.violation is not None
    assert "line 2 is no checkpoint" in report.violation.text
    fake_writer.fund(COIN)
    assert write(fake_writer, tmp_path) == 1
    assert check(fake_writer, tmp_path).violation == report.violation


def test_another_key_finds_nothing_signed(fake_writer: FakeWriter, tmp_path: Path) -> None:
    move_and_write(fake_writer, tmp_path, 1)
    violation = check(fake_writer, tmp_path, OTHER.keys).violation
    assert violation is not None
    assert "not signed" in violation.text


def forge(checkpoint: Checkpoint, **changes: int | str) -> Checkpoint:
    return SIGNER.sign(msgspec.structs.replace(checkpoint, **changes))


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"merchant_id": 1002}, "is of merchant 1002"),
        ({"entry_count": 1}, "fewer entries"),
        ({"entry_count": 3}, "counts 3 entries"),
        ({"last_entry_id": ids.compose(RANGE_NO, 99)}, "which is gone"),
        ({"head_hash": "00" * 32}, "saw another hash"),
    ],
)
def test_a_signed_line_that_is_not_true_is_found(
    fake_writer: FakeWriter, tmp_path: Path, file: Path, changes: dict[str, int | str], text: str
) -> None:
    fake_writer.fund(COIN)
    move_and_write(fake_writer, tmp_path, 1)
    forged = forge(msgspec.json.decode(file.read_bytes(), type=Checkpoint), **changes)
    with file.open("ab") as out:
        out.write(msgspec.json.encode(forged) + b"\n")
    report = check(fake_writer, tmp_path)
    assert report.checked == 1
    assert report.violation is not None
    assert text in report.violation.text
    assert report.violation.entry_id == forged.last_entry_id


def test_a_cut_tail_shows(fake_writer: FakeWriter, tmp_path: Path) -> None:
    move_and_write(fake_writer, tmp_path, 3)
    gone = fake_writer.entry_ids()[-1]
    fake_writer.tamper("delete from entry where entry_id = %s", (gone,))
    report = check(fake_writer, tmp_path)
    assert report.checked == 2
    assert report.violation is not None
    assert report.violation.entry_id == gone


def test_a_rewritten_past_shows_at_the_first_checkpoint_after_it(
    fake_writer: FakeWriter, tmp_path: Path
) -> None:
    move_and_write(fake_writer, tmp_path, 4)
    second = fake_writer.entry_ids()[1]
    fake_writer.tamper("update entry set facts = replace(facts, 'ann', 'bob') where entry_id = %s", (second,))
    fake_writer.rechain()
    report = check(fake_writer, tmp_path)
    assert report.checked == 1
    assert report.violation is not None
    assert report.violation.entry_id == second


def test_a_rewound_book_writes_nothing_until_it_has_passed_its_last_checkpoint(
    fake_writer: FakeWriter, tmp_path: Path
) -> None:
    move_and_write(fake_writer, tmp_path, 2)
    fake_writer.tamper("update book set entry_count = 1, id_counter = 1")
    assert write(fake_writer, tmp_path) == 0


def test_writers_at_once_never_mix_their_lines(fake_writer: FakeWriter, tmp_path: Path) -> None:
    async def run() -> list[int]:
        conns = [await connect(fake_writer.url) for _ in range(4)]
        try:
            written = []
            for _ in range(10):
                fake_writer.fund(COIN)
                asked = [write_checkpoints(conn, SIGNER, tmp_path, START_MS, interval_ms=0) for conn in conns]
                written.append(sum(await asyncio.gather(*asked)))
            return written
        finally:
            for conn in conns:
                await conn.close()

    assert asyncio.run(run()) == [1] * 10
    assert check(fake_writer, tmp_path) == CheckpointReport(10, False, None)


def test_every_query_of_checkpoints_can_be_planned(database_url: str) -> None:
    values = {"merchant_id": MERCHANT_ID, "entry_ids": [1]}
    with psycopg.connect(database_url, autocommit=True) as conn:
        for query in checkpoints.QUERIES.values():
            assert conn.execute(f"explain {query.text}".encode(), values).fetchall(), query.name
