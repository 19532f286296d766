"""What people do about merchants: open one, change its settings, suspend and resume it.

Rules:
- A change and its entry in the audit log are one transaction, whichever door it comes from.
- What must hold of a setting outside the sandbox is checked here, also when a proposal is carried out.
- Who makes a secret is noted with it. For `secret_wait_ms` that person's approvals of the merchant's orders
  do not count.
- Acts about keys are in `key_acts`. Which changes need two people is in `two_person_changes`.
"""

from collections.abc import Mapping
from typing import Final

from merchant_wallet.audit.records import Author
from merchant_wallet.merchants import staff_secrets, store
from merchant_wallet.merchants.app_keys import FIRST_KEY
from merchant_wallet.merchants.audit_facts import list_changed_facts
from merchant_wallet.merchants.keys import Keyring
from merchant_wallet.merchants.records import ACTIVE, SUSPENDED
from merchant_wallet.merchants.settings import refuse_insecure
from merchant_wallet.merchants.store import Change, Connection, NewMerchant

CREATE: Final = "merchant.create"
SET: Final = "merchant.set"
SUSPEND: Final = "merchant.suspend"
RESUME: Final = "merchant.resume"


def format_subject(merchant_id: int) -> str:
    """The name of a merchant in proposals and the audit log."""
    return f"merchant {merchant_id}"


async def create(
    conn: Connection,
    keyring: Keyring,
    author: Author,
    name: str,
    currency_mode: str,
    *,
    seed: bytes | None,
    cell_id: int,
    secret_wait_ms: int,
    opened_ms: int | None = None,
) -> NewMerchant:
    """Open a merchant with its book, now or at `opened_ms`. Raises what `store.create` raises."""
    at_ms = author.at_ms if opened_ms is None else opened_ms
    async with conn.transaction():
        settings = {"currency-mode": currency_mode}
        made = await store.create(
            conn, keyring, name, seed=seed, at_ms=at_ms, settings=settings, cell_id=cell_id
        )
        number = made.merchant.merchant_id
        await staff_secrets.note(conn, author, number, FIRST_KEY, secret_wait_ms)
        facts = {"name": made.merchant.name, "currencyMode": currency_mode}
        await author.record(conn, CREATE, format_subject(number), number, after=facts)
    return made


async def change_settings(
    conn: Connection,
    keyring: Keyring,
    author: Author,
    merchant_id: int,
    texts: Mapping[str, str],
    *,
    sandbox: bool,
) -> Change:
    """Change settings, all or none. Nothing is recorded if they are what they were.

    Raises SettingRefused, MerchantUnknown.
    """
    if not sandbox:
        refuse_insecure(texts)
    async with conn.transaction():
        change = await store.change_settings(conn, keyring, merchant_id, texts)
        before, after = list_changed_facts(change.before, change.after)
        if after:
            subject = format_subject(merchant_id)
            await author.record(conn, SET, subject, merchant_id, before=before, after=after)
    return change


async def suspend(conn: Connection, author: Author, merchant_id: int) -> bool:
    """Suspend a merchant. False if it was suspended already. Raises MerchantUnknown."""
    async with conn.transaction():
        changed = await store.suspend(conn, merchant_id)
        await _record_status(conn, author, SUSPEND, merchant_id, ACTIVE if changed else SUSPENDED)
    return changed


async def resume(conn: Connection, author: Author, merchant_id: int) -> bool:
    """Resume a merchant. False if it was not suspended. Raises MerchantUnknown."""
    async with conn.transaction():
        changed = await store.resume(conn, merchant_id)
        await _record_status(conn, author, RESUME, merchant_id, SUSPENDED if changed else ACTIVE)
    return changed


async def _record_status(
    conn: Connection, author: Author, action: str, merchant_id: int, status_before: str
) -> None:
    before, after = {"status": status_before}, {"status": SUSPENDED if action == SUSPEND else ACTIVE}
    await author.record(conn, action, format_subject(merchant_id), merchant_id, before=before, after=after)
