"""What went wrong at a node, in words that may be stored and shown. Pure.

Rules:
- A text is one line, short, printable and without markup.
- Nothing in it may be a key: what occurs in the node's URLs or headers is replaced.
"""

import re
import socket
import ssl
from collections.abc import Sequence
from typing import Final

import httpx

from merchant_wallet.base.errors import list_causes
from merchant_wallet.base.outbound import Proxy, Untrusting

MAX_SHOWN: Final = 200
"""Characters of a node's own text."""
HIDDEN: Final = "***"
_READ_BYTES: Final = 65_536
_SEARCHED: Final = 4_096
"""Characters that markup is taken out of: the time of that grows with their square."""
_INVISIBLE: Final = re.compile(r"<!--.*?-->|<(script|style)\b.*?</\1\s*>", re.DOTALL | re.IGNORECASE)
_TAG: Final = re.compile(r"<[!/?a-z][^>]*>", re.IGNORECASE)
_UNPRINTABLE: Final = re.compile(r"[^!-~]+")


def show_text(text: str, secrets: Sequence[str] = ()) -> str:
    """A node's text as it may be shown."""
    return _UNPRINTABLE.sub(" ", _hide(text, secrets)).strip()[:MAX_SHOWN]


def show_body(body: bytes, secrets: Sequence[str] = ()) -> str:
    """The first words of an answer that is not what was asked for."""
    # Keys are hidden before the text is cut, so that no part of one is left.
    text = _hide(body[:_READ_BYTES].decode(errors="replace"), secrets)[:_SEARCHED]
    return show_text(_TAG.sub(" ", _INVISIBLE.sub(" ", text)))


def _hide(text: str, secrets: Sequence[str]) -> str:
    if not secrets:
        return text
    return re.sub("|".join(map(re.escape, secrets)), HIDDEN, text, flags=re.IGNORECASE)


def describe_failure(error: Exception, timeout_s: float, proxy: Proxy | None = None) -> str:
    """Why a request got no answer. Texts of libraries may hold the URL, so none is repeated.

    Through a `proxy`, only the proxy was connected to from here.
    """
    way = "" if proxy is None else f"the proxy {proxy.name}: "
    if isinstance(error, TimeoutError | httpx.TimeoutException):
        return f"no answer within {timeout_s:g} s"
    if isinstance(error, Untrusting):
        return str(error)
    if isinstance(error, httpx.ProxyError):
        # Only the status of its answer and its words.
        return f"the proxy opens no connection: {show_text(str(error))}"
    for cause in list_causes(error):
        if sentence := _describe_cause(cause):
            return sentence if isinstance(cause, ssl.SSLError) else f"{way}{sentence}"
    if isinstance(error, httpx.ConnectError):
        return f"{way}no connection could be opened"
    if isinstance(error, httpx.RemoteProtocolError | httpx.NetworkError):
        return "the connection was closed before the answer was complete"
    return f"the answer can't be read ({type(error).__name__})"


def _describe_cause(cause: BaseException) -> str | None:
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {show_text(cause.verify_message)}"
    if isinstance(cause, ssl.SSLError):
        # Only errors of OpenSSL have a reason.
        return f"TLS failed: {show_text(getattr(cause, 'reason', None) or type(cause).__name__)}"
    if isinstance(cause, socket.gaierror):
        unknown = cause.errno in (socket.EAI_NONAME, socket.EAI_NODATA)
        return "host name not found" if unknown else "the host name could not be looked up"
    if isinstance(cause, ConnectionRefusedError):
        return "connection refused"
    return None
