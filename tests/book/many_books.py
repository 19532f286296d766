"""Many empty books at once, for tests of groups. They are written by SQL, since opening each takes long."""

from typing import Any

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.currencies import KFB
from merchant_wallet.base.db import connect
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.chart import FIXED
from merchant_wallet.book.commands import Adjust
from merchant_wallet.book.journal import FIRST_HASH
from merchant_wallet.book.nonce_partitions import ensure_nonce_partitions

FIRST = 5001
_OPEN = """
with m as (
  insert into merchant (merchant_id, name, app_key, currency_mode, created_ms) overriding system value
  select n, 'Merchant ' || n, 'mk_' || n, 'KFB', 1 from generate_series(%(first)s::bigint, %(last)s::bigint) n
  returning merchant_id
), r as (
  insert into id_range (range_no, merchant_id) select merchant_id, merchant_id from m
), b as (
  insert into book (merchant_id, id_range, head_hash, last_ms)
  select merchant_id, merchant_id, %(head)s, %(now_ms)s from m
)
insert into account (merchant_id, account_id, kind, currency)
select m.merchant_id, a.* from m,
       unnest(%(account_ids)s::bigint[], %(kinds)s::text[], %(currencies)s::text[]) a
"""


async def open_books(url: str, count: int) -> list[int]:
    """Books without entries. Returns the merchants' ids."""
    values: dict[str, Any] = {
        "first": FIRST,
        "last": FIRST + count - 1,
        "head": FIRST_HASH,
        "now_ms": now_ms(),
        "account_ids": [account.account_id for account in FIXED],
        "kinds": [account.kind for account in FIXED],
        "currencies": [account.currency for account in FIXED],
    }
    async with await connect(url) as connection:
        await ensure_nonce_partitions(connection, now_ms() // DAY_MS)
        await connection.execute(_OPEN.encode(), values)
    return list(range(FIRST, FIRST + count))


def fund(name: str, amount_units: int = 1) -> Adjust:
    """An operator's credit to the merchant's balance."""
    return Adjust(KFB, amount_units, "funds", "ann", None, name)
