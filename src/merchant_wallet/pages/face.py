"""One face as a part of the web application: its routes, its error pages, its request ids and its log.

Rules: every answer bears the request's id, which the log line bears too; an error is told in a page of the
face, in the visitor's language, and says nothing of what is inside. A token in a path is never logged.
"""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

import structlog
from starlette.applications import Starlette
from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ExceptionHandler, Message, Receive, Scope, Send

from merchant_wallet.book.writer import Unavailable
from merchant_wallet.logs import hide_link
from merchant_wallet.pages.connections import Away
from merchant_wallet.pages.csrf import Forged
from merchant_wallet.pages.forms import BadForm
from merchant_wallet.pages.ground import Ground
from merchant_wallet.pages.languages import N_, translate
from merchant_wallet.pages.live import TooMany

log = structlog.get_logger("pages")

PACKED_FROM_BYTES: Final = 1_000
PACKING_LEVEL: Final = 6
"""Nine would take twice the time for a hundredth less."""
ERROR_TEMPLATE: Final = "pages/error.html"
TEXTS: Final[Mapping[int, tuple[str, str]]] = {
    400: (
        N_("That could not be read"),
        N_("The form did not arrive as this page sends it. Try again."),
    ),
    403: (
        N_("Not allowed"),
        N_("This is not open to you, or the page was open too long. Load it again."),
    ),
    404: (N_("Nothing here"), N_("There is no such page, or it is not yours to see.")),
    405: (N_("Not possible here"), N_("This address takes no such request.")),
    429: (N_("Too many tries"), N_("Please wait a little and try again.")),
    500: (N_("Something broke on our side"), N_("Nothing was lost. We have been told; please try again.")),
    503: (N_("Back in a moment"), N_("The wallet is busy or restarting. Please try again in a moment.")),
}


class _Number(IntegerConvertor):
    """What stands in a path as `{name:int}`: no longer than a number that the database keeps."""

    regex = "[0-9]{1,18}"


register_url_convertor("int", _Number())


class Face:
    """The pages at `paths` and below; errors lead to `home`, if any, and `frame_ancestors` may frame them."""

    def __init__(
        self,
        ground: Ground,
        paths: Sequence[str],
        home: str,
        routes: Sequence[BaseRoute],
        closers: Sequence[Callable[[], Awaitable[None]]] = (),
        frame_ancestors: Sequence[str] = (),
    ) -> None:
        self._ground = ground
        self._closers = closers
        self._frame_ancestors = frame_ancestors
        self._paths = tuple(paths)
        self._home = home
        application = Starlette(routes=list(routes), exception_handlers=self._handlers())
        # A path with a slash too many is a page that is not there.
        application.router.redirect_slashes = False
        self._application = GZipMiddleware(application, PACKED_FROM_BYTES, PACKING_LEVEL)

    def owns(self, path: str) -> bool:
        """Whether a path is one of this face's."""
        return any(path == own or path.startswith(own + "/") for own in self._paths)

    async def close(self) -> None:
        """End what runs beside the requests."""
        for close in self._closers:
            await close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, whatever happens, with its id."""
        request_id = scope["request_id"] = self._ground.request_ids.next()
        status, began_s = 0, time.monotonic()

        async def send_noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", request_id.encode())]
            await send(message)

        try:
            await self._application(scope, receive, send_noted)
        except Exception as error:
            log.error("page failed", request_id=request_id, path=hide_link(scope["path"]), exc_info=error)
            if not status:
                await self._tell(Request(scope, receive), 500)(scope, receive, send_noted)
        finally:
            source = self._ground.visitor(Request(scope)).source
            took_s = time.monotonic() - began_s
            self._ground.access_log.write_foreign(request_id, scope["path"], status, source, took_s)

    def _tell(self, request: Request, status: int, headers: Mapping[str, str] | None = None) -> Response:
        title, text = TEXTS.get(status, TEXTS[500])
        visitor = self._ground.visitor(request)
        values = {
            "title": translate(visitor.language, title),
            "text": translate(visitor.language, text),
            "status": status,
            "home": self._home,
            "theme": visitor.theme,
            "csrf": "",
            "request_id": request.scope.get("request_id", ""),
        }
        answers = self._ground.answers
        return answers.page(
            ERROR_TEMPLATE,
            visitor.language,
            values,
            status=status,
            frame_ancestors=self._frame_ancestors,
            headers=headers,
        )

    def _handlers(self) -> dict[int | type[Exception], ExceptionHandler]:
        def on(status: int, headers: Mapping[str, str] | None = None) -> ExceptionHandler:
            async def handle(request: Request, error: Exception) -> Response:
                if status == 503:
                    log.warning("not available", request_id=request.scope["request_id"], reason=str(error))
                return self._tell(request, status, headers)

            return handle

        async def on_http(request: Request, error: Exception) -> Response:
            assert isinstance(error, HTTPException)
            return self._tell(request, error.status_code, error.headers)

        async def on_leaving(request: Request, error: Exception) -> Response:
            # Nobody is left to read it.
            return Response(status_code=400)

        return {
            Exception: on(500),
            HTTPException: on_http,
            ClientDisconnect: on_leaving,
            BadForm: on(400),
            Forged: on(403),
            Away: on(503, {"retry-after": "2"}),
            Unavailable: on(503, {"retry-after": "2"}),
            TooMany: on(503, {"retry-after": "10"}),
        }
