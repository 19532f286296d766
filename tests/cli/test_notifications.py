"""`doctor` about notifications, as a table, and the commands about them."""

from tests.rows import each_row

from merchant_wallet.cli.notification_checks import LATE_MS, ChannelState, judge

NOW_MS = 1_790_000_000_000


def states(*, oldest_ms: int | None = None, failed: int = 0, wanted: int = 1) -> list[ChannelState]:
    return [ChannelState("email", oldest_ms, failed, wanted), ChannelState("webhook", None, 0, 0)]


@each_row(
    ("found", "has_server", "failure", "of_workers", "word", "said"),
    [
        (states(wanted=0), False, None, None, "hint", "nobody is told"),
        (states(), False, None, None, "wrong", "no mail server is set"),
        (states(), False, None, "mail.test:587", "ok", "mail by mail.test:587, which the workers use"),
        (states(failed=1), False, None, "mail.test:587", "wrong", "within a day: 1"),
        (states(), True, None, None, "ok", "the mail server answers"),
        (states(), True, "535 no", None, "wrong", "can't be used: 535 no"),
        (states(failed=2), True, None, None, "wrong", "within a day: 2"),
        (states(oldest_ms=NOW_MS - LATE_MS), True, None, None, "ok", "messages go out"),
        (states(oldest_ms=NOW_MS - LATE_MS - 1), True, None, None, "wrong", "wait to be sent by email"),
    ],
)
def test_doctor_says_when_nobody_can_be_told(
    found: list[ChannelState],
    has_server: bool,
    failure: str | None,
    of_workers: str | None,
    word: str,
    said: str,
) -> None:
    finding = judge(found, NOW_MS, has_server=has_server, failure=failure, of_workers=of_workers)
    assert finding.word == word
    assert said in finding.text
