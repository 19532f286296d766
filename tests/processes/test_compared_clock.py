"""The clock of a process, compared with the database's."""

import asyncio

from structlog.testing import capture_logs
from tests.rows import each_row

from merchant_wallet.processes.compared_clock import ComparedClock


def _compare(clock: ComparedClock, other_ms: int) -> int:
    async def read_other_ms() -> int:
        return other_ms

    return asyncio.run(clock.compare(read_other_ms))


@each_row(
    ("own_ms", "other_ms", "is_wrong"),
    [(100_000, 100_000, False), (130_000, 100_000, False), (130_001, 100_000, True), (69_999, 100_000, True)],
)
def test_beyond_thirty_seconds_either_way_a_clock_is_wrong(
    own_ms: int, other_ms: int, is_wrong: bool
) -> None:
    clock = ComparedClock(lambda: own_ms)
    assert not clock.is_wrong
    assert _compare(clock, other_ms) == own_ms - other_ms
    assert clock.is_wrong == is_wrong


def test_what_a_slow_round_trip_can_explain_is_no_difference() -> None:
    times_ms = iter((10_000, 99_000, 10_000, 99_000))
    clock = ComparedClock(lambda: next(times_ms))
    assert _compare(clock, 60_000) == 0
    assert _compare(clock, 9_000) == 1_000


def test_each_change_is_said_once() -> None:
    clock = ComparedClock(lambda: 0)
    with capture_logs() as said:
        for ahead_ms in (0, 5_000, 6_000, 40_000, 41_000, 5_000, 100):
            _compare(clock, -ahead_ms)
    assert [line["log_level"] for line in said] == ["warning", "error", "warning", "info"]
