"""The types of settings: parsers from text to value, and formatters for the operators' table. Pure.

A parser raises ValueError or KeyError for an invalid text. The message contains no secret.
"""

import re
from collections.abc import Callable, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from merchant_wallet.base.chains import CODES, FINALIZED
from merchant_wallet.base.money import RATE_SCALE, format_units, parse_rate, parse_units
from merchant_wallet.base.node_addresses import SOLIDITY
from merchant_wallet.base.notify_url import lower_scheme

Network = IPv4Network | IPv6Network
LOOPBACK: Final[tuple[Network, ...]] = (ip_network("127.0.0.0/8"), ip_network("::1/128"))


def show_plain(value: object) -> str:
    """A value in the form of the setting, if that is Python's own form."""
    if value is None or value == ():
        return "none"
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


class Setting(NamedTuple):
    """One setting: its default, its parser, the rule for its text, and its description.

    A secret is never shown. `in_file` is false if the setting is refused in the settings file.
    """

    default: Any
    parse: Callable[[str], Any]
    rule: str
    text: str
    secret: bool = False
    in_file: bool = True
    show: Callable[[Any], str] = show_plain


def read_text(value: str) -> str:
    """Any text."""
    return value


def read_mail_address(value: str) -> str:
    """An e-mail address in ASCII. Raises ValueError."""
    name, at, host = value.rpartition("@")
    if not (at and name and host and value.isascii() and value.isprintable()) or " " in value:
        raise ValueError(value)
    return value


def read_contact(value: str) -> str:
    """A contact of RFC 9116: a URI for mail, the web or a telephone. Raises ValueError."""
    if re.fullmatch(r"(?:mailto:|https://|tel:)[!-~]+", value) is None:
        raise ValueError(value)
    return value


def read_colour(value: str) -> str:
    """A colour as `#rrggbb`. Raises ValueError."""
    if re.fullmatch(r"#[0-9a-f]{6}", value.lower()) is None:
        raise ValueError(value)
    return value.lower()


def read_path(value: str) -> Path:
    """A path; `~` is the home folder."""
    return Path(value).expanduser()


def read_flag(value: str) -> bool:
    """True or false. Raises KeyError."""
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


def whole_number(lowest: int, highest: int) -> Callable[[str], int]:
    """A parser of integers in this range. It raises ValueError."""

    def parse(value: str) -> int:
        if not re.fullmatch(r"[0-9]{1,18}", value) or not lowest <= int(value) <= highest:
            raise ValueError(value)
        return int(value)

    return parse


def one_of(*words: str) -> Callable[[str], str]:
    """A parser of one of these words, in any case of letters. It raises ValueError."""

    def parse(value: str) -> str:
        if value.lower() not in words:
            raise ValueError(value)
        return value.lower()

    return parse


def read_database_url(value: str) -> str:
    """A URL that libpq accepts. Raises ValueError."""
    # Python's own parser refuses some lists of hosts that libpq accepts.
    if value.partition("://")[0] not in ("postgresql", "postgres"):
        raise ValueError(value)
    # Imported only here: most commands and their help work without it.
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        conninfo_to_dict(value)
    except psycopg.ProgrammingError:
        # libpq's message quotes the wrong part, which may be the password.
        raise ValueError("not a URL that libpq reads") from None
    return value


def read_cell_urls(value: str) -> tuple[tuple[str, str], ...]:
    """Names of cells with their URLs, as `name=url`, separated by spaces. Raises ValueError."""
    pairs = [part.partition("=") for part in value.split()]
    if not all(name and is_pair for name, is_pair, _ in pairs):
        raise ValueError("not name=url")
    if len({name for name, _, _ in pairs}) < len(pairs):
        raise ValueError("a name occurs twice")
    return tuple((name, read_database_url(url)) for name, _, url in pairs)


def read_url(value: str) -> str:
    """An http or https URL without query, its scheme in small letters. A final slash is removed. Raises
    ValueError.
    """
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError(value)
    return lower_scheme(value).rstrip("/")


def read_origin(value: str) -> str:
    """An http or https URL without path and query. A final slash is removed. Raises ValueError."""
    url = read_url(value)
    if urlsplit(url).path:
        raise ValueError(value)
    return url


def read_hook_url(value: str) -> str:
    """An https URL, or an http URL of this machine. It may have a query. Raises ValueError."""
    parts = urlsplit(value)
    is_local = parts.hostname in ("localhost", "127.0.0.1", "::1")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_local):
        raise ValueError(value)
    if not parts.hostname or parts.fragment or parts.username or parts.password:
        raise ValueError(value)
    return value


def read_link(value: str) -> str:
    """An http or https URL that contains `{tx}` once, for a transaction's hash. Raises ValueError."""
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or value.count("{tx}") != 1:
        raise ValueError(value)
    return value


def parse_key(value: str) -> bytes:
    """The 32 bytes of 64 hexadecimal digits. Raises ValueError."""
    if not re.fullmatch(r"[0-9a-fA-F]{64}", value):
        raise ValueError("not 64 hexadecimal digits")
    return bytes.fromhex(value)


def read_node_texts(*, may_have_two_urls: bool) -> Callable[[str], tuple[str, ...]]:
    """A parser of nodes, separated by commas (see `node_addresses`). It raises ValueError."""

    def read(value: str) -> tuple[str, ...]:
        return tuple(
            _read_node_text(part.split(), may_have_two_urls) for part in value.split(",") if part.strip()
        )

    return read


def _read_node_text(words: Sequence[str], may_have_two_urls: bool) -> str:
    url, *others = words
    if len(others) > may_have_two_urls or not all(other.startswith(SOLIDITY) for other in others):
        raise ValueError("not a node")
    return " ".join([read_url(url), *(SOLIDITY + read_url(other.removeprefix(SOLIDITY)) for other in others)])


def read_addresses(parse: Callable[[str], bytes]) -> Callable[[str], tuple[bytes, ...]]:
    """A parser of several addresses, separated by commas. It raises ValueError."""

    def read(value: str) -> tuple[bytes, ...]:
        return tuple(parse(part.strip()) for part in value.split(",") if part.strip())

    return read


def show_addresses(show: Callable[[bytes], str]) -> Callable[[tuple[bytes, ...]], str]:
    """Several addresses in the form of the setting."""
    return lambda addresses: ",".join(map(show, addresses)) or "none"


def read_finality(value: str) -> str | int:
    """`finalized`, or a number of blocks. Raises ValueError."""
    return FINALIZED if value.lower() == FINALIZED else whole_number(0, 10_000)(value)


def coins(decimals: int) -> Callable[[str], int]:
    """A parser of amounts of a chain's own coin, into its smallest unit. It raises ValueError."""

    def parse(value: str) -> int:
        whole, _, fraction = value.partition(".")
        if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]+)?", value) or len(fraction) > decimals:
            raise ValueError(value)
        return int(whole + fraction.ljust(decimals, "0"))

    return parse


def show_coins(decimals: int) -> Callable[[int], str]:
    """A formatter for what `coins` parses."""

    def show(amount: int) -> str:
        whole, fraction = divmod(amount, 10**decimals)
        return f"{whole}.{fraction:0{decimals}d}".rstrip("0").rstrip(".")

    return show


def read_price(value: str) -> int:
    """An amount of USDT above 0, in its units. Raises ValueError."""
    units = parse_units(value)
    if not units:
        raise ValueError(value)
    return units


def show_price(units: int | None) -> str:
    """A price in the form of the setting."""
    return "none" if units is None else format_units(units)


def read_share(value: str) -> int:
    """A share from 0 to 1 or a percentage with its sign, in parts of 10^-8: 0.05 and 5% are the same.

    Raises ValueError.
    """
    number = value.removesuffix("%").rstrip()
    if number == value:
        return parse_rate(value, minimum_e8=0, maximum_e8=RATE_SCALE)
    percent_e8 = parse_rate(number, minimum_e8=0, maximum_e8=100 * RATE_SCALE)
    if percent_e8 % 100:
        raise ValueError(f"{value} has more than 6 decimals")
    return percent_e8 // 100


def read_networks(value: str) -> tuple[Network, ...]:
    """Networks separated by commas. Raises ValueError."""
    return tuple(ip_network(part.strip()) for part in value.split(",") if part.strip())


def show_networks(value: tuple[Network, ...]) -> str:
    """A formatter for what `read_networks` parses."""
    return ",".join(map(str, value))


def read_chains(value: str) -> tuple[str, ...]:
    """Codes of chains separated by commas, in the table's order. Raises ValueError."""
    named = {part.strip() for part in value.split(",") if part.strip()}
    if not named <= set(CODES):
        raise ValueError(value)
    return tuple(code for code in CODES if code in named)


def show_chains(value: tuple[str, ...]) -> str:
    """A formatter for what `read_chains` parses."""
    return ",".join(value)
