"""Sweeper and payer on one hot wallet at once: nonces without gaps, every order paid once, everything
swept.
"""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

from tests.chains.evm_scene import HELD, WALLET, EvmScene
from tests.sweeps.sweep_scene import USDT, Clock, SweepScene, give_account, open_evm
from tests.withdrawals.conftest import START_MS, Shop, open_book
from tests.withdrawals.conftest import Clock as ShopClock

from merchant_wallet.base.addresses import parse_evm
from merchant_wallet.base.chains import ERC20
from merchant_wallet.base.db import connect
from merchant_wallet.book.commands import Adjust
from merchant_wallet.book.writer import Writer
from merchant_wallet.chains.evm.chain import EvmChain
from merchant_wallet.hot_wallet.store import list_wallets

ORDERS, SWEEPS = 6, 4
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
        scene = SweepScene(
            url, await closing.enter_async_context(await connect(url)), closing, Clock(START_MS)
        )
        await give_account(scene)
        for index in range(SWEEPS):
            evm.token.give(await scene.deposit(index, 70 * USDT), 70 * USDT)
        evm.settle()
        orders = [await shop.order(10 * USDT, ADDRESS) for _ in range(ORDERS)]
        payer = shop.payer(chains={ERC20: chain})
        worker = scene.worker({ERC20: open_evm(folder, evm.node.url, evm.token.address)})
        assert len(await scene.begin(worker)) == SWEEPS
        for _ in range(30):
            await asyncio.gather(shop.turn(payer), worker.follow(with_unsigned=True))
            evm.settle()
            clock.advance(5_000)
        assert Counter([await shop.status(order) for order in orders]) == {2: ORDERS}
        assert await scene.steps() == ["done"] * SWEEPS
        paid = [log for log in await chain.transfers(0, evm.node.height()) if log.sender == WALLET]
        assert [(log.recipient, log.amount_units) for log in paid] == [
            (parse_evm(ADDRESS), 9 * USDT)
        ] * ORDERS
        assert evm.token.balance(WALLET) == HELD + SWEEPS * 70 * USDT - ORDERS * 9 * USDT
        nonces = await scene.rows("select nonce, purpose from wallet_nonce order by nonce")
        assert [nonce for nonce, _ in nonces] == list(range(ORDERS + SWEEPS))
        assert Counter(purpose for _, purpose in nonces) == {"payout": ORDERS, "top_up": SWEEPS}
        # The payer recognises the top-ups' nonces as ours.
        await shop.order(10 * USDT, ADDRESS)
        clock.advance(60_000)
        await shop.turn(payer)
        [wallet] = await list_wallets(connection)
        assert (wallet.frozen_cause, wallet.next_nonce) == (None, ORDERS + SWEEPS + 1)


def test_orders_are_paid_and_addresses_swept_at_the_same_time(
    database_url: str, evm: EvmScene, tmp_path: Path
) -> None:
    async def run() -> None:
        async with evm.chain() as chain:
            await play(database_url, evm, chain, tmp_path)

    asyncio.run(run())
