"""Why a password is not taken, in the reader's language.

Rules: the rules themselves are `operators.passwords`'; its sentences are translated whole.
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
"""What `operators.passwords` and `operators.records` say of a password; a test holds them against it."""


def explain(request: ConsoleRequest, error: PasswordRefused) -> str:
    """The refusal's sentence in the language of whoever looks."""
    return request.translate(str(error))
