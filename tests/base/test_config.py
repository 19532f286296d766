"""Settings from the environment and a file, values that break each rule, and the master key's file."""

import stat
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_network
from pathlib import Path

import pytest
from tests.rows import each_row

from merchant_wallet.base.config import (
    MASTER_KEY_FILE,
    ConfigError,
    describe_settings,
    load_or_create_master_key,
    load_settings,
)
from merchant_wallet.base.settings import SETTINGS, Settings


def test_without_any_setting_the_defaults_hold() -> None:
    settings = load_settings({})

    assert settings == Settings()
    assert (settings.host, settings.port, settings.data) == ("127.0.0.1", 8080, Path("wallet-data"))
    assert (settings.sandbox, settings.hold_refunds) == (True, False)
    assert (settings.rate_limit, settings.failed_auth_limit, settings.timestamp_tolerance_s) == (200, 20, 300)
    assert settings.page_rate_limit == 20
    assert (settings.queue_limit, settings.batch_limit, settings.connections) == (4096, 512, 16)
    assert (settings.exchange_position_limit, settings.trusted_proxies) == (None, ())


def test_every_setting_is_read_from_the_environment() -> None:
    settings = load_settings(
        {
            "WALLET_DATABASE_URL": "postgresql://wallet:pw@db/wallet",
            "WALLET_MASTER_KEY": "0aFF" * 16,
            "WALLET_DATA": "/srv/wallet",
            "WALLET_HOST": "0.0.0.0",
            "WALLET_PORT": "0",
            "WALLET_PUBLIC_URL": "https://pay.example.com/",
            "WALLET_SANDBOX": "false",
            "WALLET_TIMESTAMP_TOLERANCE_S": "43200",
            "WALLET_RATE_LIMIT": "0",
            "WALLET_FAILED_AUTH_LIMIT": "5",
            "WALLET_PAGE_RATE_LIMIT": "7",
            "WALLET_TRUSTED_PROXIES": "10.0.0.0/8, ::1/128",
            "WALLET_APPROVAL_DEADLINE_S": "60",
            "WALLET_EXCHANGE_POSITION_LIMIT": "1000.5",
            "WALLET_QUEUE_LIMIT": "1",
            "WALLET_BATCH_LIMIT": "2",
            "WALLET_CONNECTIONS": "200",
            "WALLET_HOLD_REFUNDS": "yes",
            "WALLET_SANDBOX_CONFIRM_MS": "0",
            "WALLET_LOG_LEVEL": "DEBUG",
            "WALLET_LOG_FORMAT": "json",
            "WALLET_DRAIN_TIMEOUT_S": "3",
            "WALLET_CHECKPOINT_DIR": "/srv/checkpoints",
        }
    )

    assert settings == Settings(
        database_url="postgresql://wallet:pw@db/wallet",
        master_key=b"\x0a\xff" * 16,
        data=Path("/srv/wallet"),
        host="0.0.0.0",
        port=0,
        public_url="https://pay.example.com",
        sandbox=False,
        timestamp_tolerance_s=43200,
        rate_limit=0,
        failed_auth_limit=5,
        page_rate_limit=7,
        trusted_proxies=(ip_network("10.0.0.0/8"), ip_network("::1/128")),
        approval_deadline_s=60,
        exchange_position_limit=1_000_500_000,
        queue_limit=1,
        batch_limit=2,
        connections=200,
        hold_refunds=True,
        sandbox_confirm_ms=0,
        log_level="debug",
        log_format="json",
        drain_timeout_s=3,
        checkpoint_dir=Path("/srv/checkpoints"),
    )


@each_row(
    ("variable", "value", "rule"),
    [
        ("WALLET_DATABASE_URL", "mysql://db/wallet", "postgresql://"),
        ("WALLET_MASTER_KEY", "0a" * 31, "64 hexadecimal digits"),
        ("WALLET_MASTER_KEY", "0g" * 32, "64 hexadecimal digits"),
        ("WALLET_PORT", "65536", "0 to 65535"),
        ("WALLET_PORT", "-1", "0 to 65535"),
        ("WALLET_PORT", "80.0", "0 to 65535"),
        ("WALLET_PORT", "٨٠", "0 to 65535"),
        ("WALLET_PUBLIC_URL", "pay.example.com", "http:// or https://"),
        ("WALLET_PUBLIC_URL", "https://pay.example.com/?a=1", "without path and query"),
        ("WALLET_PUBLIC_URL", "https://pay.example.com/wallets", "without path and query"),
        ("WALLET_PUBLIC_URL", "https://[1", "http:// or https://"),
        ("WALLET_SECURITY_CONTACT", "security@pay.example.com", "mailto:"),
        ("WALLET_SECURITY_CONTACT", "mailto:a@pay.example.com\nExpires: 1", "mailto:"),
        ("WALLET_SANDBOX", "maybe", "true or false"),
        ("WALLET_TIMESTAMP_TOLERANCE_S", "0", "1 to 43200"),
        ("WALLET_TIMESTAMP_TOLERANCE_S", "43201", "1 to 43200"),
        ("WALLET_RATE_LIMIT", "many", "whole number"),
        ("WALLET_FAILED_AUTH_LIMIT", "1e3", "whole number"),
        ("WALLET_TRUSTED_PROXIES", "10.0.0.1/8", "networks"),
        ("WALLET_APPROVAL_DEADLINE_S", "0", "from 1"),
        ("WALLET_EXCHANGE_POSITION_LIMIT", "1.0000001", "at most 6 decimals"),
        ("WALLET_EXCHANGE_POSITION_LIMIT", "-1", "at most 6 decimals"),
        ("WALLET_QUEUE_LIMIT", "0", "from 1"),
        ("WALLET_BATCH_LIMIT", "513", "2 to 512"),
        ("WALLET_CONNECTIONS", "201", "1 to 200"),
        ("WALLET_HOLD_REFUNDS", "2", "true or false"),
        ("WALLET_SANDBOX_CONFIRM_MS", "3600001", "milliseconds"),
        ("WALLET_LOG_LEVEL", "loud", "debug, info, warning, error"),
        ("WALLET_LOG_FORMAT", "xml", "json or console"),
        ("WALLET_DRAIN_TIMEOUT_S", "3601", "0 to 3600"),
        ("WALLET_ERC20_EXPLORER", "https://scan.example/tx/", "{tx} in it"),
        ("WALLET_TRC20_EXPLORER", "javascript:alert({tx})", "http:// or https://"),
    ],
)
def test_a_value_that_breaks_its_rule_is_refused_with_name_and_rule(
    variable: str, value: str, rule: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        load_settings({variable: value})

    assert variable in str(refused.value)
    assert rule in str(refused.value)


def test_a_misspelt_name_is_refused_with_the_right_one() -> None:
    with pytest.raises(ConfigError, match=r"WALLET_RATELIMIT is not a setting.*WALLET_RATE_LIMIT"):
        load_settings({"WALLET_RATELIMIT": "5"})


def test_other_programs_variables_are_no_concern() -> None:
    assert load_settings({"PATH": "/bin", "MY_WALLET_PORT": "x"}) == Settings()


def test_an_empty_value_counts_as_not_set() -> None:
    assert load_settings({"WALLET_PORT": "", "WALLET_CONFIG": ""}) == Settings()


def test_secrets_are_shown_neither_in_an_error_nor_in_a_print() -> None:
    with pytest.raises(ConfigError) as refused:
        load_settings({"WALLET_DATABASE_URL": "mysql://user:hunter2@db"})
    assert "hunter2" not in str(refused.value)
    assert refused.value.__cause__ is None

    settings = load_settings(
        {
            "WALLET_DATABASE_URL": "postgres://u:hunter2@db",
            "WALLET_MASTER_KEY": "ab" * 32,
            "WALLET_SANDBOX": "true",
        }
    )
    assert "hunter2" not in repr(settings)
    assert "master_key" not in repr(settings)


def test_a_file_gives_settings_and_the_environment_wins(tmp_path: Path) -> None:
    path = tmp_path / "wallet.toml"
    path.write_text(
        'port = 9000\nhost = "::1"\nsandbox = false\ntrusted_proxies = ["10.0.0.0/8", "192.168.0.0/16"]\n'
        "exchange_position_limit = 0.1\n"
    )

    settings = load_settings({"WALLET_CONFIG": str(path), "WALLET_PORT": "9001"})

    assert (settings.port, settings.host, settings.sandbox) == (9001, "::1", False)
    assert settings.trusted_proxies == (ip_network("10.0.0.0/8"), ip_network("192.168.0.0/16"))
    assert settings.exchange_position_limit == 100_000
    assert load_settings({}, path).port == 9000


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("prot = 1", "prot in .* is not a setting.*WALLET_PORT"),
        ("port = 70000", "port in .* must be a whole number from 0 to 65535"),
        ("[port]\nnumber = 1", "port in .* must be text"),
        ("trusted_proxies = [1]", "must be text"),
        ("port = = 1", "is not TOML"),
        ('keystore_passphrase = "swordfish"', "keystore_passphrase must not be set in .*wallet.toml"),
    ],
)
def test_a_file_that_breaks_a_rule_is_refused_by_name(tmp_path: Path, content: str, complaint: str) -> None:
    path = tmp_path / "wallet.toml"
    path.write_text(content)

    with pytest.raises(ConfigError, match=complaint):
        load_settings({}, path)


def test_with_a_database_from_outside_the_mode_must_be_said(tmp_path: Path) -> None:
    outside = {"WALLET_DATABASE_URL": "postgresql://wallet@db/wallet"}
    with pytest.raises(ConfigError, match="WALLET_SANDBOX must say"):
        load_settings(outside)

    assert load_settings({**outside, "WALLET_SANDBOX": "true"}).sandbox
    assert not load_settings({**outside, "WALLET_SANDBOX": "false"}).sandbox
    assert not load_settings(outside, typed={"sandbox": False}).sandbox
    path = tmp_path / "wallet.toml"
    path.write_text("sandbox = false\n")
    assert not load_settings(outside, path).sandbox
    assert load_settings({}).sandbox, "a database of the service's own is a sandbox until told otherwise"


def test_outside_the_sandbox_pages_are_reached_over_https_alone() -> None:
    plain = {"WALLET_PUBLIC_URL": "HTTP://pay.example.com"}
    assert load_settings(plain).public_url == "http://pay.example.com"
    with pytest.raises(ConfigError, match="WALLET_PUBLIC_URL must begin with https://"):
        load_settings({**plain, "WALLET_SANDBOX": "false"})


@pytest.mark.parametrize(
    "secret",
    [
        'database_url = "postgresql://wallet:pw@db/wallet"',
        f'master_key = "{"ab" * 32}"',
        'erc20_rpc = "https://n/k"',
    ],
)
def test_a_file_with_a_secret_that_everybody_may_read_is_refused(tmp_path: Path, secret: str) -> None:
    path = tmp_path / "wallet.toml"
    path.write_text(f"sandbox = true\n{secret}\n")
    path.chmod(0o644)
    with pytest.raises(ConfigError, match=r"can be read by everybody: chmod 640") as refused:
        load_settings({}, path)
    assert "pw@db" not in str(refused.value)

    path.chmod(0o640)
    assert load_settings({}, path).sandbox
    path.write_text("port = 9000\n")
    path.chmod(0o644)
    assert load_settings({}, path).port == 9000


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_settings({"WALLET_CONFIG": str(tmp_path / "none.toml")})


def test_the_description_has_every_setting_and_its_rule() -> None:
    described = describe_settings()

    assert [name for name, _, _ in described] == [f"WALLET_{name.upper()}" for name in SETTINGS]
    assert ("WALLET_PORT", "8080") in [(name, default) for name, default, _ in described]
    assert ("WALLET_SANDBOX", "true") in [(name, default) for name, default, _ in described]
    assert ("WALLET_MASTER_KEY", "none") in [(name, default) for name, default, _ in described]
    assert all(len(text) > 20 and text.endswith(".") for _, _, text in described)


def test_a_described_default_is_a_value_that_may_be_set() -> None:
    for name, default, _ in describe_settings():
        if default != "none":
            assert load_settings({name: default}) == Settings()


def test_the_master_key_is_made_once_and_is_the_owners_alone(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "data"

    key = load_or_create_master_key(folder)

    assert len(key) == 32
    assert load_or_create_master_key(folder) == key
    assert load_or_create_master_key(tmp_path / "other") != key
    assert stat.S_IMODE((folder / MASTER_KEY_FILE).stat().st_mode) == 0o600
    assert [path.name for path in folder.iterdir()] == [MASTER_KEY_FILE]


def test_starts_at_the_same_moment_get_the_same_master_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(load_or_create_master_key, [tmp_path] * 32))

    assert len(keys) == 1


def test_a_master_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    load_or_create_master_key(tmp_path)
    (tmp_path / MASTER_KEY_FILE).chmod(0o640)

    with pytest.raises(ConfigError, match="chmod 600"):
        load_or_create_master_key(tmp_path)


@pytest.mark.parametrize("content", ["", "ab" * 31, "xy" * 32])
def test_a_malformed_master_key_is_refused_and_not_replaced(tmp_path: Path, content: str) -> None:
    path = tmp_path / MASTER_KEY_FILE
    path.write_text(content)
    path.chmod(0o600)

    with pytest.raises(ConfigError, match="64 hexadecimal digits"):
        load_or_create_master_key(tmp_path)
    assert path.read_text() == content


@each_row(
    ("typed", "share_e8"),
    [
        ("0.05", 5_000_000),
        ("5%", 5_000_000),
        ("5 %", 5_000_000),
        ("0.000001%", 1),
        ("100%", 10**8),
        ("1", 10**8),
    ],
)
def test_a_share_is_a_percentage_or_a_number_as_ever(typed: str, share_e8: int) -> None:
    assert load_settings({"WALLET_RATE_BAND": typed}).rate_band == share_e8


@each_row("typed", ["101%", "1.1", "%", "0.0000001%", "5%%", "-1%"])
def test_what_is_no_share_is_refused(typed: str) -> None:
    with pytest.raises(ConfigError, match="WALLET_RATE_BAND"):
        load_settings({"WALLET_RATE_BAND": typed})
