"""Surveys of balances find deposits that no log shows, and addresses with more or less than expected."""

import pytest
from tests.reconciliation.conftest import (
    COIN,
    HOT,
    SHOP,
    STRANGER,
    InReconciliation,
    Ledger,
    ReconciliationScene,
    address,
)

from merchant_wallet.base.addresses import format_address
from merchant_wallet.chains.protocol import Block, ChainAway, TokenTransfer
from merchant_wallet.custody.records import read_survey


def hide(chain: Ledger) -> None:
    """From now on the chain's logs lack the newest block's transfers. Its balances have them."""
    hidden = len(chain.blocks) - 1
    honest = chain.transfers

    async def transfers(first: int, last: int) -> list[TokenTransfer]:
        return [each for each in await honest(first, last) if each.block_number != hidden]

    chain.transfers = transfers  # type: ignore[method-assign] # This chain is to lie.


@pytest.mark.parametrize("name", ["ERC20", "TRC20"])
def test_a_deposit_that_no_node_shows_is_found_by_its_balance(
    in_reconciliation: InReconciliation, name: str
) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        chain = scene.chains[name]
        chain.put((STRANGER, address("ulla", name), 25 * COIN))
        hide(chain)
        await scene.watch()
        found = await scene.compare(name)
        assert (found["sound"], found["unexplained"], found["unswept"]) == (False, "25", "25")
        assert found["addresses"] == [
            {"address": format_address(name, address("ulla", name)), "holds": "25", "should": "0"}
        ]
        assert found["surveyedMs"] == scene.deposits.clock()

    in_reconciliation(scenario)


def test_a_second_deposit_that_no_node_shows_is_named_by_its_address(
    in_reconciliation: InReconciliation,
) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        scene.chain.put((STRANGER, address("ulla"), 25 * COIN))
        scene.chain.put((STRANGER, address("otto"), 5 * COIN))
        await scene.watch()
        assert (await scene.compare())["addresses"] == []
        scene.chain.put((STRANGER, address("ulla"), 3 * COIN))
        hide(scene.chain)
        await scene.watch()
        found = await scene.compare()
        assert (found["sound"], found["unexplained"]) == (False, "3")
        assert [(each["holds"], each["should"]) for each in found["addresses"]] == [("28", "25")]

    in_reconciliation(scenario)


def test_an_open_sweep_hides_no_theft_from_its_address(in_reconciliation: InReconciliation) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        for name in ("ulla", "otto"):
            scene.chain.put((STRANGER, address(name), 25 * COIN))
        await scene.watch()
        await scene.compare()
        for name in ("ulla", "otto"):
            await scene.deposits.rows(
                "insert into sweep (chain, address, merchant_id, account_no, branch, address_index, wallet,"
                " amount, coin_price, top_up, top_up_fee_limit, token_fee_limit, budget, actor, opened_ms,"
                " step) values ('ERC20', %s, %s, 0, 0, 0, %s, %s, 1, 1, 1, 1, 2, 'tests', 1, 'token')",
                *(address(name), SHOP, HOT, 25 * COIN),
            )
        # Otto's sweep has moved everything. Ulla's moves nothing any more.
        scene.chain.put((address("otto"), HOT, 25 * COIN))
        await scene.compare()
        scene.chain.put((address("ulla"), STRANGER, 10 * COIN))
        hide(scene.chain)
        found = await scene.compare()
        assert found["unexplained"] == "-10"
        assert found["addresses"] == [
            {"address": format_address("ERC20", address("ulla")), "holds": "15", "should": "25"}
        ]

    in_reconciliation(scenario)


def test_all_addresses_are_looked_at_a_few_at_a_time(in_reconciliation: InReconciliation) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        scene.survey_size = 2
        last = max(address(name) for name in ("anna", "ulla", "otto", "shop", "cafe"))
        scene.chain.put((STRANGER, last, 25 * COIN))
        hide(scene.chain)
        scene.chain.asked.clear()
        rounds = 0
        while (await scene.compare())["sound"]:
            rounds += 1
        assert 0 < rounds <= 5
        assert last in scene.chain.asked
        second = await scene.reconciler().reconcile("ERC20", surveys_all=True)
        assert second["chains"][0]["surveyedMs"] == scene.deposits.clock()

    in_reconciliation(scenario)


def test_a_survey_of_every_address_begins_at_the_first_wherever_the_worker_is(
    in_reconciliation: InReconciliation,
) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        scene.survey_size = 2
        first = min(address(name) for name in ("anna", "ulla", "otto", "shop", "cafe"))
        scene.chain.asked.clear()
        while first not in scene.chain.asked:
            assert (await scene.compare())["sound"]
        scene.chain.put((STRANGER, first, 25 * COIN))
        hide(scene.chain)
        scene.deposits.clock.advance(1000)
        document = await scene.reconciler().reconcile("ERC20", surveys_all=True)
        found = document["chains"][0]
        assert (found["sound"], found["unexplained"]) == (False, "25")
        assert [each["holds"] for each in found["addresses"]] == ["25"]
        assert found["surveyedMs"] == scene.deposits.clock()

    in_reconciliation(scenario)


def test_a_survey_that_fails_half_way_is_not_a_whole_one(in_reconciliation: InReconciliation) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        scene.survey_size = 2
        before = (await scene.compare())["surveyedMs"]
        scene.deposits.clock.advance(1000)
        told = scene.chain.balance

        async def balance(address: bytes, block: Block | None = None) -> int:
            if len(scene.chain.asked) >= 3:
                raise ChainAway("no node answers")
            return await told(address, block)

        scene.chain.asked.clear()
        scene.chain.balance = balance  # type: ignore[method-assign] # This chain is to go away.
        document = await scene.reconciler().reconcile("ERC20", surveys_all=True)
        assert (document["sound"], document["chains"][0]["cause"]) == (False, "no node answers")
        assert await read_survey(scene.deposits.connection, "ERC20") == before

    in_reconciliation(scenario)


def test_a_held_deposit_counts_once_at_its_address(in_reconciliation: InReconciliation) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        scene.chain.put((STRANGER, address("ulla"), 25 * COIN))
        await scene.deposits.catch_up(scene.deposits.watcher(scene.chain))  # type: ignore[arg-type] # They read alike.
        await scene.deposits.rows("update deposit set status = 'held', cause = 'a person must look'")
        scene.chain.put((STRANGER, address("otto"), 3 * COIN))
        hide(scene.chain)
        await scene.deposits.catch_up(scene.deposits.watcher(scene.chain))  # type: ignore[arg-type] # They read alike.
        found = await scene.compare()
        assert {line["kind"]: line["effect"] for line in found["lines"]} == {"deposit held": "25"}
        assert found["unexplained"] == "3"
        assert found["addresses"] == [
            {"address": format_address("ERC20", address("otto")), "holds": "3", "should": "0"}
        ]

    in_reconciliation(scenario)
