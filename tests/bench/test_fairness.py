"""The measurement of fairness in the writer: every caller is answered, and a refusal ends it."""

import asyncio

import pytest
from bench.cold import register_sub_users
from bench.database import open_bench_database
from bench.fairness import measure
from bench.invented import name_sub_user
from bench.large import check_book, read_entry_count
from bench.merchants import BenchMerchant
from bench.writers import PreparationFailed

from merchant_wallet.base.currencies import KFB
from merchant_wallet.book.commands import Adjust

CROWD = 20
SECONDS = 0.2
FUNDS_UNITS = 1_000_000_000
SETUP_ENTRIES = 2
"""The sub-user's registration and its funds."""


@pytest.fixture(autouse=True)
def small_crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.fairness.CROWD", CROWD)
    monkeypatch.setattr("bench.fairness.LEAD_S", SECONDS)


async def open_merchants(url: str, *, funds: dict[str, int]) -> list[BenchMerchant]:
    """A merchant for each name, whose only sub-user has these funds."""
    async with open_bench_database(url) as database:
        opened = [await database.open_merchant(name) for name in funds]
        merchants = [
            BenchMerchant(merchant.merchant_id, merchant.app_key, "secret", {}, [], [], 1)
            for merchant in opened
        ]
        await register_sub_users(url, merchants, lambda *_: None)
        for merchant, units in zip(merchants, funds.values(), strict=True):
            if units:
                adjust = Adjust(KFB, units, "funds for a measurement", "bench", name_sub_user(0))
                await database.ask(merchant.merchant_id, [adjust])
        return merchants


def test_a_single_caller_and_a_crowd_are_answered_side_by_side(database_url: str) -> None:
    merchants = asyncio.run(open_merchants(database_url, funds={"single": FUNDS_UNITS, "crowd": FUNDS_UNITS}))
    single, other = merchants
    waits = measure(database_url, single, other, SECONDS)
    assert waits.alone_p99_ms > 0
    assert waits.beside_p99_ms > 0
    assert waits.rate > 0
    entries = [asyncio.run(read_entry_count(database_url, merchant.merchant_id)) for merchant in merchants]
    assert entries[0] > SETUP_ENTRIES
    assert entries[1] >= SETUP_ENTRIES + CROWD
    for merchant in merchants:
        asyncio.run(check_book(database_url, merchant, lambda *_: None))


@pytest.mark.parametrize("poor", ["single", "crowd"])
def test_a_refused_transfer_ends_the_measurement(database_url: str, poor: str) -> None:
    funds = {"single": FUNDS_UNITS, "crowd": FUNDS_UNITS, poor: 0}
    single, other = asyncio.run(open_merchants(database_url, funds=funds))
    with pytest.raises(PreparationFailed, match="a transfer was refused"):
        measure(database_url, single, other, SECONDS)
