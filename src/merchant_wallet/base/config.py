"""Loads the settings, and the master key that is stored beside the database.

Rules:
- A setting comes from the environment (`WALLET_NAME`) or from the TOML file that `WALLET_CONFIG` names
  (`name`). The environment wins. An empty value counts as not set.
- An unknown name is refused (see `settings`). A misspelt limit that is ignored would be worse than a service
  that does not start.
- With an external database the mode must be set: a sandbox pays nothing, but looks as if it did.
- Only its owner and its group may read a settings file with a secret.
- Nothing here reads `os.environ` or a clock.
"""

import difflib
import os
import secrets
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from merchant_wallet.base.atomic_files import create_file
from merchant_wallet.base.chains import DEFAULT_CODES
from merchant_wallet.base.setting_types import parse_key
from merchant_wallet.base.settings import SETTINGS, Settings, make_settings

PREFIX = "WALLET_"
FILE_SETTING = "WALLET_CONFIG"
NODE_SETTINGS = " or ".join(f"{PREFIX}{code}_RPC" for code in DEFAULT_CODES)
"""The settings of which one must be given to run on real chains, for a sentence."""
MASTER_KEY_BYTES = 32
MASTER_KEY_FILE = "master.key"
# Others may pass through this folder: as root, PostgreSQL runs as another user inside it.
DATA_DIR_MODE = 0o711


class ConfigError(Exception):
    """A setting, or the master key's file, breaks its rule. The text names both."""


def load_settings(
    env: Mapping[str, str], toml_path: Path | None = None, typed: Mapping[str, Any] | None = None
) -> Settings:
    """Read all settings from `env` and the TOML file (`toml_path`, or the one that WALLET_CONFIG names).

    `typed` has parsed values from the command line, which win over both.

    Raises `ConfigError` for an unknown name, a value that breaks its rule, or an unreadable file.
    """
    path = toml_path or (Path(env[FILE_SETTING]).expanduser() if env.get(FILE_SETTING) else None)
    values = {name: _parse(name, text, f"{name} in {path}") for name, text in _read_file(path).items()}
    for variable in sorted(env):
        if variable.startswith(PREFIX) and variable != FILE_SETTING:
            name = _known(variable.removeprefix(PREFIX).lower(), variable)
            if env[variable]:
                values[name] = _parse(name, env[variable], variable)
    values |= typed or {}
    settings = make_settings(values)
    _require_mode(settings, said="sandbox" in values)
    return settings


def add_file_settings(env: Mapping[str, str]) -> dict[str, str]:
    """The same environment plus the settings file's values, for a process that can't read the file.

    Raises as `load_settings`.
    """
    path = Path(env[FILE_SETTING]).expanduser() if env.get(FILE_SETTING) else None
    spelt = {PREFIX + name.upper(): text for name, text in _read_file(path).items()}
    given = {name: text for name, text in env.items() if name != FILE_SETTING and (text or name not in spelt)}
    return {**spelt, **given}


def describe_settings() -> list[tuple[str, str, str]]:
    """Name, default and text of every setting, in the table's order, for the operators' documentation."""
    return [
        (
            PREFIX + name.upper(),
            setting.show(setting.default),
            f"{setting.text} Value: {setting.rule}.",
        )
        for name, setting in SETTINGS.items()
    ]


def _known(name: str, shown: str) -> str:
    if name in SETTINGS:
        return name
    near = difflib.get_close_matches(name, SETTINGS, n=1)
    hint = f" Did you mean {PREFIX}{near[0].upper()}?" if near else ""
    raise ConfigError(f"{shown} is not a setting of this service.{hint}")


def _require_mode(settings: Settings, *, said: bool) -> None:
    """Refuse a mode that nobody set, and pages over plain HTTP in production. Raises ConfigError."""
    if settings.database_url is not None and not said:
        raise ConfigError(
            "WALLET_DATABASE_URL names a database, so WALLET_SANDBOX must say what it is for: "
            "true (a chain of the service's own, no real money) or false (real USDT)."
        )
    if not settings.sandbox and (settings.public_url or "").startswith("http://"):
        raise ConfigError("WALLET_PUBLIC_URL must begin with https:// outside the sandbox.")


def _parse(name: str, text: str, shown: str) -> Any:
    setting = SETTINGS[name]
    try:
        return setting.parse(text)
    except (ValueError, KeyError):
        # The cause is left out, since it may contain a secret.
        given = "" if setting.secret else f", not {text!r}"
        raise ConfigError(f"{shown} must be {setting.rule}{given}.") from None


def _read_file(path: Path | None) -> dict[str, str]:
    """The file's settings as texts, for the same parsers as the environment's. Decimals stay as written."""
    if path is None:
        return {}
    try:
        with path.open("rb") as file:
            readable_by_all = bool(os.fstat(file.fileno()).st_mode & stat.S_IROTH)
            content = tomllib.load(file, parse_float=str)
    except OSError as error:
        raise ConfigError(f"the settings file {path} cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"the settings file {path} is not TOML: {error}.") from error
    texts = {
        _known(name, f"{name} in {path}"): _as_text(value, f"{name} in {path}")
        for name, value in content.items()
    }
    given = {name: text for name, text in texts.items() if text}
    for name in given:
        if not SETTINGS[name].in_file:
            raise ConfigError(f"{name} must not be set in {path}, since all processes read that file.")
    secret = [name for name in given if SETTINGS[name].secret]
    if secret and readable_by_all:
        raise ConfigError(f"{path} holds {secret[0]} and can be read by everybody: chmod 640 it.")
    return given


def _as_text(value: object, shown: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int):
        return str(value)
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return ",".join(value)
    raise ConfigError(f"{shown} must be text, a number, true, false or a list of texts.")


def load_or_create_master_key(data_dir: Path) -> bytes:
    """The 32 bytes in `data_dir`/master.key. Creates a random key on first use. Raises as `load_key_file`."""
    return load_or_create_key_file(data_dir / MASTER_KEY_FILE, "master key")


def load_or_create_key_file(path: Path, name: str) -> bytes:
    """The key in a file. Creates a random key on first use. Two processes at once get the same key.

    Raises as `load_key_file`.
    """
    if not path.exists():
        path.parent.mkdir(mode=DATA_DIR_MODE, parents=True, exist_ok=True)
        # When another process comes first, its key is the one that counts.
        create_file(path, f"{secrets.token_hex(MASTER_KEY_BYTES)}\n".encode())
    return load_key_file(path, name)


def load_key_file(path: Path, name: str) -> bytes:
    """The 32 bytes of a key file that only its owner may read.

    Raises `ConfigError` if the file is missing or malformed, or if others may read it.
    """
    try:
        if path.stat().st_mode & 0o077:
            raise ConfigError(f"the {name} {path} can be read by others: chmod 600 it.")
        return parse_key(path.read_text().strip())
    except OSError as error:
        raise ConfigError(f"the {name} {path} cannot be read: {error.strerror}.") from error
    except ValueError:
        raise ConfigError(f"the {name} {path} must hold 64 hexadecimal digits.") from None
