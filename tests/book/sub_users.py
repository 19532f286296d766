"""Every field in the definition of a sub-user, changed by SQL."""

from typing import Final, get_type_hints

from merchant_wallet.book.sub_user import COMPARED, COUNTED, SubUser

OTHER: Final = {str: "'other'", bool: "true", int | None: "5"}
"""In SQL, by a field's type: a value that no new sub-user has."""
OWN: Final = {"has_pin": "pin_hash = 'x', pin_set_ms = 1"}
"""Fields that are not columns of their own."""


def change(name: str) -> str:
    """The statement that changes one field of each sub-user."""
    value = OTHER[get_type_hints(SubUser)[name]]
    return f"update sub_user set {OWN.get(name, f'{name} = {value}')}"


CHANGES: Final = {column.name: change(column.name) for column in COMPARED}
COUNTS: Final = {
    name: f"update account set {name} = {name} + 1 where kind = 'subuser'" for name in sorted(COUNTED)
}
"""Fields in the account's row."""
