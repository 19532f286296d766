"""Every field of a sub-user that can change, changed by SQL."""

from typing import Final, get_type_hints

from merchant_wallet.book.sub_user import CONTROLS, SubUser

OTHER: Final = {str: "'other'", bool: "true", int | None: "5"}
"""In SQL, by a field's type: a value that no new sub-user has."""


def _change(name: str) -> str:
    return f"update sub_user set {name} = {OTHER[get_type_hints(SubUser)[name]]}"


CHANGES: Final = {
    **{name: _change(name) for name in ("username", *CONTROLS)},
    "has_pin": "update sub_user set pin_hash = 'x', pin_set_ms = 1",
    "day": "update account set day = day + 1 where kind = 'subuser'",
    "day_debited": "update account set day_debited = day_debited + 1 where kind = 'subuser'",
}
"""The statement that changes one field of each sub-user, by the field's name."""
