"""Reads requests with `Upgrade` as if they had none.

A server may ignore `Upgrade` (RFC 9110 section 7.8). llhttp stops after such a head and takes the rest for
the other protocol, so the head is parsed again without the header. `CONNECT` is refused.
"""

from collections.abc import Sequence

import httptools


class IgnoresUpgrades:
    """Mixin for a protocol with an httptools parser. `_feed` parses bytes and ignores `Upgrade`."""

    __slots__ = ("parser",)

    parser: httptools.HttpRequestParser

    def _has_ended(self) -> bool:
        """Whether to read nothing more from this client."""
        raise NotImplementedError

    def _refuse_bytes(self, reason: str) -> None:
        """Refuse bytes that are not a request, and read nothing more. `reason` is for the log."""
        raise NotImplementedError

    def _latest_head(self) -> tuple[bytes, Sequence[tuple[bytes, bytes]]]:
        """The target of the latest request, and its headers that were kept, names in lower case."""
        raise NotImplementedError

    def _feed(self, data: bytes) -> None:
        """Parse bytes."""
        rest: bytes | memoryview = data
        try:
            while not self._has_ended():
                try:
                    self.parser.feed_data(rest)
                    return
                except httptools.HttpParserUpgrade as offer:
                    rest = memoryview(rest)[offer.args[0] :]
                    self._read_again()
        except httptools.HttpParserError as error:
            # What one of our own methods raised is the context of the parser's error.
            self._refuse_bytes(str(error.__context__ or error))

    def _read_again(self) -> None:
        """Parse the latest head again without `Upgrade`. Raises HttpParserError."""
        method = self.parser.get_method()
        if method == b"CONNECT":
            self._refuse_bytes("CONNECT")
            return
        target, headers = self._latest_head()
        start = b"%b %b HTTP/%b\r\n" % (method, target, self.parser.get_http_version().encode())
        kept = [b"%b: %b\r\n" % header for header in headers if header[0] != b"upgrade"]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.feed_data(b"%b%b\r\n" % (start, b"".join(kept)))
