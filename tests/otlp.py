"""A collector of traces for tests: a real HTTP server that reads OTLP as the exporter sends it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

from devnet.http_server import serving
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SentSpan


@dataclass(frozen=True)
class Seen:
    """A span that arrived."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    kind: int
    notes: dict[str, object]
    links: tuple[str, ...]
    began_ns: int
    ended_ns: int
    process: str
    has_failed: bool


@dataclass
class Collector:
    """What arrived at the collector."""

    url: str
    spans: list[Seen] = field(default_factory=list)

    def named(self, name: str) -> list[Seen]:
        """The spans of this name, in the order of their beginnings."""
        return sorted((span for span in self.spans if span.name == name), key=lambda span: span.began_ns)


def read_span(span: SentSpan, process: str) -> Seen:
    values = {note.key: note.value for note in span.attributes}
    notes = {key: getattr(value, str(value.WhichOneof("value"))) for key, value in values.items()}
    return Seen(
        span.name,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        span.kind,
        notes,
        tuple(link.span_id.hex() for link in span.links),
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        process,
        span.status.code == span.status.STATUS_CODE_ERROR,
    )


@contextmanager
def collecting() -> Iterator[Collector]:
    """A running collector on loopback."""
    collector = Collector("")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            assert self.path == "/v1/traces"
            assert self.headers["content-type"] == "application/x-protobuf"
            sent = ExportTraceServiceRequest.FromString(body)
            for resource in sent.resource_spans:
                named = {note.key: note.value.string_value for note in resource.resource.attributes}
                assert named["service.name"] == "merchant-wallet"
                for scope in resource.scope_spans:
                    collector.spans += [read_span(span, named["wallet.process"]) for span in scope.spans]
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(200)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *words: object) -> None:
            """Nothing."""

    with serving(Handler) as port:
        collector.url = f"http://127.0.0.1:{port}"
        yield collector
