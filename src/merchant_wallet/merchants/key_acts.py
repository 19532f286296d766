"""What people do about a merchant's keys: add one, limit, roll and revoke it.

Rules:
- A change and its entry in the audit log are one transaction, whichever door it comes from.
- Where two people are needed, a new key may do no more than a key that the merchant has. Otherwise a second
  key would be a way around the limits of the first.
- Who makes a secret is noted with it. For `secret_wait_ms` that person's approvals of the merchant's orders
  do not count.
"""

from typing import Any, Final

from merchant_wallet.audit.records import Author
from merchant_wallet.merchants import app_keys, staff_secrets
from merchant_wallet.merchants.app_keys import AppKey, NewSecret
from merchant_wallet.merchants.audit_facts import pick_changed
from merchant_wallet.merchants.key_limits import KeyLimits, is_covered
from merchant_wallet.merchants.keys import Keyring
from merchant_wallet.merchants.store import Connection

ADD: Final = "merchant.add_key"
SET: Final = "merchant.set_key"
ROLL: Final = "merchant.roll_key"
END_OLD_SECRET: Final = "merchant.end_old_secret"
REVOKE: Final = "merchant.revoke_key"
TOO_WIDE: Final = (
    "No key of this merchant may do that much. Add it with the limits of a key that there is, then widen it: "
    "that needs a second person."
)


class KeyTooWide(ValueError):
    """A new key would be allowed more than each key that there is, and two people are needed."""


def format_subject(merchant_id: int, key_no: int) -> str:
    """The name of a key in proposals and the audit log."""
    return f"merchant {merchant_id} key {key_no}"


def check_new_key(limits: KeyLimits, keys: list[AppKey]) -> None:
    """Check that a new key may do no more than one that there is. Pure. Raises KeyTooWide."""
    if not is_covered(limits, [key.limits for key in keys if key.revoked_ms is None]):
        raise KeyTooWide(TOO_WIDE)


async def add_key(
    conn: Connection,
    keyring: Keyring,
    author: Author,
    merchant_id: int,
    name: str,
    limits: KeyLimits,
    *,
    sandbox: bool,
    needs_two: bool,
    secret_wait_ms: int,
) -> NewSecret:
    """Add a key. Raises KeyRefused, KeyTooWide, MerchantUnknown."""
    async with conn.transaction():
        made = await app_keys.add_key(
            conn,
            keyring,
            merchant_id,
            name,
            limits,
            sandbox=sandbox,
            created_by=author.actor,
            at_ms=author.at_ms,
        )
        key_no = made.key.key_no
        if needs_two:
            # The merchant is locked now, so nobody changes its other keys meanwhile.
            keys = await app_keys.list_keys(conn, merchant_id, author.at_ms)
            check_new_key(limits, [key for key in keys if key.key_no != key_no])
        await staff_secrets.note(conn, author, merchant_id, key_no, secret_wait_ms)
        await _record(conn, author, ADD, merchant_id, key_no, after={"name": name, **limits.show()})
    return made


async def change_key(
    conn: Connection, author: Author, merchant_id: int, key_no: int, name: str, limits: KeyLimits
) -> AppKey:
    """Give a key another name and other limits. Nothing is recorded if they are what they were.

    Raises KeyRefused, MerchantUnknown.
    """
    async with conn.transaction():
        before, after = await app_keys.change_key(conn, merchant_id, key_no, name, limits, author.at_ms)
        was, became = pick_changed(_describe(before), _describe(after))
        if became:
            await _record(conn, author, SET, merchant_id, key_no, before=was, after=became)
    return after


async def roll_key(
    conn: Connection,
    keyring: Keyring,
    author: Author,
    merchant_id: int,
    key_no: int,
    *,
    overlap_ms: int | None,
    secret_wait_ms: int,
) -> NewSecret:
    """Add a secret to a key. Without an overlap both work until the older one is ended.

    Raises KeyRefused, MerchantUnknown.
    """
    after = {"rolled": True} if overlap_ms is None else {"overlapMs": overlap_ms}
    async with conn.transaction():
        made = await app_keys.roll_key(
            conn, keyring, merchant_id, key_no, overlap_ms=overlap_ms, at_ms=author.at_ms
        )
        await staff_secrets.note(conn, author, merchant_id, key_no, secret_wait_ms)
        await _record(conn, author, ROLL, merchant_id, key_no, after=after)
    return made


async def end_old_secret(conn: Connection, author: Author, merchant_id: int, key_no: int) -> int:
    """End the older of a key's two valid secrets. Returns its number. Raises KeyRefused, MerchantUnknown."""
    async with conn.transaction():
        number = await app_keys.end_old_secret(conn, merchant_id, key_no, author.at_ms)
        await _record(conn, author, END_OLD_SECRET, merchant_id, key_no, after={"ended": True})
    return number


async def revoke_key(
    conn: Connection, author: Author, merchant_id: int, key_no: int
) -> tuple[AppKey, AppKey]:
    """Revoke a key for ever. Returns it before and after. Nothing is recorded if it was revoked before.

    Raises KeyRefused, MerchantUnknown.
    """
    async with conn.transaction():
        before, after = await app_keys.revoke_key(conn, merchant_id, key_no, author.at_ms)
        if before.revoked_ms is None:
            was, became = {"name": before.name}, {"revoked": True}
            await _record(conn, author, REVOKE, merchant_id, key_no, before=was, after=became)
    return before, after


def _describe(key: AppKey) -> dict[str, str]:
    return {"name": key.name, **key.limits.show()}


async def _record(
    conn: Connection,
    author: Author,
    action: str,
    merchant_id: int,
    key_no: int,
    *,
    before: dict[str, Any] | None = None,
    after: dict[str, Any],
) -> None:
    subject = format_subject(merchant_id, key_no)
    await author.record(conn, action, subject, merchant_id, before=before, after=after)
