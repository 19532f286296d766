"""The settings of one running service: the table of them, with each one's parser, rule and documentation.

Rules: every setting is one line of `Settings`, so that the operators' table can be made from it; units are in
the names and texts. Nothing here reads a file, the environment or a clock.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from merchant_wallet.money import parse_units

Network = IPv4Network | IPv6Network


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


def parse_key(value: str) -> bytes:
    """The 32 bytes of 64 hexadecimal digits. Raises ValueError."""
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
        parse_key,
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
