"""The watcher on a fake chain: deposits are seen, settled, undone, and never counted twice."""

import asyncio

import msgspec
import pytest
from tests.deposits.conftest import (
    COIN,
    FINAL_DEPTH,
    START_MS,
    DepositScene,
    FakeChainReader,
    InScene,
    address,
)

from merchant_wallet.book.writer import Writer
from merchant_wallet.deposits import chain_store
from merchant_wallet.deposits.chain_store import CursorMoved
from merchant_wallet.deposits.final_ranges import BlocksMissing, FinalityBroken
from merchant_wallet.deposits.watcher import ALERT_AFTER, ChainUnfit
from merchant_wallet.processes.worker import make_home_tasks
from merchant_wallet.reporting.cells import reach_one
from merchant_wallet.reporting.deposits import DepositFilter, list_cursors, list_deposits


def test_a_deposit_is_shown_before_its_block_is_final_and_credited_after(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        watcher, crediting_worker = scene.watcher(chain), scene.crediting_worker()
        (sent,) = chain.mine((address("ulla"), 5 * COIN))
        await scene.catch_up(watcher)
        assert (await scene.deposit(sent)).confirmations == 1
        assert await scene.status_of(sent) == "seen"
        assert await crediting_worker.credit_due() == 0
        chain.mine(blocks=FINAL_DEPTH - 1)
        await scene.catch_up(watcher)
        assert await scene.status_of(sent) == "seen"
        chain.mine()
        await scene.catch_up(watcher)
        assert await scene.status_of(sent) == "pending"
        assert await crediting_worker.credit_due() == 1
        shown = await scene.deposit(sent)
        assert (shown.status, shown.confirmations, shown.credited_units) == ("credited", 4, 5 * COIN)
        assert await scene.balances() == {"chain:ERC20:USDT": -5 * COIN, "ulla": 5 * COIN}
        await scene.expect_sound()

    in_scene(scenario)


def test_what_a_reorganisation_takes_away_is_undone_before_it_was_final(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        watcher = scene.watcher(chain)
        chain.mine(blocks=2)
        (sent,) = chain.mine((address("ulla"), 5 * COIN))
        chain.mine()
        await scene.catch_up(watcher)
        assert await scene.status_of(sent) == "seen"
        chain.reorganise(2)
        await scene.catch_up(watcher)
        assert await scene.status_of(sent) == "undone"
        assert (await scene.deposit(sent)).confirmations is None
        chain.mine(blocks=10)
        await scene.catch_up(watcher)
        assert await scene.crediting_worker().credit_due() == 0
        assert await scene.balances() == {}

    in_scene(scenario)


@pytest.mark.parametrize("later", [0, 1])
def test_what_comes_again_on_the_new_branch_is_credited_once(in_scene: InScene, later: int) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        watcher = scene.watcher(chain)
        (sent,) = chain.mine((address("ulla"), 5 * COIN))
        chain.mine()
        await scene.catch_up(watcher)
        chain.reorganise(2, keep=True, later=later)
        await scene.catch_up(watcher)
        assert await scene.rows(
            "select status, log_index, block_log_index from deposit where tx_hash = %s", sent
        ) == [("seen", 0, 2)]
        chain.mine(blocks=10)
        await scene.catch_up(watcher)
        assert await scene.crediting_worker().credit_due() == 1
        assert (await scene.balances())["ulla"] == 5 * COIN
        await scene.expect_sound()

    in_scene(scenario)


def test_a_transfer_that_keeps_its_place_in_the_logs_stands_again_after_a_reorganisation(
    in_scene: InScene,
) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        watcher = scene.watcher(chain)
        (sent,) = chain.mine((address("ulla"), 5 * COIN))
        await scene.catch_up(watcher)
        chain.reorganise(1)
        await scene.catch_up(watcher)
        assert await scene.status_of(sent) == "undone"
        block = chain.blocks[-1]
        chain.put(chain.blocks[-1], sent, address("ulla"), 5 * COIN, 0)
        chain.reorganise(1, keep=False)
        for transfer in chain.logs[block.hash]:
            chain.put(chain.blocks[-1], transfer.tx_hash, transfer.recipient, transfer.amount_units, 0)
        await scene.catch_up(watcher)
        assert (await scene.deposit(sent)).status == "seen"
        assert (await scene.deposit(sent)).block_number == chain.blocks[-1].number

    in_scene(scenario)


def test_final_blocks_correct_what_unconfirmed_blocks_had_wrong(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        watcher = scene.watcher(chain)
        (gone,) = chain.mine((address("ulla"), 5 * COIN))
        await scene.catch_up(watcher)
        # The branch changes and becomes final before the watcher reads again.
        chain.reorganise(1)
        (come,) = chain.mine((address("anna"), 3 * COIN))
        chain.mine(blocks=10)
        await watcher.follow()
        assert (await scene.status_of(gone), await scene.status_of(come)) == ("undone", "pending")

    in_scene(scenario)


def test_a_final_block_that_leaves_the_chain_undoes_nothing_and_raises_an_alert(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        watcher, crediting_worker = scene.watcher(chain), scene.crediting_worker()
        (sent,) = chain.mine((address("ulla"), 5 * COIN))
        chain.mine(blocks=FINAL_DEPTH)
        await scene.catch_up(watcher)
        await crediting_worker.credit_due()
        chain.reorganise(FINAL_DEPTH + 1)
        chain.mine(blocks=2)
        for _ in range(2):
            with pytest.raises(FinalityBroken):
                await watcher.follow()
        assert await scene.status_of(sent) == "credited"
        (cursor,) = await list_cursors(scene.home)
        assert cursor.alert is not None
        assert "was final" in cursor.alert

    in_scene(scenario)


def test_nodes_that_do_not_fit_for_a_minute_raise_an_alert_until_they_fit(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain, wrong = FakeChainReader(), ["ERC20: n.example: eth_chainId: HTTP 403: unknown key"]

        async def check() -> list[str]:
            return wrong

        await scene.catch_up(scene.watcher(chain))
        chain.mine(blocks=FINAL_DEPTH)
        watcher = scene.watcher(chain, check=check)
        for count in range(1, ALERT_AFTER + 1):
            with pytest.raises(ChainUnfit, match="unknown key"):
                await watcher.follow()
            [cursor] = await list_cursors(scene.home)
            assert (cursor.alert is None) == (count < ALERT_AFTER)
        assert cursor.alert == wrong[0]
        await make_home_tasks(Writer(scene.url), ["ERC20"])["alerts of chains that are off"](scene.home, 1)
        [cursor] = await list_cursors(scene.home)
        assert cursor.alert == wrong[0]
        wrong.clear()
        await scene.catch_up(watcher)
        [cursor] = await list_cursors(scene.home)
        assert cursor.alert is None

    in_scene(scenario)


def test_the_alert_of_a_chain_that_is_taken_out_of_the_settings_is_removed(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        await scene.catch_up(scene.watcher(FakeChainReader()))
        await chain_store.raise_alert(scene.home, "ERC20", "HTTP 403")
        tasks = make_home_tasks(Writer(scene.url), ["TRC20"])
        await tasks["alerts of chains that are off"](scene.home, 1)
        [cursor] = await list_cursors(scene.home)
        assert cursor.alert is None

    in_scene(scenario)


def test_a_node_that_lags_behind_undoes_nothing(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        watcher = scene.watcher(chain)
        (sent,) = chain.mine((address("ulla"), 5 * COIN))
        chain.mine()
        await scene.catch_up(watcher)
        for behind in (1, 2):
            chain.behind = behind
            assert not await watcher.follow()
            assert await scene.status_of(sent) == "seen"
        chain.behind = 0
        chain.mine(blocks=5)
        await scene.catch_up(watcher)
        chain.behind = 4
        assert not await watcher.follow()
        assert await scene.status_of(sent) == "pending"

    in_scene(scenario)


def test_a_branch_that_changes_while_it_is_read_is_read_anew(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        watcher = scene.watcher(chain)
        await scene.catch_up(watcher)
        (sent,) = chain.mine((address("ulla"), 5 * COIN))
        chain.mine()

        async def reorganise_once() -> None:
            chain.on_transfers = None
            chain.reorganise(2)

        chain.on_transfers = reorganise_once
        await watcher.follow()
        await scene.catch_up(watcher)
        assert await scene.status_of(sent) == "undone"
        assert (await list_cursors(scene.home))[0].head_number == chain.blocks[-1].number

    in_scene(scenario)


def test_logs_of_another_block_than_was_shown_are_not_believed(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        watcher = scene.watcher(chain)
        await scene.catch_up(watcher)
        (sent,) = chain.mine((address("ulla"), 5 * COIN))
        block = chain.blocks[-1]
        (log,) = chain.logs[block.hash]
        chain.logs[block.hash] = [msgspec.structs.replace(log, block_hash="0xother")]
        with pytest.raises(BlocksMissing):
            await watcher.follow()
        assert await scene.status_of(sent) == "nothing"

    in_scene(scenario)


def test_of_two_watchers_one_writes_and_the_other_gives_up(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        first, second = scene.watcher(chain), scene.watcher(chain)
        await scene.catch_up(first)
        (sent,) = chain.mine((address("ulla"), 5 * COIN))
        chain.mine(blocks=FINAL_DEPTH)

        async def be_quicker() -> None:
            chain.on_transfers = None
            await scene.catch_up(second)

        chain.on_transfers = be_quicker
        await scene.catch_up(first)
        assert await scene.status_of(sent) == "pending"
        assert await scene.rows("select count(*) from deposit") == [(1,)]
        cursor = await chain_store.read_cursor(scene.home, "ERC20")
        assert cursor is not None
        old = type(cursor)(0, "0xold", 0, "0xold")
        with pytest.raises(CursorMoved):
            await chain_store.drop_head(scene.home, "ERC20", old, (0, "0xold"), START_MS)

    in_scene(scenario)


def test_many_watchers_at_once_lose_and_double_nothing(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        watchers = [scene.watcher(chain) for _ in range(4)]
        crediting_workers = [scene.crediting_worker() for _ in range(3)]
        total = 0
        for number in range(12):
            chain.mine((address("ulla"), (number + 1) * COIN), blocks=2)
            total += (number + 1) * COIN
            if number % 5 == 4:
                chain.reorganise(1, keep=True)
            await asyncio.gather(*[watcher.follow() for watcher in watchers])
            await asyncio.gather(*[crediting_worker.credit_due() for crediting_worker in crediting_workers])
        chain.mine(blocks=FINAL_DEPTH)
        for _ in range(3):
            await asyncio.gather(*[watcher.follow() for watcher in watchers])
            await asyncio.gather(*[crediting_worker.credit_due() for crediting_worker in crediting_workers])
        assert (await scene.balances())["ulla"] == total
        await scene.expect_sound()

    in_scene(scenario)


def test_one_transaction_may_bring_something_to_several_of_us(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        chain.mine(blocks=1)
        block = chain.blocks[-1]
        for index, name in enumerate(("ulla", "stranger", "otto", "shop", "ulla")):
            chain.put(block, "0xmany", address(name), (index + 1) * COIN, index)
        chain.mine(blocks=FINAL_DEPTH)
        await scene.catch_up(scene.watcher(chain))
        assert await scene.crediting_worker().credit_due() == 4
        assert (await scene.balances())["ulla"] == 6 * COIN
        assert (await scene.balances())["merchant:USDT"] == 4 * COIN
        assert (await scene.balances(1002))["otto"] == 3 * COIN
        await scene.expect_sound()

    in_scene(scenario)


def test_zeros_and_transfers_to_strangers_leave_nothing_behind(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        chain.mine((address("ulla"), 0), (address("stranger"), COIN), (address("ulla"), 2**80))
        chain.mine(blocks=FINAL_DEPTH)
        await scene.catch_up(scene.watcher(chain))
        assert await scene.rows("select count(*) from deposit") == [(0,)]

    in_scene(scenario)


def test_a_wallets_deposits_are_listed_page_by_page_newest_first(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        watcher = scene.watcher(chain)
        for number in range(5):
            chain.mine(
                (address("ulla"), (number + 1) * COIN), (address("anna"), COIN), (address("shop"), COIN)
            )
            await scene.catch_up(watcher)
            scene.clock.advance(1)
        user_id = scene.wallets["ulla"].user_id
        of_ulla = DepositFilter(1001, user_id=user_id)
        cells = reach_one(scene.connection)
        first = await list_deposits(scene.home, cells, of_ulla, limit=3)
        rest = await list_deposits(scene.home, cells, of_ulla, after=first.next)
        found = first.rows + rest.rows
        assert [shown.amount_units // COIN for shown in found] == [5, 4, 3, 2, 1]
        assert [shown.confirmations for shown in found] == [1, 2, 3, 4, 5]
        assert {shown.ext_user_id for shown in found} == {"ulla"}
        assert len((await list_deposits(scene.home, cells, DepositFilter(1001))).rows) == 15
        pending = await list_deposits(
            scene.home, reach_one(scene.connection), DepositFilter(1001, ("pending",))
        )
        assert len(pending.rows) == 6

    in_scene(scenario)


def test_a_watcher_that_is_told_to_stop_closes_what_it_opened(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain, stop = FakeChainReader(), asyncio.Event()
        (sent,) = chain.mine((address("ulla"), COIN))

        async def stop_then() -> None:
            stop.set()

        chain.on_transfers = stop_then
        await scene.watcher(chain).run(stop, interval_s=0.01)
        assert await scene.status_of(sent) == "seen"
        assert chain.closed

    in_scene(scenario)
