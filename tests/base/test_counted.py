"""A number and what it counts, in English."""

from tests.rows import each_row

from merchant_wallet.base.counted import count_of


@each_row(
    ("number", "said"), [(0, "0 merchants"), (1, "1 merchant"), (2, "2 merchants"), (21, "21 merchants")]
)
def test_one_is_a_merchant_and_any_other_number_are_merchants(number: int, said: str) -> None:
    assert count_of(number, "merchant") == said


def test_an_irregular_plural_is_given() -> None:
    assert count_of(1, "entry is", "entries are") == "1 entry is"
    assert count_of(2, "entry is", "entries are") == "2 entries are"
