"""Spans: the pieces of work that a trace shows. With traces off nothing is recorded, and nothing is imported.

Rules:
- A span is named to others by its `traceparent` (W3C Trace Context), as a text. So it can be stored and sent.
- Work that has a task of its own opens a span with `work`; what is called from there opens `step`s. The hot
  path calls its tracer itself, because its requests have no tasks.
- Only traced work opens a span. Everything else costs a comparison or a look at a context variable.
- A span never changes what the work does. Its attributes contain ids and codes, but no secret and no body.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Final, Literal, NamedTuple, Protocol

from structlog.contextvars import bound_contextvars

Kind = Literal["internal", "server", "client"]
Notes = Mapping[str, str | int | bool]
"""Attributes of a span."""
NO_NOTES: Final[Notes] = {}
TRACEPARENT: Final = b"traceparent"
"""The header."""


class Span(Protocol):
    """A piece of work under way."""

    @property
    def traceparent(self) -> str:
        """What names this span to others, as in the header."""

    def note(self, notes: Notes) -> None:
        """Add attributes."""

    def fail(self, error: BaseException) -> None:
        """The work failed."""

    def end(self) -> None:
        """The work is over."""


class Tracer(Protocol):
    """Records spans."""

    def begin_request(self, name: str, traceparent: str, began_s: float) -> Span | None:
        """A request's span, which began at a monotonic time. None if this request is not traced."""

    def begin(
        self,
        name: str,
        parent: str,
        *,
        links: Sequence[str] = (),
        kind: Kind = "internal",
        began_s: float | None = None,
        notes: Notes = NO_NOTES,
    ) -> Span:
        """A span below another."""


class OrderTraces(Protocol):
    """Finds the trace of the request that made an order."""

    async def find(self, merchant_id: int, order_id: int) -> str | None:
        """The request's span. None if the request was not traced."""


class Tracing(NamedTuple):
    """What workers need for their spans."""

    tracer: Tracer
    orders: OrderTraces


_current: ContextVar[tuple[Tracer, Span] | None] = ContextVar("span", default=None)
_NOTHING: Final = nullcontext()


def current() -> str:
    """The traceparent of the work under way, or an empty text."""
    found = _current.get()
    return "" if found is None else found[1].traceparent


def read_trace_id(traceparent: str) -> str:
    """The trace that a span belongs to."""
    return traceparent[3:35]


@contextmanager
def work(
    tracer: Tracer,
    name: str,
    parent: str,
    *,
    links: Sequence[str] = (),
    kind: Kind = "internal",
    notes: Notes = NO_NOTES,
) -> Iterator[Span]:
    """A span around work, as the parent of the steps that are called from it.

    Log lines have its trace's id.
    """
    span = tracer.begin(name, parent, links=links, kind=kind, notes=notes)
    token = _current.set((tracer, span))
    try:
        with bound_contextvars(trace_id=read_trace_id(span.traceparent)):
            yield span
    except BaseException as error:
        span.fail(error)
        raise
    finally:
        _current.reset(token)
        span.end()


def step(name: str) -> AbstractContextManager[Span | None]:
    """A span around a step of the work under way. Nothing if that is not traced."""
    found = _current.get()
    if found is None:
        return _NOTHING
    tracer, parent = found
    return work(tracer, name, parent.traceparent)


async def work_on_order(
    tracing: Tracing | None, name: str, merchant_id: int, order_id: int, *, kind: Kind = "internal"
) -> AbstractContextManager[Span | None]:
    """A span around a worker's work on an order, in the trace of the request that made the order."""
    if tracing is None:
        return _NOTHING
    parent = await tracing.orders.find(merchant_id, order_id)
    if parent is None:
        return _NOTHING
    notes = {"wallet.merchant_id": merchant_id, "wallet.order_id": order_id}
    return work(tracing.tracer, name, parent, kind=kind, notes=notes)
