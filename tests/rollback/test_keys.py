"""The key that signs checkpoints: created once, the same for all workers, unknown to the web process."""

from pathlib import Path

import pytest
from tests.book.fake_writer import START_MS, FakeWriter, on

from merchant_wallet.audit.checkpointing.keys import open_or_create_signer, open_service_signer
from merchant_wallet.audit.checkpointing.signing import CheckpointSigner
from merchant_wallet.base.config import ConfigError
from merchant_wallet.base.settings import Settings
from merchant_wallet.book.checkpoint_keys import PUBLIC_KEY_FILE, load_keys
from merchant_wallet.processes.up import WORKER_ONLY
from merchant_wallet.processes.web import run_serve


def open_signer(fake_writer: FakeWriter, settings: Settings) -> CheckpointSigner:
    return on(fake_writer.url, lambda conn: open_service_signer(conn, settings, START_MS))


def test_the_first_worker_creates_the_key_and_stores_its_name_in_two_places(
    fake_writer: FakeWriter, tmp_path: Path
) -> None:
    settings = Settings(data=tmp_path)
    signer = open_signer(fake_writer, settings)
    assert (tmp_path / "checkpoint.key").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "checkpoints" / PUBLIC_KEY_FILE).read_text() == signer.public_key.hex() + "\n"
    keys = on(fake_writer.url, lambda conn: load_keys(conn, settings.checkpoint_folder))
    assert keys == signer.keys
    assert open_signer(fake_writer, settings).public_key == signer.public_key
    assert fake_writer.run("select count(*) from checkpoint_key").fetchall() == [(1,)]


def test_a_folder_or_a_database_that_lost_the_public_key_gets_it_again(
    fake_writer: FakeWriter, tmp_path: Path
) -> None:
    settings = Settings(data=tmp_path)
    signer = open_signer(fake_writer, settings)
    (tmp_path / "checkpoints" / PUBLIC_KEY_FILE).unlink()
    open_signer(fake_writer, settings)
    assert (tmp_path / "checkpoints" / PUBLIC_KEY_FILE).exists()
    fake_writer.run("delete from checkpoint_key")
    keys = on(fake_writer.url, lambda conn: load_keys(conn, settings.checkpoint_folder))
    assert keys.public_key == signer.public_key
    open_signer(fake_writer, settings)
    assert fake_writer.run("select public_key from checkpoint_key").fetchall() == [(signer.public_key,)]


def test_a_worker_with_another_key_or_none_does_not_start(fake_writer: FakeWriter, tmp_path: Path) -> None:
    open_signer(fake_writer, Settings(data=tmp_path / "one"))
    elsewhere = Settings(data=tmp_path / "two")
    with pytest.raises(ConfigError, match="is not there"):
        open_signer(fake_writer, elsewhere)
    assert not (tmp_path / "two").exists()
    with pytest.raises(ConfigError, match="is not the one"):
        open_signer(fake_writer, Settings(data=tmp_path / "two", checkpoint_key=bytes(range(32))))
    key = (tmp_path / "one" / "checkpoint.key").read_text().strip()
    open_signer(fake_writer, Settings(data=tmp_path / "two", checkpoint_key=bytes.fromhex(key)))
    key_file = tmp_path / "one" / "checkpoint.key"
    open_signer(fake_writer, Settings(data=tmp_path / "three", checkpoint_key_file=key_file))
    assert not (tmp_path / "three" / "checkpoint.key").exists()


def test_a_key_that_others_can_read_is_refused(fake_writer: FakeWriter, tmp_path: Path) -> None:
    open_signer(fake_writer, Settings(data=tmp_path))
    (tmp_path / "checkpoint.key").chmod(0o640)
    with pytest.raises(ConfigError, match="chmod 600"):
        open_signer(fake_writer, Settings(data=tmp_path))


def test_a_key_is_never_shown(tmp_path: Path) -> None:
    settings = Settings(data=tmp_path, checkpoint_key=bytes(range(32)))
    assert "0102" not in repr(settings)
    assert "\\x01" not in repr(settings)
    assert bytes(range(32)) not in repr(open_or_create_signer(settings)).encode()


def test_the_web_side_starts_without_the_key_and_refuses_to_start_with_it() -> None:
    assert {"WALLET_CHECKPOINT_KEY", "WALLET_CHECKPOINT_KEY_FILE"} <= WORKER_ONLY
    settings = Settings(database_url="postgresql://nowhere/x", checkpoint_key=bytes(range(32)))
    with pytest.raises(ConfigError, match="WALLET_CHECKPOINT_KEY is set"):
        run_serve(settings, lambda _: None)
