"""Changes of a merchant's settings that need two people: those that loosen a safeguard.

Rules:
- Loosened: a higher approval limit or daily limit, a removed daily limit, a new address on the allow-list, a
  removed allow-list, a fee that moves further than the band within a day. And rules for payouts: a higher or
  removed limit, a shorter window, other hours. And another look of the wallet pages.
- Also: another network that requests may come from, MD5 instead of HMAC, an operation that was disabled, a
  page that may frame the wallet, and debits without a PIN. And to resume a suspended merchant.
- One person may make the opposite changes.
- A fee is compared with the current fee and with the fee of 24 hours ago from the audit log. So small steps
  do not add up to a large one, and one person can't undo what two people did.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from merchant_wallet.approvals.changes import Applied, ChangeRefused, Facts, Kind, ProposedChange
from merchant_wallet.audit.records import Author
from merchant_wallet.base.money import RATE_SCALE
from merchant_wallet.base.signing import MD5
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.merchants import acts, store
from merchant_wallet.merchants.acts import RESUME, SET
from merchant_wallet.merchants.audit_facts import format_fact_name, read_value
from merchant_wallet.merchants.key_limits import admits_all
from merchant_wallet.merchants.keys import Keyring
from merchant_wallet.merchants.records import ACTIVE, SUSPENDED, Merchant, as_columns
from merchant_wallet.merchants.settings import SETTINGS, SettingRefused, parse_setting, show_settings
from merchant_wallet.merchants.store import Connection, MerchantUnknown

FEE_RATES: Final = ("transfer-fee-rate", "withdraw-fee-rate")
FEE_MINIMUM: Final = "withdraw-fee-min"
WINDOW: Final = "payout-window"
HOURS: Final = "payout-hours"
FEES: Final = (*FEE_RATES, FEE_MINIMUM)
BRAND: Final = ("brand-colour", "brand-logo", "customer-url")
"""Customers trust what looks like their merchant, and follow its links."""
NETWORKS: Final = "networks"
SIGN_METHOD: Final = "sign-method"
ORIGINS: Final = "frame-origins"
OPERATIONS: Final = "disabled-operations"
PIN: Final = "require-pin"
REQUESTS: Final = (NETWORKS, SIGN_METHOD, OPERATIONS, PIN, ORIGINS)
"""What may be asked in the merchant's name, from where, and how that is proven."""
TWO_PERSON_SETTINGS: Final = (
    "approval-limit",
    "second-approval-limit",
    "daily-limit",
    "payout-limit",
    "payout-limit-count",
    WINDOW,
    "first-payout-limit",
    HOURS,
    "allowed-addresses",
    *FEES,
    *BRAND,
    *REQUESTS,
)
"""The settings whose change may need two people."""
SAMPLE_UNITS: Final = 100_000_000
"""The minimum fee may move by the band's share of this amount, as the fee on 100 USDT may."""

DayOldFees = Mapping[str, int]
"""For each fee's setting: its value a day ago, if it was different."""


def list_loosened(before: Merchant, after: Merchant, day_old_fees: DayOldFees, band_e8: int) -> list[str]:
    """The settings, by name, whose change needs two people. Pure."""
    return [name for name in TWO_PERSON_SETTINGS if _loosens(name, before, after, day_old_fees, band_e8)]


def _loosens(name: str, before: Merchant, after: Merchant, day_old_fees: DayOldFees, band_e8: int) -> bool:
    column = SETTINGS[name].column
    was, becomes = getattr(before, column), getattr(after, column)
    if was == becomes:
        return False
    if name == WINDOW:
        return bool(becomes < was)
    if name == HOURS:
        return was is not None
    if name in REQUESTS:
        return _loosens_requests(name, was, becomes)
    if name == "allowed-addresses":
        return bool(was) and (not becomes or bool(becomes - was))
    if name in BRAND:
        return becomes is not None
    moved = max(abs(becomes - was), abs(becomes - day_old_fees.get(name, was))) if name in FEES else 0
    if name in FEE_RATES:
        return bool(moved > band_e8)
    if name == FEE_MINIMUM:
        return bool(moved * RATE_SCALE > band_e8 * SAMPLE_UNITS)
    return was is not None and (becomes is None or bool(becomes > was))


def _loosens_requests(name: str, was: Any, becomes: Any) -> bool:
    if name == NETWORKS:
        return not admits_all(was, becomes)
    if name == SIGN_METHOD:
        return bool(becomes == MD5)
    if name == PIN:
        return not becomes
    if name == OPERATIONS:
        return bool(was - becomes)
    return bool(set(becomes) - set(was))


async def read_day_old_fees(conn: Connection, merchant_id: int, at_ms: int) -> DayOldFees:
    """The fees of 24 hours ago that differ from now."""
    names = {format_fact_name(name): name for name in FEES}
    values = {
        "merchant_id": merchant_id,
        "action": SET,
        "since_ms": at_ms - DAY_MS,
        "names": list(names),
    }
    cursor = await conn.execute(store.QUERIES["read_day_facts"].text, values)
    day_old_fees: dict[str, int] = {}
    for fact, shown in await cursor.fetchall():
        value = read_value(names[fact], shown)
        assert isinstance(value, int)
        day_old_fees.setdefault(names[fact], value)
    return day_old_fees


def describe(merchant: Merchant, names: list[str]) -> dict[str, str]:
    """Settings in the form of a proposal: by name, as texts that can be typed again. Pure."""
    shown = show_settings(merchant)
    return {name: shown[name] for name in names}


def with_settings(merchant: Merchant, texts: Mapping[str, str]) -> Merchant:
    """The merchant with these texts for its two-person settings. Other settings stay. Pure.

    Raises SettingRefused.
    """
    values = dict(parse_setting(name, text) for name, text in texts.items() if name in TWO_PERSON_SETTINGS)
    return msgspec.structs.replace(merchant, **as_columns(values))


def describe_resumption() -> tuple[Facts, Facts]:
    """The proposal to resume a suspended merchant."""
    return {"status": SUSPENDED}, {"status": ACTIVE}


async def read_status(conn: Connection, keyring: Keyring, merchant_id: int) -> str:
    """A merchant's status, under the book's lock. Raises MerchantUnknown."""
    # This changes nothing, but it takes the book's lock.
    return (await store.change_settings(conn, keyring, merchant_id, {})).before.status


def make_kinds(keyring: Keyring, *, sandbox: bool) -> Mapping[str, Kind]:
    """The kinds of proposals about merchants' settings and status."""
    return {SET: _make_settings_kind(keyring, sandbox=sandbox), RESUME: _make_resume_kind(keyring)}


def _make_resume_kind(keyring: Keyring) -> Kind:
    async def read(conn: Connection, change: ProposedChange) -> Facts:
        assert change.merchant_id is not None
        return {"status": await read_status(conn, keyring, change.merchant_id)}

    async def apply(conn: Connection, change: ProposedChange, author: Author) -> Applied:
        assert change.merchant_id is not None
        await acts.resume(conn, author, change.merchant_id)
        return Applied()

    return Kind(RESUME, read, apply)


def _make_settings_kind(keyring: Keyring, *, sandbox: bool) -> Kind:
    async def read(conn: Connection, change: ProposedChange) -> Facts:
        assert change.merchant_id is not None
        try:
            # This changes nothing, but it takes the book's lock.
            held = await store.change_settings(conn, keyring, change.merchant_id, {})
        except MerchantUnknown as unknown:
            raise ChangeRefused(str(unknown)) from None
        return describe(held.before, list(change.before))

    async def apply(conn: Connection, change: ProposedChange, author: Author) -> Applied:
        assert change.merchant_id is not None
        try:
            await acts.change_settings(
                conn, keyring, author, change.merchant_id, change.after, sandbox=sandbox
            )
        except SettingRefused as refused:
            raise ChangeRefused(str(refused)) from None
        return Applied()

    return Kind(SET, read, apply)
