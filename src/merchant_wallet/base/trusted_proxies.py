"""The trusted proxies of the settings: whose address a request counts as, and what is wrong with a proxy.

Rules:
- A proxy's fault is logged. `doctor` finds it in the sources of the last requests.
- `Forwarded` (RFC 7239) is not read. Next to X-Forwarded-For it would be a second answer to one question, and
  a proxy that sets one of them passes the other on as the client sent it.
"""

from typing import Final

from merchant_wallet.base.complaints import Complaints
from merchant_wallet.base.source_addresses import (
    NOBODY,
    Network,
    find_source,
    hides_its_caller,
    is_trusted,
)

SET_HEADER: Final = "a proxy must append the address of its caller to X-Forwarded-For; Forwarded is not read"
NAME_PROXY: Final = "if that is a proxy of yours, name it in WALLET_TRUSTED_PROXIES"
UNREADABLE: Final = "X-Forwarded-For has no address of the caller"
MISSING: Final = "a trusted proxy sent no X-Forwarded-For: its own address counts"
UNNAMED: Final = "X-Forwarded-For came from an address that is no trusted proxy: it was ignored"
IN_FRONT: Final = (
    "X-Forwarded-For came through an inner address that is no trusted proxy: all its callers count as one"
)
_ADVICE: Final = {
    UNREADABLE: SET_HEADER,
    MISSING: SET_HEADER,
    UNNAMED: NAME_PROXY,
    IN_FRONT: NAME_PROXY,
}


class TrustedProxies:
    """See the module."""

    def __init__(self, networks: tuple[Network, ...] = (), complaints: Complaints | None = None) -> None:
        self.networks = networks
        self.complaints = complaints or Complaints()

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
        elif hides_its_caller(source, forwarded):
            self._complain(IN_FRONT, peer, forwarded)
        return source

    def _complain(self, fault: str, peer: str, forwarded: list[str]) -> None:
        self.complaints.say(fault, peer=peer, forwarded=", ".join(forwarded), advice=_ADVICE[fault])

    def note_unreadable(self, fault: str, peer: str, reason: str) -> None:
        """Log that a trusted proxy, and no stranger, sent bytes that are not a request."""
        if is_trusted(peer, self.networks):
            self.complaints.say(fault, peer=peer, reason=reason)
