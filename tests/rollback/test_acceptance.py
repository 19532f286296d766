"""Accepting a rollback: killed at any point, without the signer's record, and with another key."""

import fcntl
import os
import threading
import time
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from tests.book.fake_writer import COIN, MERCHANT_ID, START_MS, FakeWriter, on, write_history
from tests.rollback.test_checkpoint_task import (
    LATER_MS,
    OTHER,
    REQUEST,
    SIGNER,
    accept_all,
    folder,
    keep,
    pay,
    record,
    rolled_back,
)
from tests.rollback.test_comparison import checkpoint

from merchant_wallet.audit import records
from merchant_wallet.audit.checkpointing import acceptance, evidence_files
from merchant_wallet.audit.checkpointing.acceptance import (
    Accepted,
    EvidenceSources,
    KeyDiffers,
    RecordMissing,
    accept,
)
from merchant_wallet.audit.checkpointing.keys import publish
from merchant_wallet.audit.checkpointing.signing import CheckpointSigner, append_all
from merchant_wallet.audit.checkpointing.task import CheckpointTask
from merchant_wallet.audit.rollback.evidence import list_evidence
from merchant_wallet.audit.rollback.signer_record import RecordUnreadable
from merchant_wallet.base.cells import Databases
from merchant_wallet.book.checkpoints import Checkpoint, file_of

__all__ = ["folder", "rolled_back"]

KILLED = 9
HEAD = Checkpoint(MERCHANT_ID, 5, 7, "ab" * 32, START_MS)


def die(*_: object, **__: object) -> None:
    os._exit(KILLED)


def wait_for_waiter(path: Path) -> None:
    """Wait until somebody waits for the lock of a file."""
    inode, deadline_s = f":{path.stat().st_ino} ", time.monotonic() + 60
    while not any("->" in line and inode in line for line in Path("/proc/locks").read_text().splitlines()):
        assert time.monotonic() < deadline_s
        os.sched_yield()


def accept_and_die(
    fake_writer: FakeWriter,
    sources: EvidenceSources,
    module: object,
    name: str,
    new: CheckpointSigner | None = None,
) -> None:
    """In a process of its own, which is killed when it calls a function."""

    def run() -> None:
        setattr(module, name, die)
        accept_all(fake_writer, sources, new)

    process = get_context("fork").Process(target=run)
    process.start()
    process.join(60)
    assert process.exitcode == KILLED


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (acceptance, "_read_signed_payments"),
        (acceptance, "_move_evidence"),
        (evidence_files, "_find_free"),
        (evidence_files, "_describe"),
        (acceptance, "write_list"),
        (acceptance, "freeze_orders"),
        (acceptance, "freeze_payouts"),
        (acceptance, "_record"),
    ],
)
def test_an_acceptance_that_is_killed_anywhere_leaves_the_signs_and_is_given_again(
    fake_writer: FakeWriter, rolled_back: Path, module: object, name: str
) -> None:
    # No worker has run since the rollback, so only the files show it.
    assert on(fake_writer.url, list_evidence) == []
    sources, saw = EvidenceSources(rolled_back), file_of(rolled_back, MERCHANT_ID).read_bytes()
    accept_and_die(fake_writer, sources, module, name)
    [evidence] = keep(fake_writer, CheckpointTask(SIGNER, rolled_back))
    assert (evidence.merchant_id, evidence.kind) == (MERCHANT_ID, "behind")
    assert on(fake_writer.url, records.list_entries) == []
    accepted = accept_all(fake_writer, sources)
    assert accepted.evidence == [evidence]
    assert [(file.name, file.sha256) for file in accepted.files] == [("1001.jsonl", sha256(saw).hexdigest())]
    assert accepted.folder is not None
    assert (accepted.folder / "1001.jsonl").read_bytes() == saw
    [entry] = on(fake_writer.url, records.list_entries)
    assert entry.after is not None
    told = (accepted.folder / "accepted.json").read_bytes()
    assert entry.after["evidence"] == accepted.folder.name
    assert entry.after["evidenceSha256"] == sha256(told).hexdigest()
    assert keep(fake_writer, CheckpointTask(SIGNER, rolled_back)) == []


def test_a_replaced_key_whose_command_is_killed_leaves_a_sign(fake_writer: FakeWriter, folder: Path) -> None:
    fake_writer.fund(COIN)
    checkpoint(fake_writer, folder)
    accept_and_die(fake_writer, EvidenceSources(folder), acceptance, "_record", OTHER)
    assert [evidence.subject for evidence in on(fake_writer.url, list_evidence)] == ["key"]
    with pytest.raises(KeyDiffers):
        accept_all(fake_writer, EvidenceSources(folder))
    accepted = accept_all(fake_writer, EvidenceSources(folder), OTHER)
    assert "1001.jsonl" in [file.name for file in accepted.files]
    assert keep(fake_writer, CheckpointTask(OTHER, folder)) == []


def test_the_list_of_an_acceptance_that_broke_off_stays_beside_the_one_that_counts(tmp_path: Path) -> None:
    kept = tmp_path / "evidence" / "1"
    kept.mkdir(parents=True)
    for text in (b"first", b"second", b"second"):
        evidence_files.write_list(kept, text)
    assert {path.name: path.read_bytes() for path in kept.iterdir()} == {
        "accepted.json": b"second",
        "accepted.json.2": b"first",
    }
    assert evidence_files.move(tmp_path, [], kept) == []


def test_a_list_that_was_kept_before_a_crash_is_not_kept_again(tmp_path: Path) -> None:
    kept = tmp_path / "evidence" / "1"
    kept.mkdir(parents=True)
    evidence_files.write_list(kept, b"first")
    # A crash between the copy and the new list leaves one file with two names.
    os.link(kept / "accepted.json", kept / "accepted.json.2")
    for text in (b"second", b"third"):
        evidence_files.write_list(kept, text)
    assert {path.name: path.read_bytes() for path in kept.iterdir()} == {
        "accepted.json": b"third",
        "accepted.json.2": b"first",
        "accepted.json.3": b"second",
    }


def test_evidence_of_two_acceptances_lies_in_two_folders(fake_writer: FakeWriter, rolled_back: Path) -> None:
    sources, folders = EvidenceSources(rolled_back), []
    for _ in range(2):
        fake_writer.run("insert into rollback_evidence values (1001, 'book', 'behind', 'why', 1)")
        append_all(SIGNER, rolled_back, [HEAD])
        folders.append(accept_all(fake_writer, sources).folder)
    assert [kept and kept.name for kept in folders] == ["1", "1-2"]


def test_another_key_is_accepted_only_with_a_new_one(fake_writer: FakeWriter, folder: Path) -> None:
    publish(OTHER, folder)
    sources = EvidenceSources(folder)
    [evidence] = keep(fake_writer, CheckpointTask(SIGNER, folder))
    assert evidence.subject == "key"
    with pytest.raises(KeyDiffers):
        accept_all(fake_writer, sources)
    assert on(fake_writer.url, list_evidence) == [evidence]
    # With the right file back, only the evidence is left.
    publish(SIGNER, folder)
    assert accept_all(fake_writer, sources).evidence == [evidence]


def test_a_worker_with_the_replaced_key_writes_nothing_and_says_what_to_do(
    fake_writer: FakeWriter, folder: Path
) -> None:
    fake_writer.fund(COIN)
    old = CheckpointTask(SIGNER, folder)
    assert keep(fake_writer, old) == []
    accept_all(fake_writer, EvidenceSources(folder), OTHER)
    with capture_logs() as logs:
        assert keep(fake_writer, old, LATER_MS + 60_000) == []
    assert [line["event"] for line in logs] == [
        "no checkpoints are written: the checkpoint key was replaced, restart this worker"
    ]
    assert not file_of(folder, MERCHANT_ID).exists()
    assert keep(fake_writer, CheckpointTask(OTHER, folder), LATER_MS + 120_000) == []
    assert file_of(folder, MERCHANT_ID).exists()


def test_without_the_signers_record_nothing_is_accepted_unless_all_open_orders_are_frozen(
    fake_writer: FakeWriter, rolled_back: Path, tmp_path: Path
) -> None:
    write_history(fake_writer)
    rows = fake_writer.run("select order_id, status from withdrawal order by order_id").fetchall()
    open_ids = [order_id for order_id, status in rows if status in (0, 1, 3)]
    assert {status for _, status in rows} >= {0, 1}
    fake_writer.run("insert into rollback_evidence values (1001, 'book', 'behind', 'why', 1)")
    resting = {"order_id": open_ids[0], "chain": "TRC20", "fence": 1, "claimed_by": "w"}
    fake_writer.insert("payout", **resting, claimed_until_ms=300_000)
    sources = EvidenceSources(rolled_back, tmp_path / "signed.jsonl")
    with pytest.raises(RecordMissing):
        accept_all(fake_writer, sources)
    assert len(on(fake_writer.url, list_evidence)) == 1
    assert file_of(rolled_back, MERCHANT_ID).exists()
    accepted: Accepted = on(
        fake_writer.url, lambda conn: accept(Databases(conn), sources, REQUEST, freeze_open=True)
    )
    assert list(accepted.frozen_orders) == open_ids
    frozen = fake_writer.run(
        "select order_id, claimed_until_ms from payout where frozen_ms is not null order by 1"
    ).fetchall()
    assert [order_id for order_id, _ in frozen] == open_ids
    assert {until_ms for _, until_ms in frozen} == {0}, "one that rested is due once it is resumed"


UNREADABLE = (
    b"nonsense",
    b'{"kind":"payment\xff"}',
    b"[" * 5000,
    b'{"kind":"release","atMs":1,"payoutId":9223372036854775808,"actor":"a","reason":"b"}',
    b'{"kind":"release","atMs":99999999999999999,"payoutId":7,"actor":"a","reason":"b"}',
)


def test_a_record_that_can_not_be_read_is_a_sign_and_is_accepted_once_the_right_one_is_back(
    fake_writer: FakeWriter, rolled_back: Path, tmp_path: Path
) -> None:
    path = tmp_path / "signed.jsonl"
    sources = EvidenceSources(rolled_back, path)
    for line in UNREADABLE:
        fake_writer.run("delete from rollback_evidence")
        path.write_bytes(line + b"\n")
        checkpoint_task = CheckpointTask(SIGNER, rolled_back, path)
        assert {evidence.kind for evidence in keep(fake_writer, checkpoint_task)} == {"behind", "unreadable"}
        assert checkpoint_task.compared.is_set()
        for freeze_open in (False, True):
            with pytest.raises(RecordUnreadable):
                accept_all(fake_writer, sources, freeze_open=freeze_open)
        assert file_of(rolled_back, MERCHANT_ID).exists()
    record(tmp_path, pay(1, START_MS - 1))
    assert len(accept_all(fake_writer, sources).evidence) == 2
    assert keep(fake_writer, checkpoint_task) == []


def test_a_record_that_breaks_before_its_end_is_refused_before_any_file_is_moved(
    fake_writer: FakeWriter, rolled_back: Path, tmp_path: Path
) -> None:
    path = record(tmp_path, *[pay(number, START_MS) for number in range(1, 2001)])
    path.write_bytes(b"nonsense\n" + path.read_bytes())
    with pytest.raises(RecordUnreadable):
        accept_all(fake_writer, EvidenceSources(rolled_back, path))
    assert file_of(rolled_back, MERCHANT_ID).exists()


def test_whoever_waited_for_a_file_that_is_moved_begins_a_new_one(folder: Path) -> None:
    append_all(SIGNER, folder, [HEAD])
    path, moved = file_of(folder, MERCHANT_ID), folder / "moved"
    later = Checkpoint(MERCHANT_ID, 6, 8, "cd" * 32, START_MS + 120_000)
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        before = path.read_bytes()
        writer = threading.Thread(target=append_all, args=(SIGNER, folder, [later]))
        writer.start()
        wait_for_waiter(path)
        path.rename(moved)
    writer.join(60)
    assert moved.read_bytes() == before
    assert len(path.read_bytes().splitlines()) == 1


def test_a_file_is_moved_only_once_its_writer_is_done(folder: Path) -> None:
    append_all(SIGNER, folder, [HEAD])
    path, kept, found = file_of(folder, MERCHANT_ID), folder / "evidence" / "1", []
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        mover = threading.Thread(target=lambda: found.extend(evidence_files.move(folder, [path.name], kept)))
        mover.start()
        wait_for_waiter(path)
        file.write(b"more\n")
    mover.join(60)
    assert [file.sha256 for file in found] == [sha256((kept / path.name).read_bytes()).hexdigest()]
    assert (kept / path.name).read_bytes().endswith(b"more\n")
