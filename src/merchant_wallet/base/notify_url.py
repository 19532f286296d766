"""Checks the form of a `notifyUrl`. Pure (interface 4.3; RFC 3986).

It must be https (in the sandbox also http), with a host name or address, without user info, and without
anything that two clients could read differently. Its target is checked at each delivery, not here.
"""

import re
from ipaddress import IPv6Address
from urllib.parse import urlsplit

from merchant_wallet.base.codes import NOTIFY_URL_UNACCEPTABLE, refuse

_match_name = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*\.?").fullmatch
_match_bracketed = re.compile(r"\[([0-9A-Fa-f:.]+)\]").fullmatch
_sub_port = re.compile(r":[0-9]*$").sub
_search_unsafe = re.compile(r"[^\x21-\x7e]|[\\\"<>^`{|}]").search


def check_notify_url(url: str, *, sandbox: bool) -> None:
    """Refuse 40006 with the rule that the URL breaks."""
    if _search_unsafe(url):
        refuse(
            NOTIFY_URL_UNACCEPTABLE,
            "notifyUrl must be written in URL characters; encode others with percent signs",
        )
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        refuse(NOTIFY_URL_UNACCEPTABLE, "notifyUrl is not a URL")
    allowed = ("https", "http") if sandbox else ("https",)
    if parts.scheme not in allowed:
        refuse(
            NOTIFY_URL_UNACCEPTABLE,
            f"notifyUrl must begin with {' or '.join(f'{scheme}://' for scheme in allowed)}",
        )
    if not parts.hostname or port == 0:
        refuse(NOTIFY_URL_UNACCEPTABLE, "notifyUrl must name a host")
    if "@" in parts.netloc:
        refuse(NOTIFY_URL_UNACCEPTABLE, "notifyUrl must not carry user info")
    if not _is_host(_sub_port("", parts.netloc)):
        refuse(
            NOTIFY_URL_UNACCEPTABLE,
            "notifyUrl must name a host of letters, digits, - and dots, or an address",
        )


def lower_scheme(url: str) -> str:
    """The URL with its scheme in small letters, as everything here compares it (RFC 3986, 3.1)."""
    scheme, colon, rest = url.partition(":")
    return scheme.lower() + colon + rest


def _is_host(text: str) -> bool:
    """Whether a URL's host is a name or, in brackets, an IPv6 address."""
    bracketed = _match_bracketed(text)
    if bracketed is None:
        return _match_name(text) is not None
    try:
        return IPv6Address(bracketed[1]).version == 6
    except ValueError:
        return False
