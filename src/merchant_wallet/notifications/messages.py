"""The texts of messages: a mail and a webhook. Pure.

Rules:
- A mail has the kinds of items, how many, since when, and links. It warns of a look-alike address. It has no
  amount, no name, no address and no id: mail servers keep copies, and a preview shows on a locked telephone.
  The links name only the message.
- A webhook is signed, and goes over TLS to a machine that the operator runs. It has the sentence of the inbox
  too, which may name an order, a chain and people. It has no amount either.
- Both have an id that stays the same when a message is sent again, so a receiver can drop the second one.
"""

from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from functools import partial
from typing import Any, Final

import msgspec

from merchant_wallet.base.webhooks import sign_webhook
from merchant_wallet.callbacks.payloads import Payload
from merchant_wallet.notifications.contacts import SECRET_PREFIX, find_zone
from merchant_wallet.notifications.outbox import Message
from merchant_wallet.notifications.planning import Line
from merchant_wallet.reporting.inbox_lists import ALIKE
from merchant_wallet.web.actors import name_actors
from merchant_wallet.web.inbox_sources import BY_KIND
from merchant_wallet.web.languages import N_, Language, translate

INBOX: Final = "/console/inbox"
SETTINGS: Final = "/console/account/notifications"
TYPE: Final = "inbox.items"
TEST_TYPE: Final = "inbox.test"
MAX_SHOWN: Final = 20
"""A mail lists so many items and counts the rest."""
SANDBOX: Final = "[Sandbox] "

ONE_WAITS: Final = N_("One thing waits for you")
SOME_WAIT: Final = N_("{count} things wait for you")
SUBJECT: Final = N_("{waits}: {kinds}")
ESCALATED: Final = N_("Nobody has acted yet")
LOOKALIKE: Final = N_("An address looks like a known one: compare it whole")
SINCE: Final = N_("since {moment}")
AND_MORE: Final = N_("And {count} more.")
ALL_OF_IT: Final = N_("Everything that waits:")
WHY_YOU: Final = N_("You have chosen to be told of this. Change it here:")
TEST_SUBJECT: Final = N_("Test of your notifications")
TEST_TEXT: Final = N_("This address gets notifications of the console. Nothing has to be done.")
CODE_TEXT: Final = N_("Enter this code to confirm your address: {code}")
CODE_WARNING: Final = N_(
    "If you did not ask for it, ignore this mail. Nothing is sent here without the code."
)


class Site(msgspec.Struct, frozen=True):
    """Where links lead, and whether the service is a sandbox."""

    url: str
    is_sandbox: bool = False


def format_id(notification_no: int) -> str:
    """The id of a message, the same at every attempt."""
    return f"ntf_{notification_no}"


def build_mail(
    message: Message, site: Site, sender: str, language: Language, zone: str, code: str | None = None
) -> EmailMessage:
    """The mail of a message. `code` is for an address that is not confirmed yet."""
    mail = EmailMessage(policy=SMTP)
    mail["From"] = Address("Merchant Wallet", addr_spec=sender)
    mail["To"] = Address(addr_spec=message.target)
    mail["Subject"] = (SANDBOX if site.is_sandbox else "") + _write_subject(message, language)
    mail["Date"] = format_datetime(datetime.fromtimestamp(message.created_ms / 1000, UTC))
    mail["Message-ID"] = f"<{format_id(message.notification_no)}.{message.created_ms}@{sender.split('@')[1]}>"
    # RFC 3834: no holiday answers, no loops.
    mail["Auto-Submitted"] = "auto-generated"
    mail["Content-Language"] = str(language)
    lines = _write_test(language, code) if message.is_test else _write_items(message, site, language, zone)
    lines += ["", translate(language, WHY_YOU), f"{site.url}{SETTINGS}"]
    mail.set_content("\n".join(lines) + "\n", cte="8bit" if "\n".join(lines).isascii() else "base64")
    return mail


def _write_subject(message: Message, language: Language) -> str:
    if message.is_test:
        return translate(language, TEST_SUBJECT)
    count = len(message.body.lines) + message.body.more
    waits = translate(language, ONE_WAITS) if count == 1 else translate(language, SOME_WAIT, count=count)
    kinds = dict.fromkeys(line.kind for line in message.body.lines)
    first = [translate(language, _title_of(kind)) for kind in list(kinds)[:2]]
    more = ["…"] if len(kinds) > len(first) else []
    return translate(language, SUBJECT, waits=waits, kinds=", ".join([*first, *more]))


def _write_test(language: Language, code: str | None) -> list[str]:
    if code is None:
        return [translate(language, TEST_TEXT)]
    return [translate(language, CODE_TEXT, code=code), "", translate(language, CODE_WARNING)]


def _write_items(message: Message, site: Site, language: Language, zone: str) -> list[str]:
    written: list[str] = []
    shown = message.body.lines[:MAX_SHOWN]
    for number, line in enumerate(shown):
        moment = datetime.fromtimestamp(line.since_ms / 1000, UTC).astimezone(find_zone(zone))
        since = translate(language, SINCE, moment=f"{moment:%Y-%m-%d %H:%M %Z}")
        told = f" · {translate(language, ESCALATED)}" if line.is_escalated else ""
        told += f" · {translate(language, LOOKALIKE)}" if line.form == ALIKE else ""
        written += [f"{translate(language, _title_of(line.kind))} · {since}{told}"]
        written += [f"  {_link(site, message, number)}", ""]
    if hidden := len(message.body.lines) - len(shown) + message.body.more:
        written += [translate(language, AND_MORE, count=hidden), ""]
    return [*written, translate(language, ALL_OF_IT), f"{site.url}{INBOX}"]


def build_webhook(message: Message, site: Site, language: Language, secret: str, at_ms: int) -> Payload:
    """The webhook of a message, signed as Standard Webhooks says."""
    data: dict[str, Any] = {"inboxUrl": f"{site.url}{INBOX}", "isSandbox": site.is_sandbox}
    if not message.is_test:
        lines = message.body.lines
        data |= {
            "count": len(lines) + message.body.more,
            "items": [_show(message, site, language, number, line) for number, line in enumerate(lines)],
        }
    content = {
        "type": TEST_TYPE if message.is_test else TYPE,
        "timestamp": _write_moment(message.created_ms),
        "data": data,
    }
    body = msgspec.json.encode(content)
    name, at_s = format_id(message.notification_no), at_ms // 1000
    headers = (
        (b"Content-Type", b"application/json; charset=utf-8"),
        (b"webhook-id", name.encode()),
        (b"webhook-timestamp", b"%d" % at_s),
        (b"webhook-signature", sign_webhook(secret.removeprefix(SECRET_PREFIX), name, at_s, body)),
    )
    return Payload(body, headers)


def _show(message: Message, site: Site, language: Language, number: int, line: Line) -> dict[str, Any]:
    source = BY_KIND.get(line.kind)
    text = line.kind if source is None else source.texts.get(line.form, source.title)
    say = partial(translate, language)
    return {
        "kind": line.kind,
        "title": translate(language, _title_of(line.kind)),
        "text": say(text, **name_actors(line.values, say)),
        "since": _write_moment(line.since_ms),
        "isEscalated": line.is_escalated,
        "url": _link(site, message, number),
    }


def _title_of(kind: str) -> str:
    """The title of a kind. A message may wait from before an update that has dropped its kind."""
    source = BY_KIND.get(kind)
    return kind if source is None else source.title


def _link(site: Site, message: Message, number: int) -> str:
    return f"{site.url}{INBOX}/messages/{message.notification_no}/{number}"


def _write_moment(at_ms: int) -> str:
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
