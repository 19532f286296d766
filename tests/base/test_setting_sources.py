"""Secrets in files and credentials, and which of several places wins."""

import os
from pathlib import Path

import pytest

from merchant_wallet.base import mounted_secrets
from merchant_wallet.base.config import ConfigError, load_settings
from merchant_wallet.base.setting_sources import list_service_links, put_into_environment

KEY = "ab" * 32
OTHER = "cd" * 32
NOBODY = 65_534
LINKS = {
    "WALLET_SERVICE_HOST": "10.96.0.10",
    "WALLET_SERVICE_PORT": "8080",
    "WALLET_SERVICE_PORT_HTTP": "8080",
    "WALLET_PORT": "tcp://10.96.0.10:8080",
    "WALLET_PORT_8080_TCP": "tcp://10.96.0.10:8080",
    "WALLET_PORT_8080_TCP_PROTO": "tcp",
    "WALLET_PORT_8080_TCP_PORT": "8080",
    "WALLET_PORT_8080_TCP_ADDR": "10.96.0.10",
    "WALLET_METRICS_SERVICE_HOST": "fd00::1",
    "WALLET_METRICS_PORT": "tcp://[fd00::1]:9100",
    "WALLET_METRICS_PORT_9100_TCP_ADDR": "fd00::1",
}
"""What Kubernetes puts into each pod for two Services, `wallet` and `wallet-metrics`."""


def _write(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def test_a_secret_is_read_from_the_file_that_the_environment_names(tmp_path: Path) -> None:
    file = _write(tmp_path / "key", f"{KEY}\n")
    settings = load_settings({"WALLET_MASTER_KEY_FILE": str(file)})
    assert settings.master_key == bytes.fromhex(KEY)


def test_a_secret_is_read_from_the_file_that_the_settings_file_names(tmp_path: Path) -> None:
    url = _write(tmp_path / "url", "postgresql://wallet:pw@db/wallet")
    toml = _write(tmp_path / "wallet.toml", f'sandbox = true\ndatabase_url_file = "{url}"\n', 0o644)
    assert load_settings({}, toml).database_url == "postgresql://wallet:pw@db/wallet"


def test_a_credential_of_systemd_has_the_name_of_its_setting(tmp_path: Path) -> None:
    _write(tmp_path / "WALLET_MASTER_KEY", KEY, 0o440)
    _write(tmp_path / "WALLET_PORT", "1")
    _write(tmp_path / "somebody-elses", "?")
    settings = load_settings({"CREDENTIALS_DIRECTORY": str(tmp_path)})
    assert settings.master_key == bytes.fromhex(KEY)
    # Only secrets are credentials.
    assert settings.port == 8080


def test_the_environment_wins_over_a_credential_and_that_over_the_settings_file(
    tmp_path: Path,
) -> None:
    toml = _write(tmp_path / "wallet.toml", f'master_key = "{OTHER}"\n')
    assert load_settings({}, toml).master_key == bytes.fromhex(OTHER)
    _write(tmp_path / "WALLET_MASTER_KEY", KEY)
    environment = {"CREDENTIALS_DIRECTORY": str(tmp_path)}
    assert load_settings(environment, toml).master_key == bytes.fromhex(KEY)
    assert load_settings({**environment, "WALLET_MASTER_KEY": OTHER}, toml).master_key == bytes.fromhex(OTHER)


def test_a_secret_that_is_said_twice_is_refused(tmp_path: Path) -> None:
    file = _write(tmp_path / "key", KEY)
    environment = {"WALLET_MASTER_KEY": OTHER, "WALLET_MASTER_KEY_FILE": str(file)}
    with pytest.raises(ConfigError, match="WALLET_MASTER_KEY and WALLET_MASTER_KEY_FILE are both set"):
        load_settings(environment)
    # An empty value counts as not set.
    assert load_settings({**environment, "WALLET_MASTER_KEY": ""}).master_key == bytes.fromhex(KEY)


def test_a_file_that_everybody_can_read_is_refused_unless_a_container_mounts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = _write(tmp_path / "key", KEY, 0o644)
    with pytest.raises(ConfigError, match="can be read by everybody: chmod 640 it"):
        load_settings({"WALLET_MASTER_KEY_FILE": str(file)})
    monkeypatch.setattr(mounted_secrets, "FOLDERS", (tmp_path,))
    assert load_settings({"WALLET_MASTER_KEY_FILE": str(file)}).master_key == bytes.fromhex(KEY)


def test_a_wrong_text_names_where_it_is_from_and_not_what_it_is(tmp_path: Path) -> None:
    file = _write(tmp_path / "key", "secret")
    with pytest.raises(ConfigError, match=r"^WALLET_MASTER_KEY_FILE must be 64 hexadecimal digits\.$"):
        load_settings({"WALLET_MASTER_KEY_FILE": str(file)})


def test_a_file_that_is_missing_too_long_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load_settings({"WALLET_MASTER_KEY_FILE": str(tmp_path / "none")})
    long = _write(tmp_path / "long", "a" * 70_000)
    with pytest.raises(ConfigError, match="has more than 65536 bytes"):
        load_settings({"WALLET_MASTER_KEY_FILE": str(long)})
    odd = tmp_path / "odd"
    odd.write_bytes(b"\xff\xfe")
    odd.chmod(0o600)
    with pytest.raises(ConfigError, match="is not UTF-8 text"):
        load_settings({"WALLET_MASTER_KEY_FILE": str(odd)})


@pytest.mark.parametrize("name", ["WALLET_PORT_FILE", "WALLET_MASTER_KEY_FILES"])
def test_only_secrets_have_files(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} is not a setting of this service"):
        load_settings({name: "/dev/null"})


def test_a_secret_that_all_processes_would_read_is_refused_in_the_settings_file(tmp_path: Path) -> None:
    toml = _write(tmp_path / "wallet.toml", f'checkpoint_key = "{KEY}"\n')
    with pytest.raises(ConfigError, match="checkpoint_key must not be set in"):
        load_settings({}, toml)


def test_children_get_values_in_place_of_files_and_credentials(tmp_path: Path) -> None:
    file = _write(tmp_path / "url", "postgresql://wallet@db/wallet")
    _write(tmp_path / "WALLET_MASTER_KEY", KEY)
    toml = _write(tmp_path / "wallet.toml", 'port = 9\nrate_limit = 7\nsandbox = "true"\n')
    environment = {
        "PATH": "/bin",
        "WALLET_DATABASE_URL_FILE": str(file),
        "CREDENTIALS_DIRECTORY": str(tmp_path),
        "WALLET_CONFIG": str(toml),
        "WALLET_PORT": "10",
    }
    own = {
        "PATH": "/bin",
        "WALLET_DATABASE_URL": "postgresql://wallet@db/wallet",
        "WALLET_MASTER_KEY": KEY,
        "WALLET_PORT": "10",
    }
    assert put_into_environment(environment, with_file=False) == {**own, "WALLET_CONFIG": str(toml)}
    assert put_into_environment(environment, with_file=True) == {
        **own,
        "WALLET_RATE_LIMIT": "7",
        "WALLET_SANDBOX": "true",
    }


def test_links_of_kubernetes_are_no_settings_and_real_values_still_are() -> None:
    links = {**LINKS, "PATH": "/bin"}
    settings = load_settings(links)
    assert (settings.port, settings.metrics_port) == (8080, 0)
    assert list_service_links(links) == sorted(LINKS)
    assert put_into_environment(links, with_file=False) == {"PATH": "/bin"}
    assert load_settings({**links, "WALLET_PORT": "8081", "WALLET_METRICS_PORT": "9100"}).port == 8081
    assert "WALLET_PORT" not in list_service_links({**links, "WALLET_PORT": "8081"})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("WALLET_SERVICE_HOST", "wallet.example.com"),
        ("WALLET_SERVICE_PORT", "http"),
        ("WALLET_PORT", "tcp://10.96.0.10"),
        ("WALLET_PROT", "tcp://10.96.0.10:8080"),
        ("WALLET_PORT_8080", "10.96.0.10"),
    ],
)
def test_what_only_resembles_a_link_is_refused(name: str, text: str) -> None:
    with pytest.raises(ConfigError, match=name):
        load_settings({name: text})


def _mount_secret(folder: Path, mode: int) -> Path:
    """A secret as Kubernetes mounts it: a link to a file below `..data`, itself a link."""
    (folder / "..2026_01_01").mkdir(parents=True)
    _write(folder / "..2026_01_01" / "key", f"{KEY}\n", mode)
    (folder / "..data").symlink_to("..2026_01_01")
    (folder / "key").symlink_to("..data/key")
    return folder / "key"


@pytest.mark.parametrize("mode", [0o644, 0o440, 0o400])
def test_a_secret_volume_of_kubernetes_is_taken_with_any_mode(tmp_path: Path, mode: int) -> None:
    file = _mount_secret(tmp_path / "secrets", mode)
    assert load_settings({"WALLET_MASTER_KEY_FILE": str(file)}).master_key == bytes.fromhex(KEY)


def test_a_settings_file_in_a_secret_volume_may_hold_a_secret(tmp_path: Path) -> None:
    file = _mount_secret(tmp_path / "secrets", 0o644)
    file.write_text(f'master_key = "{KEY}"\n')
    assert load_settings({}, file).master_key == bytes.fromhex(KEY)


def test_the_folder_of_secrets_has_two_names(tmp_path: Path) -> None:
    names = {
        mounted_secrets.is_mounted_secret(Path(name)) for name in ("/run/secrets/a", "/var/run/secrets/b/c")
    }
    assert names == {True}
    assert not mounted_secrets.is_mounted_secret(tmp_path / "key")


def test_a_file_that_kubernetes_mounts_alone_is_refused_with_what_can_be_done_there(tmp_path: Path) -> None:
    file = _write(tmp_path / "key", KEY, 0o644)
    with pytest.raises(ConfigError, match=r"chmod 640 it \(in Kubernetes, set defaultMode: 0440 .* fsGroup"):
        load_settings({"WALLET_MASTER_KEY_FILE": str(file)})


def test_a_file_of_another_user_is_refused_with_what_can_be_done_there(tmp_path: Path) -> None:
    file = _write(tmp_path / "key", KEY, 0o000)
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(NOBODY)
    try:
        with pytest.raises(ConfigError, match=r"Permission denied \(in Kubernetes, set defaultMode: 0440"):
            load_settings({"WALLET_MASTER_KEY_FILE": str(file)})
    finally:
        if is_root:
            os.seteuid(0)
