"""How many attempts each host may have at once."""

from merchant_wallet.callbacks.host_concurrency import (
    MAX_KEPT,
    QUICK_LIMIT,
    SLOW_LIMIT,
    SLOW_MS,
    UNKNOWN_LIMIT,
    HostConcurrency,
)


def acquire_all(hosts: HostConcurrency, host: str) -> int:
    """The number of slots that a host gets."""
    count = 0
    while hosts.acquire(host):
        count += 1
    return count


def show(hosts: HostConcurrency, host: str, latency_ms: int) -> None:
    """Let a host answer once, with this latency."""
    assert hosts.acquire(host)
    hosts.release(host, latency_ms)


def test_an_unknown_host_gets_few_slots() -> None:
    assert acquire_all(HostConcurrency(100), "new") == UNKNOWN_LIMIT


def test_a_host_that_answers_quickly_gets_many() -> None:
    hosts = HostConcurrency(100)
    show(hosts, "quick", SLOW_MS - 1)
    assert acquire_all(hosts, "quick") == QUICK_LIMIT


def test_a_host_that_hangs_gets_one_until_it_answers_quickly_again() -> None:
    hosts = HostConcurrency(100)
    show(hosts, "slow", SLOW_MS)
    assert acquire_all(hosts, "slow") == SLOW_LIMIT
    hosts.release("slow", 5)
    assert acquire_all(hosts, "slow") == QUICK_LIMIT


def test_slow_hosts_together_hold_at_most_half_of_the_slots() -> None:
    hosts = HostConcurrency(10)
    for number in range(20):
        show(hosts, f"slow{number}", SLOW_MS)
    assert sum(hosts.acquire(f"slow{number}") for number in range(20)) == 5
    assert hosts.free == 5
    hosts.release("slow0", SLOW_MS)
    assert hosts.acquire("slow19")


def test_no_more_slots_are_given_than_there_are() -> None:
    hosts = HostConcurrency(3)
    assert [hosts.acquire(f"host{number}") for number in range(5)] == [True] * 3 + [False] * 2
    hosts.release("host0")
    assert hosts.acquire("host4")


def test_an_attempt_that_says_nothing_about_its_host_changes_nothing() -> None:
    hosts = HostConcurrency(100)
    assert hosts.acquire("host")
    hosts.release("host")
    assert acquire_all(hosts, "host") == UNKNOWN_LIMIT


def test_a_host_that_became_slow_while_many_attempts_were_under_way_is_counted_right() -> None:
    hosts = HostConcurrency(100)
    show(hosts, "host", 1)
    assert acquire_all(hosts, "host") == QUICK_LIMIT
    for _ in range(QUICK_LIMIT):
        hosts.release("host", SLOW_MS)
    assert hosts.free == 100
    assert acquire_all(hosts, "host") == SLOW_LIMIT


def test_hosts_that_were_not_seen_for_long_are_forgotten() -> None:
    hosts = HostConcurrency(100)
    for number in range(MAX_KEPT + 1):
        show(hosts, f"host{number}", 1)
    assert acquire_all(hosts, "host0") == UNKNOWN_LIMIT
    assert acquire_all(hosts, f"host{MAX_KEPT}") == QUICK_LIMIT
