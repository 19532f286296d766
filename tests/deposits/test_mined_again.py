"""Transactions that are mined again in another block after broken finality: credited once, or held.

After a final block has left the chain, an operator has the chain read again (`deposits rescan`).
"""

import asyncio
from typing import Any

import psycopg
import pytest
from tests.deposits.conftest import (
    COIN,
    FINAL_DEPTH,
    SENDER,
    START_MS,
    DepositScene,
    FakeChainReader,
    InScene,
    address,
)

from merchant_wallet.book.commands import CreditDeposit, DepositKey, Submission
from merchant_wallet.book.outcomes import DEPOSIT_ELSEWHERE, DEPOSIT_NOT_DUE, Credited
from merchant_wallet.chains.protocol import TokenTransfer
from merchant_wallet.deposits import chain_store, deposit_store
from merchant_wallet.reporting.cells import reach_one
from merchant_wallet.reporting.deposits import DepositFilter, list_deposits

FROM_OLD_BLOCK = "update deposit set log_index = block_log_index"


async def settle_and_credit(
    scene: DepositScene, chain: FakeChainReader, *sent: tuple[bytes, int]
) -> list[str]:
    """Transfers in one final block. Everything that can be credited is credited."""
    hashes = chain.mine(*sent)
    chain.mine(blocks=FINAL_DEPTH)
    await scene.catch_up(scene.watcher(chain))
    await scene.crediting_worker().credit_due()
    return hashes


async def rescan(scene: DepositScene, chain: FakeChainReader, after: int = 0) -> None:
    """What `deposits rescan` and the running service do."""
    block = await chain.block(after)
    assert block is not None
    assert await chain_store.rewind_cursor(scene.home, chain.name, block, START_MS)
    await scene.catch_up(scene.watcher(chain))
    await scene.crediting_worker().credit_due()


async def move(chain: FakeChainReader, transfer: TokenTransfer, **fields: Any) -> None:
    """Mine the transfer again, in the newest block."""
    block = chain.blocks[-1]
    values = {name: getattr(transfer, name) for name in TokenTransfer.__struct_fields__}
    values |= {"block_number": block.number, "block_hash": block.hash, "block_log_index": 7, **fields}
    chain.logs[block.hash].append(TokenTransfer(**values))


async def rows_of(scene: DepositScene, tx_hash: str) -> list[tuple[Any, ...]]:
    return await scene.rows(
        "select log_index, status, amount from deposit where tx_hash = %s order by log_index", tx_hash
    )


async def break_finality(chain: FakeChainReader) -> TokenTransfer:
    """Replace every block. Returns the one transfer that was in them."""
    ((transfer,)) = [log for block in chain.blocks for log in chain.logs[block.hash]]
    chain.reorganise(len(chain.blocks) - 1)
    return transfer


@pytest.mark.parametrize("name", ["ERC20", "TRC20"])
def test_what_is_mined_again_with_the_same_key_is_credited_once(in_each_layout: InScene, name: str) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader(name)
        (sent,) = await settle_and_credit(scene, chain, (address("ulla", name), 25 * COIN))
        transfer = await break_finality(chain)
        await move(chain, transfer)
        chain.mine(blocks=FINAL_DEPTH)
        for _ in range(2):
            await rescan(scene, chain)
            assert (await scene.balances())["ulla"] == 25 * COIN
        shown = await scene.deposit(sent)
        assert (shown.status, shown.cause) == ("credited", None)
        assert [log.tx_hash for log in chain.logs[chain.blocks[shown.block_number].hash]] == [sent]
        await scene.expect_sound()

    in_each_layout(scenario)


@pytest.mark.parametrize("name", ["ERC20", "TRC20"])
@pytest.mark.parametrize("is_released", [False, True])
def test_what_is_mined_again_with_another_key_waits_for_a_person(
    in_each_layout: InScene, name: str, is_released: bool
) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader(name)
        (sent,) = await settle_and_credit(scene, chain, (address("ulla", name), 25 * COIN))
        transfer = await break_finality(chain)
        await move(chain, transfer, log_index=3)
        chain.mine(blocks=FINAL_DEPTH)
        for _ in range(2):
            await rescan(scene, chain)
            assert (await scene.balances())["ulla"] == 25 * COIN
            assert await rows_of(scene, sent) == [(0, "credited", 25 * COIN), (3, "held", 25 * COIN)]
        (held,) = (
            await list_deposits(scene.home, reach_one(scene.connection), DepositFilter(statuses=("held",)))
        ).rows
        assert held.cause is not None
        assert "settled in another block" in held.cause
        decided = await deposit_store.decide(
            scene.connection, name, (sent, 3), is_released=is_released, actor="op", now_ms=START_MS
        )
        assert decided == held.merchant_id
        await scene.crediting_worker().credit_due()
        await rescan(scene, chain)
        expected = (2, "credited") if is_released else (1, "dropped")
        assert (await scene.balances())["ulla"] == 25 * COIN * expected[0]
        assert (await rows_of(scene, sent))[1][1] == expected[1]
        await scene.expect_sound()

    in_each_layout(scenario)


def test_a_deposit_that_waits_for_a_rate_is_held_when_its_block_leaves_the_chain(
    in_each_layout: InScene,
) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        await scene.set_rate(None)
        (sent,) = await settle_and_credit(scene, chain, (address("anna"), 25 * COIN))
        assert await scene.status_of(sent) == "pending"
        transfer = await break_finality(chain)
        chain.mine(blocks=FINAL_DEPTH)
        await rescan(scene, chain)
        await scene.set_rate(7 * 10**8)
        scene.clock.advance(60_000)
        await scene.crediting_worker().credit_due()
        shown = await scene.deposit(sent)
        assert (shown.status, shown.cause) == ("held", "its block 1 has left the chain")
        assert await scene.balances() == {}
        # It is mined again later: still a person must decide.
        await move(chain, transfer)
        chain.mine(blocks=FINAL_DEPTH)
        await rescan(scene, chain)
        assert await scene.status_of(sent) == "held"
        await deposit_store.decide(
            scene.connection, "ERC20", (sent, 0), is_released=True, actor="op", now_ms=START_MS
        )
        await scene.crediting_worker().credit_due()
        assert (await scene.balances())["anna"] == 175 * COIN
        await scene.expect_sound()

    in_each_layout(scenario)


@pytest.mark.parametrize("fields", [{"amount_units": 24 * COIN}, {"recipient": address("otto")}])
def test_a_credited_transfer_that_brings_something_else_now_says_so(
    in_each_layout: InScene, fields: dict[str, Any]
) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        (sent,) = await settle_and_credit(scene, chain, (address("ulla"), 25 * COIN))
        transfer = await break_finality(chain)
        await move(chain, transfer, **fields)
        chain.mine(blocks=FINAL_DEPTH)
        await rescan(scene, chain)
        shown = await scene.deposit(sent)
        assert (shown.status, shown.amount_units) == ("credited", 25 * COIN)
        assert shown.cause is not None
        assert " USDT to 0x" in shown.cause
        assert (await scene.balances())["ulla"] == 25 * COIN
        await scene.expect_sound()

    in_each_layout(scenario)


def test_a_credited_transfer_that_is_nowhere_any_more_says_so_until_it_comes_again(
    in_each_layout: InScene,
) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        (sent,) = await settle_and_credit(scene, chain, (address("ulla"), 25 * COIN))
        transfer = await break_finality(chain)
        chain.mine(blocks=FINAL_DEPTH)
        await rescan(scene, chain)
        assert (await scene.deposit(sent)).cause == "its block 1 has left the chain"
        await move(chain, transfer)
        chain.mine(blocks=FINAL_DEPTH)
        await rescan(scene, chain)
        shown = await scene.deposit(sent)
        assert (shown.status, shown.cause) == ("credited", None)
        assert (await scene.balances())["ulla"] == 25 * COIN

    in_each_layout(scenario)


def test_a_deposit_with_a_name_of_before_is_known_again_and_never_credited_twice(
    in_each_layout: InScene,
) -> None:
    """Old keys have the index in the block: here two transfers of one transaction, at 5 and 6."""

    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        chain.mine()
        block = chain.blocks[-1]
        for place, name in enumerate(("ulla", "late")):
            chain.put(block, "0xold", address(name), 25 * COIN, place + 5)
        chain.mine(blocks=FINAL_DEPTH)
        await scene.catch_up(scene.watcher(chain))
        await scene.rows(FROM_OLD_BLOCK)
        await scene.crediting_worker().credit_due()
        assert await rows_of(scene, "0xold") == [(5, "credited", 25 * COIN)]
        await scene.register("late", "USDT")
        # In the same block the first is the same transfer, and the other one is new.
        await rescan(scene, chain)
        assert await rows_of(scene, "0xold") == [(1, "credited", 25 * COIN), (5, "credited", 25 * COIN)]
        assert {name: (await scene.balances())[name] for name in ("ulla", "late")} == {
            "ulla": 25 * COIN,
            "late": 25 * COIN,
        }
        # In another block it can't be known which is which: both wait.
        logs = chain.logs[block.hash]
        chain.reorganise(len(chain.blocks) - 1)
        for log in logs:
            await move(chain, log, block_log_index=(log.block_log_index or 0) + 20)
        chain.mine(blocks=FINAL_DEPTH)
        await rescan(scene, chain)
        assert (await scene.balances())["ulla"] == 25 * COIN
        assert (await scene.balances())["late"] == 25 * COIN
        assert [row[:2] for row in await rows_of(scene, "0xold")] == [
            (0, "held"),
            (1, "credited"),
            (5, "credited"),
        ]
        await scene.expect_sound()

    in_each_layout(scenario)


def test_another_transfer_of_a_transaction_that_was_mined_again_waits_for_a_person(
    in_each_layout: InScene,
) -> None:
    """It went to an address that belonged to nobody when the first transfer was credited."""

    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        (sent,) = await settle_and_credit(scene, chain, (address("ulla"), 25 * COIN))
        transfer = await break_finality(chain)
        await move(chain, transfer)
        await move(chain, transfer, log_index=1, block_log_index=8, recipient=address("late"))
        chain.mine(blocks=FINAL_DEPTH)
        await rescan(scene, chain)
        await scene.register("late", "USDT")
        await rescan(scene, chain)
        assert await rows_of(scene, sent) == [(0, "credited", 25 * COIN), (1, "held", 25 * COIN)]
        await deposit_store.decide(
            scene.connection, "ERC20", (sent, 1), is_released=True, actor="op", now_ms=START_MS
        )
        await scene.crediting_worker().credit_due()
        assert (await scene.balances())["late"] == 25 * COIN
        await scene.expect_sound()

    in_each_layout(scenario)


def test_after_a_reorganisation_a_seen_transfer_may_go_to_another_merchant(
    in_each_layout: InScene,
) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        watcher = scene.watcher(chain)
        (sent,) = chain.mine((address("ulla"), 25 * COIN))
        await scene.catch_up(watcher)
        (transfer,) = chain.logs[chain.blocks[-1].hash]
        chain.reorganise(1)
        await move(chain, transfer, recipient=address("otto"), amount_units=24 * COIN)
        await scene.catch_up(watcher)
        shown = await scene.deposit(sent)
        assert (shown.merchant_id, shown.amount_units, shown.status) == (1002, 24 * COIN, "seen")
        chain.mine(blocks=FINAL_DEPTH)
        await scene.catch_up(watcher)
        await scene.crediting_worker().credit_due()
        assert (await scene.balances(1002))["otto"] == 24 * COIN
        await scene.expect_sound()

    in_each_layout(scenario)


async def put_second(scene: DepositScene, sent: str, block_hash: str) -> CreditDeposit:
    """A second deposit of a transaction, in another block, as if the watcher had accepted it."""
    key = DepositKey("ERC20", sent, 1)
    await scene.rows(
        "insert into deposit (merchant_id, chain, tx_hash, log_index, block_number, block_hash, sender,"
        " address, user_id, amount, status, seen_ms, final_ms)"
        " select merchant_id, chain, tx_hash, 1, 99, %s, %s, address, user_id, amount, 'pending', 1, 1"
        " from deposit where tx_hash = %s",
        block_hash,
        SENDER,
        sent,
    )
    return CreditDeposit(key, address("ulla"), 25 * COIN, False)


def test_the_book_refuses_what_a_transaction_brought_in_another_block(in_each_layout: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        (sent,) = await settle_and_credit(scene, chain, (address("ulla"), 25 * COIN))
        second = await put_second(scene, sent, "0xother")
        assert await scene.book.submit(1001, Submission(second)) == DEPOSIT_ELSEWHERE
        await scene.rows("update deposit set status = 'held' where log_index = 1")
        assert await scene.book.submit(1001, Submission(second)) == DEPOSIT_NOT_DUE
        await deposit_store.decide(
            scene.connection, "ERC20", (sent, 1), is_released=True, actor="op", now_ms=START_MS
        )
        assert isinstance(await scene.book.submit(1001, Submission(second)), Credited)
        await scene.expect_sound()

    in_each_layout(scenario)


def test_of_two_blocks_in_one_batch_the_book_credits_one(in_each_layout: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        (sent,) = chain.mine((address("ulla"), 25 * COIN))
        chain.mine(blocks=FINAL_DEPTH)
        await scene.catch_up(scene.watcher(chain))
        first = CreditDeposit(DepositKey("ERC20", sent, 0), address("ulla"), 25 * COIN, False)
        second = await put_second(scene, sent, "0xother")
        outcomes = await asyncio.gather(
            *[scene.book.submit(1001, Submission(each)) for each in (first, second)]
        )
        assert isinstance(outcomes[0], Credited)
        assert outcomes[1] == DEPOSIT_ELSEWHERE
        await scene.expect_sound()

    in_each_layout(scenario)


@pytest.mark.parametrize(
    ("statement", "constraint"),
    [
        ("update deposit_credit set block_hash = null", "deposit_credit_from"),
        ("update deposit_credit set block_hash = '0xother'", "deposit_credit_one_block"),
        (
            "insert into deposit (merchant_id, chain, tx_hash, log_index, block_log_index, block_number,"
            " block_hash, sender, address, amount, status, seen_ms, final_ms) select merchant_id, chain,"
            " tx_hash, 9, block_log_index, block_number, block_hash, sender, address, amount, 'pending', 1, 1"
            " from deposit where log_index = 0",
            "deposit_log",
        ),
        ("update deposit set status = 'dropped' where log_index = 1", "deposit_decided"),
    ],
)
def test_the_database_refuses_a_second_block_and_a_second_name(
    in_each_layout: InScene, statement: str, constraint: str
) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        (sent,) = await settle_and_credit(scene, chain, (address("ulla"), 25 * COIN))
        await put_second(scene, sent, "0xother")
        with pytest.raises(psycopg.errors.IntegrityError) as refused:
            await scene.connection.execute(statement.encode())
        assert refused.value.diag.constraint_name == constraint

    in_each_layout(scenario)
