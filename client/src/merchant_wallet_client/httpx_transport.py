"""Requests over a client of httpx: the merchant's own, or ours where a proxy is not a usual one."""

from collections.abc import Callable
from typing import Any, Final

import httpx

from merchant_wallet_client.calls import Reply, Timeouts, Unanswered
from merchant_wallet_client.sending import Collector, UnusableAnswer, explain, make_headers
from merchant_wallet_client.wire import SignedRequest

ERRORS: Final = (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError, UnusableAnswer)


class _Options:
    """What both clients of httpx are told for each request."""

    def __init__(self, base_url: str, timeouts: Timeouts) -> None:
        self._base_url = base_url
        self._headers = make_headers()
        self._timeout = httpx.Timeout(timeouts.answer_s, connect=timeouts.connect_s)

    def of(self, request: SignedRequest) -> dict[str, Any]:
        """The arguments of `stream`."""
        return {
            "method": "POST",
            "url": self._base_url + request.path,
            "content": request.body.encode(),
            "headers": self._headers,
            "timeout": self._timeout,
            "follow_redirects": False,
        }


class HttpxTransport:
    """Sends requests over an `httpx.Client`. A given one is closed by whoever gave it."""

    def __init__(self, base_url: str, timeouts: Timeouts, given: httpx.Client | None) -> None:
        self._options = _Options(base_url, timeouts)
        self._timeouts = timeouts
        self._is_own = given is None
        self._http = given or httpx.Client()

    def post(self, prepare: Callable[[], SignedRequest]) -> Reply | Unanswered:
        """Send a request once. Raises what `prepare` raises."""
        request = prepare()
        collector = Collector(self._timeouts.answer_s)
        try:
            with self._http.stream(**self._options.of(request)) as response:
                for part in response.iter_bytes():
                    collector.take(part)
                return collector.make_reply(response.status_code, response.headers)
        except ERRORS as error:
            return explain(error)

    def close(self) -> None:
        """Close the connections, unless the client was given."""
        if self._is_own:
            self._http.close()


class AsyncHttpxTransport:
    """Sends requests over an `httpx.AsyncClient`. A given one is closed by whoever gave it."""

    def __init__(self, base_url: str, timeouts: Timeouts, given: httpx.AsyncClient | None) -> None:
        self._options = _Options(base_url, timeouts)
        self._timeouts = timeouts
        self._is_own = given is None
        self._http = given or httpx.AsyncClient()

    async def post(self, prepare: Callable[[], SignedRequest]) -> Reply | Unanswered:
        """Send a request once. Raises what `prepare` raises."""
        request = prepare()
        collector = Collector(self._timeouts.answer_s)
        try:
            async with self._http.stream(**self._options.of(request)) as response:
                async for part in response.aiter_bytes():
                    collector.take(part)
                return collector.make_reply(response.status_code, response.headers)
        except ERRORS as error:
            return explain(error)

    async def close(self) -> None:
        """Close the connections, unless the client was given."""
        if self._is_own:
            await self._http.aclose()
