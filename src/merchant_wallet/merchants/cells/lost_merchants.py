"""Merchants whose books are in apart cells, and whom a restored home does not know: they come back.

Rules:
- A merchant gets its id, its name and what else its cell has, and the account that its addresses come from.
  Other settings are the defaults. Its key is new and nobody has seen it, so the merchant is suspended: a
  person gives it settings and a secret, and resumes it.
- Its book stays what it is, with its sub-users, addresses and money.
- A merchant that home has created after the restore may have a lost one's id, or its range of ids. It gets
  nothing of that one's book. A merchant that comes back counts as created when its book began.
- All are one transaction, with their entries in the audit log.

Statements are in `lost_merchants.sql`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from psycopg import AsyncConnection
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from merchant_wallet.audit import records as audit
from merchant_wallet.base.cells import Databases
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.db import Queries
from merchant_wallet.merchants import store, xpub_pool
from merchant_wallet.merchants.addresses import derive_own_addresses, read_addresses
from merchant_wallet.merchants.cells.moves import Auditor
from merchant_wallet.merchants.keys import APP, CALLBACK, Keyring, generate_app_key, generate_secret
from merchant_wallet.merchants.records import SUSPENDED

Connection = AsyncConnection[Any]

QUERIES: Final = Queries(Path(__file__).with_name("lost_merchants.sql"))
BRING_BACK: Final = "merchant.bring_back"


class AccountMissing(Exception):
    """The pool has no free account that a merchant's addresses come from. The text says what to do."""


class MerchantDiffers(Exception):
    """Home's merchant is not the one whose book a cell has. The text says what to do."""


async def require_same(databases: Databases) -> None:
    """Check that no book of a cell has another merchant's id or range of ids. Raises MerchantDiffers."""
    home, apart = databases
    for cell_id, cell in apart.items():
        books = {row["merchant_id"]: row for row in await _list(cell, "list_merchants", {})}
        values = {"merchant_ids": list(books), "first_ms": [row["first_ms"] for row in books.values()]}
        for younger in await _list(home, "list_younger", values):
            merchant_id, book = younger["merchant_id"], books[younger["merchant_id"]]
            raise MerchantDiffers(
                f"Merchant {merchant_id} ({younger['name']}) was created after home was restored. Cell"
                f" {cell_id} has the book of an older merchant {merchant_id} ({book['name']}). Neither may"
                " get what is the other's, so nothing was restored. Restore home's back-up again, and accept"
                " before anybody creates a merchant."
            )
        values = {"merchant_ids": list(books)}
        values |= {f"{name}s": [row[name] for row in books.values()] for name in ("id_range", "next_range")}
        for taken in await _list(home, "list_taken", values):
            raise MerchantDiffers(
                f"The book of merchant {taken['merchant_id']} in cell {cell_id} has the range"
                f" {taken['range_no']} of ids, which home has given to merchant {taken['owner_id']} since. No"
                " two orders may have one id, so nothing was restored. Restore home's back-up again, and"
                " accept before anybody creates a merchant."
            )


async def bring_back(databases: Databases, keyring: Keyring, by: Auditor, *, sandbox: bool) -> list[int]:
    """Bring back all merchants that home does not know. Returns their ids. Raises AccountMissing."""
    home, apart = databases
    found: dict[int, tuple[int, dict[str, Any]]] = {}
    for cell_id, cell in apart.items():
        rows = await _list(cell, "list_merchants", {})
        unknown = await _list(home, "list_unknown", {"merchant_ids": [row["merchant_id"] for row in rows]})
        wanted = {row["merchant_id"] for row in unknown}
        for row in rows:
            merchant_id = row["merchant_id"]
            before = found.get(merchant_id)
            # Of several copies at most one is open. Where the book is follows later (see `book_placement`).
            if merchant_id in wanted and (before is None or row["is_open"]):
                found[merchant_id] = cell_id, row
    for cell_id, row in found.values():
        await _bring_back(home, apart[cell_id], cell_id, row, keyring, by, sandbox=sandbox)
    return sorted(found)


async def list_returned(home: Connection, acceptance: str) -> list[int]:
    """The newest merchants that came back since the last entry of this action, also in an interrupted run."""
    accepted = await audit.list_entries(home, action=acceptance, limit=1)
    last_no = max((entry.audit_no for entry in accepted), default=0)
    entries = await audit.list_entries(home, action=BRING_BACK, limit=audit.MAX_PAGE)
    return [
        entry.merchant_id for entry in entries if entry.audit_no > last_no and entry.merchant_id is not None
    ]


async def _bring_back(
    home: Connection,
    cell: Connection,
    cell_id: int,
    row: Mapping[str, Any],
    keyring: Keyring,
    by: Auditor,
    *,
    sandbox: bool,
) -> None:
    merchant_id, at_ms = row["merchant_id"], now_ms()
    own = await read_addresses(cell, merchant_id)
    app_key = generate_app_key(sandbox=sandbox)
    values = {
        **row,
        "app_key": app_key,
        "status": SUSPENDED,
        "created_ms": row["first_ms"],
        "cell_id": cell_id,
    }
    await home.execute(QUERIES["insert_merchant"].text, values)
    if sandbox:
        xpubs = store.derive_sandbox_xpubs(keyring.sandbox_seed(), merchant_id)
    else:
        xpubs = await _give_account(home, merchant_id, own)
    account = {"merchant_id": merchant_id, "account_xpubs": Jsonb(xpubs)}
    await home.execute(store.QUERIES["write_account_xpubs"].text, account)
    for purpose, secret in ((APP, generate_secret(app_key)), (CALLBACK, generate_secret())):
        await store.insert_secret(home, keyring, merchant_id, purpose, 1, secret, at_ms)
    after = {"name": row["name"], "status": SUSPENDED}
    await by.author(at_ms).record(home, BRING_BACK, f"merchant {merchant_id}", merchant_id, after=after)


async def _give_account(home: Connection, merchant_id: int, own: Mapping[str, bytes]) -> dict[str, str]:
    """The account of the pool that the merchant's own addresses come from."""
    for account in [*await xpub_pool.list_free(home), *await xpub_pool.list_lost(home)]:
        if derive_own_addresses(account.xpubs) == own:
            await xpub_pool.give(home, account.account_no, merchant_id)
            return account.xpubs
    raise AccountMissing(
        f"Home does not know merchant {merchant_id}, and no free account gives its deposit addresses. Run"
        " `merchant-wallet keys derive` where the keystore is, then this again."
    )


async def _list(connection: Connection, name: str, values: Mapping[str, Any]) -> list[dict[str, Any]]:
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(QUERIES[name].text, values)
        return await cursor.fetchall()
