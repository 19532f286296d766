"""Tables of which all rows are one test."""

from collections.abc import Sequence

import pytest
from tests.rows import each_row


@each_row("number, word", [(1, "one"), (2, "two"), (3, "three")], ids=["first", "second", "third"])
def only_one(number: int, word: str, *, seen: Sequence[str]) -> None:
    assert word not in seen


def test_the_first_row_that_fails_is_named() -> None:
    only_one(seen=[])  # type: ignore[call-arg]  # the rows give the rest
    with pytest.raises(AssertionError) as failed:
        only_one(seen=["two", "three"])  # type: ignore[call-arg]
    assert failed.value.__notes__ == ["in row 1: second"]


def test_a_row_without_a_name_is_shown_and_tables_are_multiplied() -> None:
    pairs = []

    @each_row("outer", "ab")
    @each_row("inner", [1, 2])
    def note(outer: str, inner: int) -> None:
        pairs.append((outer, inner))
        assert len(pairs) < 4

    with pytest.raises(AssertionError) as failed:
        note()  # type: ignore[call-arg]
    assert pairs == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
    assert failed.value.__notes__ == ["in row 1: inner = 2", "in row 1: outer = 'b'"]


def test_a_table_without_rows_or_without_a_column_of_the_test_is_refused() -> None:
    with pytest.raises(AssertionError, match="without rows"):
        each_row("word", [])
    with pytest.raises(AssertionError, match="no column"):
        each_row("colour", ["red"])(only_one)
