"""`doctor`: whether operators can be told of what waits for them."""

from typing import Any, Final, NamedTuple

from merchant_wallet.base.settings import Settings
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.cli.findings import Finding

NAME: Final = "notifications"
LATE_MS: Final = 600_000
"""Messages that have waited for so long are not being sent."""


class ChannelState(NamedTuple):
    """One channel: how long its oldest message has waited, how many failed within a day, how many choices
    people made.
    """

    channel: str
    oldest_ms: int | None
    failed: int
    wanted: int


async def check_notifications(conn: Any, settings: Settings) -> Finding:
    """Whether messages to operators go out."""
    from merchant_wallet.approvals.acts import reports
    from merchant_wallet.base.clock import now_ms
    from merchant_wallet.notifications import mail, outbox

    at_ms = now_ms()
    states = [ChannelState(*row) for row in await outbox.read_states(conn, at_ms - DAY_MS)]
    server, failure = mail.find_server(settings), None
    if server is not None:
        try:
            await mail.check(server)
        except mail.MailFailed as failed:
            failure = str(failed)
    workers = [one.report["address"] for one in await reports.list_reports(conn) if one.topic == reports.MAIL]
    return judge(
        states, at_ms, has_server=server is not None, failure=failure, of_workers=next(iter(workers), None)
    )


def judge(
    states: list[ChannelState],
    at_ms: int,
    *,
    has_server: bool,
    failure: str | None,
    of_workers: str | None = None,
) -> Finding:
    """The finding. `failure` is why the mail server can't be used. Pure.

    `of_workers` is the mail server that workers report. Their settings may be in their unit, so that this
    command does not see them.
    """
    if failure is not None:
        return Finding(NAME, f"the mail server can't be used: {failure}", "correct the WALLET_SMTP_ settings")
    wants_mail = any(state.wanted for state in states if state.channel == "email")
    if wants_mail and not has_server and of_workers is None:
        text = "people want mail, and no mail server is set"
        return Finding(NAME, text, "set WALLET_SMTP_HOST and WALLET_SMTP_FROM for `serve` and `work`")
    late = [
        state.channel for state in states if state.oldest_ms is not None and at_ms - state.oldest_ms > LATE_MS
    ]
    failed = sum(state.failed for state in states)
    if late:
        text = f"messages wait to be sent by {' and '.join(late)}"
        return Finding(NAME, text, "see that `work` runs with the WALLET_SMTP_ settings, and read its log")
    if failed:
        text = f"messages that could not be delivered within a day: {failed}"
        return Finding(NAME, text, "`merchant-wallet notifications list --failed` says to whom and why")
    if not any(state.wanted for state in states):
        hint = "people choose them on their account's page in the console"
        return Finding(NAME, "nobody is told of what waits", hint=hint)
    if has_server:
        return Finding(NAME, "messages go out, and the mail server answers")
    by = f", mail by {of_workers}, which the workers use and this command was not told"
    return Finding(NAME, "messages go out" + ("" if of_workers is None else by))
