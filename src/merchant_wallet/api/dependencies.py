"""What the endpoints of all operations share, and a request for an operation."""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

import msgspec

from merchant_wallet.api.gate import Gate
from merchant_wallet.api.operation import OperationContext
from merchant_wallet.api.refused_requests.buffer import RefusedRequestBuffer
from merchant_wallet.api.request_log.recorder import RequestRecorder
from merchant_wallet.api.rewritten import KEEP_PATH, PATH_CHANGED, find_operation
from merchant_wallet.api.scheduler import Scheduler
from merchant_wallet.api.turns import SHARED, Turn
from merchant_wallet.api.wire import Fields
from merchant_wallet.base.source_addresses import Network
from merchant_wallet.base.spans import Span, Tracer
from merchant_wallet.base.trusted_proxies import TrustedProxies
from merchant_wallet.book.commands import Command, Submission
from merchant_wallet.book.outcomes import Outcome
from merchant_wallet.book.submissions import Books
from merchant_wallet.merchants.cache import MerchantCache
from merchant_wallet.merchants.issued_addresses import IssuedAddress
from merchant_wallet.merchants.records import Merchant
from merchant_wallet.observability.counters import RequestCounters
from merchant_wallet.observability.logs import AccessLog, RequestIds, hide_link
from merchant_wallet.observability.traces import StoredTraces

Header = tuple[bytes, bytes]
Reply = Callable[[int, bytes, str, Sequence[Header]], None]
"""Takes HTTP status, body, request id and further headers. Called once for each request."""


class RequestsInFlight:
    """Counts requests under way, and says how far this process is on its way to its end.

    `unready`: all requests are still answered, and other processes shall get the next ones. `ending`: each
    answer ends its connection. `left`: no new connection comes, and streams end. `draining`: new requests are
    refused.
    """

    def __init__(self) -> None:
        self.count = 0
        self.unready = self.ending = self.left = self.draining = False
        self._idle = asyncio.Event()

    def end(self) -> None:
        """A request is answered."""
        self.count -= 1
        if self.draining and self.count == 0:
            self._idle.set()

    async def drain(self, timeout_s: float) -> bool:
        """Refuse new requests and wait for those under way. False if that takes too long."""
        self.unready = self.ending = self.left = self.draining = True
        if self.count:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._idle.wait(), timeout_s)
        return self.count == 0


class Dependencies:
    """Everything the endpoints share."""

    def __init__(
        self,
        *,
        gate: Gate,
        merchant_cache: MerchantCache,
        writer: Books,
        operation_context: OperationContext,
        access_log: AccessLog,
        trusted_proxies: tuple[Network, ...] = (),
        refused_requests: RefusedRequestBuffer | None = None,
        request_recorder: RequestRecorder | None = None,
        tracer: Tracer | None = None,
        order_traces: StoredTraces | None = None,
    ) -> None:
        self.gate = gate
        self.merchant_cache = merchant_cache
        self.writer = writer
        self.operation_context = operation_context
        self.access_log = access_log
        self.proxies = TrustedProxies(trusted_proxies)
        self.refused_requests = refused_requests
        self.request_recorder = request_recorder
        self.tracer = tracer
        self.order_traces = order_traces
        self.request_ids = RequestIds()
        self.in_flight = RequestsInFlight()
        self.request_counters = RequestCounters()
        self.scheduler = Scheduler()

    async def issue_address(self, merchant: Merchant) -> IssuedAddress:
        """Issue the next address of a merchant."""
        return await self.merchant_cache.issue_address(merchant)

    async def ask(self, merchant: Merchant, command: Command) -> Outcome:
        """Submit a follow-up command to the book."""
        return await self.writer.submit(merchant.merchant_id, Submission(command))

    def note_path(self, path: str, operations: Iterable[str], request_id: str, source: str) -> None:
        """Log a path at which there is nothing, if it is an operation's that was changed on its way."""
        documented = find_operation(path, operations)
        if documented is not None:
            self.proxies.complaints.say(
                PATH_CHANGED,
                path=hide_link(path),
                documented=documented,
                request_id=request_id,
                source=source,
                advice=KEEP_PATH,
            )


class OperationRequest(msgspec.Struct):
    """One request for an operation. `began_s` is on the monotonic clock.

    `merchant_id` is the merchant that has signed it, once that is known. `traceparent` is the caller's span,
    `span` ours, if the request is traced. `quota` are the headers about the merchant's rate limit.
    """

    content_type: str | None
    body: bytes
    source: str
    request_id: str
    reply: Reply
    began_s: float = msgspec.field(default_factory=time.monotonic)
    fields: Fields | None = None
    app_key: str = ""
    merchant_id: int | None = None
    traceparent: str = ""
    span: Span | None = None
    turn: Turn = SHARED
    counted: bool = False
    quota: Sequence[Header] = ()
