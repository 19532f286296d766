"""Loads the settings, and the master key that is stored beside the database.

Rules:
- The texts come from where `setting_sources` says. Here they are parsed, each by the rule in `settings`.
- With an external database the mode must be set: a sandbox pays nothing, but looks as if it did.
- Nothing here reads `os.environ` or a clock.
"""

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from merchant_wallet.base.atomic_files import create_file
from merchant_wallet.base.chains import DEFAULT_CODES
from merchant_wallet.base.invisible_text import note_invisible, trim
from merchant_wallet.base.mounted_secrets import OWNER_ADVICE
from merchant_wallet.base.node_addresses import read_nodes
from merchant_wallet.base.setting_sources import PREFIX, ConfigError, Given, read_given
from merchant_wallet.base.setting_types import parse_key, read_text
from merchant_wallet.base.settings import SETTINGS, Settings, make_settings

__all__ = ["ConfigError"]

NODE_SETTINGS = " or ".join(f"{PREFIX}{code}_RPC" for code in DEFAULT_CODES)
"""The settings of which one must be given to run on real chains, for a sentence."""
MASTER_KEY_BYTES = 32
MASTER_KEY_FILE = "master.key"
# Others may pass through this folder: as root, PostgreSQL runs as another user inside it.
DATA_DIR_MODE = 0o711
# Lists may stand on several lines.
_SPACES = str.maketrans("\t\r\n", "   ")


def load_settings(
    env: Mapping[str, str], toml_path: Path | None = None, typed: Mapping[str, Any] | None = None
) -> Settings:
    """Read all settings from `env` and the TOML file (`toml_path`, or the one that WALLET_CONFIG names).

    `typed` has parsed values from the command line, which win over both.

    Raises `ConfigError` for an unknown name, a value that breaks its rule, or an unreadable file.
    """
    values = {name: _parse(name, given) for name, given in read_given(env, toml_path).items()}
    values |= typed or {}
    settings = make_settings(values)
    _require_mode(settings, said="sandbox" in values)
    _require_nodes(settings)
    return settings


def require_screening_secret(settings: Settings) -> str | None:
    """The secret of the screening URL, for workers; None without such a URL. Raises ConfigError."""
    if settings.screening_url is not None and settings.screening_secret is None:
        raise ConfigError(
            "WALLET_SCREENING_URL is set, so WALLET_SCREENING_SECRET must be, too: it signs the questions."
        )
    return settings.screening_secret if settings.screening_url is not None else None


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


def _require_mode(settings: Settings, *, said: bool) -> None:
    """Refuse a mode that nobody set, half a mail server, and plain HTTP in production. Raises ConfigError."""
    if settings.database_url is not None and not said:
        raise ConfigError(
            "WALLET_DATABASE_URL names a database, so WALLET_SANDBOX must say what it is for: "
            "true (a chain of the service's own, no real money) or false (real USDT)."
        )
    if (settings.smtp_host is None) != (settings.smtp_from is None):
        raise ConfigError("WALLET_SMTP_HOST and WALLET_SMTP_FROM must be set together.")
    if not settings.sandbox and (settings.public_url or "").startswith("http://"):
        raise ConfigError("WALLET_PUBLIC_URL must begin with https:// outside the sandbox.")


def _require_nodes(settings: Settings) -> None:
    """Refuse headers and limits that no node gets: a misspelt host would mean requests without a key."""
    for code, chain in settings.chains.items():
        setting = f"{PREFIX}{code}_RPC"
        for part, headers, limits in (("HEADERS", chain.rpc_headers, ()), ("LIMITS", (), chain.rpc_limits)):
            try:
                # The web side may have the nodes alone, and the signer neither.
                _ = read_nodes(chain.rpc, headers, limits) if chain.rpc else ()
            except ValueError as error:
                raise ConfigError(f"{setting}_{part} does not fit {setting}: {error}.") from None


def _parse(name: str, given: Given) -> Any:
    setting = SETTINGS[name]
    # A password may begin or end with anything.
    text = given.text if setting.secret and setting.parse is read_text else trim(given.text) or given.text
    try:
        return setting.parse(text)
    except (ValueError, KeyError):
        # The cause is left out, since it may contain a secret.
        shown = "" if setting.secret else f", not {text!r}"
        note = note_invisible(text.translate(_SPACES))
        raise ConfigError(f"{given.source} must be {setting.rule}{shown}{note}.") from None


def has_master_key(settings: Settings) -> bool:
    """Whether a master key exists, in the settings or in the data folder."""
    return settings.master_key is not None or (settings.data / MASTER_KEY_FILE).exists()


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
            raise ConfigError(f"the {name} {path} can be read by others: chmod 600 it ({OWNER_ADVICE}).")
        return parse_key(trim(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise ConfigError(f"the {name} {path} cannot be read: {error.strerror}.") from error
    except ValueError:
        raise ConfigError(f"the {name} {path} must hold 64 hexadecimal digits.") from None
