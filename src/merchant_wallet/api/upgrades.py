"""Heads that offer another protocol (`Upgrade`), read as if they did not offer it.

A server may ignore `Upgrade` (RFC 9110 section 7.8). The parser stops behind such a head and takes what
follows for the other protocol's, so the head is read again without the offer. `CONNECT` is no request here.
"""

from collections.abc import Sequence

import httptools


class IgnoresUpgrades:
    """For a protocol that a parser calls back: `_feed` reads bytes, whatever their heads offer."""

    __slots__ = ("parser",)

    parser: httptools.HttpRequestParser

    def _has_ended(self) -> bool:
        """Whether nothing more is read from this client."""
        raise NotImplementedError

    def _refuse_bytes(self) -> None:
        """Tell the client that its bytes are no request, and read nothing more."""
        raise NotImplementedError

    def _latest_head(self) -> tuple[bytes, Sequence[tuple[bytes, bytes]]]:
        """The target of the latest request, and the headers that it is read by, their names in lower case."""
        raise NotImplementedError

    def _feed(self, data: bytes) -> None:
        """Have bytes parsed."""
        rest: bytes | memoryview = data
        try:
            while not self._has_ended():
                try:
                    self.parser.feed_data(rest)
                    return
                except httptools.HttpParserUpgrade as offer:
                    rest = memoryview(rest)[offer.args[0] :]
                    self._read_again()
        except httptools.HttpParserError:
            self._refuse_bytes()

    def _read_again(self) -> None:
        """Read the latest head without its offer. Raises HttpParserError."""
        method = self.parser.get_method()
        if method == b"CONNECT":
            self._refuse_bytes()
            return
        target, headers = self._latest_head()
        start = b"%b %b HTTP/%b\r\n" % (method, target, self.parser.get_http_version().encode())
        kept = [b"%b: %b\r\n" % header for header in headers if header[0] != b"upgrade"]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.feed_data(b"%b%b\r\n" % (start, b"".join(kept)))
