"""PostgreSQL array literals from Python values, and values from text results.

This is the hot path: psycopg's adaptation of each element would cost ten times as much. Texts are always
quoted, with `"` and `\\` escaped, so no element can end its own quotation. None is NULL.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar, cast, get_type_hints

import msgspec
from psycopg.pq.abc import PGresult

S = TypeVar("S", bound=msgspec.Struct)
Encoder = Callable[[Any], bytes]
"""Makes an array of one column's values."""


def of_ints(values: Iterable[int | None]) -> bytes:
    """`{1,2,NULL}`."""
    return ("{" + ",".join(map(str, values)).replace("None", "NULL") + "}").encode()


def of_texts(values: Sequence[str | None]) -> bytes:
    """`{"a","b\\"c",NULL}`, in UTF-8."""
    if values and None not in values:
        text = '","'.join(cast(Sequence[str], values))
        # Mostly no text has a character that must be escaped. Then all quotes are those between the texts.
        if "\\" not in text and text.count('"') == 2 * (len(values) - 1):
            return f'{{"{text}"}}'.encode()
    return ("{" + ",".join(["NULL" if value is None else _quote(value) for value in values]) + "}").encode()


def of_bytes(values: Sequence[bytes]) -> bytes:
    """`{"\\\\x00ff"}`: bytea in hexadecimal, its backslash escaped for the array."""
    return ('{"\\\\x' + '","\\\\x'.join(map(bytes.hex, values)) + '"}').encode() if values else b"{}"


def of_rows(rows: Sequence[Sequence[Any]], encoders: Sequence[Encoder]) -> list[bytes]:
    """One array for each column of the rows, which all have as many values as there are encoders."""
    columns = zip(*rows, strict=True) if rows else [()] * len(encoders)
    return [encode(column) for encode, column in zip(encoders, columns, strict=True)]


def _quote(text: str) -> str:
    if "\\" in text or '"' in text:
        text = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def read_bytes(value: bytes) -> bytes:
    """A bytea from its text form."""
    return bytes.fromhex(value[2:].decode())


def read_optional_int(value: bytes | None) -> int | None:
    """An integer that may be NULL."""
    return None if value is None else int(value)


def read_optional_text(value: bytes | None) -> str | None:
    """A text that may be NULL."""
    return None if value is None else value.decode()


def read_rows(result: PGresult) -> list[list[Any]]:
    """A result's rows as lists of text values in bytes, None for NULL."""
    value, columns = result.get_value, range(result.nfields)
    return [[value(row, column) for column in columns] for row in range(result.ntuples)]


_READERS: Final[dict[Any, Callable[[Any], Any]]] = {
    str: bytes.decode,
    str | None: read_optional_text,
    int: int,
    int | None: read_optional_int,
    bool: lambda value: value == b"t",
    bytes: read_bytes,
}


def make_row_reader(struct: type[S]) -> Callable[[Sequence[bytes | None]], S]:
    """A function that makes a struct from the text values of its fields, in their order."""
    types = get_type_hints(struct)
    fields = [(name, _READERS[types[name]]) for name in struct.__struct_fields__]
    return lambda row: struct(**{name: read(value) for (name, read), value in zip(fields, row, strict=True)})
