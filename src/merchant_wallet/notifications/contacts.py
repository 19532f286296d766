"""Where an operator is reached, of which kinds of items, and when not.

Rules:
- An e-mail address is used once its owner has entered the code that was sent to it. So nobody can have mail
  sent to strangers. A code is valid for a day and for five tries. It is derived from the master key, and
  stored nowhere.
- The secret that signs webhooks is made with the URL, and shown once.
- Quiet hours are in the operator's time zone. A kind that `wakes` ignores them.
"""

import hmac
import re
import secrets
from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from psycopg import AsyncConnection

from merchant_wallet.base.codes import Refused
from merchant_wallet.base.db import Queries
from merchant_wallet.base.notify_url import check_notify_url
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.merchants.keys import Keyring
from merchant_wallet.web.languages import N_

Connection = AsyncConnection[Any]

QUERIES: Final = Queries(Path(__file__).with_name("contacts.sql"))
EMAIL: Final = "email"
WEBHOOK: Final = "webhook"
CHANNELS: Final = (EMAIL, WEBHOOK)
DEFAULT_ZONE: Final = "UTC"
SECRET_PREFIX: Final = "whsec_"
SECRET_BYTES: Final = 24
CODE_DIGITS: Final = 8
CODE_MS: Final = DAY_MS
MAX_TRIES: Final = 5
MAX_URL: Final = 500
MAX_EMAIL: Final = 254
_CODE_KEY: Final = "email code"
_ATOM: Final = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL: Final = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
# A dot-atom and the labels of a host (RFC 5321 section 4.1.2). No mail can be built for any other address.
_match_email = re.compile(rf"(?=[^@]{{1,64}}@){_ATOM}(?:\.{_ATOM})*@{_LABEL}(?:\.{_LABEL})*").fullmatch
_match_time = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])").fullmatch

BAD_EMAIL: Final = N_("An address such as ann@example.com, in ASCII.")
BAD_URL: Final = N_("An https:// address of up to 500 characters, without a user name.")
BAD_ZONE: Final = N_("A time zone such as Asia/Shanghai or Europe/Berlin.")
BAD_TIME: Final = N_("Two different times such as 22:00 and 07:00, or none.")
WRONG_CODE: Final = N_("This is not the code of the last mail. After five tries, have a new one sent.")


class ContactRefused(ValueError):
    """A contact can't be like this. `field` is the field of the form, the text says why."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(text)
        self.field = field


class Contact(msgspec.Struct, frozen=True):
    """How an operator is reached. Quiet hours are minutes of the local day. Without them there are none."""

    email: str | None = None
    email_asked_ms: int | None = None
    email_tries: int = 0
    email_confirmed_ms: int | None = None
    webhook_url: str | None = None
    webhook_sealed: bytes | None = None
    time_zone: str = DEFAULT_ZONE
    quiet_from_min: int | None = None
    quiet_to_min: int | None = None

    @property
    def targets(self) -> Mapping[str, str]:
        """Where messages may go now, by channel."""
        found = {}
        if self.email is not None and self.email_confirmed_ms is not None:
            found[EMAIL] = self.email
        if self.webhook_url is not None:
            found[WEBHOOK] = self.webhook_url
        return found

    def is_quiet(self, at_ms: int) -> bool:
        """Whether a moment is in the quiet hours. They may go past midnight."""
        begin, end = self.quiet_from_min, self.quiet_to_min
        if begin is None or end is None:
            return False
        local = datetime.fromtimestamp(at_ms / 1000, UTC).astimezone(find_zone(self.time_zone))
        minute = 60 * local.hour + local.minute
        return begin <= minute < end if begin < end else minute >= begin or minute < end


class Choice(msgspec.Struct, frozen=True):
    """How an operator wants to be told of a kind of item. `wakes`: in quiet hours too."""

    kind: str
    by_email: bool
    by_webhook: bool
    wakes: bool

    @property
    def channels(self) -> list[str]:
        """The chosen channels."""
        chosen = ((EMAIL, self.by_email), (WEBHOOK, self.by_webhook))
        return [channel for channel, is_chosen in chosen if is_chosen]


def find_zone(name: str) -> ZoneInfo:
    """The time zone of a name. A zone that this system does not know any more counts as UTC."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo(DEFAULT_ZONE)


def read_zone(text: str) -> str:
    """A time zone's name. Raises ContactRefused."""
    try:
        return ZoneInfo(text).key
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ContactRefused("zone", BAD_ZONE) from None


def read_email(text: str) -> str | None:
    """An e-mail address, or None for an empty text. Raises ContactRefused."""
    if not text:
        return None
    if len(text) > MAX_EMAIL or _match_email(text) is None:
        raise ContactRefused("email", BAD_EMAIL)
    return text


def read_url(text: str, *, sandbox: bool) -> str | None:
    """A webhook's URL, or None for an empty text. Raises ContactRefused."""
    if not text:
        return None
    try:
        check_notify_url(text, sandbox=sandbox)
    except Refused:
        raise ContactRefused("url", BAD_URL) from None
    if len(text) > MAX_URL:
        raise ContactRefused("url", BAD_URL)
    return text


def read_quiet(begin: str, end: str) -> tuple[int, int] | tuple[None, None]:
    """Quiet hours as minutes of the day. Raises ContactRefused."""
    if not begin and not end:
        return None, None
    found = (_match_time(begin), _match_time(end))
    if found[0] is None or found[1] is None or begin == end:
        raise ContactRefused("quiet", BAD_TIME)
    first, last = (60 * int(one[1]) + int(one[2]) for one in found if one is not None)
    return first, last


def format_minute(minute: int | None) -> str:
    """A minute of the day as a form shows it."""
    return "" if minute is None else f"{minute // 60:02d}:{minute % 60:02d}"


def make_secret() -> str:
    """A new secret of a webhook, in the form of Standard Webhooks."""
    return SECRET_PREFIX + b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def seal_secret(keyring: Keyring, operator_id: int, secret: str) -> bytes:
    """The secret as it is stored."""
    return keyring.seal_at(secret, _place(operator_id))


def open_secret(keyring: Keyring, operator_id: int, sealed: bytes) -> str:
    """The secret of an operator's webhook. Raises WrongMasterKey."""
    return keyring.open_at(sealed, _place(operator_id))


def _place(operator_id: int) -> str:
    return f"operator;{operator_id};webhook"


def make_code(keyring: Keyring, operator_id: int, email: str, asked_ms: int) -> str:
    """The code that confirms an address. It belongs to one operator, one address and one mail."""
    said = f"{operator_id};{asked_ms};{email}".encode()
    digest = hmac.digest(keyring.derive(_CODE_KEY), said, "sha256")
    return f"{int.from_bytes(digest[:8]) % 10**CODE_DIGITS:0{CODE_DIGITS}d}"


async def read_contact(conn: Connection, operator_id: int) -> Contact:
    """An operator's contact; empty if there is none."""
    return await _read(conn, "read_contact", operator_id)


async def lock_contact(conn: Connection, operator_id: int) -> Contact:
    """The same, locked until the transaction ends."""
    return await _read(conn, "lock_contact", operator_id)


async def _read(conn: Connection, name: str, operator_id: int) -> Contact:
    row = await (await conn.execute(QUERIES[name].text, {"operator_id": operator_id})).fetchone()
    return Contact() if row is None else Contact(*row)


async def write_contact(conn: Connection, operator_id: int, contact: Contact) -> None:
    """Store an operator's contact."""
    values = {"operator_id": operator_id, **msgspec.structs.asdict(contact)}
    await conn.execute(QUERIES["write_contact"].text, values)


async def confirm_email(
    conn: Connection, keyring: Keyring, operator_id: int, code: str, at_ms: int
) -> Contact:
    """Confirm the address with the code of the last mail.

    The caller commits after a refusal too: a wrong try must stay counted. Raises ContactRefused.
    """
    async with conn.transaction():
        contact = await lock_contact(conn, operator_id)
        if contact.email is None or contact.email_asked_ms is None:
            raise ContactRefused("code", WRONG_CODE)
        is_open = contact.email_tries < MAX_TRIES and at_ms <= contact.email_asked_ms + CODE_MS
        wanted = make_code(keyring, operator_id, contact.email, contact.email_asked_ms)
        is_right = is_open and hmac.compare_digest(wanted.encode(), code.strip().encode())
        changed = msgspec.structs.replace(
            contact,
            email_tries=min(contact.email_tries + 1, MAX_TRIES),
            email_confirmed_ms=at_ms if is_right else contact.email_confirmed_ms,
        )
        await write_contact(conn, operator_id, changed)
    if not is_right:
        raise ContactRefused("code", WRONG_CODE)
    return changed


async def list_choices(conn: Connection, operator_id: int) -> dict[str, Choice]:
    """What an operator wants to be told of, by kind."""
    cursor = await conn.execute(QUERIES["list_choices"].text, {"operator_id": operator_id})
    return {row[0]: Choice(*row) for row in await cursor.fetchall()}


async def write_choices(conn: Connection, operator_id: int, choices: Sequence[Choice]) -> None:
    """Store what an operator wants to be told of. Call it in a transaction."""
    await conn.execute(QUERIES["delete_choices"].text, {"operator_id": operator_id})
    values = {
        "operator_id": operator_id,
        "kinds": [one.kind for one in choices],
        "by_email": [one.by_email for one in choices],
        "by_webhook": [one.by_webhook for one in choices],
        "wakes": [one.wakes for one in choices],
    }
    await conn.execute(QUERIES["insert_choices"].text, values)
