"""Changes of a key's limits that need two people: those that allow it more operations or networks.

Rules: one person may limit a key, roll it and revoke it. When one person may add a key is in `key_acts`.
"""

import re
from collections.abc import Mapping
from typing import Final

from merchant_wallet.approvals.changes import Applied, ChangeRefused, Facts, Kind, ProposedChange
from merchant_wallet.audit.records import Author
from merchant_wallet.merchants import app_keys, key_acts
from merchant_wallet.merchants.app_keys import AppKey, KeyRefused
from merchant_wallet.merchants.key_acts import SET
from merchant_wallet.merchants.key_limits import (
    NETWORKS_LIMIT,
    OPERATIONS_LIMIT,
    KeyLimits,
    list_wider,
    parse_networks,
    parse_operations,
)
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


def make_kind() -> Kind:
    """The kind of proposals about the limits of keys."""

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
