"""How the audit log names sub-users and what is done to them. Pure.

Rules: a sub-user that acts on the wallet page is named by the merchant's own id. A record never holds a PIN.
"""

from typing import Final

from merchant_wallet.audit.records import Author

ACTOR_PREFIX: Final = "sub-user"
"""The prefix of an actor that is a sub-user."""
SET: Final = "sub_user.set"
SET_PIN: Final = "sub_user.set_pin"
CHANGE_PIN: Final = "sub_user.change_pin"
RESET_PIN: Final = "sub_user.reset_pin"


def format_subject(ext_user_id: str) -> str:
    """The name of a sub-user in the audit log."""
    return f"sub-user {ext_user_id}"


def make_author(ext_user_id: str, source: str, at_ms: int) -> Author:
    """A sub-user that makes a change from the address `source`."""
    return Author(f"{ACTOR_PREFIX}:{ext_user_id}", source, at_ms)
