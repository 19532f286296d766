"""An endpoint for Starlette and FastAPI.

Use it as `app.add_route("/paid", callback_endpoint(secret, store), methods=["POST"])`.
"""

import inspect
from collections.abc import Awaitable, Callable, Sequence

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from merchant_wallet_client.callbacks import MAX_CALLBACK_BYTES, TOLERANCE_S, AnyCallback
from merchant_wallet_client.handlers.receiving import ACCEPTED, TOO_LARGE, Answer, Check
from merchant_wallet_client.signing import HMAC, Method

Store = Callable[[AnyCallback], object] | Callable[[AnyCallback], Awaitable[object]]


def callback_endpoint(
    secret: str | Sequence[str],
    store: Store,
    *,
    sign_method: Method = HMAC,
    tolerance_s: float = TOLERANCE_S,
) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint. `store` may be async. If it is not, it runs in a thread."""
    check = Check(secret, sign_method, tolerance_s)

    async def receive_callback(request: Request) -> Response:
        body = await _read_body(request)
        came = TOO_LARGE if body is None else check.read(body, request.headers)
        if isinstance(came, Answer):
            return _make_response(came)
        if inspect.iscoroutinefunction(store):
            await store(came)
        else:
            result = await run_in_threadpool(store, came)
            if inspect.isawaitable(result):
                # A lambda or an object around an async function: nothing is stored before this.
                await result
        return _make_response(ACCEPTED)

    return receive_callback


async def _read_body(request: Request) -> bytes | None:
    """The body, or None if it is too long."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_CALLBACK_BYTES:
            return None
    return body


def _make_response(answer: Answer) -> Response:
    return PlainTextResponse(answer.text, answer.http_status)
