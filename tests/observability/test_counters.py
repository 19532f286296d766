"""Request counters: one number for each request, from which codes and latencies are read."""

from merchant_wallet.observability.counters import LAST_BUCKET, RequestCounters


def test_requests_are_counted_by_path_and_code() -> None:
    request_counters = RequestCounters()
    for code in (200, 200, 42200):
        request_counters.count("/merchant/exchange", code, 0.001)
    request_counters.count("/merchant/queryOrder", 200, 0.5)
    assert request_counters.by_code() == {
        ("/merchant/exchange", 200): 2,
        ("/merchant/exchange", 42200): 1,
        ("/merchant/queryOrder", 200): 1,
    }


def test_times_fall_into_doubling_milliseconds() -> None:
    request_counters = RequestCounters()
    for took_s in (0.0, 0.00099, 0.001, 0.00199, 0.002, 0.0039, 0.004, 16.383, 16.384, 3600.0):
        request_counters.count("/merchant/exchange", 200, took_s)
    counts = request_counters.by_time()["/merchant/exchange"]
    assert counts[:4] == [2, 2, 2, 1]
    assert (counts[14], counts[LAST_BUCKET], sum(counts)) == (1, 2, 10)


def test_the_seconds_of_each_path_are_added_up() -> None:
    request_counters = RequestCounters()
    for code, took_s in ((200, 0.25), (50000, 0.5)):
        request_counters.count("/merchant/exchange", code, took_s)
    assert request_counters.sums_s() == {"/merchant/exchange": 0.75}
