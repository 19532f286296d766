"""Agreement on one number: two nodes give the harmless value, three give the value without one outlier."""

import pytest
from tests.rows import each_row

from merchant_wallet.chains.agreement import cautious_high, cautious_low


@each_row(
    ("said", "low", "high"),
    [
        ([5], 5, 5),
        ([9, 5], 5, 9),
        ([5, 5], 5, 5),
        ([0, 5, 6], 5, 5),
        ([5, 10**9, 6], 6, 6),
        ([6, 5, 5], 5, 5),
        ([0, 4, 5, 10**9], 4, 5),
        ([7, 0, 6, 5, 9], 5, 7),
    ],
)
def test_two_nodes_give_the_harmless_side_and_more_leave_one_outlier_out(
    said: list[int], low: int, high: int
) -> None:
    for order in (said, said[::-1]):
        assert (cautious_low(order), cautious_high(order)) == (low, high)


def test_nobodys_answer_is_no_number() -> None:
    for agree in (cautious_low, cautious_high):
        with pytest.raises(ValueError, match="nobody answered"):
            agree([])
