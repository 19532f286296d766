"""Token buckets and failure limits with given times: exact bursts, right waits, bounded memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from merchant_wallet.base.rate_limits import FailureLimit, TokenBuckets, subscriber_of


def test_a_burst_is_exactly_its_number() -> None:
    buckets = TokenBuckets(200, 400)
    answers = [buckets.take("a", 1000.0) for _ in range(401)]
    assert answers == [0] * 400 + [1]


def test_tokens_come_back_at_the_rate() -> None:
    buckets = TokenBuckets(10, 5)
    taken = sum(buckets.take("a", 50.0) == 0 for _ in range(9))
    taken_later = sum(buckets.take("a", 50.25) == 0 for _ in range(9))
    assert (taken, taken_later) == (5, 2)


def test_a_refused_take_costs_no_token() -> None:
    buckets = TokenBuckets(1, 1)
    buckets.take("a", 10.0)
    assert [buckets.take("a", 10.5) for _ in range(3)] == [1, 1, 1]
    assert buckets.take("a", 11.0) == 0


def test_keys_do_not_share_a_bucket() -> None:
    buckets = TokenBuckets(1, 1)
    assert [buckets.take(key, 5.0) for key in ("a", "b", 7)] == [0, 0, 0]
    assert buckets.take("a", 5.0) == 1


def test_a_key_may_have_limits_of_its_own() -> None:
    buckets = TokenBuckets(1, 1)
    assert [buckets.take("a", 5.0, rate_per_s=100, burst=3) for _ in range(4)] == [0, 0, 0, 1]


@pytest.mark.parametrize("own_rate", [None, 0])
def test_a_rate_of_zero_is_no_limit(own_rate: int | None) -> None:
    buckets = TokenBuckets(0 if own_rate is None else 1, 1)
    assert {buckets.take("a", 5.0, rate_per_s=own_rate) for _ in range(1000)} == {0}


def test_full_buckets_are_forgotten() -> None:
    buckets = TokenBuckets(10, 10)
    for key in range(100_000):
        buckets.take(key, float(key))
    assert len(buckets) < 2000


@given(
    st.integers(1, 50),
    st.integers(1, 50),
    st.lists(st.integers(0, 400), min_size=1, max_size=200),
)
def test_no_span_of_time_gives_more_than_the_burst_and_the_rate(
    rate: int, burst: int, steps_ms: list[int]
) -> None:
    buckets = TokenBuckets(rate, burst)
    now_ms, taken_ms = 1_000_000, []
    for step_ms in steps_ms:
        now_ms += step_ms
        if buckets.take("a", now_ms / 1000) == 0:
            taken_ms.append(now_ms)
    for first, start_ms in enumerate(taken_ms):
        for last in range(first, len(taken_ms)):
            # Rounding 1 s / rate down loses a nanosecond per token, here much less than one token.
            assert last - first + 1 <= burst + (taken_ms[last] - start_ms) * rate / 1000 + 0.01


@given(st.integers(1, 50), st.integers(1, 20), st.integers(0, 10_000))
def test_after_the_stated_wait_there_is_a_token(rate: int, burst: int, start_ms: int) -> None:
    buckets = TokenBuckets(rate, burst)
    now_s = float(start_ms)
    while (wait_s := buckets.take("a", now_s)) == 0:
        pass
    assert buckets.take("a", now_s + wait_s) == 0


def test_the_failure_after_the_last_allowed_one_is_blocked_until_the_minute_ends() -> None:
    limit = FailureLimit(20)
    for second in range(20):
        assert limit.blocked("10.0.0.1", 100.0 + second) == 0
        limit.note_failure("10.0.0.1", 100.0 + second)
    assert limit.blocked("10.0.0.1", 120.0) == 40
    assert limit.blocked("10.0.0.1", 159.5) == 1
    assert limit.blocked("10.0.0.1", 160.0) == 0


def test_a_new_minute_counts_from_zero() -> None:
    limit = FailureLimit(2)
    for now_s in (0.0, 1.0, 60.0):
        limit.note_failure("a", now_s)
    assert limit.blocked("a", 60.0) == 0
    limit.note_failure("a", 61.0)
    assert limit.blocked("a", 61.0) == 59


def test_sources_are_counted_apart() -> None:
    limit = FailureLimit(1)
    limit.note_failure("a", 0.0)
    assert limit.blocked("a", 0.0) == 60
    assert limit.blocked("b", 0.0) == 0


def test_a_failure_limit_of_zero_is_no_limit_and_keeps_nothing() -> None:
    limit = FailureLimit(0)
    limit.note_failure("a", 0.0)
    assert limit.blocked("a", 0.0) == 0
    assert len(limit) == 0


def test_the_longest_quiet_source_is_forgotten_first() -> None:
    limit = FailureLimit(1, max_sources=3)
    for key in ("a", "b", "c", "a", "d"):
        limit.note_failure(key, 0.0)
    assert [limit.blocked(key, 0.0) > 0 for key in "abcd"] == [True, False, True, True]
    assert len(limit) == 3


def test_a_source_is_put_off_to_the_last_nanosecond_of_its_minute() -> None:
    failures = FailureLimit(1)
    failures.note_failure("a", 0.0)
    assert failures.blocked("a", 59.999999999) == 1
    assert failures.blocked("a", 60.0) == 0


@each_row(
    ("source", "counted"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "2001:db8:1:2::/64"),
        ("2001:DB8:1:3::1", "2001:db8:1:3::/64"),
        ("a name", "a name"),
        ("", ""),
    ],
)
def test_an_ipv6_source_counts_as_its_64_and_an_ipv4_one_as_itself(source: str, counted: str) -> None:
    assert subscriber_of(source) == counted
