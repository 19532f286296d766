"""A merchant's callback endpoints: how the last attempts went, and test events.

Rules: an endpoint's answer is untrusted and shown only as text. A test event is sent by the workers, so its
outcome appears a moment later.
"""

from typing import Final

import msgspec
from starlette.responses import Response

from merchant_wallet.base.codes import Refused
from merchant_wallet.base.notify_url import check_notify_url
from merchant_wallet.callbacks import test_events
from merchant_wallet.callbacks.test_events import EndpointTest, TooManyTests
from merchant_wallet.console.callbacks import AttemptLine, show_bytes
from merchant_wallet.console.form_state import EMPTY_FORM, FormState, refill
from merchant_wallet.console.merchants import ONE, load, url_of
from merchant_wallet.console.request import POST, Connection, ConsoleRequest, Page, read_id
from merchant_wallet.merchants.acts import format_subject
from merchant_wallet.merchants.records import Merchant
from merchant_wallet.operators.roles import Right
from merchant_wallet.reporting import endpoints
from merchant_wallet.reporting.endpoints import Endpoint
from merchant_wallet.web.languages import N_

ENDPOINTS: Final = f"{ONE}/endpoints"
MAX_URL: Final = 100
SHOWN_TESTS: Final = 10
WAIT_MS: Final = 60_000
"""After this time a test without an outcome is not waited for."""
_URL: Final = N_(
    "Give a URL of at most 100 characters, with https:// and a host name. In the sandbox http:// is allowed."
)
_TOO_MANY: Final = N_("At most 30 test events are sent within an hour. Try again later.")


class EndpointLine(msgspec.Struct, frozen=True):
    """An endpoint as it is shown."""

    endpoint: Endpoint
    attempts: list[tuple[str, str, AttemptLine]]
    """Event id, state of the callback, and the attempt."""


class TestLine(msgspec.Struct, frozen=True):
    """A test event as it is shown. `answer` is text, see `show_bytes`."""

    event: EndpointTest
    answer: str
    is_waiting: bool


async def show_endpoints(request: ConsoleRequest, conn: Connection) -> Response:
    """The endpoints with their last attempts, and the test events."""
    return await _show(request, conn, await load(request, conn))


async def show_tests(request: ConsoleRequest, conn: Connection) -> Response:
    """The test events alone, requested while one is under way."""
    tests = await _list_tests(request, conn)
    merchant_id = read_id(request, "merchant_id")
    return request.part("console/test_events.html", merchant_id=merchant_id, tests=tests)


async def send_test(request: ConsoleRequest, conn: Connection) -> Response:
    """Have a test event sent to a URL."""
    merchant, url = await load(request, conn), request.form.text("url")
    if not _is_url(url, sandbox=request.context.settings.sandbox):
        errors = {"url": request.translate(_URL)}
        return await _show(request, conn, merchant, refill(request.form, ("url",), errors))
    try:
        async with conn.transaction():
            number = await test_events.ask_for_test(
                conn, merchant.merchant_id, url, request.actor, request.at_ms
            )
            subject = format_subject(merchant.merchant_id)
            after = {"eventNo": number, "url": url}
            await request.author.record(conn, "callback.test", subject, merchant.merchant_id, after=after)
    except TooManyTests:
        errors = {"url": request.translate(_TOO_MANY)}
        return await _show(request, conn, merchant, refill(request.form, ("url",), errors))
    return request.redirect(
        f"{url_of(merchant.merchant_id)}/endpoints", N_("It is sent now. The outcome appears below.")
    )


def _is_url(url: str, *, sandbox: bool) -> bool:
    try:
        check_notify_url(url, sandbox=sandbox)
    except Refused:
        return False
    return len(url) <= MAX_URL


async def _list_tests(request: ConsoleRequest, conn: Connection) -> list[TestLine]:
    found = await test_events.list_tests(conn, read_id(request, "merchant_id"), SHOWN_TESTS)
    return [
        TestLine(
            one,
            show_bytes(one.answer or b""),
            one.ended_ms is None and request.at_ms - one.requested_ms < WAIT_MS,
        )
        for one in found
    ]


def _show_endpoint(endpoint: Endpoint) -> EndpointLine:
    shown = [
        (
            one.event_id,
            one.state,
            AttemptLine(
                one.attempt_no,
                one.at_ms,
                one.address,
                one.http_status,
                one.failure,
                one.remark,
                show_bytes(one.answer or b""),
                one.latency_ms,
            ),
        )
        for one in endpoint.last
    ]
    return EndpointLine(endpoint, shown)


async def _show(
    request: ConsoleRequest, conn: Connection, merchant: Merchant, form_state: FormState = EMPTY_FORM
) -> Response:
    found = await endpoints.list_endpoints(await request.cells.of(merchant.merchant_id), merchant.merchant_id)
    known = [merchant.deposit_notify_url] if merchant.deposit_notify_url else []
    known += [one.url for one in found if one.url not in known]
    return request.page(
        "console/merchant_endpoints.html",
        active="merchants",
        status=200 if form_state.ok else 422,
        merchant=merchant,
        merchant_id=merchant.merchant_id,
        tab="endpoints",
        form_state=form_state,
        endpoints=[_show_endpoint(one) for one in found],
        known=known,
        most=endpoints.MAX_CALLBACKS,
        tests=await _list_tests(request, conn),
    )


ROUTES: Final = (
    Page(ENDPOINTS, show_endpoints, Right.READ),
    Page(f"{ENDPOINTS}/tests", show_tests, Right.READ, extends_session=False),
    Page(f"{ENDPOINTS}/test", send_test, Right.RESEND_CALLBACK, POST),
)
