"""Sessions are listed by browser and device, never by the browser's raw user agent."""

from tests.rows import each_row

from merchant_wallet.web.browsers import describe_browser

WEBKIT = "AppleWebKit/537.36 (KHTML, like Gecko)"


@each_row(
    ("user_agent", "name"),
    [
        (f"Mozilla/5.0 (X11; Linux x86_64) {WEBKIT} Chrome/139.0.0.0 Safari/537.36", "Chrome · Linux"),
        (
            f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {WEBKIT} Chrome/139.0.0.0 Safari/537.36 Edg/139.0",
            "Edge · Windows",
        ),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)"
            " Version/18.0 Mobile/15E148 Safari/604.1",
            "Safari · iPhone",
        ),
        ("Mozilla/5.0 (Windows NT 10.0; rv:143.0) Gecko/20100101 Firefox/143.0", "Firefox · Windows"),
        (
            f"Mozilla/5.0 (Linux; Android 15) {WEBKIT} SamsungBrowser/28 Chrome/130.0 Safari/537.36",
            "Samsung Internet · Android",
        ),
        ("curl/8.9.1", "curl/8.9.1"),
        ("x" * 300, "x" * 60),
        ("", ""),
    ],
)
def test_a_browser_is_named_as_people_know_it(user_agent: str, name: str) -> None:
    assert describe_browser(user_agent) == name
