"""A table of which all rows are one test.

A test costs eight milliseconds before it does anything: three workers collect it, one reports on it. A row of
a pure table needs less than one.
"""

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any, TypeVar

Test = TypeVar("Test", bound=Callable[..., None])


def each_row(
    names: str | Sequence[str],
    rows: Iterable[Any],
    *,
    ids: Callable[[Any], object] | Sequence[str] | None = None,
) -> Callable[[Test], Test]:
    """As `pytest.mark.parametrize` with rows of plain values, but one test runs them all, up to the first
    that fails. Its note says which one. A fixture is set up once for all rows.
    """
    fields = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    table = [list(row) if len(fields) > 1 else [row] for row in rows]
    assert table, "a table without rows proves nothing"

    def name(number: int, row: list[Any]) -> str:
        if ids is None:
            return ", ".join(f"{field} = {value!r}" for field, value in zip(fields, row, strict=True))
        return "-".join(str(ids(value)) for value in row) if callable(ids) else ids[number]

    def decorate(test: Test) -> Test:
        @wraps(test)
        def run(**fixtures: Any) -> None:
            for number, row in enumerate(table):
                try:
                    test(**dict(zip(fields, row, strict=True)), **fixtures)
                except BaseException as error:
                    error.add_note(f"in row {number}: {name(number, row)}")
                    raise

        signature = inspect.signature(test)
        kept = [one for one in signature.parameters.values() if one.name not in fields]
        assert len(kept) + len(fields) == len(signature.parameters), f"a parameter has no column: {fields}"
        run.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        return run  # type: ignore[return-value]

    return decorate
