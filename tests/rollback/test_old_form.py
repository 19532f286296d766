"""Checkpoints of the old form, whose key the web process has: sealed once, and refused afterwards."""

from pathlib import Path

import msgspec
import pytest
from psycopg import AsyncConnection
from tests.book.fake_writer import COIN, MERCHANT_ID, START_MS, FakeWriter, on
from tests.checkpoints import write_checkpoints

from merchant_wallet.audit.checkpointing.keys import open_service_signer
from merchant_wallet.audit.checkpointing.signing import read_heads
from merchant_wallet.audit.rollback.comparison import Comparison
from merchant_wallet.audit.rollback.reached_cells import ReachedCells
from merchant_wallet.base.cells import NO_CELLS
from merchant_wallet.base.settings import Settings
from merchant_wallet.book.checkpoint_keys import PUBLIC_KEY_FILE, load_keys
from merchant_wallet.book.checkpoints import (
    CheckpointReport,
    check_checkpoints,
    decode_checkpoint,
    file_of,
    make_old_mac,
)

OLD_KEY = b"o" * 32


def write_old(fake_writer: FakeWriter, folder: Path, old_key: bytes = OLD_KEY) -> None:
    """Append a checkpoint as earlier versions did."""
    folder.mkdir(exist_ok=True)
    [head] = on(fake_writer.url, lambda conn: read_heads(conn, START_MS))
    line = msgspec.structs.replace(head, mac=make_old_mac(old_key, head))
    with file_of(folder, MERCHANT_ID).open("ab") as file:
        file.write(msgspec.json.encode(line) + b"\n")


@pytest.fixture
def folder(fake_writer: FakeWriter, tmp_path: Path) -> Path:
    """Three checkpoints of the old form."""
    made = tmp_path / "checkpoints"
    for _ in range(3):
        fake_writer.fund(COIN)
        write_old(fake_writer, made)
    return made


def settle(fake_writer: FakeWriter, data: Path) -> None:
    on(fake_writer.url, lambda conn: open_service_signer(conn, Settings(data=data), OLD_KEY, START_MS))


def check(fake_writer: FakeWriter, folder: Path) -> CheckpointReport:
    async def ask(conn: AsyncConnection) -> CheckpointReport:
        keys = await load_keys(conn, folder, OLD_KEY)
        return await check_checkpoints(conn, conn, keys, folder, MERCHANT_ID)

    return on(fake_writer.url, ask)


def test_the_old_form_is_verified_before_and_after_a_worker_has_a_key(
    fake_writer: FakeWriter, folder: Path, tmp_path: Path
) -> None:
    assert check(fake_writer, folder) == CheckpointReport(3, False, None)
    settle(fake_writer, tmp_path)
    assert check(fake_writer, folder) == CheckpointReport(4, False, None)
    lines = file_of(folder, MERCHANT_ID).read_bytes().splitlines(keepends=True)
    seal = decode_checkpoint(lines[3])
    assert seal is not None
    assert (seal.entry_count, seal.old_bytes) == (3, sum(map(len, lines[:3])))
    assert (
        on(
            fake_writer.url,
            lambda conn: Comparison(folder, OLD_KEY).find_evidence(
                conn, ReachedCells(conn, NO_CELLS), START_MS
            ),
        )
        == []
    )


def test_it_is_sealed_once(fake_writer: FakeWriter, folder: Path, tmp_path: Path) -> None:
    settle(fake_writer, tmp_path)
    before = file_of(folder, MERCHANT_ID).read_bytes()
    settle(fake_writer, tmp_path)
    assert file_of(folder, MERCHANT_ID).read_bytes() == before


def test_a_line_of_the_old_form_is_not_accepted_any_more(
    fake_writer: FakeWriter, folder: Path, tmp_path: Path
) -> None:
    settle(fake_writer, tmp_path)
    fake_writer.fund(COIN)
    write_old(fake_writer, folder)
    report = check(fake_writer, folder)
    assert report.checked == 4
    assert report.violation is not None
    assert "line 5 has the old form" in report.violation.text
    [evidence] = on(
        fake_writer.url,
        lambda conn: Comparison(folder, OLD_KEY).find_evidence(conn, ReachedCells(conn, NO_CELLS), START_MS),
    )
    assert (evidence.kind, "has the old form" in evidence.cause) == ("unreadable", True)


def test_a_file_of_the_old_form_alone_is_not_accepted_any_more(
    fake_writer: FakeWriter, folder: Path, tmp_path: Path
) -> None:
    old = file_of(folder, MERCHANT_ID).read_bytes()
    settle(fake_writer, tmp_path)
    # A person with the master key restores lines that this key can sign.
    file_of(folder, MERCHANT_ID).write_bytes(old)
    report = check(fake_writer, folder)
    assert report.violation is not None
    assert "has the old form, which nothing signed covers" in report.violation.text
    settle(fake_writer, tmp_path)
    assert file_of(folder, MERCHANT_ID).read_bytes() == old
    (folder / PUBLIC_KEY_FILE).unlink()
    assert check(fake_writer, folder).violation is not None
    settle(fake_writer, tmp_path)
    assert file_of(folder, MERCHANT_ID).read_bytes() == old


def test_other_lines_of_the_old_form_than_were_sealed_are_found(
    fake_writer: FakeWriter, folder: Path, tmp_path: Path
) -> None:
    settle(fake_writer, tmp_path)
    path = file_of(folder, MERCHANT_ID)
    first, second, third, seal = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + third + seal)
    report = check(fake_writer, folder)
    assert report.violation is not None
    assert "line 3 covers other lines" in report.violation.text
    path.write_bytes(seal)
    report = check(fake_writer, folder)
    assert report.violation is not None
    assert "line 1 covers other lines" in report.violation.text
    path.write_bytes(first + second + third + seal)
    assert check(fake_writer, folder).violation is None


def test_a_torn_line_of_the_old_form_is_removed_by_the_seal(
    fake_writer: FakeWriter, folder: Path, tmp_path: Path
) -> None:
    with file_of(folder, MERCHANT_ID).open("ab") as file:
        file.write(b'{"merchantId":10')
    settle(fake_writer, tmp_path)
    assert check(fake_writer, folder) == CheckpointReport(4, False, None)


def test_a_line_that_was_never_signed_is_sealed_by_nobody(
    fake_writer: FakeWriter, folder: Path, tmp_path: Path
) -> None:
    fake_writer.fund(COIN)
    write_old(fake_writer, folder, b"x" * 32)
    settle(fake_writer, tmp_path)
    report = check(fake_writer, folder)
    assert report.violation is not None
    assert "line 4 is not signed" in report.violation.text


def test_books_get_signed_lines_after_the_seal(fake_writer: FakeWriter, folder: Path, tmp_path: Path) -> None:
    async def go_on(conn: AsyncConnection) -> int:
        signer = await open_service_signer(conn, Settings(data=tmp_path), OLD_KEY, START_MS)
        return await write_checkpoints(conn, signer, folder, START_MS, interval_ms=0)

    settle(fake_writer, tmp_path)
    fake_writer.fund(COIN)
    assert on(fake_writer.url, go_on) == 1
    assert check(fake_writer, folder) == CheckpointReport(5, False, None)
