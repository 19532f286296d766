"""How the audit log names sub-users and what is done to them. Pure.

Rules: a sub-user that acts on the wallet page is named by the merchant's own id. A record never holds a PIN.
"""

from typing import Final

from merchant_wallet.approvals.acts import kinds
from merchant_wallet.audit.records import Author

ACTOR_PREFIX: Final = "sub-user"
"""The prefix of an actor that is a sub-user."""
SET: Final = kinds.SET_SUB_USER
SET_PIN: Final = "sub_user.set_pin"
CHANGE_PIN: Final = "sub_user.change_pin"
RESET_PIN: Final = "sub_user.reset_pin"
_SUBJECT: Final = "sub-user "


def format_subject(ext_user_id: str) -> str:
    """The name of a sub-user in proposals and the audit log."""
    return f"{_SUBJECT}{ext_user_id}"


def read_ext_user_id(subject: str) -> str:
    """The sub-user that a subject names."""
    return subject.removeprefix(_SUBJECT)


def make_author(ext_user_id: str, source: str, at_ms: int) -> Author:
    """A sub-user that makes a change from the address `source`."""
    return Author(f"{ACTOR_PREFIX}:{ext_user_id}", source, at_ms)
