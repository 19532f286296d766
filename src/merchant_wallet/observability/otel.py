"""Traces by OpenTelemetry: spans are sent in batches as OTLP over HTTP, by a thread of their own.

Rules:
- Only this module imports OpenTelemetry, and it is imported only if traces are on.
- A request is traced if its caller traces it, or else by chance. Of the callers' requests at most
  `MAX_CALLERS` a second are traced in a process: what a stranger sends must not slow the service.
- Spans are sent every five seconds, since each sending costs some milliseconds (OTEL_BSP_SCHEDULE_DELAY).
- Spans that can't be sent are dropped. Nothing waits for the collector, except the end of the process, for at
  most `CLOSE_S`.
"""

import os
import random
import re
import socket
import time
from collections.abc import Callable, Sequence
from typing import Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)
from opentelemetry.trace import Span as OtelApiSpan

from merchant_wallet.base.spans import NO_NOTES, Kind, Notes

MAX_CALLERS: Final = 100
SEND_TIMEOUT_S: Final = 5
CLOSE_S: Final = 5
PATH: Final = "/v1/traces"
KINDS: Final[dict[Kind, SpanKind]] = {
    "internal": SpanKind.INTERNAL,
    "server": SpanKind.SERVER,
    "client": SpanKind.CLIENT,
}
_match_traceparent = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})").fullmatch


def read_traceparent(text: str) -> SpanContext | None:
    """The span that a header names. None if it is not a valid one."""
    found = _match_traceparent(text)
    if found is None:
        return None
    trace_id, span_id, flags = (int(part, 16) for part in found.groups())
    context = SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(flags))
    return context if context.is_valid else None


def write_traceparent(context: SpanContext) -> str:
    """The header that names a span."""
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


class OtelSpan:
    """See `base.spans.Span`."""

    def __init__(self, span: OtelApiSpan) -> None:
        self._span = span
        self.traceparent = write_traceparent(span.get_span_context())

    def note(self, notes: Notes) -> None:
        """Add attributes."""
        self._span.set_attributes(notes)

    def fail(self, error: BaseException) -> None:
        """The work failed. The error's words may hold what a log line may, too."""
        text = f": {error}" if str(error) else ""
        self._span.set_status(Status(StatusCode.ERROR, f"{type(error).__name__}{text}"[:300]))

    def end(self) -> None:
        """The work is over."""
        self._span.end()


class OtelTracer:
    """See `base.spans.Tracer`. `share` is the share of requests that is traced by chance."""

    def __init__(
        self,
        url: str,
        share: float,
        process: str,
        version: str,
        *,
        draw: Callable[[], float] = random.random,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        resource = Resource.create(
            {
                "service.name": "merchant-wallet",
                "service.version": version,
                "service.instance.id": f"{socket.gethostname()}:{os.getpid()}",
                "wallet.process": process,
            }
        )
        self._provider = TracerProvider(sampler=ALWAYS_ON, resource=resource, shutdown_on_exit=False)
        exporter = OTLPSpanExporter(endpoint=url + PATH, timeout=SEND_TIMEOUT_S)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("merchant_wallet", version)
        self._share = share
        self._draw = draw
        self._monotonic = monotonic
        self._second, self._callers = 0, 0

    def begin_request(self, name: str, traceparent: str, began_s: float) -> OtelSpan | None:
        """A request's span. None if this request is not traced."""
        caller = read_traceparent(traceparent) if traceparent else None
        if caller is None:
            return None if self._draw() >= self._share else self._begin_root(name, began_s)
        if not caller.trace_flags & TraceFlags.SAMPLED or not self._admits():
            return None
        return self.begin(name, traceparent, kind="server", began_s=began_s)

    def begin(
        self,
        name: str,
        parent: str,
        *,
        links: Sequence[str] = (),
        kind: Kind = "internal",
        began_s: float | None = None,
        notes: Notes = NO_NOTES,
    ) -> OtelSpan:
        """A span below another."""
        context = read_traceparent(parent)
        linked = [Link(each) for each in map(read_traceparent, links) if each is not None]
        return OtelSpan(
            self._tracer.start_span(
                name,
                context=None if context is None else set_span_in_context(NonRecordingSpan(context)),
                kind=KINDS[kind],
                attributes=notes,
                links=linked,
                start_time=None if began_s is None else self._to_ns(began_s),
            )
        )

    def close(self) -> None:
        """Send what is left."""
        self._provider.force_flush(CLOSE_S * 1000)
        self._provider.shutdown()

    def _begin_root(self, name: str, began_s: float) -> OtelSpan:
        started_ns = self._to_ns(began_s)
        return OtelSpan(self._tracer.start_span(name, kind=SpanKind.SERVER, start_time=started_ns))

    def _admits(self) -> bool:
        second = int(self._monotonic())
        if second != self._second:
            self._second, self._callers = second, 0
        self._callers += 1
        return self._callers <= MAX_CALLERS

    def _to_ns(self, at_s: float) -> int:
        return time.time_ns() - int((time.monotonic() - at_s) * 1e9)
