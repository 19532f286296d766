"""Why a password is refused, in the user's language.

Rules: `operators.passwords` has the rules. Its sentences are translated as a whole.
"""

from typing import Final

from merchant_wallet.console.request import ConsoleRequest
from merchant_wallet.operators.passwords import PasswordRefused
from merchant_wallet.web.languages import N_

SENTENCES: Final = (
    N_("A password has at least 12 characters."),
    N_("A password has at most 200 characters."),
    N_("A password can't contain the operator's name."),
    N_("A password has at least 5 different characters."),
    N_("This password is among those that are tried first; choose another one."),
    N_("The new password is the present one; choose another one."),
)
"""The sentences of `operators.passwords` and `operators.records`. A test compares them."""


def explain(request: ConsoleRequest, error: PasswordRefused) -> str:
    """The refusal's sentence in the user's language."""
    return request.translate(str(error))
