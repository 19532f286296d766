"""Limits, counts and documents in shared memory: the same for every process, and bounded."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from merchant_wallet.base import shared_limits
from merchant_wallet.base import siblings as shared
from merchant_wallet.base.rate_limits import FailureLimit, TokenBuckets
from merchant_wallet.base.shared_limits import WAYS
from merchant_wallet.base.siblings import Siblings, create_shared_memory

FEW_SETS = 64
TAKE = """
import sys
from merchant_wallet.base.rate_limits import TokenBuckets
from merchant_wallet.base.siblings import Siblings
buckets = TokenBuckets(1, 1000, Siblings(int(sys.argv[1]), int(sys.argv[2])).limits("merchants"))
print(sum(buckets.take(7, 100.0) == 0 for _ in range(1000)))
"""


@pytest.fixture
def memory() -> Iterator[int]:
    """New shared memory."""
    fd = create_shared_memory()
    yield fd
    os.close(fd)


def test_a_bucket_has_its_tokens_once_for_all_processes(memory: int) -> None:
    one, other = (TokenBuckets(10, 20, Siblings(memory, seat).limits("merchants")) for seat in (2, 3))
    assert [limit.take(7, 100.0) for limit in (one, other) * 10] == [0] * 20
    assert one.take(7, 100.0) == other.take(7, 100.0) == 1
    assert other.take(8, 100.0) == 0
    # A tenth of a second later there is one more.
    assert (other.take(7, 100.1), one.take(7, 100.1)) == (0, 1)


def test_who_was_quiet_for_long_has_a_full_bucket_and_no_more(memory: int) -> None:
    one, other = (TokenBuckets(10, 20, Siblings(memory, seat).limits("merchants")) for seat in (2, 3))
    assert one.take(7, 100.0) == 0
    assert [other.take(7, 1_000_000.0) for _ in range(21)] == [0] * 20 + [1]


def test_what_is_left_is_what_all_processes_left(memory: int) -> None:
    one, other = (TokenBuckets(10, 20, Siblings(memory, seat).limits("merchants")) for seat in (2, 3))
    alone = TokenBuckets(10, 20)
    taken = [limit.draw(7, 100.0, 10, 20) for limit in (one, other) * 11]
    assert taken == [alone.draw(7, 100.0, 10, 20) for _ in range(22)]
    assert taken[:2] == [(0, 19, 1), (0, 18, 1)]
    assert taken[19:] == [(0, 0, 2), (1, 0, 2), (1, 0, 2)]


def test_processes_that_take_at_once_get_no_token_twice(memory: int) -> None:
    taking = [
        subprocess.Popen(
            [sys.executable, "-c", TAKE, str(memory), str(seat)],
            pass_fds=(memory,),
            stdout=subprocess.PIPE,
            text=True,
        )
        for seat in (2, 3, 4)
    ]
    assert sum(int(each.communicate()[0]) for each in taking) == 1000


def test_failures_count_together_until_their_minute_is_over(memory: int) -> None:
    one, other = (FailureLimit(2, shared=Siblings(memory, seat).limits("failures")) for seat in (2, 3))
    one.note_failure("198.51.100.1", 0.0)
    assert other.blocked("198.51.100.1", 1.0) == 0
    other.note_failure("198.51.100.1", 1.0)
    assert one.blocked("198.51.100.1", 2.0) == 58
    assert one.blocked("198.51.100.2", 2.0) == 0
    assert one.blocked("198.51.100.1", 60.0) == 0


def test_when_there_is_no_room_the_key_that_ends_first_is_forgotten(
    memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_limits, "SETS", FEW_SETS)
    limits = Siblings(memory, 2).limits("failures")
    limits.count("lasting", 0, 10**12)
    for number in range(10 * FEW_SETS * WAYS):
        limits.extend(number, 0, 1 + number % 1000, 10**12)
    assert limits.read("lasting", 1) == (10**12, 1)


def test_connections_count_together_and_those_of_an_ended_process_are_forgotten(memory: int) -> None:
    one, other, supervisor = (Siblings(memory, seat) for seat in (2, 3, 1))
    assert [one.sources.add("a", 1), other.sources.add("a", 1), other.sources.add("b", 1)] == [1, 2, 1]
    assert one.sources.add("a", -1) == 1
    supervisor.clear(other.seat)
    assert one.sources.add("a", 0) == one.sources.add("b", 0) == 0


def test_a_document_is_read_by_all_and_one_that_is_too_long_is_not_written(memory: int) -> None:
    one, other = Siblings(memory, 2), Siblings(memory, 3)
    with one.metrics.lock():
        assert one.metrics.write(2, b"first")
        assert not one.metrics.write(2, bytes(shared.METRICS_ROOM))
    with other.metrics.lock():
        assert other.metrics.read_all() == {2: b"first"}
