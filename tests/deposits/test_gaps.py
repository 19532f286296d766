"""Where reading of a chain begins, gaps after downtime, many addresses, rescans: every block is read."""

import pytest
from tests.deposits.conftest import (
    BLOCK_MS,
    COIN,
    FINAL_DEPTH,
    START_MS,
    DepositScene,
    FakeChainReader,
    InScene,
    address,
)

from merchant_wallet.chains.protocol import ChainAway, ChainDisagrees
from merchant_wallet.deposits import chain_store
from merchant_wallet.deposits.watcher import ALERT_AFTER
from merchant_wallet.reporting.deposits import list_cursors


def test_every_block_is_read_once_as_final_whatever_the_pace(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        watcher, sent = scene.watcher(chain), []
        for number in range(20):
            sent += chain.mine((address("ulla"), (number + 1) * COIN), blocks=number % 3 + 1)
            if number % 4 != 2:
                await scene.catch_up(watcher)
        chain.mine(blocks=FINAL_DEPTH)
        await scene.catch_up(watcher)
        crediting_worker = scene.crediting_worker()
        assert await crediting_worker.credit_due() == len(sent)
        assert await crediting_worker.credit_due() == 0
        assert (await scene.balances())["ulla"] == sum(range(1, 21)) * COIN
        await scene.expect_sound()

    in_scene(scenario)


def test_after_downtime_the_gap_is_read_in_ranges_and_logged(
    in_scene: InScene, capsys: pytest.CaptureFixture[str]
) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        await scene.catch_up(scene.watcher(chain))
        sent = [hash for _ in range(20) for hash in chain.mine((address("ulla"), COIN), blocks=10)]
        chain.mine(blocks=FINAL_DEPTH)
        watcher = scene.watcher(chain)
        chain.asked.clear()
        turns = 1
        while await watcher.follow():
            turns += 1
        ranges = [last - first + 1 for first, last in chain.asked if last <= 200]
        assert ranges == [16, 32, 64, 88]
        assert turns == 4
        assert await scene.crediting_worker().credit_due() == len(sent) == 20
        assert (await list_cursors(scene.home))[0].final_number == 200

    in_scene(scenario)
    assert capsys.readouterr().out.count("catching up") == 3


def test_a_node_that_answers_for_few_blocks_only_is_asked_for_fewer(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        await scene.catch_up(scene.watcher(chain))
        chain.mine(blocks=40)
        chain.most_blocks = 5
        watcher = scene.watcher(chain)
        failures = 0
        while (await list_cursors(scene.home))[0].final_number < 37:
            try:
                await watcher.follow()
            except ChainAway:
                failures += 1
        assert failures > 1

    in_scene(scenario)


def test_a_chain_is_first_read_from_before_the_oldest_merchant(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        chain.mine(blocks=1000)
        (early,) = chain.mine((address("ulla"), 5 * COIN))
        chain.mine(blocks=10)
        opened_ms = chain.blocks[-30].time_ms + 3_600_000
        await scene.rows("update merchant set created_ms = %s", opened_ms)
        await scene.catch_up(scene.watcher(chain))
        assert chain.asked[0][0] == len(chain.blocks) - 30
        assert await scene.status_of(early) == "pending"

    in_scene(scenario)


def test_a_chain_without_merchants_is_read_from_its_final_block_on(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        chain.mine(blocks=50)
        await scene.rows("update merchant set created_ms = %s", START_MS + 60 * BLOCK_MS + 3_600_000)
        await scene.watcher(chain).follow()
        assert {first for first, _ in chain.asked} == {48, 49, 50}

    in_scene(scenario)


def test_a_pruned_node_is_read_from_the_first_block_that_it_has(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader(pruned_below=30)
        chain.mine(blocks=50)
        await scene.watcher(chain).follow()
        assert chain.asked[0][0] == 31

    in_scene(scenario)


def test_deposits_to_two_thousand_addresses_find_their_owners(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        await scene.rows(
            "with made as (select n, 1000 + n as user_id, sha256(('a' || n)::bytea) as h"
            "   from generate_series(1, 2000) n),"
            " accounts as (insert into account (merchant_id, account_id, kind, currency)"
            "   select 1001, user_id, 'subuser', 'USDT' from made),"
            " users as (insert into sub_user (merchant_id, user_id, ext_user_id, username, address_index,"
            "   evm_address, tron_address, created_ms)"
            "   select 1001, user_id, 'u' || n, 'u', 100 + n, substr(h, 1, 20), substr(h, 13, 20), 0"
            "   from made),"
            " wallets as (insert into wallet_address select 1001, substr(h, 1, 20), user_id from made)"
            " insert into issued_address select substr(h, 1, 20), 1001 from made"
        )
        rows = await scene.rows("select address from wallet_address where user_id between 1001 and 3000")
        chain = FakeChainReader()
        sent = [(bytes(row[0]), COIN + number) for number, row in enumerate(rows)]
        strangers = [(address(f"stranger {number}"), COIN) for number in range(2000)]
        for start in range(0, 2000, 250):
            chain.mine(*sent[start : start + 250], *strangers[start : start + 250])
        chain.mine(blocks=FINAL_DEPTH)
        await scene.catch_up(scene.watcher(chain))
        crediting_worker, credited = scene.crediting_worker(), 0
        while now := await crediting_worker.credit_due():
            credited += now
        assert credited == len(sent) == 2000
        total = sum(units for _, units in sent)
        assert (await scene.balances())["chain:ERC20:USDT"] == -total

    in_scene(scenario)


def test_a_rescan_finds_what_was_missed_and_credits_nothing_twice(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        watcher, crediting_worker = scene.watcher(chain), scene.crediting_worker()
        (sent,) = chain.mine((address("ulla"), 5 * COIN))
        (missed,) = chain.mine((address("late"), 2 * COIN))
        chain.mine(blocks=6)
        await scene.catch_up(watcher)
        await crediting_worker.credit_due()
        assert await scene.status_of(missed) == "nothing"
        await scene.register("late", "USDT")
        block = await chain.block(0)
        assert block is not None
        assert await chain_store.rewind_cursor(scene.home, "ERC20", block, START_MS)
        assert not await chain_store.rewind_cursor(scene.home, "TRC20", block, START_MS)
        await scene.catch_up(watcher)
        assert await crediting_worker.credit_due() == 1
        assert (await scene.status_of(sent), await scene.status_of(missed)) == ("credited", "credited")
        assert (await scene.balances())["ulla"] == 5 * COIN
        await scene.expect_sound()

    in_scene(scenario)


def test_disagreeing_nodes_are_reported_until_they_agree(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        watcher = scene.watcher(chain)
        await scene.catch_up(watcher)
        (sent,) = chain.mine((address("ulla"), COIN))
        chain.mine(blocks=FINAL_DEPTH)

        async def disagree() -> None:
            raise ChainDisagrees("one node has a transfer more")

        chain.on_transfers = disagree
        with pytest.raises(ChainDisagrees):
            await watcher.follow()
        (cursor,) = await list_cursors(scene.home)
        assert cursor.alert == "one node has a transfer more"
        assert await scene.status_of(sent) == "nothing"
        chain.on_transfers = None
        await scene.catch_up(watcher)
        (cursor,) = await list_cursors(scene.home)
        assert cursor.alert is None
        assert await scene.status_of(sent) == "pending"

    in_scene(scenario)


def test_a_chain_that_can_not_be_read_for_long_is_an_alert_until_it_can(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        watcher = scene.watcher(chain)
        await scene.catch_up(watcher)
        (sent,) = chain.mine((address("ulla"), COIN))
        chain.mine(blocks=FINAL_DEPTH)

        async def leave_out() -> None:
            raise ChainAway("the receipts of block 1 leave out logs")

        chain.on_transfers = leave_out
        for turn in range(ALERT_AFTER):
            assert (await list_cursors(scene.home))[0].alert is None, turn
            with pytest.raises(ChainAway):
                await watcher.follow()
        (cursor,) = await list_cursors(scene.home)
        assert cursor.alert == "the receipts of block 1 leave out logs"
        assert await scene.status_of(sent) == "nothing"
        chain.on_transfers = None
        await scene.catch_up(watcher)
        assert (await list_cursors(scene.home))[0].alert is None
        assert await scene.status_of(sent) == "pending"

    in_scene(scenario)
