"""A field of the interface: its type for people, and its JSON schema for machines. Pure.

Rules:
- A pattern is a regular expression that ECMA-262, RE2 and Python read alike: no lookaround, no `\\d`.
- A pattern is exact: what it refuses is refused by the service, and what it accepts has the right form.
"""

from typing import Any, Final, NamedTuple

STRING: Final = "String"
LONG: Final = "Long"
DECIMAL: Final = "BigDecimal"
LONG_OR_STRING: Final = "Long or String"

MAX_EXACT_INTEGER: Final = 2**53 - 1
"""Every JSON reader keeps a whole number up to here exactly."""
MAX_LONG: Final = 10**20 - 1

_CONTROL: Final = r"\u0000-\u001f\u007f-\u009f"
_DIRECTION: Final = r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
PLAIN_TEXT: Final = f"^[^{_CONTROL}]+$"
"""No control characters."""
SHOWN_ID: Final = f"^[^{_CONTROL}{_DIRECTION}]+$"
"""No control characters, and none that change the direction of text."""
APP_KEY: Final = "^[!-~]{1,20}$"
NONCE: Final = "^[A-Za-z0-9_-]{1,32}$"
SIGN: Final = "^[0-9A-Fa-f]{32}$"
SHORT_SIGN: Final = "^[0-9A-Fa-f]{20}$"
WHOLE: Final = "^(?:0|[1-9][0-9]{0,19})$"
PLAIN_DECIMAL: Final = r"^(?:0|[1-9][0-9]*)(?:\.[0-9]+)?$"
CENT_AMOUNT: Final = (
    r"^(?:0\.(?:0[1-9]|[1-9][0-9]?)|[1-9][0-9]{0,7}(?:\.[0-9]{1,2})?|100000000(?:\.0{1,2})?)$"
)
"""0.01 to 100000000, at most 2 decimals."""
TRANSFER_AMOUNT: Final = (
    r"^(?:0\.(?:[1-9][0-9]{0,5}|0[1-9][0-9]{0,4}|00[1-9][0-9]{0,3}|000[1-9][0-9]{0,2}|0000[1-9][0-9]?"
    r"|00000[1-9])|[1-9][0-9]{0,7}(?:\.[0-9]{1,6})?|100000000(?:\.0{1,6})?)$"
)
"""More than 0 and up to 100000000, at most 6 decimals."""
ARRIVAL: Final = r"^(?:0|[1-9][0-9]{0,11})(?:\.[0-9]{1,6})?$"
"""0 or more, at most 12 digits before the point and 6 after it."""
NOTIFY_URL: Final = (
    r"^https?://(?:[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*\.?|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?"
    r"(?:[/?#][!#-;=?-\[\]_a-z~]*)?$"
)
ADDRESS: Final = "^(?:0x[0-9A-Fa-f]{40}|T[1-9A-HJ-NP-Za-km-z]{33})$"
TX_HASH: Final = "^(?:0x)?[0-9a-f]{64}$"
STATUSES: Final = ("0", "1", "2", "3", "4", "5", "6")
CHAIN: Final = "chain"
"""Stands for the codes of the chains that the service has, where `values` are expected."""


class Field(NamedTuple):
    """One field.

    `at_most` is a number of characters, `values` are all there are. A Long with a pattern may also be sent as
    a text.
    """

    name: str
    kind: str
    meaning: str = ""
    at_most: int | None = None
    pattern: str = ""
    values: tuple[str, ...] = ()
    is_required: bool = True
    is_nullable: bool = False


_TYPES: Final = {STRING: "string", LONG: "integer", DECIMAL: "number"}


def make_schema(field: Field, chains: tuple[str, ...]) -> dict[str, Any]:
    """The JSON schema of a field's value in a request, an answer or a callback."""
    if field.kind == LONG_OR_STRING:
        # Generators know this form, and not a list of two types.
        parts = (field._replace(kind=LONG, at_most=None), field._replace(kind=STRING))
        return {"oneOf": [make_schema(part, chains) for part in parts]}
    kind = _TYPES[field.kind]
    schema: dict[str, Any] = {"type": [kind, "null"] if field.is_nullable else kind}
    return schema | (_bound_text(field, chains) if field.kind == STRING else _bound_numbers(field))


def _bound_numbers(field: Field) -> dict[str, Any]:
    if field.kind == DECIMAL:
        # oapi-codegen would take 32 bits for it.
        return {"minimum": 0, "format": "decimal", "x-go-type": "json.Number"}
    # Without the format most generators take 32 bits, which a time in milliseconds exceeds.
    most = MAX_LONG if field.pattern else MAX_EXACT_INTEGER
    return {"format": "int64", "minimum": 0, "maximum": most}


def _bound_text(field: Field, chains: tuple[str, ...]) -> dict[str, Any]:
    values = chains if field.values == (CHAIN,) else field.values
    if values:
        return {"enum": [*values, None] if field.is_nullable else list(values)}
    bounds: dict[str, Any] = {"maxLength": field.at_most} if field.at_most is not None else {}
    return bounds | ({"pattern": field.pattern} if field.pattern else {})
