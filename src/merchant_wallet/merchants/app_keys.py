"""The keys of a merchant: list, add, limit, roll and revoke them.

Rules:
- Key 1 is the merchant's first appKey, and its callbacks are signed with it. So it can be limited and rolled,
  but not revoked.
- Every change raises the version of the merchant's settings: it holds from the next request on, in all
  processes.
- A key has at most two valid secrets. After a roll the older one works until the chosen time.
- A secret is returned once, by the function that makes it.
- Each function is one transaction.
"""

from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Final

import msgspec
from psycopg.rows import class_row

from merchant_wallet.base.db import Queries
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.merchants import store
from merchant_wallet.merchants.key_limits import KeyLimits
from merchant_wallet.merchants.keys import Keyring, format_key_purpose, generate_app_key, generate_secret
from merchant_wallet.merchants.store import Connection

QUERIES: Final = Queries(Path(__file__).with_name("app_keys.sql"))
FIRST_KEY: Final = 1
MAX_KEYS: Final = 20
"""Keys of a merchant that are not revoked."""
MAX_NUMBERS: Final = 1000
"""All keys that a merchant ever had."""
MAX_OVERLAP_MS: Final = 30 * DAY_MS


class KeyRefusal(Enum):
    """Why a change of a key is refused. The value is the sentence."""

    UNKNOWN = "There is no such key."
    REVOKED = "This key is revoked: it can't be changed any more."
    TOO_MANY = f"A merchant has at most {MAX_KEYS} keys. Revoke one that is not used any more."
    TOO_MANY_EVER = f"This merchant has had {MAX_NUMBERS} keys. Rename and roll one of them instead."
    FIRST_STAYS = "The first key can't be revoked: callbacks are signed with it. Roll it, or limit it."
    TWO_SECRETS = "The older secret of this key still works. End it first, then roll again."
    ONE_SECRET = "This key has one valid secret only. There is none to end."
    OVERLAP = "The old secret works for at most 30 days after a roll."


class KeyRefused(ValueError):
    """A key can't be changed like this. `refusal` is the rule, the text its sentence."""

    def __init__(self, refusal: KeyRefusal) -> None:
        super().__init__(refusal.value)
        self.refusal = refusal


class AppKey(msgspec.Struct, frozen=True):
    """A key as people see it, without its secrets. `used_ms` is the minute of its last use.

    `overlap_ends_ms` is when the older of two secrets ends, if that was chosen. The first key may have no
    name.
    """

    key_no: int
    app_key: str
    name: str
    operations: list[str]
    networks: list[str]
    created_ms: int
    created_by: str
    revoked_ms: int | None
    used_ms: int | None
    live_secrets: int
    overlap_ends_ms: int | None
    newest_secret_no: int

    @property
    def limits(self) -> KeyLimits:
        """The operations and networks that it may use."""
        return KeyLimits(tuple(self.operations), tuple(self.networks))

    @property
    def is_first(self) -> bool:
        """Whether callbacks are signed with it."""
        return self.key_no == FIRST_KEY


class NewSecret(msgspec.Struct, frozen=True):
    """A new or rolled key with its new secret, which is shown only this once."""

    key: AppKey
    secret: str

    def __repr__(self) -> str:
        return f"NewSecret({self.key.app_key!r})"


async def list_keys(conn: Connection, merchant_id: int, at_ms: int) -> list[AppKey]:
    """All keys of a merchant, the first one first. Empty if there is no such merchant."""
    async with conn.cursor(row_factory=class_row(AppKey)) as cursor:
        await cursor.execute(QUERIES["list_keys"].text, {"merchant_id": merchant_id, "at_ms": at_ms})
        return await cursor.fetchall()


async def find_key(conn: Connection, merchant_id: int, key_no: int, at_ms: int) -> AppKey | None:
    """One key of a merchant, or None."""
    return next((key for key in await list_keys(conn, merchant_id, at_ms) if key.key_no == key_no), None)


async def add_key(
    conn: Connection,
    keyring: Keyring,
    merchant_id: int,
    name: str,
    limits: KeyLimits,
    *,
    sandbox: bool,
    created_by: str,
    at_ms: int,
) -> NewSecret:
    """Add a key. Raises KeyRefused, MerchantUnknown."""
    async with conn.transaction():
        await store.raise_version(conn, merchant_id)
        keys = await list_keys(conn, merchant_id, at_ms)
        if sum(key.revoked_ms is None for key in keys) >= MAX_KEYS:
            raise KeyRefused(KeyRefusal.TOO_MANY)
        if keys[-1].key_no >= MAX_NUMBERS:
            raise KeyRefused(KeyRefusal.TOO_MANY_EVER)
        key_no = keys[-1].key_no + 1
        values = {
            "merchant_id": merchant_id,
            "key_no": key_no,
            "app_key": generate_app_key(sandbox=sandbox),
            "name": name,
            "operations": list(limits.operations),
            "networks": list(limits.networks),
            "created_ms": at_ms,
            "created_by": created_by,
        }
        await conn.execute(QUERIES["insert_key"].text, values)
        app_key = str(values["app_key"])
        secret = await _insert_secret(conn, keyring, merchant_id, key_no, 1, app_key, at_ms)
        return NewSecret(await require_key(conn, merchant_id, key_no, at_ms), secret)


async def change_key(
    conn: Connection, merchant_id: int, key_no: int, name: str, limits: KeyLimits, at_ms: int
) -> tuple[AppKey, AppKey]:
    """Give a key another name and other limits. Returns it before and after. Raises KeyRefused."""
    async with conn.transaction():
        before = await lock_key(conn, merchant_id, key_no, at_ms)
        values = {
            "merchant_id": merchant_id,
            "key_no": key_no,
            "app_key": None if before.is_first else before.app_key,
            "name": name,
            "operations": list(limits.operations),
            "networks": list(limits.networks),
            "created_ms": before.created_ms,
            "created_by": before.created_by,
        }
        await conn.execute(QUERIES["write_key"].text, values)
        return before, await require_key(conn, merchant_id, key_no, at_ms)


async def lock_key(conn: Connection, merchant_id: int, key_no: int, at_ms: int) -> AppKey:
    """Lock a merchant for a change of one of its keys, and return the key. Raises KeyRefused."""
    await store.raise_version(conn, merchant_id)
    return await require_key(conn, merchant_id, key_no, at_ms)


async def roll_key(
    conn: Connection, keyring: Keyring, merchant_id: int, key_no: int, *, overlap_ms: int | None, at_ms: int
) -> NewSecret:
    """Add a secret to a key. The present one works for another `overlap_ms`; 0 ends it now, None never.

    Raises KeyRefused, MerchantUnknown.
    """
    if overlap_ms is not None and not 0 <= overlap_ms <= MAX_OVERLAP_MS:
        raise KeyRefused(KeyRefusal.OVERLAP)
    async with conn.transaction():
        key = await lock_key(conn, merchant_id, key_no, at_ms)
        if key.live_secrets > 1:
            raise KeyRefused(KeyRefusal.TWO_SECRETS)
        if key.is_first:
            secret = await store.rotate_secret(conn, keyring, merchant_id, at_ms=at_ms, overlap_ms=overlap_ms)
        else:
            secret = await _roll(conn, keyring, merchant_id, key, overlap_ms, at_ms)
        return NewSecret(await require_key(conn, merchant_id, key_no, at_ms), secret)


async def end_old_secret(conn: Connection, merchant_id: int, key_no: int, at_ms: int) -> int:
    """End the older of a key's two valid secrets, from the next request on. Returns its number.

    Raises KeyRefused.
    """
    async with conn.transaction():
        key = await lock_key(conn, merchant_id, key_no, at_ms)
        if key.live_secrets < 2:
            raise KeyRefused(KeyRefusal.ONE_SECRET)
        if key.is_first:
            return await store.retire_secret(conn, merchant_id, at_ms=at_ms)
        live = [number for number, retired in await _read_secrets(conn, merchant_id, key_no) if not retired]
        await _end(conn, merchant_id, key_no, live[0], at_ms)
        return live[0]


async def revoke_key(conn: Connection, merchant_id: int, key_no: int, at_ms: int) -> tuple[AppKey, AppKey]:
    """Revoke a key for ever. Returns it before and after. A revoked key stays as it is. Raises KeyRefused."""
    if key_no == FIRST_KEY:
        raise KeyRefused(KeyRefusal.FIRST_STAYS)
    async with conn.transaction():
        await store.raise_version(conn, merchant_id)
        before = await _require_any(conn, merchant_id, key_no, at_ms)
        values = {"merchant_id": merchant_id, "key_no": key_no, "revoked_ms": at_ms}
        await conn.execute(QUERIES["revoke_key"].text, values)
        return before, await _require_any(conn, merchant_id, key_no, at_ms)


async def require_key(conn: Connection, merchant_id: int, key_no: int, at_ms: int) -> AppKey:
    """A key that is not revoked. Raises KeyRefused."""
    key = await _require_any(conn, merchant_id, key_no, at_ms)
    if key.revoked_ms is not None:
        raise KeyRefused(KeyRefusal.REVOKED)
    return key


async def _require_any(conn: Connection, merchant_id: int, key_no: int, at_ms: int) -> AppKey:
    """A key, also a revoked one. Raises KeyRefused."""
    key = await find_key(conn, merchant_id, key_no, at_ms)
    if key is None:
        raise KeyRefused(KeyRefusal.UNKNOWN)
    return key


async def _roll(
    conn: Connection, keyring: Keyring, merchant_id: int, key: AppKey, overlap_ms: int | None, at_ms: int
) -> str:
    key_no = key.key_no
    secrets = await _read_secrets(conn, merchant_id, key_no)
    live = [number for number, retired in secrets if not retired]
    for number in live[:-1]:
        # It has expired. Only its row says that it is live.
        await _end(conn, merchant_id, key_no, number, at_ms)
    if overlap_ms is not None:
        await _end(conn, merchant_id, key_no, live[-1], None if overlap_ms else at_ms, at_ms + overlap_ms)
    return await _insert_secret(conn, keyring, merchant_id, key_no, secrets[-1][0] + 1, key.app_key, at_ms)


async def _read_secrets(conn: Connection, merchant_id: int, key_no: int) -> list[tuple[int, bool]]:
    """The numbers of all secrets of a further key, oldest first, and whether each is retired."""
    values = {"merchant_id": merchant_id, "key_no": key_no}
    rows = await (await conn.execute(QUERIES["read_key_secrets"].text, values)).fetchall()
    return [(number, retired_ms is not None) for number, retired_ms in rows]


async def _end(
    conn: Connection,
    merchant_id: int,
    key_no: int,
    secret_no: int,
    retired_ms: int | None,
    expires_ms: int | None = None,
) -> None:
    values: Mapping[str, Any] = {
        "merchant_id": merchant_id,
        "key_no": key_no,
        "secret_no": secret_no,
        "expires_ms": expires_ms,
        "retired_ms": retired_ms,
    }
    await conn.execute(QUERIES["end_key_secret"].text, values)


async def _insert_secret(
    conn: Connection,
    keyring: Keyring,
    merchant_id: int,
    key_no: int,
    secret_no: int,
    app_key: str,
    at_ms: int,
) -> str:
    secret = generate_secret(app_key)
    values = {
        "merchant_id": merchant_id,
        "key_no": key_no,
        "secret_no": secret_no,
        "sealed": keyring.seal(secret, merchant_id, format_key_purpose(key_no), secret_no),
        "created_ms": at_ms,
    }
    await conn.execute(QUERIES["insert_key_secret"].text, values)
    return secret
