"""Responses of the pages: a template's text with security headers.

Rules:
- Scripts and other resources come only from our own origin, and never inline. Only the named origins may
  frame a page. Neither browsers nor proxies store a page.
- A body is rendered when it is sent. By then the page has given its database connection back.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from merchant_wallet.base.paths import write_location
from merchant_wallet.web.csrf import mask
from merchant_wallet.web.languages import Language
from merchant_wallet.web.templates import Templates

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors {ancestors}"
)
_HEADERS: Final = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
    "x-robots-tag": "noindex",
}
_TRANSPORT: Final = "max-age=31536000"


class RenderedLate(Response):
    """A response whose body is rendered when it is sent."""

    def __init__(
        self,
        render: Callable[[], str],
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        content_type: str = "text/html",
    ) -> None:
        super().__init__(None, status, headers, content_type)
        self._render_late = render

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Render the body and send it."""
        self.body = self._render_late().encode()
        self.headers["content-length"] = str(len(self.body))
        await super().__call__(scope, receive, send)


class RenderedPage(RenderedLate):
    """A page from a template. `values` may be completed until it is sent."""

    def __init__(
        self,
        render: Callable[[Mapping[str, object]], str],
        values: dict[str, Any],
        status: int,
        headers: Mapping[str, str],
    ) -> None:
        super().__init__(partial(render, values), status, headers)
        self.values = values


class Responses:
    """Makes responses. `secure`: the pages are reached over https."""

    def __init__(self, templates: Templates, *, secure: bool) -> None:
        self._templates = templates
        self.secure = secure

    def prepare(self, *prefixes: str) -> None:
        """Compile the templates with these prefixes."""
        self._templates.prepare(*prefixes)

    def headers(self, frame_ancestors: Sequence[str] = ()) -> dict[str, str]:
        """The headers of every page. `frame_ancestors` are the origins that may frame it."""
        headers = {
            **_HEADERS,
            "content-security-policy": _POLICY.format(ancestors=" ".join(frame_ancestors) or "'none'"),
        }
        if not frame_ancestors:
            headers["x-frame-options"] = "DENY"
        if self.secure:
            headers["strict-transport-security"] = _TRANSPORT
        return headers

    def render(self, name: str, language: Language, /, **values: object) -> str:
        """A template's text. `csrf` among the values is the session's token, which is masked here."""
        if token := values.get("csrf"):
            values["csrf"] = mask(str(token))
        return self._templates.render(name, language, **values)

    def page(
        self,
        name: str,
        language: Language,
        values: Mapping[str, object],
        *,
        status: int = 200,
        frame_ancestors: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
    ) -> RenderedPage:
        """A page, or a part of one for htmx, from a template."""
        return RenderedPage(
            lambda shown: self.render(name, language, **shown),
            dict(values),
            status,
            {**self.headers(frame_ancestors), **(headers or {})},
        )

    def redirect(self, url: str, frame_ancestors: Sequence[str] = ()) -> Response:
        """Redirect to a path of ours with GET (RFC 9110 section 15.4.4)."""
        assert url[:1] == "/" != url[1:2], "no page sends anyone elsewhere"
        headers = {**self.headers(frame_ancestors), "location": write_location(url)}
        return Response(status_code=303, headers=headers)


def is_part(request: Request) -> bool:
    """Whether htmx requests a part of a page."""
    return request.headers.get("hx-request") == "true" and request.headers.get("hx-boosted") != "true"
