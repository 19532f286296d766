"""Merchants in the database: create, read and change a merchant, its secrets, id ranges and address indexes.

Rules:
- Connections are in autocommit mode. Every change is one transaction.
- If a request depends on a value, its change first raises the settings' version of the merchant and its book.
- In the default cell this is one transaction. For a book in an apart cell it is home's part alone: then
  `carried_version` is behind `settings_version`, until `merchants.cells.carrying` has told the cell.
- Locks are taken in one order: merchant, book, table of id ranges.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from psycopg import AsyncConnection
from psycopg.rows import DictRow, dict_row
from psycopg.types.json import Jsonb

from merchant_wallet.audit.rollback.evidence import ROLLED_BACK, has_open_evidence
from merchant_wallet.base.addresses import derive_account_xpub
from merchant_wallet.base.cells import DEFAULT_CELL_ID
from merchant_wallet.base.chains import COIN_TYPES
from merchant_wallet.base.db import Queries
from merchant_wallet.base.invisible_text import clean, note_invisible
from merchant_wallet.base.user_input import parse_digits
from merchant_wallet.merchants import xpub_pool
from merchant_wallet.merchants.addresses import issue_own_addresses
from merchant_wallet.merchants.books import NewBook, change_book, open_book, read_closed_ms
from merchant_wallet.merchants.id_ranges import take_range
from merchant_wallet.merchants.keys import (
    APP,
    CALLBACK,
    Keyring,
    format_key_purpose,
    generate_app_key,
    generate_secret,
)
from merchant_wallet.merchants.records import ACTIVE, SUSPENDED, Merchant, as_columns
from merchant_wallet.merchants.settings import SETTINGS, SettingRefused, Value, parse_setting
from merchant_wallet.postgres import jobs

Connection = AsyncConnection[Any]

QUERIES = Queries(Path(__file__).with_name("merchants.sql"))
_LIVE_SECRETS = 2
_COLUMNS = tuple(setting.column for setting in SETTINGS.values())


class MerchantUnknown(LookupError):
    """The text names no merchant, or more than one. The message is a sentence for the terminal."""


class MerchantAmbiguous(MerchantUnknown):
    """Several merchants have the name."""


class SecretRefused(ValueError):
    """A secret can't be added or retired now. The text says why."""


class MerchantRef(NamedTuple):
    """A merchant in a list."""

    merchant_id: int
    name: str
    app_key: str
    status: str
    currency_mode: str
    created_ms: int


class NewMerchant(msgspec.Struct, frozen=True):
    """A new merchant and its two secrets. They are shown only this once."""

    merchant: Merchant
    app_secret: str
    callback_secret: str

    def __repr__(self) -> str:
        return f"NewMerchant({self.merchant!r})"


class Change(NamedTuple):
    """A merchant before and after a change of its settings."""

    before: Merchant
    after: Merchant


async def create(
    conn: Connection,
    keyring: Keyring,
    name: str,
    *,
    seed: bytes | None,
    at_ms: int,
    settings: Mapping[str, str] | None = None,
    cell_id: int = DEFAULT_CELL_ID,
) -> NewMerchant:
    """Create a merchant and its book: secrets, extended public keys, id range, fixed accounts.

    In the default cell all of it is one transaction. For an apart cell this is home's part, and afterwards
    `merchants.cells.carrying` opens the book there.

    `seed` (BIP32) is the sandbox's seed. It gives the wallets' accounts, one for each merchant and chain,
    with the merchant's id as account number. Without a seed, outside the sandbox, the keys come from the
    pool. The appKey's prefix shows the mode. `settings` are texts as for `change_settings`.

    Raises SettingRefused, RangesExhausted, PoolEmpty. While the database counts as rolled back, nobody is
    created: a cell may have a merchant with the next id.
    """
    if await has_open_evidence(conn):
        raise SettingRefused(ROLLED_BACK)
    changed = _parse({**(settings or {}), "name": name})
    app_key = generate_app_key(sandbox=seed is not None)
    app_secret, callback_secret = generate_secret(app_key), generate_secret()
    async with conn.transaction():
        values = {"name": changed["name"], "app_key": app_key, "created_ms": at_ms, "cell_id": cell_id}
        merchant_id: int = (await _expect(conn, "insert_merchant", values))["merchant_id"]
        xpubs = await _give_account(conn, seed, merchant_id)
        await _run(conn, "write_account_xpubs", {"merchant_id": merchant_id, "account_xpubs": Jsonb(xpubs)})
        own_addresses = await issue_own_addresses(conn, merchant_id, xpubs)
        await insert_secret(conn, keyring, merchant_id, APP, 1, app_secret, at_ms)
        await insert_secret(conn, keyring, merchant_id, CALLBACK, 1, callback_secret, at_ms)
        range_no = await take_range(conn, merchant_id)
        if cell_id == DEFAULT_CELL_ID:
            opened_ms = max(at_ms, await read_closed_ms(conn))
            await open_book(conn, NewBook(merchant_id, range_no, 1, opened_ms, own_addresses))
        row = await _read(conn, merchant_id=merchant_id)
        await _run(conn, "write_settings", _settings_of(row, changed))
        row = await _read(conn, merchant_id=merchant_id)
    return NewMerchant(_to_merchant(row, keyring), app_secret, callback_secret)


async def load_by_app_key(conn: Connection, keyring: Keyring, app_key: str) -> Merchant | None:
    """The merchant with this appKey, in one round trip. Raises WrongMasterKey."""
    if not (app_key.isascii() and app_key.isprintable()):
        # No appKey has such characters, and the database would refuse some of them as text.
        return None
    row = await _fetch(conn, "read_merchant", {"merchant_id": None, "app_key": app_key})
    return None if row is None else _to_merchant(row, keyring)


async def load(conn: Connection, keyring: Keyring, merchant_id: int) -> Merchant | None:
    """The merchant with this id, in one round trip. Raises WrongMasterKey."""
    row = await _fetch(conn, "read_merchant", {"merchant_id": merchant_id, "app_key": None})
    return None if row is None else _to_merchant(row, keyring)


async def read_settings_version(conn: Connection, merchant_id: int) -> int | None:
    """The current version of a merchant's settings; None if there is no such merchant."""
    row = await _fetch(conn, "read_settings_version", {"merchant_id": merchant_id})
    return None if row is None else int(row["settings_version"])


async def has_fitting_key(conn: Connection, keyring: Keyring) -> bool:
    """Whether the keyring opens the secrets of the oldest and the newest merchant. False: there is none.

    Works with the schema of every version. Raises WrongMasterKey.
    """
    async with conn.cursor() as cursor:
        await cursor.execute(QUERIES["read_sealed"].text)
        rows = await cursor.fetchall()
    for merchant_id, purpose, secret_no, sealed in rows:
        keyring.open(sealed, merchant_id, purpose, secret_no)
    return bool(rows)


async def list_merchants(conn: Connection) -> list[MerchantRef]:
    """Every merchant, oldest first."""
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(QUERIES["list_merchants"].text)
        return [MerchantRef(**row) async for row in cursor]


async def find(conn: Connection, text: str) -> MerchantRef:
    """The merchant that an operator names by merchantId, appKey, or a name that only one merchant has.

    Raises MerchantUnknown, MerchantAmbiguous.
    """
    text = clean(text)
    merchant_id = parse_digits(text)
    # No name has such characters, and the database would refuse some of them as text.
    word = text if text.isprintable() else None
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(QUERIES["find_merchants"].text, {"merchant_id": merchant_id, "word": word})
        rows = await cursor.fetchall()
    if not rows:
        raise MerchantUnknown(f"No merchant has the id, appKey or name {text!r}{note_invisible(text)}.")
    surest = [row for row in rows if row["how"] == rows[0]["how"]]
    if len(surest) > 1:
        found = ", ".join(str(row["merchant_id"]) for row in surest)
        raise MerchantAmbiguous(
            f"{len(surest)} merchants are named {text!r}; give one of their ids: {found}."
        )
    return MerchantRef(**{key: value for key, value in rows[0].items() if key != "how"})


async def change_settings(
    conn: Connection, keyring: Keyring, merchant_id: int, texts: Mapping[str, str]
) -> Change:
    """Change settings, all or none. They are typed texts by the names of `settings.SETTINGS`.

    The change holds from the next request on. The currency mode can't change after the book's first entry,
    since wallets and balances are in its currency. Raises SettingRefused, MerchantUnknown.
    """
    changed = _parse(texts)
    async with conn.transaction():
        needs_mode = await raise_version(conn, merchant_id)
        row = await _read(conn, merchant_id=merchant_id)
        before = msgspec.structs.replace(
            _to_merchant(row, keyring), settings_version=row["settings_version"] - 1
        )
        mode = row["currency_mode"]
        if needs_mode and changed.get("currency_mode", mode) != mode:
            raise SettingRefused(f"currency-mode stays {mode}: merchant {merchant_id}'s book {needs_mode}.")
        if changed.get("currency_mode", mode) != mode:
            await _require_alone(conn, merchant_id)
        await _run(conn, "write_settings", _settings_of(row, changed))
        after = _to_merchant(await _read(conn, merchant_id=merchant_id), keyring)
    return Change(before, after)


async def _require_alone(conn: Connection, merchant_id: int) -> None:
    """No job copies the book while its currency mode changes. Raises SettingRefused."""
    try:
        await jobs.require_alone(conn, jobs.Kind.CURRENCY_MODE, merchant_id, "settings")
    except jobs.JobInTheWay as other:
        raise SettingRefused(f"currency-mode: {other}") from None


async def suspend(conn: Connection, merchant_id: int) -> bool:
    """Refuse a merchant's requests from now on. False if it was suspended already. Raises MerchantUnknown."""
    return await _write_status(conn, merchant_id, SUSPENDED)


async def resume(conn: Connection, merchant_id: int) -> bool:
    """Accept a merchant's requests again. False if it was not suspended. Raises MerchantUnknown."""
    return await _write_status(conn, merchant_id, ACTIVE)


async def rotate_secret(
    conn: Connection, keyring: Keyring, merchant_id: int, *, at_ms: int, overlap_ms: int | None = None
) -> str:
    """Add a second live secret to the first key, and return it. It is shown only this once.

    The older one works until it is retired, or for another `overlap_ms`. Raises SecretRefused if there are
    two live secrets already, MerchantUnknown.
    """
    async with conn.transaction():
        await raise_version(conn, merchant_id)
        secret = generate_secret((await _read(conn, merchant_id=merchant_id))["app_key"])
        numbers, live, expired = await _app_secrets(conn, merchant_id, at_ms)
        for number in expired:
            await _retire(conn, merchant_id, number, at_ms)
        if len(live) >= _LIVE_SECRETS:
            raise SecretRefused(f"Merchant {merchant_id} has two live secrets; retire the older one first.")
        await insert_secret(conn, keyring, merchant_id, APP, numbers[-1] + 1, secret, at_ms)
        if overlap_ms == 0:
            await _retire(conn, merchant_id, live[0], at_ms)
        elif overlap_ms is not None:
            values = {"merchant_id": merchant_id, "secret_no": live[0], "expires_ms": at_ms + overlap_ms}
            await _run(conn, "expire_secret", values)
    return secret


async def retire_secret(conn: Connection, merchant_id: int, *, at_ms: int) -> int:
    """Retire the older of two live secrets, from the next request on. Returns its number.

    Raises SecretRefused if there is only one live secret, MerchantUnknown.
    """
    async with conn.transaction():
        await raise_version(conn, merchant_id)
        _, live, _ = await _app_secrets(conn, merchant_id, at_ms)
        if len(live) < _LIVE_SECRETS:
            raise SecretRefused(f"Merchant {merchant_id} has one live secret only; add the next one first.")
        await _retire(conn, merchant_id, live[0], at_ms)
    return live[0]


async def raise_version(conn: Connection, merchant_id: int) -> str | None:
    """Begin a change: lock the merchant and raise its settings' version, in the default cell also its book's.

    Returns why the book may need its present currency mode, to follow "the book"; None if it does not.
    """
    row = await _fetch(conn, "raise_settings_version", {"merchant_id": merchant_id})
    if row is None:
        raise _unknown(merchant_id)
    if not row["is_home"]:
        # Whether it has entries is not known in home.
        return "is in an apart cell"
    entry_count = await change_book(conn, merchant_id, row["settings_version"])
    if entry_count is None:
        raise AssertionError(f"merchant {merchant_id} has no book, or one with newer settings")
    return "has entries" if entry_count else None


async def take_address_index(conn: Connection, merchant_id: int) -> int:
    """An address index that no other sub-user of this merchant ever gets. Raises MerchantUnknown."""
    row = await _fetch(conn, "take_address_index", {"merchant_id": merchant_id})
    if row is None:
        raise _unknown(merchant_id)
    return int(row["address_index"])


async def _give_account(conn: Connection, seed: bytes | None, merchant_id: int) -> dict[str, str]:
    if seed is None:
        return (await xpub_pool.take(conn, merchant_id)).xpubs
    return derive_sandbox_xpubs(seed, merchant_id)


def derive_sandbox_xpubs(seed: bytes, merchant_id: int) -> dict[str, str]:
    """The account's extended public keys of a merchant of the sandbox, by chain family. Pure."""
    return {chain: derive_account_xpub(seed, coin, merchant_id) for chain, coin in COIN_TYPES.items()}


async def _write_status(conn: Connection, merchant_id: int, status: str) -> bool:
    async with conn.transaction():
        await raise_version(conn, merchant_id)
        return await _fetch(conn, "write_status", {"merchant_id": merchant_id, "status": status}) is not None


async def insert_secret(
    conn: Connection, keyring: Keyring, merchant_id: int, purpose: str, number: int, secret: str, at_ms: int
) -> None:
    """Store a merchant's secret, sealed."""
    values = {
        "merchant_id": merchant_id,
        "secret_no": number,
        "purpose": purpose,
        "sealed": keyring.seal(secret, merchant_id, purpose, number),
        "created_ms": at_ms,
    }
    await _run(conn, "insert_secret", values)


async def _retire(conn: Connection, merchant_id: int, secret_no: int, at_ms: int) -> None:
    values = {"merchant_id": merchant_id, "secret_no": secret_no, "retired_ms": at_ms}
    await _run(conn, "retire_secret", values)


async def _app_secrets(
    conn: Connection, merchant_id: int, at_ms: int
) -> tuple[list[int], list[int], list[int]]:
    """The numbers of all app secrets, of the live ones, and of those whose overlap is over, oldest first."""
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(QUERIES["read_app_secrets"].text, {"merchant_id": merchant_id})
        rows = await cursor.fetchall()
    kept = [row for row in rows if row["retired_ms"] is None]
    expired = [
        row["secret_no"] for row in kept if row["expires_ms"] is not None and row["expires_ms"] <= at_ms
    ]
    live = [row["secret_no"] for row in kept if row["secret_no"] not in expired]
    return [row["secret_no"] for row in rows], live, expired


def _parse(texts: Mapping[str, str]) -> dict[str, Value]:
    return dict(parse_setting(name, text) for name, text in texts.items())


def _settings_of(row: DictRow, changed: Mapping[str, Value]) -> dict[str, Value]:
    return {"merchant_id": row["merchant_id"], **{column: row[column] for column in _COLUMNS}, **changed}


def _to_merchant(row: DictRow, keyring: Keyring) -> Merchant:
    merchant_id = row["merchant_id"]
    sealed = zip(row["secret_nos"], row["sealed"], strict=True)
    purpose = format_key_purpose(row["key_no"])
    made: dict[str, Any] = {
        "secrets": tuple(keyring.open(bytes(box), merchant_id, purpose, number) for number, box in sealed),
        "callback_secret": keyring.open(row["callback_sealed"], merchant_id, CALLBACK, row["callback_no"]),
    }
    plain = {name: row[name] for name in Merchant.__struct_fields__ if name not in made}
    return Merchant(**as_columns(plain), **made)


def _unknown(merchant_id: int) -> MerchantUnknown:
    return MerchantUnknown(f"There is no merchant {merchant_id}.")


async def _read(conn: Connection, *, merchant_id: int) -> DictRow:
    return await _expect(conn, "read_merchant", {"merchant_id": merchant_id, "app_key": None})


async def _fetch(conn: Connection, name: str, values: Mapping[str, Any]) -> DictRow | None:
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(QUERIES[name].text, values)
        return await cursor.fetchone()


async def _expect(conn: Connection, name: str, values: Mapping[str, Any]) -> DictRow:
    row = await _fetch(conn, name, values)
    if row is None:
        raise AssertionError(f"{name} gave no row")
    return row


async def _run(conn: Connection, name: str, values: Mapping[str, Any]) -> None:
    await conn.execute(QUERIES[name].text, values)
