"""Why something is not allowed, in words. Pure.

Rules: a 403 names its cause: the right, the form's session, or another site. It never tells a secret.
"""

from typing import Final

from starlette.exceptions import HTTPException

from merchant_wallet.web.csrf import WrongToken
from merchant_wallet.web.languages import N_

OTHER_SESSION: Final = N_(
    "The form is not from your present session, so nothing was changed. Go back, load the page again, and "
    "send it once more."
)
OTHER_SITE: Final = N_(
    "The request came from another site, so nothing was changed. Open the page here and do it there."
)


class Forbidden(HTTPException):
    """A 403 that says why. `text` is a sentence in the user's language."""

    def __init__(self, text: str) -> None:
        super().__init__(403)
        self.text = text


def explain_forged(error: Exception) -> str:
    """Which part of a form's origin was wrong. The text is not translated yet."""
    return OTHER_SESSION if isinstance(error, WrongToken) else OTHER_SITE
