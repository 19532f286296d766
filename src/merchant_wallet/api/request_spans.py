"""The spans of traced requests: from the first byte to the answer, with the gate as the first step.

Rules:
- A request's span begins when it has passed the gate, at the time when the request came. Requests that do not
  pass are not traced: a stranger must not fill the traces.
- The request that makes an order gives its span to the order. A repeat finds the order, and does not.
"""

from typing import Protocol

from merchant_wallet.api.dependencies import OperationRequest
from merchant_wallet.api.operation import Operation
from merchant_wallet.base.spans import Span, Tracer
from merchant_wallet.book.outcomes import Outcome, Withdrawal


class KeepsTraces(Protocol):
    """Where the traces of orders go."""

    def keep(self, merchant_id: int, order_id: int, traceparent: str) -> None:
        """Store the span of the request that made an order."""


def begin_span(tracer: Tracer, name: str, request: OperationRequest) -> Span | None:
    """The span of a request that has passed the gate. None if it is not traced."""
    span = tracer.begin_request(name, request.traceparent, request.began_s)
    if span is not None:
        span.note({"http.request.method": "POST", "wallet.request_id": request.request_id})
        if request.merchant_id is not None:
            span.note({"wallet.merchant_id": request.merchant_id})
        tracer.begin("gate", span.traceparent, began_s=request.began_s).end()
    return span


def keep_order(
    order_traces: KeepsTraces, operation: Operation, merchant_id: int, outcome: Outcome, span: Span
) -> None:
    """Remember the span of a request that made an order."""
    if isinstance(outcome, Withdrawal) and not operation.only_reads:
        span.note({"wallet.order_id": outcome.order_id})
        order_traces.keep(merchant_id, outcome.order_id, span.traceparent)
