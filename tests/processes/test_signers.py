"""Which signer the settings select, and that the web side can have none."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.chains.signing import KEYS
from tests.crash.service import Service, prepared_folder, service
from tests.waits import wait_until

from merchant_wallet.base.chains import CHAINS, DEFAULT_CODES, ERC20, TRC20
from merchant_wallet.base.config import ConfigError
from merchant_wallet.base.settings import Settings, make_settings
from merchant_wallet.chains.keys.keystore import KeystoreError, store_key
from merchant_wallet.chains.keys.local_signer import LocalSigner
from merchant_wallet.chains.keys.signer_socket import RemoteSigner
from merchant_wallet.processes.signers import make_rules, open_signer, read_passphrase, require_signer
from merchant_wallet.processes.up import WORKER_ONLY
from merchant_wallet.processes.web import run_serve

__all__ = ["prepared_folder", "service"]

PASSPHRASE = "correct horse battery"
KEY_CODE = (
    "merchant_wallet.processes.signers",
    "merchant_wallet.chains.keys.keystore",
    "merchant_wallet.chains.keys.secret_storage",
    "merchant_wallet.chains.keys.local_signer",
    "merchant_wallet.chains.keys.signer_socket",
)


def test_real_money_needs_a_signer() -> None:
    with pytest.raises(ConfigError, match="WALLET_KEYSTORE_PASSPHRASE_FILE"):
        open_signer(Settings(sandbox=False))
    with pytest.raises(ConfigError, match="WALLET_SIGNER_SOCKET"):
        require_signer(Settings(sandbox=False))
    require_signer(Settings())
    require_signer(Settings(sandbox=False, signer_socket=Path("s")))


def test_a_socket_comes_before_a_keystore() -> None:
    settings = Settings(sandbox=False, signer_socket=Path("s"), keystore_passphrase=PASSPHRASE)
    assert isinstance(open_signer(settings), RemoteSigner)


def test_the_keystore_of_the_data_folder_is_opened(tmp_path: Path) -> None:
    store_key(tmp_path / "keys", ERC20, KEYS[ERC20], PASSPHRASE, cost=2**10)
    signer = open_signer(Settings(data=tmp_path, keystore_passphrase=PASSPHRASE))
    assert isinstance(signer, LocalSigner)
    assert asyncio.run(signer.wallets()).keys() == {ERC20}
    with pytest.raises(KeystoreError, match="the passphrase is wrong"):
        open_signer(Settings(data=tmp_path, keystore_passphrase=PASSPHRASE + "!"))


def test_a_passphrase_is_a_files_text_without_its_line_end(tmp_path: Path) -> None:
    path = tmp_path / "passphrase"
    path.touch(mode=0o600)
    path.write_text(" two words \r\n")
    assert read_passphrase(Settings(keystore_passphrase_file=path)) == " two words "
    assert read_passphrase(Settings()) is None
    path.write_bytes(b"\xff")
    with pytest.raises(KeystoreError, match="not UTF-8"):
        read_passphrase(Settings(keystore_passphrase_file=path))
    path.chmod(0o640)
    with pytest.raises(KeystoreError, match=r"chmod 600 it \(in Kubernetes, set defaultMode: 0440"):
        read_passphrase(Settings(keystore_passphrase_file=path))


def test_a_passphrase_may_be_in_a_secret_volume_of_kubernetes(tmp_path: Path) -> None:
    (tmp_path / "..2026").mkdir()
    (tmp_path / "..2026" / "passphrase").write_text(PASSPHRASE)
    (tmp_path / "..2026" / "passphrase").chmod(0o440)
    (tmp_path / "..data").symlink_to("..2026")
    (tmp_path / "passphrase").symlink_to("..data/passphrase")
    settings = Settings(keystore_passphrase_file=tmp_path / "passphrase")
    assert read_passphrase(settings) == PASSPHRASE


def test_a_signers_rules_are_the_settings() -> None:
    rules = make_rules(
        make_settings(
            {"signer_payment_limit": 5, "signer_hour_limit": 7, "erc20_fee_cap": 11, "trc20_fee_cap": 13}
        )
    )
    assert (rules.payment_limit_units, rules.hour_limit_units) == (5, 7)
    assert {chain: terms.token for chain, terms in rules.chains.items()} == {
        code: CHAINS[code].token for code in DEFAULT_CODES
    }
    assert (rules.chains[ERC20].fee_cap, rules.chains[TRC20].fee_cap) == (11, 13)
    assert rules.chains[ERC20].chain_id == 1


def test_settings_show_no_passphrase() -> None:
    assert PASSPHRASE not in repr(Settings(keystore_passphrase=PASSPHRASE))


def test_the_web_side_refuses_to_know_the_passphrase() -> None:
    settings = Settings(keystore_passphrase=PASSPHRASE, database_url="postgresql://nowhere/wallet")
    with pytest.raises(ConfigError, match="for `work` alone") as refused:
        run_serve(settings, lambda address: None)
    assert PASSPHRASE not in str(refused.value)


def test_a_serving_web_side_has_loaded_no_code_that_opens_keys(database_url: str, tmp_path: Path) -> None:
    """At its end the process reports every module that it ever loaded, by Python's own hook."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(
        "import atexit, os, sys\n"
        "atexit.register(lambda: open(os.environ['MODULES'], 'w').write('\\n'.join(sys.modules)))\n"
    )
    told = tmp_path / "modules"
    reading, writing = os.pipe()
    running = subprocess.Popen(
        [sys.executable, "-m", "merchant_wallet.processes.side_process", "serve", str(reading)],
        env={
            **{name: text for name, text in os.environ.items() if not name.startswith("WALLET_")},
            "PYTHONPATH": str(tmp_path / "site"),
            "MODULES": str(told),
            "WALLET_DATABASE_URL": database_url,
            "WALLET_SANDBOX": "true",
            "WALLET_DATA": str(tmp_path / "data"),
            "WALLET_PORT": "0",
        },
        stdout=subprocess.PIPE,
        pass_fds=(reading,),
    )
    assert running.stdout is not None
    assert running.stdout.readline().startswith(b"ready: http://")
    running.send_signal(signal.SIGTERM)
    assert running.wait(60) == 0
    running.stdout.close()
    os.close(reading)
    os.close(writing)
    loaded = told.read_text().splitlines()
    assert "merchant_wallet.processes.web" in loaded
    assert not set(KEY_CODE) & set(loaded)


def test_up_tells_the_workers_alone_what_opens_keys(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = {name: f"/nowhere/{name.lower()}" for name in WORKER_ONLY}
    secrets["WALLET_CHECKPOINT_KEY"] = "0c" * 32
    variables = {**service.environment(), **secrets}
    monkeypatch.setattr(service, "environment", lambda: variables)
    service.start()
    web, workers = (
        Path(f"/proc/{service.side(side)}/environ").read_text().split("\0") for side in ("serve", "work")
    )
    for name, text in secrets.items():
        assert f"{name}={text}" in workers
        assert not [line for line in web if name in line or text in line]
    assert service.stop() == 0
    wait_until(lambda: not service.leavings(), "nothing is left running")
