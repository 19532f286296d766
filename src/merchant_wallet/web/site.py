"""One site as a part of the web application: its routes, error pages, request ids and log.

Rules: every response has the request's id, and so has its log line. An error page is in the client's language
and tells nothing internal. A token in a path is never logged. Clients without a session are limited by the
rate limiter.
"""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final
from urllib.parse import quote

import structlog
from starlette.applications import Starlette
from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, ExceptionHandler, Message, Receive, Scope, Send
from structlog.contextvars import bind_contextvars, get_contextvars

from merchant_wallet.base.errors import TransientError
from merchant_wallet.base.paths import is_plain
from merchant_wallet.base.workers import log_error
from merchant_wallet.book.errors import Unavailable
from merchant_wallet.observability.logs import hide_link
from merchant_wallet.web.context import PageContext
from merchant_wallet.web.csrf import Forged, WrongToken
from merchant_wallet.web.forbidden import Forbidden, explain_forged
from merchant_wallet.web.forms import BadForm
from merchant_wallet.web.languages import N_, translate
from merchant_wallet.web.live import TooManyStreams
from merchant_wallet.web.rate_limiter import AUTHENTICATED, FILE
from merchant_wallet.web.turns import TooManyRequests

log = structlog.get_logger("pages")

FORM_REFUSED: Final = "a form was refused: another site sent it, or a proxy changed Host"
KEEP_HOST: Final = "a proxy must pass on the browser's Host"
PACKED_FROM_BYTES: Final = 1_000
PACKING_LEVEL: Final = 6
"""Level nine takes twice the time and saves one percent."""
ERROR_TEMPLATE: Final = "web/error.html"
TEXTS: Final[Mapping[int, tuple[str, str]]] = {
    400: (
        N_("That could not be read"),
        N_("The form was not sent by this page. Try again."),
    ),
    403: (
        N_("Not allowed"),
        N_("You may not do this."),
    ),
    404: (N_("Nothing here"), N_("There is no such page, or you may not see it.")),
    405: (N_("Not possible here"), N_("This address does not accept such a request.")),
    429: (N_("Too many tries"), N_("Please wait a little and try again.")),
    500: (N_("An error occurred on our side"), N_("Nothing was lost. We have been told; please try again.")),
    503: (N_("Back in a moment"), N_("The wallet is busy or restarting. Please try again in a moment.")),
}


class _Number(IntegerConvertor):
    """`{name:int}` in a path: no longer than a number of the database."""

    regex = "[0-9]{1,18}"


register_url_convertor("int", _Number())


class Site:
    """The pages at `paths` and below. Error pages link to `home`, if any. `frame_ancestors` may frame
    them.

    `cookie` is the name of the session cookie, if there are sessions.
    """

    def __init__(
        self,
        context: PageContext,
        paths: Sequence[str],
        home: str,
        routes: Sequence[BaseRoute],
        closers: Sequence[Callable[[], Awaitable[None]]] = (),
        frame_ancestors: Sequence[str] = (),
        cookie: str = "",
    ) -> None:
        self._context = context
        self._cookie = cookie
        self._closers = closers
        self._frame_ancestors = frame_ancestors
        self._paths = tuple(paths)
        self._home = home
        self._routes = tuple(routes)
        application = Starlette(routes=list(routes), exception_handlers=self._handlers())
        # A path with an extra slash does not exist.
        application.router.redirect_slashes = False
        self._application = GZipMiddleware(application, PACKED_FROM_BYTES, PACKING_LEVEL)

    def owns(self, path: str) -> bool:
        """Whether a path belongs to this site."""
        return any(path == own or path.startswith(own + "/") for own in self._paths)

    async def close(self) -> None:
        """Stop what runs in the background."""
        for close in self._closers:
            await close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, whatever happens, with its id. The task is this request's alone."""
        request_id = scope["request_id"] = self._context.request_ids.next()
        bind_contextvars(request_id=request_id)
        status, began_s = 0, time.monotonic()
        source = self._context.client(Request(scope)).source

        async def send_noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", request_id.encode())]
            await send(message)

        try:
            answer, looks_up = self._admit(scope, source)
            await answer(scope, receive, send_noted)
            # While the database is away, an unknown token says nothing about the client.
            if looks_up and not {AUTHENTICATED, FILE} & scope.keys() and status != 503:
                self._context.rate_limiter.note_invalid_token(source)
        except Exception as error:
            log_error(log, "page failed", error, path=hide_link(scope["path"]))
            if not status:
                await self._error_page(Request(scope, receive), 500)(scope, receive, send_noted)
        finally:
            took_s = time.monotonic() - began_s
            merchant_id = get_contextvars().get("merchant_id")
            self._context.access_log.write_other(
                request_id, scope["path"], status, source, took_s, merchant_id
            )

    def _admit(self, scope: Scope, source: str) -> tuple[ASGIApp, bool]:
        """The application that answers a request, and whether it looks a token up.

        It is the site itself, or a page that says to wait.
        """
        # For a path that is not a page nothing is looked up, so a token does not help there.
        is_page = is_plain(scope["raw_path"])
        brings_token = is_page and bool(self._cookie) and self._cookie in Request(scope).cookies
        wait_s = self._context.rate_limiter.admit(source, brings_token=brings_token)
        if wait_s:
            return self._error_page(Request(scope), 429, {"retry-after": str(wait_s)}), False
        if not is_page:
            return self._error_page(Request(scope), 404), False
        return self._application, brings_token

    def _find_page(self, request: Request) -> str:
        """The page above a path that only accepts forms.

        After a refused form that path is in the address bar, and a phone that restores its tabs requests it
        with GET.
        """
        path, _, _ = request.url.path.rpartition("/")
        while self.owns(path):
            scope = {**request.scope, "path": path}
            if any(route.matches(scope)[0] is Match.FULL for route in self._routes):
                return path
            path, _, _ = path.rpartition("/")
        return self._home

    def _error_page(
        self, request: Request, status: int, headers: Mapping[str, str] | None = None, cause: str = ""
    ) -> Response:
        """`cause` is a sentence that says more than the status's own text."""
        title, text = TEXTS.get(status, TEXTS[500])
        text = cause or text
        client = self._context.client(request)
        values = {
            "title": translate(client.language, title),
            "text": translate(client.language, text),
            "status": status,
            "home": self._home,
            "theme": client.theme,
            "csrf": "",
            "request_id": request.scope.get("request_id", ""),
        }
        responses = self._context.responses
        return responses.page(
            ERROR_TEMPLATE,
            client.language,
            values,
            status=status,
            frame_ancestors=self._frame_ancestors,
            headers=headers,
        )

    def _handlers(self) -> dict[int | type[Exception], ExceptionHandler]:
        def on(status: int, headers: Mapping[str, str] | None = None) -> ExceptionHandler:
            async def handle(request: Request, error: Exception) -> Response:
                if status == 503:
                    log.warning("not available", path=hide_link(request.url.path), reason=str(error))
                return self._error_page(request, status, headers)

            return handle

        async def on_http(request: Request, error: Exception) -> Response:
            assert isinstance(error, HTTPException)
            if self._home and error.status_code == 405 and request.method == "GET":
                page = quote(self._find_page(request))
                return self._context.responses.redirect(page, self._frame_ancestors)
            cause = error.text if isinstance(error, Forbidden) else ""
            return self._error_page(request, error.status_code, error.headers, cause)

        async def on_forged(request: Request, error: Exception) -> Response:
            if not isinstance(error, WrongToken):
                self._context.proxies.complaints.say(
                    FORM_REFUSED, reason=str(error), path=hide_link(request.url.path), advice=KEEP_HOST
                )
            return self._error_page(request, 403, cause=explain_forged(error))

        async def on_crowd(request: Request, error: Exception) -> Response:
            # One person may cause many of these at once. A whole page would keep the process busy with them.
            text = translate(self._context.client(request).language, TEXTS[503][1])
            headers = {**self._context.responses.headers(self._frame_ancestors), "retry-after": "2"}
            return PlainTextResponse(text, 503, headers)

        async def on_leaving(request: Request, error: Exception) -> Response:
            # The client has left.
            return Response(status_code=400)

        return {
            Exception: on(500),
            HTTPException: on_http,
            ClientDisconnect: on_leaving,
            BadForm: on(400),
            Forged: on_forged,
            TooManyRequests: on_crowd,
            TransientError: on(503, {"retry-after": "2"}),
            Unavailable: on(503, {"retry-after": "2"}),
            TooManyStreams: on(503, {"retry-after": "10"}),
        }
