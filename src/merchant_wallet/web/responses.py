"""Responses of the pages: a template's text with security headers.

Rules: scripts and other resources come only from our own origin, and never inline. Only the named origins may
frame a page. Neither browsers nor proxies store a page.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

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
    ) -> Response:
        """A page, or a part of one for htmx, from a template."""
        text = self.render(name, language, **values)
        return HTMLResponse(text, status, {**self.headers(frame_ancestors), **(headers or {})})

    def redirect(self, url: str, frame_ancestors: Sequence[str] = ()) -> Response:
        """Redirect to a path of ours with GET (RFC 9110 section 15.4.4)."""
        assert url[:1] == "/" != url[1:2], "no page sends anyone elsewhere"
        headers = {**self.headers(frame_ancestors), "location": write_location(url)}
        return Response(status_code=303, headers=headers)


def is_part(request: Request) -> bool:
    """Whether htmx requests a part of a page."""
    return request.headers.get("hx-request") == "true" and request.headers.get("hx-boosted") != "true"
