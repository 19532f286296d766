"""Changes of keys that need two people: what allows a key more, and secrets that the platform's people make.

Rules:
- One person may limit a key, end its older secret and revoke it.
- A merchant's own person may add and roll a key. What a new one may do at most is in `key_acts`.
- A proposed roll names the secret that it replaces. If the key was rolled meanwhile, it is stale.
- Who has a key's secret can order in the merchant's name, without anybody's approval up to the merchant's
  limit. So a person of the platform proposes a new key or a roll, and another one accepts it and sees the
  secret. Both are noted as those who made it.
"""

import re
from collections.abc import Mapping
from typing import Final

from merchant_wallet.approvals.changes import Applied, ChangeRefused, Facts, Kind, ProposedChange
from merchant_wallet.audit.records import Author
from merchant_wallet.merchants import app_keys, key_acts, store
from merchant_wallet.merchants.app_keys import AppKey, KeyRefusal, KeyRefused
from merchant_wallet.merchants.key_acts import ADD, ROLL, SET, KeyTooWide
from merchant_wallet.merchants.key_limits import (
    NETWORKS_LIMIT,
    NO_LIMITS,
    OPERATIONS_LIMIT,
    KeyLimits,
    list_wider,
    parse_networks,
    parse_operations,
)
from merchant_wallet.merchants.keys import Keyring
from merchant_wallet.merchants.settings import SettingRefused
from merchant_wallet.merchants.store import Connection, MerchantUnknown

_SUBJECT: Final = re.compile(r"merchant ([0-9]+) key ([0-9]+)")


def describe(limits: KeyLimits, names: list[str]) -> dict[str, str]:
    """Some limits in the form of a proposal: texts that can be typed again. Pure."""
    shown = limits.show()
    return {name: shown[name] for name in names}


def with_limits(limits: KeyLimits, texts: Mapping[str, str]) -> KeyLimits:
    """Limits with these texts instead of their own. Pure. Raises SettingRefused."""
    operations, networks = limits.operations, limits.networks
    if OPERATIONS_LIMIT in texts:
        operations = parse_operations(texts[OPERATIONS_LIMIT])
    if NETWORKS_LIMIT in texts:
        networks = parse_networks(texts[NETWORKS_LIMIT])
    return KeyLimits(operations, networks)


def split_change(before: KeyLimits, wanted: KeyLimits) -> tuple[KeyLimits, list[str]]:
    """What one person may set at once, and the names of the limits that need a second one. Pure."""
    wider = list_wider(before, wanted)
    return with_limits(wanted, describe(before, wider)), wider


def describe_new(name: str, limits: KeyLimits) -> tuple[Facts, Facts]:
    """The proposal to add a key."""
    return {"exists": False}, {"exists": True, "name": name, **limits.show()}


async def check_addition(conn: Connection, merchant_id: int, limits: KeyLimits, at_ms: int) -> None:
    """Check that a key with these limits may be proposed. It locks the merchant. Raises KeyTooWide."""
    await store.raise_version(conn, merchant_id)
    key_acts.check_new_key(limits, await app_keys.list_keys(conn, merchant_id, at_ms))


async def describe_roll(
    conn: Connection, merchant_id: int, key_no: int, overlap_ms: int | None, at_ms: int
) -> tuple[Facts, Facts]:
    """The proposal to add a secret to a key. Without an overlap both work until the older one is ended.

    It locks the merchant. Raises KeyRefused.
    """
    key = await app_keys.lock_key(conn, merchant_id, key_no, at_ms)
    if key.live_secrets > 1:
        raise KeyRefused(KeyRefusal.TWO_SECRETS)
    overlap = {} if overlap_ms is None else {"overlapMs": overlap_ms}
    after = {"rolled": True, "secretNo": key.newest_secret_no + 1, **overlap}
    return _describe_secret(key), after


def _describe_secret(key: AppKey) -> Facts:
    return {"rolled": False, "secretNo": key.newest_secret_no}


def make_kinds(keyring: Keyring, *, sandbox: bool, secret_wait_ms: int) -> Mapping[str, Kind]:
    """The kinds of proposals about keys."""
    return {
        SET: _make_limits_kind(),
        ADD: _make_new_kind(keyring, sandbox=sandbox, secret_wait_ms=secret_wait_ms),
        ROLL: _make_roll_kind(keyring, secret_wait_ms),
    }


def _make_new_kind(keyring: Keyring, *, sandbox: bool, secret_wait_ms: int) -> Kind:
    async def read(conn: Connection, change: ProposedChange) -> Facts:
        assert change.merchant_id is not None
        await store.raise_version(conn, change.merchant_id)
        return {"exists": False}

    async def apply(conn: Connection, change: ProposedChange, author: Author) -> Applied:
        assert change.merchant_id is not None
        try:
            made = await key_acts.add_key(
                conn,
                keyring,
                author,
                change.merchant_id,
                change.after["name"],
                with_limits(NO_LIMITS, change.after),
                sandbox=sandbox,
                needs_two=True,
                secret_wait_ms=secret_wait_ms,
            )
        except (KeyRefused, KeyTooWide) as refused:
            raise ChangeRefused(str(refused)) from None
        return Applied(shown=made)

    return Kind(ADD, read, apply)


def _make_roll_kind(keyring: Keyring, secret_wait_ms: int) -> Kind:
    async def read(conn: Connection, change: ProposedChange) -> Facts:
        return _describe_secret(await _lock(conn, change, change.proposed_ms))

    async def apply(conn: Connection, change: ProposedChange, author: Author) -> Applied:
        key = await _lock(conn, change, author.at_ms)
        assert change.merchant_id is not None
        try:
            made = await key_acts.roll_key(
                conn,
                keyring,
                author,
                change.merchant_id,
                key.key_no,
                overlap_ms=change.after.get("overlapMs"),
                secret_wait_ms=secret_wait_ms,
            )
        except KeyRefused as refused:
            raise ChangeRefused(str(refused)) from None
        return Applied(shown=made)

    return Kind(ROLL, read, apply)


def _make_limits_kind() -> Kind:

    async def read(conn: Connection, change: ProposedChange) -> Facts:
        return describe((await _lock(conn, change, change.proposed_ms)).limits, list(change.before))

    async def apply(conn: Connection, change: ProposedChange, author: Author) -> Applied:
        key = await _lock(conn, change, author.at_ms)
        assert change.merchant_id is not None
        try:
            limits = with_limits(key.limits, change.after)
        except SettingRefused as refused:
            raise ChangeRefused(str(refused)) from None
        await key_acts.change_key(conn, author, change.merchant_id, key.key_no, key.name, limits)
        return Applied()

    return Kind(SET, read, apply)


async def _lock(conn: Connection, change: ProposedChange, at_ms: int) -> AppKey:
    named = _SUBJECT.fullmatch(change.subject)
    assert named is not None
    assert change.merchant_id is not None
    try:
        return await app_keys.lock_key(conn, change.merchant_id, int(named[2]), at_ms)
    except (KeyRefused, MerchantUnknown) as refused:
        raise ChangeRefused(str(refused)) from None
