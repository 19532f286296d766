"""The database and the ledger in memory agree: the same batches, the same answers, a sound journal.

The properties of the rules are tested with the ledger. This test makes them hold for the database.
"""

import asyncio
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.book.accounting import addresses
from tests.book.fake_writer import MERCHANT_ID, FakeWriter
from tests.book.groups import commit, judge, make_batch, open_connection
from tests.book.ledger import KFB_RATE, OWN, START_MS, USDT_RATE
from tests.properties.histories import ARRIVED, NAMES, Batches, History, cut, histories, open_ledger

from merchant_wallet.base.db import connect, connect_sync
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.batch import Mode
from merchant_wallet.book.connection import ROLLBACK
from merchant_wallet.book.nonce_partitions import ensure_nonce_partitions
from merchant_wallet.book.outcomes import Outcome, Stale
from merchant_wallet.book.verification.verify import verify_book

DAYS = 8
"""After this time a history is over."""
EMPTY = """
do $$
declare filled regclass;
begin
    -- No trigger fires, and no foreign key is checked.
    perform set_config('session_replication_role', 'replica', true);
    for filled in select recycling.list_filled() loop
        if filled::text not in ('schema_migration', 'cell', 'cell_state') then
            execute format('delete from %s', filled);
        end if;
    end loop;
end $$
"""
"""To truncate all tables would take ten times as long."""


def open_book(url: str) -> None:
    """A database with one empty book and its rates, whatever was in it before."""
    with connect_sync(url) as connection:
        connection.execute(EMPTY)
    fake_writer = FakeWriter(url)
    fake_writer.insert(
        "rate",
        usdt_kfb_e8=KFB_RATE.rate_e8,
        usdt_kfb_set_ms=START_MS,
        kfb_usdt_e8=USDT_RATE.rate_e8,
        kfb_usdt_set_ms=START_MS,
    )
    fake_writer.own(OWN)
    for address in (address for name in NAMES for address in addresses(name)):
        fake_writer.insert("issued_address", address=address)
    for deposit in ARRIVED:
        # A stray deposit is stored too, to see that the rules refuse it.
        fake_writer.arrive(deposit)
    fake_writer.close()


async def run(url: str, batches: Batches) -> list[Outcome]:
    """Run batches on the database without the writer, since the writer makes its own batches."""
    outcomes: list[Outcome] = []
    async with open_connection(url) as connection:
        for number, (now_ms, submissions) in enumerate(batches):
            # Both ways to read: with the book's lock and without.
            mode = Mode.LOCKED if number % 2 else Mode.READ
            batch = make_batch(MERCHANT_ID, *submissions, mode=mode)
            await judge(connection, [batch], now_ms)
            outcomes += batch.outcomes
            if not all(isinstance(answer, Stale) for answer in batch.outcomes):
                assert await commit(connection, [batch]) == {MERCHANT_ID}
            elif mode is Mode.LOCKED:
                await connection.run([(ROLLBACK, ())])
    return outcomes


async def name_wallets(url: str) -> None:
    """The owner of each deposit, as the watcher would know it. Here they arrive before there are wallets."""
    async with await connect(url) as connection:
        await connection.execute(
            "update deposit d set user_id = w.user_id from wallet_address w where w.address = d.address"
        )


async def read_balances(url: str) -> dict[int, int]:
    """The balances, after the whole book was verified."""
    async with await connect(url) as connection:
        report = await verify_book(connection, connection, MERCHANT_ID)
        assert report.ok, report.violation
        rows = await connection.execute("select account_id, balance from account")
        return {account_id: balance for account_id, balance in await rows.fetchall()}


def test_the_database_answers_as_the_ledger_does(database_url: str) -> None:
    async def prepare() -> None:
        async with await connect(database_url) as connection:
            await ensure_nonce_partitions(connection, START_MS // DAY_MS, ahead=DAYS)

    asyncio.run(prepare())

    @settings(
        max_examples=15,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(histories(), st.randoms())
    def compare(history: History, random: Random) -> None:
        batches = cut(history, random)
        ledger = open_ledger()
        expected = [outcome for now_ms, batch in batches for outcome in ledger.run(batch, now_ms)]
        open_book(database_url)
        assert asyncio.run(run(database_url, batches)) == expected
        asyncio.run(name_wallets(database_url))
        assert asyncio.run(read_balances(database_url)) == ledger.balances

    compare()
