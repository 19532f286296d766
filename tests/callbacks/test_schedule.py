"""When a callback is repeated."""

from tests.rows import each_row

from merchant_wallet.callbacks.schedule import PAUSES_S, compute_pause_ms

MINUTE_S, HOUR_S = 60, 3600


def test_repeats_follow_the_documented_schedule() -> None:
    pauses = [compute_pause_ms(retry_no, 0.5) for retry_no in range(len(PAUSES_S))]
    minutes = [MINUTE_S, 5 * MINUTE_S, 15 * MINUTE_S, 30 * MINUTE_S]
    hours = [hours * HOUR_S for hours in (1, 2, 4, 8, 12, 24)]
    assert pauses == [1000 * seconds for seconds in (15, *minutes, *hours)]


@each_row("retry_no", range(len(PAUSES_S)))
def test_a_pause_is_spread_by_a_tenth_to_either_side(retry_no: int) -> None:
    whole = PAUSES_S[retry_no] * 1000
    assert compute_pause_ms(retry_no, 0.0) == whole - whole // 10
    assert compute_pause_ms(retry_no, 1.0) == whole + whole // 10
