"""How typed text becomes the value of a merchant's setting, and how a value is shown. Pure.

What is shown can be typed again. A parser raises ValueError; `settings.py` says what would be right.
"""

import re
from collections.abc import Callable
from ipaddress import ip_network
from typing import Any, Final, TypeVar

from merchant_wallet.base.addresses import parse_wallet_address
from merchant_wallet.base.codes import Refused
from merchant_wallet.base.invisible_text import clean, drop_invisible, trim
from merchant_wallet.base.money import RATE_SCALE, parse_rate
from merchant_wallet.base.notify_url import check_notify_url, lower_scheme
from merchant_wallet.base.user_input import InvalidInput, parse_digits
from merchant_wallet.merchants.records import OPERATIONS, canonicalize_address

T = TypeVar("T", int, str)
NONE: Final = "none"
MAX_NAME: Final = 128
MAX_URL: Final = 100
MAX_BILLING_ADDRESS: Final = 300
MAX_TAX_ID: Final = 64
_MAX_PORT: Final = 65_535
_USUAL_PORTS: Final = {"https": 443, "http": 80}
_LOCAL_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
_LABEL: Final = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_ORIGIN: Final = re.compile(
    rf"(https?)://({_LABEL}(?:\.{_LABEL})*|\[[0-9a-f:.]{{2,45}}\])(?::([0-9]{{1,5}}))?"
)
COLOUR: Final = re.compile("#[0-9a-f]{6}")
DIGEST: Final = re.compile("[0-9a-f]{64}")


def parse_name(text: str) -> str:
    """A name that is not read as an id."""
    text = parse_line(MAX_NAME)(clean(text))
    if text.isdecimal():
        raise ValueError(f"{text} would read as a merchant id")
    return text


def parse_line(longest: int) -> Callable[[str], str]:
    """A parser of printable texts of at most so many characters."""

    def parse(text: str) -> str:
        if not 1 <= len(text) <= longest or not text.isprintable():
            raise InvalidInput(text[:longest], "is not")
        return text

    return parse


def parse_list(parse_item: Callable[[str], str]) -> Callable[[str], list[str]]:
    """A parser of items with spaces or commas between them; sorted, each once."""

    def parse(text: str) -> list[str]:
        if text.lower() == NONE:
            return []
        items = list(filter(None, map(trim, text.replace(",", " ").split())))
        if not items:
            raise ValueError(f"nothing was given; say {NONE} to empty the list")
        return sorted({parse_item(item) for item in items})

    return parse


def parse_network(text: str) -> str:
    """A network as CIDR, without host bits."""
    try:
        ip_network(text, strict=False)
    except ValueError:
        raise InvalidInput(text, "does not appear to be an IPv4 or IPv6 network") from None
    # A network with host bits is refused by `ip_network` itself.
    return str(ip_network(text))


def parse_operation(text: str) -> str:
    """One of the operations."""
    if text not in OPERATIONS:
        raise InvalidInput(text, "is no operation")
    return text


def parse_address(text: str) -> str:
    """A valid address in its stored form."""
    seen = drop_invisible(text)
    parse_wallet_address(seen)
    return canonicalize_address(seen)


def parse_word(*words: str) -> Callable[[str], str]:
    """A parser of one of these words."""

    def parse(text: str) -> str:
        if text not in words:
            raise InvalidInput(text, "is neither")
        return text

    return parse


def parse_switch(text: str) -> bool:
    """`on` or `off`."""
    if text.lower() not in ("on", "off"):
        raise InvalidInput(text, "is neither")
    return text.lower() == "on"


def parse_fee_rate(text: str) -> int:
    """A share from 0 to 1, in hundred-millionths."""
    return parse_rate(text, minimum_e8=0, maximum_e8=RATE_SCALE)


def parse_whole(lowest: int, highest: int) -> Callable[[str], int]:
    """A parser of whole numbers in this range."""

    def parse(text: str) -> int:
        number = parse_digits(text, 7)
        if number is None or not lowest <= number <= highest:
            raise InvalidInput(text, "is not")
        return number

    return parse


def parse_url(text: str) -> str | None:
    """A URL that may be notified, or None."""
    if text.lower() == NONE:
        return None
    if len(text) > MAX_URL:
        raise ValueError(f"it has {len(text)} characters")
    try:
        # Whether http is allowed depends on the sandbox. The caller knows that.
        check_notify_url(text, sandbox=True)
    except Refused as refused:
        raise ValueError(refused.refusal.msg.removeprefix("notifyUrl ")) from None
    return lower_scheme(text)


def parse_form(form: re.Pattern[str]) -> Callable[[str], str | None]:
    """A parser of texts of this form in small letters, or None."""

    def parse(text: str) -> str | None:
        if text.lower() == NONE:
            return None
        if form.fullmatch(text.lower()) is None:
            raise InvalidInput(text[:MAX_URL], "is not")
        return text.lower()

    return parse


def parse_origin(text: str) -> str:
    """An origin as browsers send it. It goes into a header, so nothing else is accepted."""
    form = _ORIGIN.fullmatch(text.lower().removesuffix("/"))
    if form is None:
        raise InvalidInput(text[:MAX_URL], "is not")
    scheme, host, port = form.groups()
    if port is not None and not 1 <= int(port) <= _MAX_PORT:
        raise InvalidInput(text[:MAX_URL], "has no such port")
    # A local host is allowed only in the sandbox, which the caller knows. Other hosts need https.
    if scheme == "http" and host not in _LOCAL_HOSTS:
        raise InvalidInput(text[:MAX_URL], "begins with http:// and is not on this machine")
    is_usual = port is None or int(port) == _USUAL_PORTS[scheme]
    return f"{scheme}://{host}" if is_usual else f"{scheme}://{host}:{int(port)}"


def or_none(parse: Callable[[str], T]) -> Callable[[str], T | None]:
    """The same parser, which also takes `none`."""
    return lambda text: None if text.lower() == NONE else parse(text)


def show_list(items: Any) -> str:
    """The items of a list in order."""
    return " ".join(sorted(str(item) for item in items)) or NONE


def show_switch(value: bool) -> str:
    """`on` or `off`."""
    return "on" if value else "off"


def show_text_or_none(value: str | None) -> str:
    """The text, or `none`."""
    return NONE if value is None else value


def show_or_none(show: Callable[[T], str]) -> Callable[[T | None], str]:
    """The same formatter, which also shows None."""
    return lambda value: NONE if value is None else show(value)
