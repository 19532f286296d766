"""Payer and worker of cold money on one hot wallet at once: one order of nonces, no unit promised twice."""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack, suppress
from pathlib import Path

from tests.chains.evm_scene import HELD, WALLET, EvmScene
from tests.cold.cold_scene import COLD, USDT, make_evm
from tests.roles import as_worker
from tests.withdrawals.conftest import Clock as ShopClock
from tests.withdrawals.conftest import Shop, open_book

from merchant_wallet.base.addresses import parse_evm
from merchant_wallet.base.chains import ERC20
from merchant_wallet.base.db import connect
from merchant_wallet.book.commands import Adjust
from merchant_wallet.book.writer import Writer
from merchant_wallet.chains.evm.chain import EvmChain
from merchant_wallet.custody.cold import store, wallets
from merchant_wallet.custody.cold.limits import SIGNER, TO_COLD
from merchant_wallet.custody.cold.store import NewTransfer
from merchant_wallet.custody.cold.worker import TransfersFailed
from merchant_wallet.hot_wallet.store import list_wallets
from merchant_wallet.merchants import own_addresses
from merchant_wallet.processes.cold import open_cold_worker

ORDERS = 6
ADDRESS = "0x742d35cc6634c0532925a3b844bc454e4438f44e"


async def play(url: str, evm: EvmScene, chain: EvmChain, folder: Path) -> None:
    async with AsyncExitStack() as closing:
        connection = await closing.enter_async_context(await connect(url))
        await open_book(connection)
        book = Writer(url, connections=4, clock=(clock := ShopClock()))
        await book.open()
        closing.push_async_callback(book.close)
        shop = Shop(url, connection, book, clock, closing, folder)
        await shop.ask(Adjust("USDT", 1000 * USDT, "opening balance", "test", None))
        moved = make_evm(evm, folder)
        await wallets.set_current(connection, ERC20, COLD, 1)
        assert COLD in await own_addresses.list_wallets(connection)
        orders = [await shop.order(10 * USDT, ADDRESS) for _ in range(ORDERS)]
        payer, cold_chain = shop.payer(chains={ERC20: chain}), moved.open()
        closing.push_async_callback(cold_chain.close)
        worker = open_cold_worker(lambda: connect(as_worker(url)), {ERC20: cold_chain}, clock=clock)
        closing.push_async_callback(worker.close)
        # Together with the orders it is more than the wallet holds, until the orders' share is known.
        new = NewTransfer(ERC20, TO_COLD, SIGNER, WALLET, COLD, 900 * USDT, None, None, "ann")
        number = await store.open_transfer(connection, new, clock())
        assert number is not None
        assert await store.open_transfer(connection, new, clock()) is None
        for _ in range(30):
            with suppress(TransfersFailed):
                await asyncio.gather(shop.turn(payer), worker.follow())
            evm.settle()
            clock.advance(50_000)
        assert Counter([await shop.status(order) for order in orders]) == {2: ORDERS}
        ended = await store.read_transfer(connection, number)
        assert ended is not None
        assert ended.step == "done"
        assert evm.token.balance(COLD) == 900 * USDT
        assert evm.token.balance(WALLET) == HELD - 900 * USDT - ORDERS * 9 * USDT
        paid = [log for log in await chain.transfers(0, evm.node.height()) if log.sender == WALLET]
        assert Counter(log.recipient for log in paid) == {parse_evm(ADDRESS): ORDERS, COLD: 1}
        cursor = await connection.execute("select nonce, purpose from wallet_nonce order by nonce")
        nonces = await cursor.fetchall()
        assert [nonce for nonce, _ in nonces] == list(range(ORDERS + 1))
        assert Counter(purpose for _, purpose in nonces) == {"payout": ORDERS, "cold": 1}
        [wallet] = await list_wallets(connection)
        assert (wallet.frozen_cause, wallet.open_units) == (None, 0)


def test_orders_are_paid_while_money_goes_to_the_cold_wallet(
    database_url: str, evm: EvmScene, tmp_path: Path
) -> None:
    async def run() -> None:
        async with evm.chain() as chain:
            await play(database_url, evm, chain, tmp_path)

    asyncio.run(run())
