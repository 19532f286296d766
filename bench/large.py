"""A large book: filled through the book's own writer in very large batches, then verified and vacuumed.

Rules: the rules and the store's statements write every entry, so the hash chain is the service's own. Half of
the transfers go each way, so no balance runs out. Nonces are left out: no book keeps those of more than two
days.
"""

import secrets
from pathlib import Path
from typing import Final

from bench.merchants import BenchMerchant, Progress
from bench.writers import PreparationFailed, ask, open_writer
from merchant_wallet.base import db
from merchant_wallet.base.currencies import KFB
from merchant_wallet.book.commands import Command, MerchantToUser, UserToMerchant
from merchant_wallet.book.verification.verify import verify_book
from merchant_wallet.merchants import store

QUERIES: Final = db.Queries(Path(__file__).with_name("large.sql"))
BATCH_SIZE: Final = 20_000
AMOUNT_UNITS: Final = 10_000


async def fill_book(url: str, merchant: BenchMerchant, upto: int, progress: Progress) -> int:
    """Add transfers until the book has `upto` entries. Returns how many it has. Raises PreparationFailed."""
    prefix = secrets.token_hex(4)
    async with open_writer(url, connections=1, queue_limit=2 * BATCH_SIZE, batch_limit=BATCH_SIZE) as writer:
        count = await read_entry_count(url, merchant.merchant_id)
        while count < upto:
            size = min(2 * BATCH_SIZE, upto - count)
            transfers = [_transfer(merchant, prefix, count + number) for number in range(size)]
            await ask(writer, merchant.merchant_id, transfers)
            count += size
            progress("entries written", count, upto)
        return await read_entry_count(url, merchant.merchant_id)


async def read_entry_count(url: str, merchant_id: int) -> int:
    """How many entries a book has."""
    async with await db.connect(url) as connection:
        return await count_entries(connection, merchant_id)


async def count_entries(connection: store.Connection, merchant_id: int) -> int:
    """How many entries a book has, for repeated calls."""
    found = await connection.execute(QUERIES["read_entry_count"].text.encode(), {"merchant_id": merchant_id})
    row = await found.fetchone()
    assert row is not None
    return int(row[0])


async def check_book(url: str, merchant: BenchMerchant, progress: Progress) -> None:
    """Verify the whole book. Raises PreparationFailed with the first violation."""

    def verified(merchant_id: int, done: int, total: int) -> None:
        progress("entries verified", done, total)

    async with await db.connect(url) as connection:
        report = await verify_book(connection, connection, merchant.merchant_id, verified)
    if report.violation is not None:
        raise PreparationFailed(f"the filled book does not verify: {report.violation}")


async def tidy(url: str) -> None:
    """Vacuum, statistics and a checkpoint."""
    async with await db.connect(url) as connection:
        await connection.execute(QUERIES["tidy"].text.encode())
        await connection.execute(QUERIES["checkpoint"].text.encode())


def _transfer(merchant: BenchMerchant, prefix: str, number: int) -> Command:
    name, sub_user = f"{prefix}{number:x}", merchant.sub_users[number // 2 % len(merchant.sub_users)]
    if number % 2:
        return MerchantToUser(name, bytes.fromhex(sub_user.evm_hex), KFB, AMOUNT_UNITS)
    return UserToMerchant(name, sub_user.ext_user_id, KFB, AMOUNT_UNITS, 0, False)
