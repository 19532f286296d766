"""The settings of one running service, and the master key that lives beside its database.

Rules: every setting is one line of `Settings`, with its parser, its rule and its documentation, so that the
operators' table can be made from it. A setting comes from the environment (`WALLET_NAME`) or from the TOML
file that `WALLET_CONFIG` names (`name`); the environment wins; an empty value counts as not set. A name that
is not in the table is refused, since a misspelt limit that is silently ignored is worse than a service that
does not start. Nothing here reads `os.environ` or any clock.
"""

import dataclasses
import difflib
import os
import re
import secrets
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from merchant_wallet.money import parse_units

PREFIX = "WALLET_"
FILE_SETTING = "WALLET_CONFIG"
MASTER_KEY_BYTES = 32
MASTER_KEY_FILE = "master.key"
# Others may pass through, since as root PostgreSQL runs as another user inside this folder.
DATA_DIR_MODE = 0o711

Network = IPv4Network | IPv6Network


class ConfigError(Exception):
    """A setting, or the master key's file, breaks its rule. The text names which, and the rule."""


def _text(value: str) -> str:
    return value


def _path(value: str) -> Path:
    return Path(value).expanduser()


def _flag(value: str) -> bool:
    return {
        "true": True,
        "1": True,
        "yes": True,
        "on": True,
        "false": False,
        "0": False,
        "no": False,
        "off": False,
    }[value.lower()]


def _whole(lowest: int, highest: int) -> Callable[[str], int]:
    def parse(value: str) -> int:
        if not re.fullmatch(r"[0-9]{1,18}", value) or not lowest <= int(value) <= highest:
            raise ValueError(value)
        return int(value)

    return parse


def _one_of(*words: str) -> Callable[[str], str]:
    def parse(value: str) -> str:
        if value.lower() not in words:
            raise ValueError(value)
        return value.lower()

    return parse


def _database_url(value: str) -> str:
    if urlsplit(value).scheme not in ("postgresql", "postgres"):
        raise ValueError(value)
    # Loaded only for this: most commands, their help above all, work without it.
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        conninfo_to_dict(value)
    except psycopg.ProgrammingError:
        # Its text quotes the part that is wrong, which may be the password.
        raise ValueError("not a URL that libpq reads") from None
    return value


def _public_url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError(value)
    return value.rstrip("/")


def _key(value: str) -> bytes:
    if not re.fullmatch(r"[0-9a-fA-F]{64}", value):
        raise ValueError("not 64 hexadecimal digits")
    return bytes.fromhex(value)


def _networks(value: str) -> tuple[Network, ...]:
    return tuple(ip_network(part.strip()) for part in value.split(",") if part.strip())


def _setting(
    default: object, parse: Callable[[str], object], rule: str, text: str, *, secret: bool = False
) -> Any:
    """One line of the table; `Any` because a dataclass field stands where its value will be."""
    return field(
        default=default,
        repr=not secret,
        metadata={"parse": parse, "rule": rule, "text": text, "secret": secret},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every setting, parsed and in range. Units are in the names and texts; money is in units of 10^-6."""

    database_url: str | None = _setting(
        None,
        _database_url,
        "a URL that begins with postgresql://",
        "The PostgreSQL database, 15 or newer. Without it, one of the service's own in the data folder.",
        secret=True,
    )
    master_key: bytes | None = _setting(
        None,
        _key,
        "64 hexadecimal digits",
        "The key that encrypts secrets at rest. Without it, one is made and kept in the data folder.",
        secret=True,
    )
    data: Path = _setting(  # noqa: RUF009 - the call makes a dataclass field.
        Path("wallet-data"), _path, "a folder", "The data folder: own database, master key, checkpoints."
    )
    host: str = _setting(
        "127.0.0.1", _text, "a host name or address", "The address that the HTTP server listens on."
    )
    port: int = _setting(
        8080,
        _whole(0, 65535),
        "a whole number from 0 to 65535",
        "The port that the HTTP server listens on; 0 takes a free one.",
    )
    public_url: str | None = _setting(
        None,
        _public_url,
        "an http:// or https:// URL without query",
        "Where merchants and sub-users reach the service. Without it, the host and port listened on.",
    )
    sandbox: bool = _setting(
        True, _flag, "true or false", "Run on a chain of the service's own that moves no real money."
    )
    timestamp_tolerance_s: int = _setting(
        300,
        _whole(1, 43200),
        "a whole number of seconds from 1 to 43200",
        "How many seconds a request's timestamp may be away from the server's clock.",
    )
    rate_limit: int = _setting(
        200,
        _whole(0, 1_000_000),
        "a whole number from 0 to 1000000",
        "Requests a second that one merchant may make (bursts up to twice that); 0 sets no limit.",
    )
    failed_auth_limit: int = _setting(
        20,
        _whole(0, 1_000_000),
        "a whole number from 0 to 1000000",
        "Failed authentications a minute from one source address before more are refused; 0 sets no limit.",
    )
    trusted_proxies: tuple[Network, ...] = _setting(
        (),
        _networks,
        "networks such as 10.0.0.0/8, separated by commas",
        "The proxies whose word about a client's address is taken.",
    )
    approval_deadline_s: int = _setting(
        86400,
        _whole(1, 31_536_000),
        "a whole number of seconds from 1 to 31536000",
        "How many seconds a withdrawal order waits for an operator's approval before it expires.",
    )
    exchange_position_limit: int | None = _setting(
        None,
        parse_units,
        "an amount with at most 6 decimals",
        "How far the desk's position per merchant may go from zero, in USDT or KFB. Without it, no limit.",
    )
    queue_limit: int = _setting(
        4096,
        _whole(1, 1_000_000),
        "a whole number from 1 to 1000000",
        "Commands that may wait for one merchant's book before further ones are turned away at once.",
    )
    batch_limit: int = _setting(
        512,
        _whole(2, 512),
        "a whole number from 2 to 512",
        "Commands that one database transaction takes together.",
    )
    connections: int = _setting(
        16, _whole(1, 200), "a whole number from 1 to 200", "Database connections that the writer opens."
    )
    hold_refunds: bool = _setting(
        False,
        _flag,
        "true or false",
        "Keep back the automatic refund of a failed withdrawal until an operator gives it.",
    )
    sandbox_confirm_ms: int = _setting(
        1500,
        _whole(0, 3_600_000),
        "a whole number of milliseconds from 0 to 3600000",
        "Milliseconds after which the sandbox chain confirms a transfer.",
    )
    log_level: str = _setting(
        "info",
        _one_of("debug", "info", "warning", "error"),
        "one of debug, info, warning, error",
        "The least severe lines that are logged.",
    )
    log_format: str | None = _setting(
        None,
        _one_of("json", "console"),
        "json or console",
        "How log lines look. Without it, console when stderr is a terminal and json when it is not.",
    )
    drain_timeout_s: int = _setting(
        20,
        _whole(0, 3600),
        "a whole number of seconds from 0 to 3600",
        "How many seconds a stopping service gives requests under way to finish.",
    )
    checkpoint_dir: Path | None = _setting(  # noqa: RUF009 - the call makes a dataclass field.
        None,
        _path,
        "a folder",
        "Where signed checkpoints of the books are kept. Without it, checkpoints in the data folder.",
    )


_FIELDS = {entry.name: entry for entry in dataclasses.fields(Settings)}


def load_settings(env: Mapping[str, str], toml_path: Path | None = None) -> Settings:
    """Read every setting from `env` and the TOML file (`toml_path`, else the one that WALLET_CONFIG names).

    Raises `ConfigError` for a name that is no setting, a value that breaks its rule, or an unreadable file.
    """
    path = toml_path or (Path(env[FILE_SETTING]).expanduser() if env.get(FILE_SETTING) else None)
    values = {name: _parse(name, text, f"{name} in {path}") for name, text in _read_file(path).items()}
    for variable in sorted(env):
        if variable.startswith(PREFIX) and variable != FILE_SETTING:
            name = _known(variable.removeprefix(PREFIX).lower(), variable)
            if env[variable]:
                values[name] = _parse(name, env[variable], variable)
    return Settings(**values)


def describe_settings() -> list[tuple[str, str, str]]:
    """Name, default and text of every setting, in the table's order, for the operators' documentation."""
    return [
        (
            PREFIX + name.upper(),
            _show(entry.default),
            f"{entry.metadata['text']} Value: {entry.metadata['rule']}.",
        )
        for name, entry in _FIELDS.items()
    ]


def _show(default: object) -> str:
    if default is None or default == ():
        return "none"
    return str(default).lower() if isinstance(default, bool) else str(default)


def _known(name: str, shown: str) -> str:
    if name in _FIELDS:
        return name
    near = difflib.get_close_matches(name, _FIELDS, n=1)
    hint = f" Did you mean {PREFIX}{near[0].upper()}?" if near else ""
    raise ConfigError(f"{shown} is not a setting of this service.{hint}")


def _parse(name: str, text: str, shown: str) -> Any:
    metadata = _FIELDS[name].metadata
    try:
        return metadata["parse"](text)
    except (ValueError, KeyError):
        # The cause is left out: it may hold a secret's text.
        given = "" if metadata["secret"] else f", not {text!r}"
        raise ConfigError(f"{shown} must be {metadata['rule']}{given}.") from None


def _read_file(path: Path | None) -> dict[str, str]:
    """The file's settings as texts, for the same parsers as the environment's. Decimals stay as written."""
    if path is None:
        return {}
    try:
        with path.open("rb") as file:
            content = tomllib.load(file, parse_float=str)
    except OSError as error:
        raise ConfigError(f"the settings file {path} cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"the settings file {path} is not TOML: {error}.") from error
    texts = {
        _known(name, f"{name} in {path}"): _as_text(value, f"{name} in {path}")
        for name, value in content.items()
    }
    return {name: text for name, text in texts.items() if text}


def _as_text(value: object, shown: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int):
        return str(value)
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return ",".join(value)
    raise ConfigError(f"{shown} must be text, a number, true, false or a list of texts.")


def load_or_create_master_key(data_dir: Path) -> bytes:
    """The 32 bytes in `data_dir`/master.key, made at random on first use and readable by the owner alone.

    Two processes that start at once get the same key. Raises `ConfigError` when the file is malformed or when
    others may read it.
    """
    path = data_dir / MASTER_KEY_FILE
    if not path.exists():
        data_dir.mkdir(mode=DATA_DIR_MODE, parents=True, exist_ok=True)
        _create_key(path)
    if path.stat().st_mode & 0o077:
        raise ConfigError(f"the master key {path} can be read by others: chmod 600 it.")
    try:
        return _key(path.read_text().strip())
    except ValueError:
        raise ConfigError(f"the master key {path} must hold 64 hexadecimal digits.") from None


def _create_key(path: Path) -> None:
    """Write a whole key beside its place, then link it there: a link never replaces, nor shows half a key."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_hex(MASTER_KEY_BYTES) + "\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)
        except FileExistsError:
            # Another process came first; its key is the one that counts.
            return
    finally:
        draft.unlink()
