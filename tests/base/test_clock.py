"""The clock counts whole milliseconds since the epoch."""

import time

from merchant_wallet.base.clock import now_ms


def test_the_moment_is_in_milliseconds_between_two_readings_of_the_system_clock() -> None:
    before_ns = time.time_ns()
    moment_ms = now_ms()
    after_ns = time.time_ns()
    assert isinstance(moment_ms, int)
    assert before_ns // 1_000_000 <= moment_ms <= after_ns // 1_000_000
