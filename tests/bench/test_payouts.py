"""The payout benchmark: every order is signed, stored and sent once, on both chains."""

from pathlib import Path

import uvloop
from bench.database import open_bench_database
from bench.payouts import CHAINS, make_settings, open_nodes, pay

MERCHANTS_ORDERS = 4


def test_every_order_of_the_measurement_is_signed_once(database_url: str, tmp_path: Path) -> None:
    async def count_signed() -> list[int]:
        async with open_bench_database(database_url) as database:
            statements = (b"select count(*) from payout_signed", b"select count(*) from withdrawal")
            return [await database.count(statement) for statement in statements]

    with open_nodes() as (nodes, told):
        settings = make_settings(tmp_path, told)
        found = [
            uvloop.run(pay(database_url, settings, chain, MERCHANTS_ORDERS, nodes.pid)) for chain in CHAINS
        ]
    assert [(one.chain, one.payouts) for one in found] == [(chain, MERCHANTS_ORDERS) for chain in CHAINS]
    assert uvloop.run(count_signed()) == [2 * MERCHANTS_ORDERS, 2 * MERCHANTS_ORDERS]
