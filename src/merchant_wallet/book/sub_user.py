"""A sub-user as the rules see it. Pure.

This is the one definition. A new limit is a line in `Controls` and a column in a migration. The rest is
derived from the fields, once, at import:
- the columns that a batch reads, and how each text becomes a value (`SELECTED`, `read_row`);
- what `sub_users.controls` reads, changes and writes to the audit log (`CONTROLS`, `LIMITS`).
"""

from typing import Final

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

_EXPRESSIONS: Final = {
    "currency": "a.currency",
    "day": "a.day",
    "day_debited": "a.day_debited",
    "has_pin": "s.pin_hash is not null",
}
"""Fields that are not the column of `sub_user` with the same name; `s` is that table, `a` is `account`."""

SELECTED: Final = ", ".join(_EXPRESSIONS.get(name, f"s.{name}") for name in SubUser.__struct_fields__)
"""The list of a `select` whose rows `read_row` takes."""

read_row: Final = arrays.make_row_reader(SubUser)
