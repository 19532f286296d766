"""How many people approved an order: lists count it as the book's rules do."""

import msgspec
from tests.book.accounting import given, order_of, units, withdraw
from tests.reporting.lines import ORDER
from tests.rows import each_row

from merchant_wallet.book.rules.approvals import count_given_approvals, count_needed_approvals
from merchant_wallet.book.rules.withdrawals import BY_LIMIT

ANN, BOB = "operator:ann", "operator:bob"


@each_row(
    ("amount", "second_limit", "first", "last", "given_of_needed"),
    [
        ("100", None, None, BY_LIMIT, (0, 0)),
        ("100", "500", None, BY_LIMIT, (0, 0)),
        ("500", "500", None, None, (0, 1)),
        ("500", "500", None, ANN, (1, 1)),
        ("900", None, None, ANN, (1, 1)),
        ("500.01", "500", None, None, (0, 2)),
        ("500.01", "500", ANN, None, (1, 2)),
        ("500.01", "500", ANN, BOB, (2, 2)),
    ],
)
def test_the_rules_and_a_list_count_the_same_approvals(
    amount: str,
    second_limit: str | None,
    first: str | None,
    last: str | None,
    given_of_needed: tuple[int, int],
) -> None:
    facts = {
        "amount_units": units(amount),
        "second_limit_units": None if second_limit is None else units(second_limit),
        "first_approved_by": first,
        "approved_by": last,
    }
    order = msgspec.structs.replace(order_of(given("merchant:USDT 1000").ask(withdraw())), **facts)
    line = msgspec.structs.replace(ORDER, **facts)

    assert (count_given_approvals(order), count_needed_approvals(order)) == given_of_needed
    assert (line.approvals_given, line.approvals_needed) == given_of_needed
