"""A range of blocks is read again beside the watcher: what was missed is credited, and nothing twice."""

import asyncio

import pytest
from tests.deposits.conftest import COIN, START_MS, DepositScene, FakeChainReader, InScene, address

from merchant_wallet.chains.protocol import Block, ChainAway
from merchant_wallet.deposits import rescan
from merchant_wallet.deposits.chain_store import rewind_cursor
from merchant_wallet.deposits.final_ranges import FinalityBroken
from merchant_wallet.deposits.rescan import MAX_FAILURES, BlocksRead, NotReadYet
from merchant_wallet.reporting.deposits import list_cursors


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed question is repeated at once."""
    monkeypatch.setattr(rescan, "PAUSE_S", 0.0)


async def read(scene: DepositScene, chain: FakeChainReader, first: int, last: int) -> BlocksRead:
    before = await chain.block(first - 1)
    assert before is not None
    return await rescan.read_blocks(scene.home, chain, "ERC20", before, last, lambda done, total: None)


async def read_again(scene: DepositScene, chain: FakeChainReader, first: int, last: int) -> int:
    """What an operator's rescan does. Returns how many transfers were missing or different."""
    return await rescan.store_blocks(
        scene.home, "ERC20", await read(scene, chain, first, last), scene.clock()
    )


async def count_rewinds(scene: DepositScene) -> int:
    rows = await scene.home_rows("select count(*) from chain_rewind")
    return int(rows[0][0])


def test_a_range_finds_what_was_missed_and_the_watcher_stays_where_it_is(in_each_layout: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        watcher, crediting_worker = scene.watcher(chain), scene.crediting_worker()
        (sent,) = chain.mine((address("ulla"), 5 * COIN))
        (missed,) = chain.mine((address("late"), 2 * COIN))
        (outside,) = chain.mine((address("late"), 3 * COIN))
        chain.mine(blocks=6)
        await scene.catch_up(watcher)
        await crediting_worker.credit_due()
        await scene.register("late", "USDT")
        before = await list_cursors(scene.home)
        assert await read_again(scene, chain, 1, 2) == 1
        assert await list_cursors(scene.home) == before
        await scene.catch_up(watcher)
        assert await crediting_worker.credit_due() == 1
        statuses = [await scene.status_of(one) for one in (sent, missed, outside)]
        assert statuses == ["credited", "credited", "nothing"]
        assert await read_again(scene, chain, 1, 2) == 0, "the second time nothing is missing"
        await scene.catch_up(watcher)
        assert await crediting_worker.credit_due() == 0
        assert (await scene.balances())["ulla"] == 5 * COIN
        await scene.expect_sound()

    in_each_layout(scenario)


def test_a_transfer_that_the_blocks_do_not_have_any_more_is_held(in_each_layout: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        watcher = scene.watcher(chain)
        (sent,) = chain.mine((address("ulla"), 5 * COIN))
        chain.mine(blocks=6)
        await scene.catch_up(watcher)
        chain.logs[chain.blocks[1].hash].clear()
        assert await read_again(scene, chain, 1, 3) == 1
        await scene.catch_up(watcher)
        assert await scene.status_of(sent) == "held"
        assert await scene.crediting_worker().credit_due() == 0

    in_each_layout(scenario)


def test_new_deposits_are_credited_while_a_range_is_read(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        watcher, crediting_worker = scene.watcher(chain), scene.crediting_worker()
        chain.mine(blocks=40)
        await scene.catch_up(watcher)
        new: list[str] = []

        async def arrive() -> None:
            chain.on_transfers = None
            new.extend(chain.mine((address("ulla"), COIN)))
            chain.mine(blocks=5)
            await scene.catch_up(watcher)
            assert await crediting_worker.credit_due() == 1

        chain.on_transfers = arrive
        assert await read_again(scene, chain, 1, 30) == 0
        assert await scene.status_of(new[0]) == "credited"

    in_scene(scenario)


def test_a_node_is_asked_for_fewer_blocks_until_it_answers_or_is_given_up(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        chain.mine(blocks=40)
        await scene.catch_up(scene.watcher(chain))
        chain.most_blocks = 5
        chain.asked.clear()
        assert (await read(scene, chain, 1, 30)).blocks == range(1, 31)
        assert max(last - first + 1 for first, last in chain.asked) == 16
        chain.most_blocks, before = 0, len(chain.asked)
        with pytest.raises(ChainAway):
            await read(scene, chain, 1, 30)
        assert len(chain.asked) == before + MAX_FAILURES

    in_scene(scenario)


def test_a_range_that_was_not_read_yet_or_is_set_back_meanwhile_is_refused(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        chain.mine(blocks=10)
        with pytest.raises(NotReadYet):
            await read(scene, chain, 1, 5)
        await scene.catch_up(scene.watcher(chain))
        found = await read(scene, chain, 2, 7)
        with pytest.raises(NotReadYet):
            await read(scene, chain, 2, 8)
        assert await rewind_cursor(scene.home, "ERC20", chain.blocks[3], START_MS)
        with pytest.raises(NotReadYet):
            await rescan.store_blocks(scene.home, "ERC20", found, START_MS)
        assert await count_rewinds(scene) == 1

    in_scene(scenario)


def test_blocks_of_another_branch_store_nothing(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        chain.mine((address("ulla"), COIN), blocks=40)
        await scene.catch_up(scene.watcher(chain))
        # The node goes over to another branch after the first part was read.
        honest = chain.blocks[20]

        async def lie() -> None:
            chain.blocks[17] = Block(17, "0xother", "0xelsewhere", honest.time_ms)

        chain.on_transfers = lie
        with pytest.raises(FinalityBroken):
            await read_again(scene, chain, 1, 30)
        assert await count_rewinds(scene) == 0
        chain.on_transfers = None
        final = (await list_cursors(scene.home))[0].final_number
        found = await read(scene, chain, 30, final)
        other = found._replace(end=Block(final, "0xother", "0x", honest.time_ms))
        with pytest.raises(FinalityBroken):
            await rescan.store_blocks(scene.home, "ERC20", other, START_MS)

    in_scene(scenario)


def test_two_at_once_give_each_a_number_of_its_own(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        chain.mine(blocks=10)
        await scene.catch_up(scene.watcher(chain))
        found = await read(scene, chain, 1, 5)
        async with await scene.connect_home() as one, await scene.connect_home() as other:
            stored = [rescan.store_blocks(conn, "ERC20", found, START_MS) for conn in (one, other)]
            await asyncio.gather(*stored)
        assert await scene.home_rows("select rewind_no from chain_rewind order by 1") == [(1,), (2,)]

    in_scene(scenario)
