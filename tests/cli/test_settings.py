"""`settings`: what is in effect, and from where."""

from pathlib import Path

import pytest
from tests.cli.conftest import Wallet

KEY = "ab" * 32


@pytest.fixture
def rows(wallet: Wallet, tmp_path: Path) -> dict[str, dict[str, object]]:
    """The rows of a shell with each kind of source."""
    secret = tmp_path / "key"
    secret.write_text(KEY)
    secret.chmod(0o600)
    toml = tmp_path / "wallet.toml"
    toml.write_text("rate_limit = 7\n")
    wallet.variables |= {"WALLET_MASTER_KEY": "", "WALLET_MASTER_KEY_FILE": str(secret)}
    wallet.variables |= {"WALLET_CONFIG": str(toml), "WALLET_PORT": "9"}
    return {row["setting"]: row for row in wallet.ask("settings")["settings"]}


def test_each_setting_says_where_it_is_from(rows: dict[str, dict[str, object]]) -> None:
    sources = {name: row["from"] for name, row in rows.items()}
    assert sources["WALLET_PORT"] == "WALLET_PORT"
    assert str(sources["WALLET_RATE_LIMIT"]).startswith("rate_limit in /")
    assert sources["WALLET_MASTER_KEY"] == "WALLET_MASTER_KEY_FILE"
    assert sources["WALLET_HOST"] == "default"
    assert rows["WALLET_RATE_LIMIT"]["value"] == "7"
    assert (rows["WALLET_PORT"]["sides"], rows["WALLET_PORT"]["sameEverywhere"]) == (["web"], False)


def test_secrets_are_not_shown(rows: dict[str, dict[str, object]]) -> None:
    assert rows["WALLET_MASTER_KEY"]["value"] == "(set, not shown)"
    assert KEY not in str(rows)


def test_one_side_and_what_was_changed_can_be_chosen(wallet: Wallet) -> None:
    wallet.variables |= {"WALLET_PORT": "9", "WALLET_TRUSTED_PROXIES": "10.0.0.0/8,::1"}
    worker = {row["setting"] for row in wallet.ask("settings", "--side", "worker")["settings"]}
    assert "WALLET_PORT" not in worker
    assert "WALLET_GAP_FILL_S" in worker
    changed = {row["setting"]: row["value"] for row in wallet.ask("settings", "--changed")["settings"]}
    assert changed["WALLET_PORT"] == "9"
    assert changed["WALLET_TRUSTED_PROXIES"] == "10.0.0.0/8,::1/128"
    assert "WALLET_HOST" not in changed


def test_a_wrong_setting_is_refused_as_at_a_start(wallet: Wallet) -> None:
    wallet.variables["WALLET_PORT"] = "seven"
    assert "WALLET_PORT must be a whole number" in wallet.refuse("settings", status=2)
