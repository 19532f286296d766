"""Gas on a real EVM chain, energy on TRON: the lines add up to what each balance of coins has lost."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from tests.chains.evm_scene import WALLET, EvmScene
from tests.chains.tron_scene import TronScene
from tests.cold.cold_scene import COLD, ColdScene, make_evm, make_tron, open_cold_scene
from tests.cold.cold_scene import Clock as ColdClock
from tests.sweeps.evm_steps import coin, finish, pay_in
from tests.sweeps.sweep_scene import Clock as SweepClock
from tests.sweeps.sweep_scene import SweepScene, give_account, open_evm, open_tron
from tests.withdrawals.conftest import START_MS, Shop, open_book
from tests.withdrawals.conftest import Clock as ShopClock

from merchant_wallet.base.chains import ERC20, TRC20, is_evm
from merchant_wallet.base.db import connect
from merchant_wallet.base.units import HOUR_MS
from merchant_wallet.book.commands import Adjust
from merchant_wallet.book.writer import Writer
from merchant_wallet.chains.evm.chain import EvmChain
from merchant_wallet.chains.protocol import Payout, SignedTransfer, Unpayable
from merchant_wallet.chains.transport import Endpoints
from merchant_wallet.custody.cold import wallets
from merchant_wallet.custody.cold.limits import ELSEWHERE, RECORDED, TO_COLD, TO_HOT
from merchant_wallet.custody.cold.signatures import read_answer
from merchant_wallet.custody.cold.store import take_signature
from merchant_wallet.custody.network_fees import NetworkFeeWorker
from merchant_wallet.reporting.finance.network_fees import CoinsSpent, read_coins_spent
from merchant_wallet.reporting.finance.periods import Period, day_of

USDT = 1_000_000
ADDRESS = "0x742d35cc6634c0532925a3b844bc454e4438f44e"
DAY = day_of(START_MS)
DAYS = Period("days", DAY - 1, DAY + 2)


class GivesOneUp(EvmChain):
    """The chain, on which one order turns out to be unpayable after the next one was signed."""

    given_up: int | None = None

    def wait_for_next(self, order_id: int) -> None:
        self.given_up, self.reached, self.signed = order_id, asyncio.Event(), asyncio.Event()

    async def build(self, payout: Payout, earlier: Sequence[SignedTransfer]) -> SignedTransfer:
        if payout.payout_id == self.given_up:
            self.reached.set()
            await self.signed.wait()
            raise Unpayable("blacklisted a moment ago")
        made = await super().build(payout, earlier)
        self.signed.set()
        return made


async def pay_past_a_gap(shop: Shop, evm: EvmScene, chain: GivesOneUp) -> None:
    """Two orders: the first gives its nonce back, the second is paid after that was cancelled."""
    first = await shop.order(10 * USDT, ADDRESS)
    chain.wait_for_next(first.order_id)
    payer, gaps = shop.payer(chains={ERC20: chain}), shop.gaps({ERC20: chain}, grace_ms=60_000)
    await payer.start_due()
    await chain.reached.wait()
    second = await shop.order(10 * USDT, ADDRESS)
    await payer.start_due()
    await chain.signed.wait()
    await payer.finish()
    for _ in range(20):
        shop.clock.advance(60_000)
        await gaps.cancel_gaps()
        evm.settle()
        await shop.turn(payer)
        if (await shop.status(first), await shop.status(second)) == (6, 2):
            break
    assert await gaps.cancel_gaps() == 0
    assert await shop.status(second) == 2


async def move_cold(scene: ColdScene) -> None:
    """100 USDT to the cold wallet, 40 back with a signature from elsewhere, and one that nobody signs.

    And 20 to the cold wallet that a wallet program broadcasts itself. On an EVM chain the first one has too
    little gas, and the last one has other fees than the signature that was brought back.
    """
    worker = scene.worker()
    assert (await scene.finish(worker, await scene.begin(100 * USDT))).step == "done"
    key = scene.moved.hot_key
    for gas_limit in (30_000, None, 123_456) if is_evm(scene.moved.chain) else (None,):
        number = await scene.begin(20 * USDT, TO_COLD, ELSEWHERE)
        await scene.turn(worker)
        waiting, raw = await scene.shown(number), await scene.sign_elsewhere(number, key)
        other = raw if gas_limit is None else await scene.resign(number, key, gas_limit=gas_limit)
        await scene.broadcast(other)
        scene.moved.settle()
        if gas_limit == 123_456:
            signed = read_answer(waiting, raw)
            assert await take_signature(scene.connection, waiting, signed, scene.clock())
        ended = await scene.finish(worker, number)
        assert ended.step == ("failed" if gas_limit == 30_000 else "done")
    assert await scene.rows("select frozen_cause from hot_wallet") == [(None,)]
    scene.moved.fuel(COLD)
    number = await scene.begin(40 * USDT, TO_HOT, ELSEWHERE)
    await scene.turn(worker)
    waiting = await scene.shown(number)
    signed = read_answer(waiting, await scene.sign_elsewhere(number))
    assert await take_signature(scene.connection, waiting, signed, scene.clock())
    assert (await scene.finish(worker, number)).step == "done"
    unsigned = await scene.begin(5 * USDT, TO_HOT, ELSEWHERE)
    await scene.turn(worker)
    scene.clock.now_ms += 13 * HOUR_MS
    assert (await scene.finish(worker, unsigned)).step == "dropped"


async def record_stranger(scene: ColdScene, evm: EvmScene) -> None:
    """A transaction of somebody else, recorded by mistake."""
    worker = scene.worker()
    receipt = evm.token.give(b"E" * 20, 5 * USDT)
    evm.settle()
    stranger = await scene.begin(5 * USDT, TO_HOT, RECORDED, tx_hash=receipt["transactionHash"])
    assert (await scene.finish(worker, stranger)).step == "failed"


async def sweep(scene: SweepScene, evm: EvmScene, folder: Path) -> bytes:
    """A deposit of 70 USDT, swept with gas from the hot wallet."""
    await give_account(scene)
    address = await pay_in(scene, evm, 0, 70 * USDT)
    worker = scene.worker({ERC20: open_evm(folder, evm.node.url, evm.token.address)})
    assert len(await scene.begin(worker)) == 1
    assert await finish(scene, evm, worker) == ["done"]
    return address


async def read_all(shop: Shop, evm: EvmScene, folder: Path) -> CoinsSpent:
    """The lines after the worker has read what there is, twice."""
    sweeper = open_evm(folder, evm.node.url, evm.token.address)
    worker = NetworkFeeWorker(shop.connect, {ERC20: sweeper}, clock=shop.clock)
    for _ in range(2):
        await worker.run_once()
    over = asyncio.Event()
    over.set()
    await worker.run(over)
    await sweeper.close()
    return await read_coins_spent(shop.connection, DAYS)


def folder_of(folder: Path, name: str) -> Path:
    made = folder / name
    made.mkdir()
    return made


async def play(url: str, evm: EvmScene, folder: Path) -> None:
    async with AsyncExitStack() as closing:
        connection = await closing.enter_async_context(await connect(url))
        await open_book(connection)
        book = Writer(url, connections=4, clock=(clock := ShopClock()))
        await book.open()
        closing.push_async_callback(book.close)
        shop = Shop(url, connection, book, clock, closing, folder_of(folder, "shop"))
        await shop.ask(Adjust("USDT", 500 * USDT, "opening balance", "test", None))
        chain = GivesOneUp(
            evm.rules, Endpoints((evm.node.url,), timeout_s=60), wallet=WALLET, signer=evm.signer
        )
        closing.push_async_callback(chain.close)
        held = coin(evm, WALLET)
        await pay_past_a_gap(shop, evm, chain)
        await wallets.set_current(connection, ERC20, COLD, START_MS)
        moved = make_evm(evm, folder_of(folder, "cold"))
        cold = ColdScene(url, connection, closing, moved, ColdClock(START_MS))
        await move_cold(cold)
        await record_stranger(cold, evm)
        conn = await closing.enter_async_context(await connect(url))
        sweeps = folder_of(folder, "sweeps")
        address = await sweep(SweepScene(url, conn, closing, SweepClock(START_MS)), evm, sweeps)
        spent = await read_all(shop, evm, sweeps)
        lines = {one.purpose: one for one in spent.lines}
        assert {name: one.transactions for name, one in lines.items()} == {
            "payout": 1,
            "cancel": 1,
            "top_up": 1,
            "sweep": 1,
            "cold": 4,
            "refill": 1,
        }
        (hot,) = spent.hot_wallets
        assert hot.lost == held - coin(evm, WALLET)
        assert hot.fees == sum([one.fee for one in spent.lines if one.paid_by == "hot"])
        assert 10 * 10**18 - coin(evm, COLD) == lines["refill"].fee
        assert hot.given - lines["sweep"].fee == coin(evm, address)
        assert all(one.fee > 0 for one in spent.lines)
        assert await shop.rows("select count(*) from wallet_nonce where fee_read_ms is not null") == [(1,)]


async def play_on_tron(url: str, tron: TronScene, folder: Path) -> None:
    async with AsyncExitStack() as closing:
        coins = tron.network.fake.coins
        scene = await open_cold_scene(url, closing, make_tron(tron, folder_of(folder, "cold")))
        held, held_cold = coins[scene.moved.hot], 1_000_000_000
        await move_cold(scene)
        sweeper = open_tron(folder_of(folder, "sweeps"), tron.network.urls, tron.rules)
        closing.push_async_callback(sweeper.close)
        worker, over = NetworkFeeWorker(scene.connect, {TRC20: sweeper}, clock=scene.clock), asyncio.Event()
        await worker.run_once()
        over.set()
        await worker.run(over)
        spent = await read_coins_spent(scene.connection, DAYS)
        lines = {one.purpose: one for one in spent.lines}
        assert set(lines) == {"cold", "refill"}
        (hot,) = spent.hot_wallets
        assert hot.lost == hot.fees == lines["cold"].fee == held - coins[scene.moved.hot] > 0
        assert lines["refill"].fee == held_cold - coins[COLD] > 0


def test_energy_adds_up_on_tron(database_url: str, tron: TronScene, tmp_path: Path) -> None:
    asyncio.run(play_on_tron(database_url, tron, tmp_path))


def test_gas_adds_up_to_what_the_hot_wallets_balance_of_coins_has_lost(
    database_url: str, evm: EvmScene, tmp_path: Path
) -> None:
    asyncio.run(play(database_url, evm, tmp_path))
