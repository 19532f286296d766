"""Changes of a key's limits that need two people: those that allow it more operations or networks.

Rules:
- One person may limit a key, roll it and revoke it.
- One person may add a key if it may do no more than a key that the merchant has. Otherwise a second key
  would be a way around the limits of the first.
"""

import re
from collections.abc import Mapping
from typing import Final

from merchant_wallet.approvals.changes import Applied, ChangeRefused, Facts, Kind, ProposedChange
from merchant_wallet.merchants import app_keys
from merchant_wallet.merchants.app_keys import AppKey, KeyRefused
from merchant_wallet.merchants.key_limits import (
    NETWORKS_LIMIT,
    OPERATIONS_LIMIT,
    KeyLimits,
    is_covered,
    list_wider,
    parse_networks,
    parse_operations,
)
from merchant_wallet.merchants.settings import SettingRefused
from merchant_wallet.merchants.store import Connection, MerchantUnknown

SET: Final = "merchant.set_key"
TOO_WIDE: Final = (
    "No key of this merchant may do that much. Add it with the limits of a key that there is, then widen it: "
    "that needs a second person."
)
_SUBJECT: Final = re.compile(r"merchant ([0-9]+) key ([0-9]+)")


class KeyTooWide(ValueError):
    """A new key would be allowed more than each key that there is, and two people are needed."""


def format_subject(merchant_id: int, key_no: int) -> str:
    """The name of a key in proposals and the audit log."""
    return f"merchant {merchant_id} key {key_no}"


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


def check_new_key(limits: KeyLimits, keys: list[AppKey]) -> None:
    """Check that a new key may do no more than one that there is. Pure. Raises KeyTooWide."""
    if not is_covered(limits, [key.limits for key in keys if key.revoked_ms is None]):
        raise KeyTooWide(TOO_WIDE)


def make_kind() -> Kind:
    """The kind of proposals about the limits of keys."""

    async def read(conn: Connection, change: ProposedChange) -> Facts:
        return describe((await _lock(conn, change, change.proposed_ms)).limits, list(change.before))

    async def apply(conn: Connection, change: ProposedChange, at_ms: int) -> Applied:
        key = await _lock(conn, change, at_ms)
        assert change.merchant_id is not None
        try:
            limits = with_limits(key.limits, change.after)
        except SettingRefused as refused:
            raise ChangeRefused(str(refused)) from None
        await app_keys.change_key(conn, change.merchant_id, key.key_no, key.name, limits, at_ms)
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
