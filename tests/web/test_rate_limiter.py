"""How many requests one address may make without being signed in."""

from merchant_wallet.web.rate_limiter import BURST, FILES, PageRateLimiter

HOME, NEIGHBOUR, AWAY = "2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"


class FakeClock:
    """A clock that moves only when a test moves it."""

    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def test_each_address_has_requests_of_its_own_and_gets_new_ones() -> None:
    clock = FakeClock()
    rate_limiter = PageRateLimiter(2, 3, clock)
    taken = [rate_limiter.admit(HOME, brings_token=False) for _ in range(2 * BURST + 1)]
    assert taken == [0] * (2 * BURST) + [1]
    assert rate_limiter.admit(NEIGHBOUR, brings_token=False) == 1, "one subscriber has the whole /64"
    assert rate_limiter.admit(AWAY, brings_token=False) == 0
    clock.now_s += 0.5
    assert [rate_limiter.admit(HOME, brings_token=False) for _ in range(2)] == [0, 1]


def test_files_are_counted_apart_from_pages() -> None:
    rate_limiter = PageRateLimiter(1, 3, FakeClock())
    taken = [rate_limiter.admit_file(HOME) for _ in range(FILES * BURST + 1)]
    assert taken == [0] * (FILES * BURST) + [1]
    assert rate_limiter.admit(HOME, brings_token=False) == 0


def test_wrong_tokens_are_forgotten_after_a_minute() -> None:
    clock = FakeClock()
    rate_limiter = PageRateLimiter(1, 1, clock)
    rate_limiter.note_invalid_token(HOME)
    assert [rate_limiter.admit(HOME, brings_token=True) for _ in range(BURST + 1)][-1] == 1
    clock.now_s += 60
    assert {rate_limiter.admit(HOME, brings_token=True) for _ in range(3 * BURST)} == {0}
