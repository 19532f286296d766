"""All URLs, one line each."""

from collections.abc import Awaitable, Mapping, Sequence

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from merchant_wallet.api.dependencies import Dependencies
from merchant_wallet.api.endpoint import Endpoint, send_answer, write_refusal
from merchant_wallet.api.operation import Operation
from merchant_wallet.api.operations.balances import GET_BALANCE
from merchant_wallet.api.operations.exchange import EXCHANGE
from merchant_wallet.api.operations.sub_users import GET_CUSTOMER
from merchant_wallet.api.operations.transfers import TRANSFER_FROM_USER, TRANSFER_TO_USER
from merchant_wallet.api.operations.withdrawals import CREATE, QUERY, QUOTE
from merchant_wallet.api.rewritten import NOWHERE, refuse_path
from merchant_wallet.base.codes import METHOD_NOT_ALLOWED, PATH_UNKNOWN, Refusal
from merchant_wallet.base.paths import is_plain
from merchant_wallet.processes.compared_clock import ComparedClock
from merchant_wallet.web.site import Site

OPERATIONS: tuple[Operation, ...] = (
    TRANSFER_FROM_USER,
    TRANSFER_TO_USER,
    CREATE,
    QUERY,
    GET_CUSTOMER,
    GET_BALANCE,
    EXCHANGE,
    QUOTE,
)


def build_endpoints(dependencies: Dependencies) -> dict[str, Endpoint]:
    """The eight operations by their paths."""
    return {operation.path: Endpoint(operation, dependencies) for operation in OPERATIONS}


class Dispatch:
    """The ASGI application: passes a request to the operation or site of its path."""

    def __init__(self, endpoints: Mapping[str, Endpoint], sites: Sequence[Site], rest: ASGIApp) -> None:
        self._endpoints = endpoints
        self._sites = sites
        self._rest = rest

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Pass the request on."""
        path, raw_path = scope["path"], scope["raw_path"]
        site = next((site for site in self._sites if site.owns(path)), None)
        if site is None and not is_plain(raw_path):
            # No route has an escape, so nothing is found.
            path = raw_path.decode("ascii")
            scope = {**scope, "path": path}
        return (self._endpoints.get(path) or site or self._rest)(scope, receive, send)


def build_rest(
    dependencies: Dependencies,
    mode: str,
    clock: ComparedClock,
    paths: Sequence[str],
    further: Sequence[Route] = (),
) -> ASGIApp:
    """Health, readiness, further routes, and answers for what is nowhere.

    `paths` are those of the operations: the refusal of an unknown path names the nearest.
    """

    async def health(request: Request) -> Response:
        status, word = (503, "stopping") if dependencies.in_flight.draining else (200, "ok")
        headers = {"x-request-id": dependencies.request_ids.next()}
        return JSONResponse({"status": word, "mode": mode}, status, headers)

    async def readiness(request: Request) -> Response:
        status, word = (503, "wrong clock") if clock.is_wrong else (200, "ready")
        if dependencies.in_flight.unready:
            status, word = 503, "stopping"
        headers = {"x-request-id": dependencies.request_ids.next()}
        return JSONResponse({"status": word, "mode": mode}, status, headers)

    async def unknown(request: Request, error: Exception) -> Response:
        if request.method != "POST":
            return _Envelope(dependencies, Refusal(PATH_UNKNOWN, NOWHERE), paths)
        return _Envelope(dependencies, refuse_path(request.scope["path"], paths), paths)

    async def not_allowed(request: Request, error: Exception) -> Response:
        allow = [(b"allow", b"GET, HEAD")]
        return _Envelope(
            dependencies, Refusal(METHOD_NOT_ALLOWED, "this path is read with GET"), paths, allow
        )

    rest = Starlette(
        routes=[
            Route("/healthz", health, methods=["GET"]),
            Route("/readyz", readiness, methods=["GET"]),
            *further,
        ],
        exception_handlers={PATH_UNKNOWN: unknown, METHOD_NOT_ALLOWED: not_allowed},
    )
    # A path with an extra slash is unknown. A redirect would have no envelope.
    rest.router.redirect_slashes = False
    return rest


class _Envelope(Response):
    """A refusal in an envelope, for a path that is not an operation."""

    def __init__(
        self,
        dependencies: Dependencies,
        refusal: Refusal,
        paths: Sequence[str],
        headers: Sequence[tuple[bytes, bytes]] = (),
    ) -> None:
        super().__init__()
        self._dependencies = dependencies
        self._refusal = refusal
        self._paths = paths
        self._extra = headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        dependencies, refusal = self._dependencies, self._refusal
        request_id = dependencies.request_ids.next()
        status, body, headers = write_refusal(refusal, self._extra)
        await send_answer(send, status, body, request_id, headers)
        peer = (scope.get("client") or ("",))[0]
        source = dependencies.proxies.find(peer, Request(scope).headers.getlist("x-forwarded-for"))
        dependencies.access_log.write_other(request_id, scope["path"], refusal.code, source)
        if refusal.code == PATH_UNKNOWN and scope["method"] == "POST":
            dependencies.note_path(scope["path"], self._paths, request_id, source)
