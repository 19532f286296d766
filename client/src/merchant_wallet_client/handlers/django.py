"""A view for Django: `path("paid", callback_view(...))` in `urlpatterns`. It needs no CSRF token."""

from collections.abc import Callable, Sequence

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from merchant_wallet_client.callbacks import TOLERANCE_S, AnyCallback
from merchant_wallet_client.handlers.receiving import ACCEPTED, ONLY_POST, Answer, Check, store_now
from merchant_wallet_client.signing import HMAC, Method


def callback_view(
    secret: str | Sequence[str],
    store: Callable[[AnyCallback], object],
    *,
    sign_method: Method = HMAC,
    tolerance_s: float = TOLERANCE_S,
) -> Callable[[HttpRequest], HttpResponse]:
    """The view. Django itself limits the body (DATA_UPLOAD_MAX_MEMORY_SIZE)."""
    check = Check(secret, sign_method, tolerance_s)

    def receive_callback(request: HttpRequest) -> HttpResponse:
        if request.method != "POST":
            response = _make_response(ONLY_POST)
            response["Allow"] = "POST"
            return response
        came = check.read(request.body, request.headers)
        if isinstance(came, Answer):
            return _make_response(came)
        store_now(store, came)
        return _make_response(ACCEPTED)

    view: Callable[[HttpRequest], HttpResponse] = csrf_exempt(receive_callback)
    return view


def _make_response(answer: Answer) -> HttpResponse:
    return HttpResponse(answer.text, status=answer.http_status, content_type="text/plain; charset=utf-8")
