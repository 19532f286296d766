"""The invented sub-users of many merchants: registered through the books' own writer in very large groups.

Rules: the rules and the store's statements write every entry, so each book verifies. Two writers take turns:
while the database writes a group of one, the other judges its next group.
"""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from psycopg import AsyncConnection

from bench.invented import invent_addresses, name_sub_user
from bench.merchants import BenchMerchant, Progress
from bench.writers import ask_all, open_writer
from merchant_wallet.base import db
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.currencies import KFB
from merchant_wallet.book.commands import Register
from merchant_wallet.book.writer import Writer
from merchant_wallet.reporting import rollup

QUERIES: Final = db.Queries(Path(__file__).with_name("cold.sql"))
GROUP_SIZE: Final = 20_000
WRITERS: Final = 2


async def register_sub_users(url: str, merchants: Sequence[BenchMerchant], progress: Progress) -> None:
    """Register the invented sub-users of these merchants, who have no others. Raises PreparationFailed."""
    await _take_address_indexes(url, merchants)
    total = sum(merchant.invented for merchant in merchants)
    limit = GROUP_SIZE + max(merchant.invented for merchant in merchants)
    groups = _divide(merchants)
    done = 0

    async def work() -> None:
        nonlocal done
        async with (
            open_writer(url, connections=1, queue_limit=limit, batch_limit=limit) as writer,
            await db.connect(url) as connection,
        ):
            for group in groups:
                await _issue_addresses(connection, group)
                count = await _register(writer, group)
                done += count
                progress("sub-users registered", done, total)

    await asyncio.gather(*[work() for _ in range(WRITERS)])


async def add_up(url: str, merchants: Sequence[BenchMerchant], progress: Progress) -> None:
    """Add the entries to the console's figures, so that the worker side does not do it during a row."""
    total = sum(merchant.invented for merchant in merchants)
    done = 0
    async with await db.connect(url) as connection:
        while added := await rollup.advance_all(connection, now_ms(), pause_s=0):
            done += added
            progress("entries in the figures", min(done, total), total)


def _divide(merchants: Sequence[BenchMerchant]) -> Iterator[list[BenchMerchant]]:
    """Groups of merchants that have about `GROUP_SIZE` sub-users together."""
    group: list[BenchMerchant] = []
    size = 0
    for merchant in merchants:
        group.append(merchant)
        size += merchant.invented
        if size >= GROUP_SIZE:
            yield group
            group, size = [], 0
    if group:
        yield group


async def _register(writer: Writer, merchants: Sequence[BenchMerchant]) -> int:
    """Register the sub-users of some merchants in one group. Returns how many they are."""
    outcomes = await ask_all(
        writer,
        [
            (merchant.merchant_id, _open_wallet(merchant, number))
            for merchant in merchants
            for number in range(merchant.invented)
        ],
    )
    return len(outcomes)


async def _issue_addresses(connection: AsyncConnection, merchants: Sequence[BenchMerchant]) -> None:
    """Add the sub-users' addresses to the platform's list, as the service does before it registers them."""
    issued = [
        (merchant.merchant_id, address)
        for merchant in merchants
        for number in range(merchant.invented)
        for address in invent_addresses(merchant.merchant_id, number)
    ]
    values = {"merchant_ids": [row[0] for row in issued], "addresses": [row[1] for row in issued]}
    await connection.execute(QUERIES["insert_issued"].text.encode(), values)


def _open_wallet(merchant: BenchMerchant, number: int) -> Register:
    addresses = invent_addresses(merchant.merchant_id, number)
    return Register(name_sub_user(number), KFB, number, addresses.evm, addresses.tron)


async def _take_address_indexes(url: str, merchants: Sequence[BenchMerchant]) -> None:
    """Take the indexes of the sub-users, so that the service gives them to nobody else."""
    values = {
        "count": max(merchant.invented for merchant in merchants),
        "merchant_ids": [merchant.merchant_id for merchant in merchants],
    }
    async with await db.connect(url) as connection:
        await connection.execute(QUERIES["take_address_indexes"].text.encode(), values)
