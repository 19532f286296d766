"""Who gets a place among the attempts under way."""

from merchant_wallet.callbacks.turns import (
    MOST_KEPT,
    QUICK_LIMIT,
    SLOW_LIMIT,
    SLOW_MS,
    UNKNOWN_LIMIT,
    Turns,
)


def take_all(turns: Turns, host: str) -> int:
    """How many places a host gets."""
    count = 0
    while turns.take(host):
        count += 1
    return count


def show(turns: Turns, host: str, latency_ms: int) -> None:
    """Let a host answer once, after so long."""
    assert turns.take(host)
    turns.give_back(host, latency_ms)


def test_a_host_nobody_knows_gets_few_places() -> None:
    assert take_all(Turns(100), "new") == UNKNOWN_LIMIT


def test_a_host_that_answers_quickly_gets_many() -> None:
    turns = Turns(100)
    show(turns, "quick", SLOW_MS - 1)
    assert take_all(turns, "quick") == QUICK_LIMIT


def test_a_host_that_hangs_gets_one_until_it_answers_quickly_again() -> None:
    turns = Turns(100)
    show(turns, "slow", SLOW_MS)
    assert take_all(turns, "slow") == SLOW_LIMIT
    turns.give_back("slow", 5)
    assert take_all(turns, "slow") == QUICK_LIMIT


def test_slow_hosts_together_hold_at_most_half_of_the_places() -> None:
    turns = Turns(10)
    for number in range(20):
        show(turns, f"slow{number}", SLOW_MS)
    assert sum(turns.take(f"slow{number}") for number in range(20)) == 5
    assert turns.free == 5
    turns.give_back("slow0", SLOW_MS)
    assert turns.take("slow19")


def test_no_more_places_are_given_than_there_are() -> None:
    turns = Turns(3)
    assert [turns.take(f"host{number}") for number in range(5)] == [True] * 3 + [False] * 2
    turns.give_back("host0")
    assert turns.take("host4")


def test_an_attempt_that_says_nothing_about_its_host_changes_nothing() -> None:
    turns = Turns(100)
    assert turns.take("host")
    turns.give_back("host")
    assert take_all(turns, "host") == UNKNOWN_LIMIT


def test_a_host_that_became_slow_while_many_attempts_were_under_way_is_counted_right() -> None:
    turns = Turns(100)
    show(turns, "host", 1)
    assert take_all(turns, "host") == QUICK_LIMIT
    for _ in range(QUICK_LIMIT):
        turns.give_back("host", SLOW_MS)
    assert turns.free == 100
    assert take_all(turns, "host") == SLOW_LIMIT


def test_hosts_that_were_not_seen_for_long_are_forgotten() -> None:
    turns = Turns(100)
    for number in range(MOST_KEPT + 1):
        show(turns, f"host{number}", 1)
    assert take_all(turns, "host0") == UNKNOWN_LIMIT
    assert take_all(turns, f"host{MOST_KEPT}") == QUICK_LIMIT
