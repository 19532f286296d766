"""How reconciliation reads chains: nodes that are away or behind, long stretches, many addresses."""

import asyncio

import pytest
from tests.reconciliation.conftest import (
    COIN,
    HOT,
    STRANGER,
    InReconciliation,
    ReconciliationScene,
    address,
)

from merchant_wallet.hot_wallet.stops import list_stops


def test_a_chain_that_is_away_is_reported_and_the_other_is_compared(
    in_reconciliation: InReconciliation,
) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        await scene.credit(30 * COIN)
        scene.chain.is_away = True
        document = await scene.reconcile()
        found = {each["chainType"]: each for each in document["chains"]}
        assert found["ERC20"]["cause"] == "no node answers"
        assert (found["TRC20"]["sound"], document["sound"]) == (True, False)
        # One chain alone says nothing about the whole custody, so nothing is stopped.
        assert document["custody"]["shortage"] is None
        assert await list_stops(scene.deposits.connection) == []
        rows = await scene.deposits.rows(
            "select is_sound, cause from reconciliation where chain = 'ERC20'"
            " order by reconciliation_no desc limit 1"
        )
        assert rows == [(False, "no node answers")]

    in_reconciliation(scenario)


def test_one_chain_alone_can_be_asked_for(in_reconciliation: InReconciliation) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        await scene.credit(30 * COIN)
        document = await scene.reconcile("TRC20")
        assert [each["chainType"] for each in document["chains"]] == ["TRC20"]
        assert document["custody"]["held"] is None
        with pytest.raises(LookupError):
            await scene.reconcile("BEP20")

    in_reconciliation(scenario)


def test_a_node_that_is_behind_itself_is_looked_at_again(in_reconciliation: InReconciliation) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        await scene.fund(100 * COIN)
        scene.chain.lag = 1
        assert (await scene.compare())["sound"] is True

    in_reconciliation(scenario)


def test_a_chain_without_a_past_is_compared_while_it_moves_on(in_reconciliation: InReconciliation) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        await scene.fund(100 * COIN)
        scene.chain.put((STRANGER, address("ulla"), 8 * COIN))
        await scene.watch()
        scene.chain.keeps_past = False
        # The search and the comparison read the final block first. Then one more block while balances are
        # read.
        scene.chain.grows = [
            (STRANGER, STRANGER, 1),
            (STRANGER, STRANGER, 1),
            (HOT, STRANGER, 2 * COIN),
            (address("ulla"), HOT, COIN),
        ]
        compared = await scene.compare()
        assert compared["unexplained"] == "0"

    in_reconciliation(scenario)


def test_two_at_once_find_every_movement_once(in_reconciliation: InReconciliation) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        scene.chain.put((HOT, STRANGER, 3 * COIN), (STRANGER, HOT, 5 * COIN))
        documents = await asyncio.gather(*(scene.reconcile() for _ in range(3)))
        assert {each["chains"][0]["unexplained"] for each in documents} == {"0"}
        rows = await scene.deposits.rows("select is_out, amount::bigint from custody_movement order by 1")
        assert rows == [(False, 5 * COIN), (True, 3 * COIN)]

    in_reconciliation(scenario)


def test_long_stretches_are_cut_until_the_node_answers(in_reconciliation: InReconciliation) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        for _ in range(40):
            scene.chain.put()
        tx_hash = scene.chain.put((STRANGER, HOT, 5))
        scene.chain.most_blocks = 3
        assert await scene.lines() == {"unknown in": "0.000005"}
        ((number,),) = await scene.deposits.rows(
            "select block_number from custody_cursor where chain = 'ERC20'"
        )
        assert number == len(scene.chain.blocks) - 1
        assert await scene.deposits.rows("select tx_hash from custody_movement") == [(tx_hash,)]

    in_reconciliation(scenario)


def test_two_thousand_addresses_are_asked_for_a_few_dozen_at_a_time(
    in_reconciliation: InReconciliation,
) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        await scene.deposits.rows(
            "insert into custody_address (chain, address, purpose, since_ms)"
            " select 'ERC20', substr(sha256(n::text::bytea), 1, 20), 'deposit', 0"
            " from generate_series(1, 2000) n"
        )
        scene.chain.asked.clear()
        compared = await scene.compare()
        assert compared["depositAddresses"] == 2000
        [(issued,)] = await scene.deposits.rows("select count(*) from issued_address")
        # The known addresses, the hot wallet, and issued addresses without any known deposit.
        assert len(scene.chain.asked) == 2001 + issued
        assert 1 < scene.chain.max_running <= 32

    in_reconciliation(scenario)
