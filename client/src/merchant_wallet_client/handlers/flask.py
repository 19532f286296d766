"""A view for Flask: `app.add_url_rule("/paid", view_func=callback_view(...), methods=["POST"])`."""

from collections.abc import Callable, Sequence

from flask import Response, request

from merchant_wallet_client.callbacks import MAX_CALLBACK_BYTES, TOLERANCE_S, AnyCallback
from merchant_wallet_client.handlers.receiving import ACCEPTED, TOO_LARGE, Answer, Check, store_now
from merchant_wallet_client.signing import HMAC, Method


def callback_view(
    secret: str | Sequence[str],
    store: Callable[[AnyCallback], object],
    *,
    sign_method: Method = HMAC,
    tolerance_s: float = TOLERANCE_S,
) -> Callable[[], Response]:
    """The view function."""
    check = Check(secret, sign_method, tolerance_s)

    def receive_callback() -> Response:
        # One byte more than allowed shows that the body is too long.
        body = request.stream.read(MAX_CALLBACK_BYTES + 1)
        came = TOO_LARGE if len(body) > MAX_CALLBACK_BYTES else check.read(body, dict(request.headers))
        if isinstance(came, Answer):
            return _make_response(came)
        store_now(store, came)
        return _make_response(ACCEPTED)

    return receive_callback


def _make_response(answer: Answer) -> Response:
    return Response(answer.text, answer.http_status, mimetype="text/plain")
