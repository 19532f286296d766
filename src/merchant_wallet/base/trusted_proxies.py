"""The trusted proxies of the settings: whose address a request counts as, and what is wrong with a proxy.

Rules:
- A proxy's fault is logged as a warning, at most once an hour for each kind. `doctor` finds it in the sources
  of the last requests.
- `Forwarded` (RFC 7239) is not read. Next to X-Forwarded-For it would be a second answer to one question, and
  a proxy that sets one of them passes the other on as the client sent it.
"""

import time
from collections.abc import Callable
from typing import Final

import structlog

from merchant_wallet.base.source_addresses import NOBODY, Network, find_source, is_trusted

log = structlog.get_logger("proxies")

REPEAT_S: Final = 3600.0
MAX_SHOWN: Final = 200
"""So many characters of a header are logged."""
SET_HEADER: Final = "a proxy must append the address of its caller to X-Forwarded-For; Forwarded is not read"
NAME_PROXY: Final = "if that is a proxy of yours, name it in WALLET_TRUSTED_PROXIES"
UNREADABLE: Final = "X-Forwarded-For has no address of the caller"
MISSING: Final = "a trusted proxy sent no X-Forwarded-For: its own address counts"
UNNAMED: Final = "X-Forwarded-For came from an address that is no trusted proxy: it was ignored"
_ADVICE: Final = {UNREADABLE: SET_HEADER, MISSING: SET_HEADER, UNNAMED: NAME_PROXY}


class TrustedProxies:
    """See the module."""

    def __init__(
        self, networks: tuple[Network, ...] = (), monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.networks = networks
        self._monotonic = monotonic
        self._quiet_until_s: dict[str, float] = {}

    def find(self, peer: str, forwarded: list[str]) -> str:
        """The address that a request from `peer` counts as. `forwarded` are its X-Forwarded-For headers."""
        source = find_source(peer, forwarded, self.networks)
        if source == NOBODY:
            self._complain(UNREADABLE, peer, forwarded)
        elif source == peer:
            if not is_trusted(peer, self.networks):
                if forwarded:
                    self._complain(UNNAMED, peer, forwarded)
            elif not any(line.strip(" ,\t") for line in forwarded):
                self._complain(MISSING, peer, forwarded)
        return source

    def _complain(self, fault: str, peer: str, forwarded: list[str]) -> None:
        now_s = self._monotonic()
        if now_s < self._quiet_until_s.get(fault, now_s):
            return
        self._quiet_until_s[fault] = now_s + REPEAT_S
        header = ", ".join(forwarded).encode("ascii", "backslashreplace").decode()[-MAX_SHOWN:]
        log.warning(fault, peer=peer, forwarded=header, advice=_ADVICE[fault])
