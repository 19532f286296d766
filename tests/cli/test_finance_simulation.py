"""`finance simulate`: the month of a made-up shop, from its entries to the invoice, by commands."""

import asyncio

from tests.cli.conftest import Wallet
from tests.cli.test_finance import sign

from merchant_wallet.base.db import connect, connect_sync
from merchant_wallet.reporting import rollup


def test_a_months_end_is_played_by_commands(wallet: Wallet) -> None:
    made = wallet.ask("finance", "simulate")
    month, shop_id = made["month"], made["merchantId"]

    async def add_up() -> None:
        async with await connect(wallet.both_url) as connection:
            await rollup.advance_all(connection, 0, pause_s=0)

    asyncio.run(add_up())
    sign(wallet)
    assert wallet.ask("finance", "close", month)["state"] == "accepted"
    sign(wallet)
    (invoice,) = wallet.ask("finance", "invoices")["invoices"]
    assert (invoice["merchantId"], invoice["month"]) == (shop_id, month)
    assert wallet.ask("book", "verify", shop_id)["ok"]
    assert wallet.run("finance", "verify", month).exit_code == 0
    assert wallet.refuse("finance", "simulate").startswith("Months were prepared already.")


def test_a_live_service_makes_up_no_month(wallet: Wallet) -> None:
    wallet.variables["WALLET_SANDBOX"] = "false"
    assert "only in the sandbox" in wallet.refuse("finance", "simulate")
    with connect_sync(wallet.url) as connection:
        assert connection.execute("select count(*) from merchant").fetchone() == (0,)
