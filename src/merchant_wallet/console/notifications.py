"""The user's own notifications: where, of what, when not, a test, and what became of the last messages.

Rules:
- A user chooses among the kinds that its role may act on. It is told of an item only while it may act on it.
- A new e-mail address is used when the code that was sent to it is entered. The secret of a webhook is shown
  once, when its URL is set.
- Where messages go is recorded in the audit log. Of a URL the log has only the host, since a path may be a
  secret.
- This page sends nothing: it stores, and a worker sends.
"""

from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response

from merchant_wallet.console import flash
from merchant_wallet.console.form_state import EMPTY_FORM, FormState
from merchant_wallet.console.request import POST, Connection, ConsoleRequest, Page, read_id
from merchant_wallet.notifications import contacts, outbox
from merchant_wallet.notifications.contacts import CHANNELS, EMAIL, WEBHOOK, Choice, Contact, ContactRefused
from merchant_wallet.notifications.outbox import TooManyTests
from merchant_wallet.operators.roles import Right, Role, may
from merchant_wallet.reporting.inbox import Source
from merchant_wallet.web.inbox_sources import BY_KIND, SOURCES
from merchant_wallet.web.languages import N_

PATH: Final = "/console/account/notifications"
MESSAGE: Final = "/console/inbox/messages/{message_no:int}/{line_no:int}"
INBOX: Final = "/console/inbox"
WAKES: Final = "wakes"
RECENT: Final = 20
ZONES: Final = (
    "UTC",
    "Asia/Shanghai",
    "Asia/Hong_Kong",
    "Asia/Taipei",
    "Asia/Singapore",
    "Asia/Tokyo",
    "Asia/Kolkata",
    "Asia/Dubai",
    "Europe/Berlin",
    "Europe/London",
    "America/New_York",
    "America/Chicago",
    "America/Los_Angeles",
    "America/Sao_Paulo",
    "Australia/Sydney",
)
"""Time zones that the form offers. Any other may be typed."""

SAVED: Final = N_("Saved.")
CODE_SENT: Final = N_("Saved. A mail with a code is on its way to the new address: enter the code below.")
CONFIRMED: Final = N_("The address is confirmed.")
ON_ITS_WAY: Final = N_("A test is on its way. Its result appears below.")
TOO_MANY: Final = N_("You have asked for {count} tests within the hour. Try again later.")
NOWHERE: Final = N_("There is no such message, or it was not for you.")


async def show(request: ConsoleRequest, conn: Connection) -> Response:
    """The whole page."""
    return await _show(request, conn)


async def show_recent(request: ConsoleRequest, conn: Connection) -> Response:
    """The list of the last messages, for an open page."""
    recent = await outbox.list_recent(conn, request.operator.operator_id, RECENT)
    return request.part("console/notifications_recent.html", **_describe_recent(request, recent))


async def save(request: ConsoleRequest, conn: Connection) -> Response:
    """Store where, of what and when not."""
    number = request.operator.operator_id
    try:
        async with conn.transaction():
            before = await contacts.lock_contact(conn, number)
            wanted, secret = _read_contact(request, before)
            choices = _read_choices(request)
            await contacts.write_contact(conn, number, wanted)
            await contacts.write_choices(conn, number, choices)
            asks_code = wanted.email is not None and wanted.email != before.email
            if asks_code:
                await outbox.store_test(conn, number, EMAIL, wanted.email or "", request.at_ms)
            await _record(request, conn, before, wanted, choices)
    except ContactRefused as refused:
        errors = {refused.field: request.translate(str(refused))}
        return await _show(request, conn, FormState(request.form.kept(), errors))
    except TooManyTests:
        return request.redirect(PATH, TOO_MANY, tone=flash.WARN, count=outbox.MAX_TESTS)
    if secret is not None:
        return await _show(request, conn, secret=secret)
    return request.redirect(PATH, CODE_SENT if asks_code else SAVED)


async def confirm(request: ConsoleRequest, conn: Connection) -> Response:
    """Confirm the e-mail address with the code."""
    number, code = request.operator.operator_id, request.form.text("code")
    refused: ContactRefused | None = None
    async with conn.transaction():
        try:
            found = await contacts.confirm_email(conn, request.context.keyring, number, code, request.at_ms)
        except ContactRefused as error:
            # Committed too: a wrong try stays counted.
            refused = error
        else:
            await request.author.record(
                conn,
                "operator.confirm_email",
                f"operator {request.operator.name}",
                request.merchant_id,
                after={"email": found.email},
            )
    if refused is not None:
        return await _show(request, conn, FormState(errors={refused.field: request.translate(str(refused))}))
    return request.redirect(PATH, CONFIRMED)


async def send_test(request: ConsoleRequest, conn: Connection) -> Response:
    """Have a test sent. To an address that is not confirmed it brings a new code."""
    channel, number = request.form.text("channel"), request.operator.operator_id
    try:
        async with conn.transaction():
            contact = await contacts.lock_contact(conn, number)
            target = contact.email if channel == EMAIL else contact.webhook_url
            if channel not in CHANNELS or target is None:
                raise HTTPException(400)
            if channel == EMAIL and contact.email_confirmed_ms is None:
                renewed = msgspec.structs.replace(contact, email_asked_ms=request.at_ms, email_tries=0)
                await contacts.write_contact(conn, number, renewed)
            await outbox.store_test(conn, number, channel, target, request.at_ms)
    except TooManyTests:
        return request.redirect(PATH, TOO_MANY, tone=flash.WARN, count=outbox.MAX_TESTS)
    return request.redirect(PATH, ON_ITS_WAY)


async def open_line(request: ConsoleRequest, conn: Connection) -> Response:
    """What a message's link leads to: the page where one acts. Others' messages lead nowhere."""
    message_no, line_no = read_id(request, "message_no"), read_id(request, "line_no")
    body = await outbox.read_body(conn, request.operator.operator_id, message_no)
    if body is None or line_no >= len(body.lines):
        return request.redirect(INBOX, NOWHERE, tone=flash.WARN)
    return request.redirect(body.lines[line_no].link)


def list_kinds(request: ConsoleRequest) -> list[Source]:
    """The kinds on whose items this user's role may act."""
    operator = request.operator
    if operator.role == Role.MERCHANT:
        return [
            one
            for one in SOURCES
            if one.own_right is not None and may(operator, one.own_right, operator.merchant_id)
        ]
    return [one for one in SOURCES if one.is_for(None) and may(operator, one.right)]


def _read_contact(request: ConsoleRequest, before: Contact) -> tuple[Contact, str | None]:
    """The wanted contact, and the secret of a new webhook. Raises ContactRefused."""
    form, sandbox = request.form, request.context.settings.sandbox
    email = contacts.read_email(form.text("email"))
    url = contacts.read_url(form.text("url"), sandbox=sandbox)
    begin, end = contacts.read_quiet(form.text("from"), form.text("to"))
    wanted = msgspec.structs.replace(
        before,
        time_zone=contacts.read_zone(form.text("zone") or contacts.DEFAULT_ZONE),
        quiet_from_min=begin,
        quiet_to_min=end,
    )
    if email != before.email:
        wanted = msgspec.structs.replace(
            wanted,
            email=email,
            email_asked_ms=None if email is None else request.at_ms,
            email_tries=0,
            email_confirmed_ms=None,
        )
    if url == before.webhook_url:
        return wanted, None
    secret = None if url is None else contacts.make_secret()
    number = request.operator.operator_id
    sealed = None if secret is None else contacts.seal_secret(request.context.keyring, number, secret)
    return msgspec.structs.replace(wanted, webhook_url=url, webhook_sealed=sealed), secret


def _read_choices(request: ConsoleRequest) -> list[Choice]:
    """The chosen kinds. Those of kinds that the form does not offer are not looked at."""
    found = []
    for source in list_kinds(request):
        said = {what: f"{what}.{source.kind}" in request.form for what in (*CHANNELS, WAKES)}
        if said[EMAIL] or said[WEBHOOK]:
            found.append(Choice(source.kind, said[EMAIL], said[WEBHOOK], said[WAKES]))
    return found


async def _record(
    request: ConsoleRequest, conn: Connection, before: Contact, after: Contact, choices: list[Choice]
) -> None:
    await request.author.record(
        conn,
        "operator.notifications",
        f"operator {request.operator.name}",
        request.merchant_id,
        before=_describe(before),
        after=_describe(after) | {"kinds": " ".join(one.kind for one in choices)},
    )


def _describe(contact: Contact) -> dict[str, str | None]:
    """A contact for the audit log."""
    host = None if contact.webhook_url is None else urlsplit(contact.webhook_url).hostname
    return {"email": contact.email, "webhookHost": host}


async def _show(
    request: ConsoleRequest,
    conn: Connection,
    form_state: FormState = EMPTY_FORM,
    secret: str | None = None,
) -> Response:
    number = request.operator.operator_id
    contact = await contacts.read_contact(conn, number)
    recent = await outbox.list_recent(conn, number, RECENT)
    return request.page(
        "console/notifications.html",
        active="account",
        status=200 if form_state.ok else 422,
        form_state=form_state,
        contact=contact,
        choices=await _list_choices(request, conn, form_state),
        kinds=list_kinds(request),
        zones=ZONES,
        secret=secret,
        has_mail=request.context.settings.smtp_host is not None,
        format_minute=contacts.format_minute,
        **_describe_recent(request, recent),
    )


async def _list_choices(
    request: ConsoleRequest, conn: Connection, form_state: FormState
) -> dict[str, Choice]:
    """The choices that the page shows: after an error the ones of the form."""
    if form_state.values:
        return {one.kind: one for one in _read_choices(request)}
    return await contacts.list_choices(conn, request.operator.operator_id)


def _describe_recent(request: ConsoleRequest, recent: list[outbox.SentLine]) -> dict[str, Any]:
    """The last messages, with the titles of what they are about."""
    about = {}
    for one in recent:
        kinds = dict.fromkeys(line.kind for line in one.body.lines)
        titles = [request.translate(BY_KIND[kind].title) if kind in BY_KIND else kind for kind in kinds]
        about[one.notification_no] = ", ".join(titles)
    return {"recent": recent, "about": about, "now_ms": request.at_ms}


ROUTES: Final = (
    Page(PATH, show, None),
    Page(PATH, save, None, POST),
    Page(f"{PATH}/recent", show_recent, None, extends_session=False),
    Page(f"{PATH}/code", confirm, None, POST),
    Page(f"{PATH}/test", send_test, None, POST),
    Page(MESSAGE, open_line, Right.READ, own_book=True),
)
