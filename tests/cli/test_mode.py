"""Sandbox or live: a command checks the mode that it is given, and follows the service that runs."""

from pathlib import Path

import pytest
from tests.cli.conftest import Wallet
from tests.cli.test_keys import seal_quickly

from merchant_wallet.base.settings import Settings
from merchant_wallet.chains.keys import keystore
from merchant_wallet.cli.session import read_running
from merchant_wallet.processes.runtime_file import write_runtime_file

WHY = ("--reason", "contract of 3 March")


@pytest.fixture
def live(wallet: Wallet) -> Wallet:
    """A live database with a merchant, and a shell whose settings say sandbox."""
    wallet.tamper(
        "insert into merchant (merchant_id, name, app_key, currency_mode, created_ms)"
        " values (1001, 'Shop', 'shop', 'KFB', 1)"
    )
    wallet.tamper("""insert into xpub_pool values (0, '{"ERC20": "x", "TRC20": "y"}', 1001)""")
    return wallet


@pytest.mark.parametrize(
    "command",
    [
        ("operator", "create", "eve", "--role", "owner"),
        ("rates", "set", "USDT:KFB", "7.1"),
        ("wallets", "stop", "TRC20", *WHY),
        ("wallets", "resume", "TRC20"),
        ("merchant", "suspend", "1001"),
        ("proposals", "list"),
        ("callbacks", "pause", "1001"),
        ("deposits", "chains"),
        ("audit", "list"),
    ],
    ids=" ".join,
)
def test_no_command_takes_a_live_database_for_a_sandbox(live: Wallet, command: tuple[str, ...]) -> None:
    assert "WALLET_SANDBOX is not false" in live.refuse(*command, status=2)
    assert live.read("select count(*) from operator") == [(0,)]
    assert live.read("select count(*) from audit_entry") == [(0,)]


def test_no_command_takes_a_sandbox_for_a_live_database(wallet: Wallet) -> None:
    wallet.open_merchant()
    wallet.variables["WALLET_SANDBOX"] = "false"
    assert "created in the sandbox" in wallet.refuse("operator", "list", status=2)


def test_a_key_that_was_brought_in_is_told_also_where_the_mode_is_wrong(
    live: Wallet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keystore, "seal", seal_quickly)
    passphrase = tmp_path / "passphrase"
    passphrase.write_text("seven grey herons wade")
    passphrase.chmod(0o600)
    live.variables["WALLET_KEYSTORE_PASSPHRASE_FILE"] = str(passphrase)
    done = live.run("keys", "import", "ERC20", stdin="11" * 32)
    assert "audit log could not be written: WALLET_SANDBOX is not false" in done.stderr


def test_a_command_follows_what_the_running_service_was_told(wallet: Wallet) -> None:
    told = Settings(
        data=wallet.folder,
        database_url=wallet.url,
        sandbox_two_people=True,
        operator_wait_s=60,
        proposal_deadline_s=90,
        rate_band=7,
    )
    write_runtime_file(told)
    wallet.variables = {}
    at = ("--data", wallet.folder)
    wallet.run("operator", "create", "ann", "--role", "owner", *at)
    assert "second person" in wallet.refuse("operator", "create", "eve", "--role", "owner", *at)
    found = read_running(wallet.folder)
    shared = (found.operator_wait_s, found.proposal_deadline_s, found.rate_band)
    assert shared == (60, 90, 7)


def test_a_sandbox_that_asks_for_two_people_leaves_a_note(tmp_path: Path) -> None:
    assert write_runtime_file(Settings(data=tmp_path, sandbox_two_people=True))
    assert read_running(tmp_path).needs_two_people
