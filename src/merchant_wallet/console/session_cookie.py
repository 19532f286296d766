"""The cookie of a session at the console, and the name of the key that signs its forms."""

from typing import Final

from starlette.responses import Response

COOKIE: Final = "console_session"
COOKIE_PATH: Final = "/console"
CSRF_KEY: Final = "console csrf"


def set_session_cookie(response: Response, token: str, *, secure: bool) -> None:
    """Set the session cookie for the console's paths. It lives until the browser closes."""
    response.set_cookie(COOKIE, token, path=COOKIE_PATH, httponly=True, samesite="strict", secure=secure)


def clear_session_cookie(response: Response) -> None:
    """Delete the session cookie."""
    response.delete_cookie(COOKIE, path=COOKIE_PATH, httponly=True, samesite="strict")
