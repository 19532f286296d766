"""The worker's checkpoint task: what it finds is stored and logged, never hidden, and can be accepted."""

import asyncio
import json
from pathlib import Path

import msgspec
import pytest
from psycopg import AsyncConnection
from structlog.testing import capture_logs
from tests.book.fake_writer import COIN, MERCHANT_ID, START_MS, FakeWriter, on, write_history
from tests.rollback.test_comparison import checkpoint, compare, cut

from merchant_wallet.audit import records
from merchant_wallet.audit.checkpointing.acceptance import (
    AcceptanceRequest,
    Accepted,
    EvidenceSources,
    NothingToAccept,
    accept,
)
from merchant_wallet.audit.checkpointing.keys import pin, publish
from merchant_wallet.audit.checkpointing.signing import CheckpointSigner
from merchant_wallet.audit.checkpointing.task import CheckpointTask
from merchant_wallet.audit.rollback.evidence import RollbackEvidence, list_evidence
from merchant_wallet.audit.rollback.monitor import RollbackMonitor
from merchant_wallet.audit.verify import verify
from merchant_wallet.base import ids
from merchant_wallet.base.cells import Databases
from merchant_wallet.book.checkpoint_keys import PUBLIC_KEY_FILE, load_keys
from merchant_wallet.book.checkpoints import file_of
from merchant_wallet.chains.keys.signing_journal import Release, SignedPayment

SIGNER = CheckpointSigner(b"k" * 32)
OTHER = CheckpointSigner(b"l" * 32)
LATER_MS = START_MS + 120_000
REQUEST = AcceptanceRequest("cli:ann", "restored the dump of 02:00", "terminal", LATER_MS)


@pytest.fixture
def folder(fake_writer: FakeWriter, tmp_path: Path) -> Path:
    """A folder whose key is in the database."""
    made = tmp_path / "checkpoints"
    publish(SIGNER, made)
    on(fake_writer.url, lambda conn: pin(conn, SIGNER, START_MS))
    return made


@pytest.fixture
def rolled_back(fake_writer: FakeWriter, folder: Path) -> Path:
    """The folder's checkpoint saw five entries. The journal has three of them."""
    for _ in range(5):
        fake_writer.fund(COIN)
    checkpoint(fake_writer, folder)
    cut(fake_writer, 3)
    return folder


def keep(
    fake_writer: FakeWriter, checkpoint_task: CheckpointTask, at_ms: int = LATER_MS
) -> list[RollbackEvidence]:
    async def run(conn: AsyncConnection) -> list[RollbackEvidence]:
        await checkpoint_task.run_once(conn, at_ms)
        return await list_evidence(conn)

    return on(fake_writer.url, run)


def accept_all(
    fake_writer: FakeWriter,
    sources: EvidenceSources,
    new: CheckpointSigner | None = None,
    *,
    freeze_open: bool = False,
) -> Accepted:
    return on(
        fake_writer.url,
        lambda conn: accept(Databases(conn), sources, REQUEST, new_signer=new, freeze_open=freeze_open),
    )


def test_a_sound_database_gets_its_checkpoints_and_payouts_may_begin(
    fake_writer: FakeWriter, folder: Path
) -> None:
    fake_writer.fund(COIN)
    checkpoint_task = CheckpointTask(SIGNER, folder)
    assert not checkpoint_task.compared.is_set()
    assert keep(fake_writer, checkpoint_task) == []
    assert (checkpoint_task.compared.is_set(), checkpoint_task.found_count) == (True, 0)
    assert len(file_of(folder, MERCHANT_ID).read_bytes().splitlines()) == 1


def test_a_rollback_is_written_down_and_logged_and_gets_no_new_checkpoint(
    fake_writer: FakeWriter, rolled_back: Path
) -> None:
    before = file_of(rolled_back, MERCHANT_ID).read_bytes()
    checkpoint_task = CheckpointTask(SIGNER, rolled_back)
    with capture_logs() as logs:
        [evidence] = keep(fake_writer, checkpoint_task)
    assert (evidence.merchant_id, evidence.kind, evidence.since_ms) == (MERCHANT_ID, "behind", LATER_MS)
    assert [(line["event"], line["log_level"]) for line in logs] == [
        ("evidence of a rollback", "error"),
        ("payouts stopped: the database was rolled back, an operator must look", "error"),
    ]
    assert checkpoint_task.found_count == 1
    # However far the journal grows, the old checkpoint still shows the difference.
    for _ in range(5):
        fake_writer.fund(COIN)
    with capture_logs() as logs:
        assert keep(fake_writer, checkpoint_task, LATER_MS + 60_000) == [evidence]
    assert [line["event"] for line in logs] == [
        "payouts stopped: the database was rolled back, an operator must look"
    ]
    assert file_of(rolled_back, MERCHANT_ID).read_bytes() == before


def test_a_sign_stands_although_what_it_saw_has_passed(fake_writer: FakeWriter, rolled_back: Path) -> None:
    checkpoint_task = CheckpointTask(SIGNER, rolled_back)
    [evidence] = keep(fake_writer, checkpoint_task)
    file_of(rolled_back, MERCHANT_ID).unlink()
    assert compare(fake_writer, rolled_back) == []
    assert keep(fake_writer, checkpoint_task, LATER_MS + 60_000) == [evidence]


def test_an_acceptance_keeps_the_evidence_names_it_in_the_log_and_lets_payouts_go_on(
    fake_writer: FakeWriter, rolled_back: Path
) -> None:
    checkpoint_task = CheckpointTask(SIGNER, rolled_back)
    [evidence] = keep(fake_writer, checkpoint_task)
    saved = file_of(rolled_back, MERCHANT_ID).read_bytes()
    accepted = accept_all(fake_writer, EvidenceSources(rolled_back))
    assert accepted.evidence == [evidence]
    assert accepted.folder is not None
    assert (accepted.folder / "1001.jsonl").read_bytes() == saved
    told = json.loads((accepted.folder / "accepted.json").read_text())
    assert told["word"]["reason"] == REQUEST.reason
    assert told["signs"][0]["cause"] == evidence.cause
    [entry] = on(fake_writer.url, lambda conn: records.list_entries(conn, action="rollback.accept"))
    assert entry.after is not None
    assert (entry.actor, entry.after["reason"]) == ("cli:ann", REQUEST.reason)
    assert entry.after["causes"] == [f"book 1001: {evidence.cause}"]
    assert on(fake_writer.url, verify).ok
    assert keep(fake_writer, checkpoint_task) == []
    # A new file has begun, and it shows a further rollback.
    assert len(file_of(rolled_back, MERCHANT_ID).read_bytes().splitlines()) == 1
    assert compare(fake_writer, rolled_back) == []


def test_nothing_can_be_accepted_that_does_not_show(fake_writer: FakeWriter, folder: Path) -> None:
    fake_writer.fund(COIN)
    checkpoint(fake_writer, folder)
    with pytest.raises(NothingToAccept):
        accept_all(fake_writer, EvidenceSources(folder))
    assert file_of(folder, MERCHANT_ID).exists()
    assert on(fake_writer.url, records.list_entries) == []


def test_an_acceptance_that_broke_off_is_given_again(fake_writer: FakeWriter, rolled_back: Path) -> None:
    [evidence] = keep(fake_writer, CheckpointTask(SIGNER, rolled_back))
    # The file was moved, but the database does not know.
    file_of(rolled_back, MERCHANT_ID).rename(rolled_back / "moved")
    accepted = accept_all(fake_writer, EvidenceSources(rolled_back))
    assert (accepted.evidence, accepted.files) == ([evidence], [])


def test_a_lost_key_is_replaced_and_every_old_file_is_kept(fake_writer: FakeWriter, folder: Path) -> None:
    fake_writer.fund(COIN)
    checkpoint(fake_writer, folder)
    accepted = accept_all(fake_writer, EvidenceSources(folder), OTHER)
    assert sorted(file.name for file in accepted.files) == ["1001.jsonl", PUBLIC_KEY_FILE]
    keys = on(fake_writer.url, lambda conn: load_keys(conn, folder))
    assert keys == OTHER.keys
    assert keep(fake_writer, CheckpointTask(OTHER, folder)) == []
    assert len(file_of(folder, MERCHANT_ID).read_bytes().splitlines()) == 1


def test_a_swapped_public_key_stops_payouts_and_every_checkpoint(
    fake_writer: FakeWriter, folder: Path
) -> None:
    publish(OTHER, folder)
    fake_writer.fund(COIN)
    [evidence] = keep(fake_writer, CheckpointTask(SIGNER, folder))
    assert (evidence.subject, file_of(folder, MERCHANT_ID).exists()) == ("key", False)


def record(folder: Path, *entries: SignedPayment | Release) -> Path:
    """The payments in a signer's record."""
    path = folder / "signed.jsonl"
    path.write_bytes(b"".join(msgspec.json.encode(entry) + b"\n" for entry in entries))
    return path


def pay(order_id: int, at_ms: int) -> SignedPayment:
    return SignedPayment(at_ms, order_id, "ERC20", bytes(20), COIN, bytes(32), 4)


def test_an_order_that_was_signed_and_is_not_known_or_not_taken_up_is_evidence(
    fake_writer: FakeWriter, folder: Path, tmp_path: Path
) -> None:
    write_history(fake_writer)
    rows = fake_writer.run("select order_id, status from withdrawal order by order_id").fetchall()
    known = [order_id for order_id, status in rows if status in (1, 2, 3, 6)]
    untaken = [order_id for order_id, status in rows if status in (0, 4, 5)]
    assert known
    assert untaken
    sound = [pay(order_id, START_MS) for order_id in known]
    path = record(tmp_path, *sound, Release(START_MS, ids.compose(7, 9_001), "cli:ann", "void"))
    checkpoint_task = CheckpointTask(SIGNER, folder, path)
    assert keep(fake_writer, checkpoint_task) == []
    lost = [
        pay(untaken[0], START_MS + 5000),
        pay(ids.compose(7, 9_005), START_MS),
        pay(ids.compose(99, 5), LATER_MS),
    ]
    record(tmp_path, *sound, *lost)
    [evidence] = keep(fake_writer, checkpoint_task)
    assert (evidence.subject, evidence.kind, evidence.merchant_id) == ("signer", "behind", 0)
    assert f"order {ids.compose(7, 9_005)} was signed at 2024-10-04T00:00:00Z" in evidence.cause
    assert evidence.cause.endswith("and 2 more later")
    accept_all(fake_writer, EvidenceSources(folder, path))
    assert keep(fake_writer, checkpoint_task) == []
    # A loss after that shows again.
    record(tmp_path, *sound, *lost, pay(ids.compose(7, 9_006), LATER_MS + 1))
    assert [evidence.subject for evidence in keep(fake_writer, checkpoint_task)] == ["signer"]


def test_a_torn_or_missing_record_shows_nothing_and_one_of_another_form_does(
    fake_writer: FakeWriter, folder: Path, tmp_path: Path
) -> None:
    path = tmp_path / "signed.jsonl"
    checkpoint_task = CheckpointTask(SIGNER, folder, path)
    assert keep(fake_writer, checkpoint_task) == []
    path.write_bytes(b'{"kind":"payment","atM')
    assert keep(fake_writer, checkpoint_task) == []
    path.write_bytes(b"nonsense\n")
    [evidence] = keep(fake_writer, checkpoint_task)
    assert (evidence.subject, evidence.kind) == ("signer", "unreadable")


def test_the_web_side_tells_what_it_sees_and_writes_nothing(
    fake_writer: FakeWriter, rolled_back: Path
) -> None:
    async def compare(conn: AsyncConnection) -> RollbackMonitor:
        async def open_one() -> AsyncConnection:
            return await AsyncConnection.connect(fake_writer.url, autocommit=True)

        watch = RollbackMonitor(open_one, rolled_back, clock=lambda: LATER_MS)
        await watch.compare()
        assert await list_evidence(conn) == []
        return watch

    with capture_logs() as logs:
        watch = on(fake_writer.url, compare)
    assert [(evidence.merchant_id, evidence.kind) for evidence in watch.evidence] == [(MERCHANT_ID, "behind")]
    assert [line["log_level"] for line in logs] == ["error"]


def test_two_workers_and_an_acceptance_at_once_leave_no_sign_behind(
    fake_writer: FakeWriter, rolled_back: Path
) -> None:
    keep(fake_writer, CheckpointTask(SIGNER, rolled_back))

    async def at_once(conn: AsyncConnection) -> list[RollbackEvidence]:
        others = [await AsyncConnection.connect(fake_writer.url, autocommit=True) for _ in range(3)]
        try:
            tasks = [CheckpointTask(SIGNER, rolled_back) for _ in others]
            keeping = [task.run_once(one, LATER_MS) for task, one in zip(tasks, others, strict=True)]
            await asyncio.gather(*keeping, accept(Databases(conn), EvidenceSources(rolled_back), REQUEST))
        finally:
            for one in others:
                await one.close()
        return await list_evidence(conn)

    assert on(fake_writer.url, at_once) == []


def test_an_open_order_that_was_signed_in_what_was_lost_is_frozen(
    fake_writer: FakeWriter, folder: Path, tmp_path: Path
) -> None:
    write_history(fake_writer)
    rows = fake_writer.run("select order_id, status from withdrawal order by order_id").fetchall()
    open_ids = [order_id for order_id, status in rows if status in (0, 1, 3)]
    ended_ids = [order_id for order_id, status in rows if status in (2, 6)]
    assert open_ids
    assert ended_ids
    checkpoint(fake_writer, folder)
    record(tmp_path, *(pay(order_id, START_MS) for order_id in (*open_ids, *ended_ids)))
    fake_writer.run("insert into rollback_evidence values (1001, 'book', 'behind', 'why', 1)")
    sources = EvidenceSources(folder, tmp_path / "signed.jsonl")
    assert list(accept_all(fake_writer, sources).frozen_orders) == open_ids
    frozen = fake_writer.run("select order_id from payout where frozen_ms is not null order by 1").fetchall()
    assert [order_id for (order_id,) in frozen] == open_ids


def test_an_order_whose_signed_bytes_the_database_has_is_not_frozen(
    fake_writer: FakeWriter, folder: Path, tmp_path: Path
) -> None:
    write_history(fake_writer)
    [order_id, *_] = [
        order_id
        for (order_id,) in fake_writer.run("select order_id from withdrawal where status = 1").fetchall()
    ]
    fake_writer.insert(
        "payout", order_id=order_id, chain="TRC20", fence=3, claimed_by="w", claimed_until_ms=0, signed_no=1
    )
    record(tmp_path, pay(order_id, START_MS), pay(order_id, START_MS))
    fake_writer.run("insert into rollback_evidence values (1001, 'book', 'behind', 'why', 1)")
    sources = EvidenceSources(folder, tmp_path / "signed.jsonl")
    assert accept_all(fake_writer, sources).frozen_orders == ()
    another = msgspec.structs.replace(pay(order_id, START_MS + 1), digest=bytes(31) + b"1")
    record(tmp_path, pay(order_id, START_MS), another)
    fake_writer.run("insert into rollback_evidence values (1001, 'book', 'behind', 'why', 1)")
    assert accept_all(fake_writer, sources).frozen_orders == (order_id,)
    assert fake_writer.run("select fence from payout").fetchall() == [(4,)]
