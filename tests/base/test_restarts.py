"""The pauses between restarts."""

from merchant_wallet.base.restarts import Backoff


def test_pauses_double_up_to_half_a_minute() -> None:
    backoff = Backoff()
    assert [backoff.next_pause_s(0.0) for _ in range(8)] == [0.5, 1, 2, 4, 8, 16, 30, 30]


def test_a_healthy_run_begins_anew() -> None:
    backoff = Backoff()
    assert [backoff.next_pause_s(ran_s) for ran_s in (31.0, 29.0, 31.0, 0.0)] == [0.5, 1, 0.5, 1]


def test_the_first_restart_may_be_at_once() -> None:
    backoff = Backoff(immediate_first=True)
    assert [backoff.next_pause_s(ran_s) for ran_s in (31.0, 0.0, 0.0, 0.0, 31.0)] == [0, 0.5, 1, 2, 0]


def test_pauses_stay_at_their_limit_for_ever() -> None:
    backoff = Backoff()
    assert {backoff.next_pause_s(0.0) for _ in range(5000)} >= {30.0}
    assert backoff.next_pause_s(0.0) == 30.0
