"""A sub-user as the rules see it. Pure.

This is the one definition. A new limit is a line in `Controls` and a column in a migration. The rest is
derived from the fields, once, at import:
- the columns that a batch reads, and how each text becomes a value (`COLUMNS`);
- the columns that are compared under the lock before a batch judged on the cache may commit (`COMPARED`);
- what `sub_users.controls` reads, changes and writes to the audit log (`CONTROLS`, `LIMITS`).
"""

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple, get_type_hints

import msgspec

from merchant_wallet.book import arrays


class Controls(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a sub-user lets the merchant debit. None is no limit; the defaults are a new sub-user's."""

    paused: bool = False
    limit_debit_units: int | None = None
    limit_day_units: int | None = None


class SubUser(Controls, frozen=True, kw_only=True, gc=False):
    """One sub-user; `day_debited` counts what the merchant debited on UTC day `day`."""

    user_id: int
    ext_user_id: str
    username: str
    currency: str
    evm_address: bytes
    tron_address: bytes
    has_pin: bool = False
    day: int = 0
    day_debited: int = 0


CONTROLS: Final = Controls.__struct_fields__
CONTROLS_READ: Final = {"controls": ", ".join(f"s.{name}" for name in CONTROLS)}
"""The fragment by which queries of `sub_user` read all controls."""
LIMITS: Final = tuple(name for name in CONTROLS if name.startswith("limit_"))

FIXED: Final = frozenset({"user_id", "ext_user_id", "currency", "evm_address", "tron_address"})
"""What never changes about a sub-user, and so is not compared again."""
COUNTED: Final = frozenset({"day", "day_debited"})
"""What stands in the account's row, and is compared there together with the balance."""

_EXPRESSIONS: Final = {
    "currency": "a.currency",
    "day": "a.day",
    "day_debited": "a.day_debited",
    "has_pin": "s.pin_hash is not null",
}
"""Fields that are not the column of `sub_user` with the same name; `s` is that table, `a` is `account`."""


class Column(NamedTuple):
    """One field of `SubUser` in SQL: how its value is read from a text, and sent as an array."""

    name: str
    expression: str
    sql_type: str
    read: Callable[[Any], Any]
    make_array: Callable[[Iterable[Any]], bytes]
    get: Callable[[SubUser], Any]


_FORMS: Final[dict[Any, tuple[str, Callable[[Any], Any], Callable[[Any], bytes]]]] = {
    str: ("text", bytes.decode, arrays.of_texts),
    int: ("bigint", int, arrays.of_ints),
    int | None: ("bigint", arrays.read_optional_int, arrays.of_ints),
    bool: ("boolean", lambda value: value == b"t", arrays.of_bools),
    bytes: ("bytea", arrays.read_bytes, arrays.of_bytes),
}


def _make_columns() -> Iterable[Column]:
    types = get_type_hints(SubUser)
    for name in SubUser.__struct_fields__:
        yield Column(name, _EXPRESSIONS.get(name, f"s.{name}"), *_FORMS[types[name]], attrgetter(name))


COLUMNS: Final = tuple(_make_columns())
COMPARED: Final = tuple(column for column in COLUMNS if column.name not in FIXED | COUNTED)

SELECTED: Final = ", ".join(column.expression for column in COLUMNS)
"""The list of a `select` whose rows `read_row` takes."""

_READ: Final = tuple((column.name, column.read) for column in COLUMNS)


def read_row(row: Sequence[bytes | None]) -> SubUser:
    """A sub-user from the text values of `SELECTED`."""
    return SubUser(**{name: read(value) for (name, read), value in zip(_READ, row, strict=True)})
