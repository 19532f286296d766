"""Intake: what home has of final blocks reaches the cell once, also late, twice, or after a rewind."""

import asyncio

import msgspec
import pytest
from tests.deposits.conftest import (
    CAFE,
    COIN,
    MINIMUM,
    SHOP,
    START_MS,
    DepositScene,
    FakeChainReader,
    InScene,
    address,
)

from merchant_wallet.chains.protocol import Block, TokenTransfer
from merchant_wallet.deposits import chain_store, deposit_store, intake
from merchant_wallet.deposits.chain_store import Position, Received
from merchant_wallet.deposits.deposit_store import PositionMoved
from merchant_wallet.reporting.cells import reach_one
from merchant_wallet.reporting.deposits import DepositFilter, list_deposits

CHAIN = "ERC20"
CELL_ID = 0


def list_received(chain: FakeChainReader, first: int, last: int, owner: int = SHOP) -> list[Received]:
    """The transfers of these blocks, all of one merchant."""
    blocks = chain.blocks[first : last + 1]
    return [Received(owner, each) for block in blocks for each in chain.logs[block.hash]]


async def read_final(
    scene: DepositScene, chain: FakeChainReader, last: int, received: list[Received] | None = None
) -> None:
    """Home reads the blocks up to one as final. No cell takes anything in."""
    if await chain_store.read_cursor(scene.home, CHAIN) is None:
        await chain_store.begin_cursor(scene.home, CHAIN, chain.blocks[0], START_MS)
    cursor = await chain_store.read_cursor(scene.home, CHAIN)
    assert cursor is not None
    if received is None:
        received = list_received(chain, cursor.final_number + 1, last)
    await chain_store.move_final(scene.home, CHAIN, cursor, chain.blocks[last], received, START_MS)


async def take_in(scene: DepositScene) -> bool:
    return await intake.take_in(
        scene.home,
        scene.connection,
        CHAIN,
        cell_id=CELL_ID,
        minimum_units=MINIMUM,
        now_ms=START_MS,
    )


async def take_in_all(scene: DepositScene) -> int:
    """Take in until there is no more. Returns the number of turns."""
    turns = 1
    while await take_in(scene):
        turns += 1
    return turns


async def rewind(scene: DepositScene, block: Block) -> None:
    assert await chain_store.rewind_cursor(scene.home, CHAIN, block, START_MS)


async def credit(scene: DepositScene) -> int:
    return await scene.crediting_worker().credit_due()


async def count_untaken(scene: DepositScene) -> int:
    [(count,)] = await scene.home_rows(
        "select count(*) from chain_transfer where taken_ms is null and not is_gone"
    )
    return int(count)


def test_of_two_that_take_in_one_stores_and_the_other_drops(in_each_layout: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        await read_final(scene, chain, 0)
        await take_in(scene)
        chain.mine((address("ulla"), 5 * COIN))
        await read_final(scene, chain, 1)
        position = await deposit_store.read_position(scene.connection, CHAIN)
        assert position == Position(0, 0)
        offer = await chain_store.offer_transfers(scene.home, CHAIN, position, CELL_ID)
        assert offer is not None
        await take_in(scene)
        with pytest.raises(PositionMoved):
            await deposit_store.settle(
                scene.connection, CHAIN, position, offer, minimum_units=MINIMUM, now_ms=START_MS
            )
        assert await scene.rows("select status from deposit") == [("pending",)]
        await asyncio.gather(*[take_in(scene) for _ in range(3)])
        assert (await credit(scene), await credit(scene)) == (1, 0)
        assert (await scene.balances())["ulla"] == 5 * COIN

    in_each_layout(scenario)


def test_a_cell_that_was_away_catches_up_in_pages_of_whole_blocks(
    in_each_layout: InScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chain_store, "PAGE", 4)

    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        await read_final(scene, chain, 0)
        await take_in(scene)
        for number in range(1, 10):
            chain.mine(*[(address("ulla"), COIN)] * (number % 4))
            await read_final(scene, chain, number)
        assert await take_in_all(scene) > 2
        assert await deposit_store.read_position(scene.connection, CHAIN) == Position(9, 0)
        assert await count_untaken(scene) == 0
        assert await credit(scene) == 13
        assert (await scene.balances())["ulla"] == 13 * COIN
        await scene.expect_sound()

    in_each_layout(scenario)


def test_a_cell_that_begins_late_takes_in_what_home_already_has(in_each_layout: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        chain.mine((address("ulla"), 5 * COIN), blocks=3)
        await read_final(scene, chain, 3)
        await take_in_all(scene)
        assert (await credit(scene), await count_untaken(scene)) == (1, 0)

    in_each_layout(scenario)


def test_transfers_to_a_closed_book_are_offered_until_it_is_open_again(in_each_layout: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        await read_final(scene, chain, 0)
        await take_in(scene)
        chain.mine((address("ulla"), 5 * COIN))
        chain.mine((address("otto"), 3 * COIN))
        received = [*list_received(chain, 1, 1), *list_received(chain, 2, 2, CAFE)]
        await scene.rows("update book set is_open = false where merchant_id = %s", CAFE)
        await read_final(scene, chain, 2, received)
        await take_in_all(scene)
        assert (await credit(scene), await count_untaken(scene)) == (1, 1)
        await scene.rows("update book set is_open = true where merchant_id = %s", CAFE)
        await take_in_all(scene)
        assert (await credit(scene), await count_untaken(scene)) == (1, 0)
        assert (await scene.balances(CAFE))["otto"] == 3 * COIN
        await scene.expect_sound()

    in_each_layout(scenario)


def test_a_transfer_that_left_the_chain_before_its_cell_took_it_in_is_no_deposit(
    in_each_layout: InScene,
) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        (gone,) = chain.mine((address("ulla"), 5 * COIN))
        chain.mine(blocks=2)
        await read_final(scene, chain, 3)
        # The blocks are read again, and do not have it. Only then the cell begins.
        await rewind(scene, chain.blocks[0])
        await read_final(scene, chain, 3, [])
        await take_in_all(scene)
        assert (await credit(scene), await scene.status_of(gone)) == (0, "nothing")

    in_each_layout(scenario)


def test_a_transfer_that_came_again_in_another_block_meanwhile_is_not_marked_as_taken(
    in_each_layout: InScene,
) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        await read_final(scene, chain, 0)
        chain.mine((address("ulla"), 5 * COIN))
        await read_final(scene, chain, 1)
        offered = list_received(chain, 1, 1)
        again = [change(one.transfer, "ulla", "0xother") for one in offered]
        await rewind(scene, chain.blocks[0])
        await read_final(scene, chain, 1, again)
        await chain_store.mark_taken(scene.home, CHAIN, offered, START_MS)
        assert await count_untaken(scene) == 1
        await chain_store.mark_taken(scene.home, CHAIN, again, START_MS)
        assert await count_untaken(scene) == 0

    in_each_layout(scenario)


def test_a_cell_that_missed_two_rewinds_goes_back_to_the_earlier_one(in_each_layout: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        await read_final(scene, chain, 0)
        await take_in(scene)
        await scene.set_rate(None)
        (early,) = chain.mine((address("anna"), 5 * COIN))
        chain.mine(blocks=4)
        await read_final(scene, chain, 5)
        await take_in(scene)
        assert await scene.status_of(early) == "pending"
        # Block 1 is replaced by one without the transfer. Then later blocks are read again, too.
        await rewind(scene, chain.blocks[0])
        await read_final(scene, chain, 5, [])
        await rewind(scene, chain.blocks[4])
        await read_final(scene, chain, 5, [])
        await take_in(scene)
        assert (await scene.deposit(early)).cause == "its block 1 has left the chain"
        assert await deposit_store.read_position(scene.connection, CHAIN) == Position(5, 2)
        assert await scene.home_rows("select is_gone from chain_transfer") == [(True,)]

    in_each_layout(scenario)


def test_a_rewound_range_is_taken_in_as_far_as_it_was_read_again(in_each_layout: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        await read_final(scene, chain, 0)
        sent = [chain.mine((address("ulla"), COIN))[0] for _ in range(4)]
        await read_final(scene, chain, 4)
        await take_in(scene)
        await rewind(scene, chain.blocks[1])
        for _ in range(2):
            await take_in(scene)
            assert await deposit_store.read_position(scene.connection, CHAIN) == Position(1, 1)
            assert {await scene.status_of(each) for each in sent} == {"pending"}
        await read_final(scene, chain, 4)
        await take_in(scene)
        assert {await scene.status_of(each) for each in sent} == {"pending"}
        assert (await credit(scene), await count_untaken(scene)) == (4, 0)

    in_each_layout(scenario)


def change(transfer: TokenTransfer, name: str, block_hash: str) -> Received:
    """What a lying node says: the transfer went to another wallet, or was in another block."""
    owner = SHOP + (name == "otto")
    return Received(owner, msgspec.structs.replace(transfer, recipient=address(name), block_hash=block_hash))


@pytest.mark.parametrize("name", ["ulla", "otto"])
@pytest.mark.parametrize("has_place", [True, False])
@pytest.mark.parametrize("is_same_block", [True, False])
@pytest.mark.parametrize("was_credited", [True, False])
def test_a_node_that_changes_its_story_gets_one_credit(
    in_each_layout: InScene, name: str, has_place: bool, is_same_block: bool, was_credited: bool
) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        await read_final(scene, chain, 0)
        await take_in(scene)
        chain.mine((address("ulla"), 5 * COIN))
        (told,) = chain.logs[chain.blocks[1].hash]
        if not has_place:
            # TRON's transfers have no index in their block.
            told = msgspec.structs.replace(told, block_log_index=None)
        await read_final(scene, chain, 1, [Received(SHOP, told)])
        stories = [change(told, name, told.block_hash if is_same_block else "0xlie"), Received(SHOP, told)]
        if was_credited:
            await take_in(scene)
            await credit(scene)
        for story in stories:
            await rewind(scene, chain.blocks[0])
            await read_final(scene, chain, 1, [story])
            if is_same_block:
                kept = await scene.home_rows("select address, block_hash, is_gone from chain_transfer")
                assert kept == [(told.recipient, told.block_hash, False)]
            await take_in(scene)
            await credit(scene)
        assert await scene.rows("select count(*) from deposit_credit") == [(1,)]
        if was_credited or is_same_block:
            assert (await scene.balances())["ulla"] == 5 * COIN
        await scene.expect_sound()

    in_each_layout(scenario)


def test_a_transaction_that_another_cell_has_credited_from_another_block_waits_for_a_person(
    in_each_layout: InScene,
) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        await read_final(scene, chain, 0)
        (sent,) = chain.mine((address("ulla"), 5 * COIN))
        await chain_store.record_credits(scene.home, [(CHAIN, sent, "0xother")])
        await read_final(scene, chain, 1)
        await take_in(scene)
        assert await credit(scene) == 0
        (held,) = (
            await list_deposits(scene.home, reach_one(scene.connection), DepositFilter(statuses=("held",)))
        ).rows
        assert held.cause == "the transaction is credited from another block, 0xother"
        await deposit_store.decide(
            scene.connection, CHAIN, (sent, 0), is_released=True, actor="op", now_ms=START_MS
        )
        assert await credit(scene) == 1
        assert (await scene.balances())["ulla"] == 5 * COIN
        await scene.expect_sound()

    in_each_layout(scenario)


def test_an_address_that_was_issued_and_never_registered_has_no_deposit(in_each_layout: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        chain = FakeChainReader()
        await read_final(scene, chain, 0)
        await scene.home_rows("insert into issued_address values (%s, %s)", address("gap"), SHOP)
        chain.mine((address("gap"), 5 * COIN))
        await read_final(scene, chain, 1)
        await take_in_all(scene)
        assert await scene.rows("select count(*) from deposit") == [(0,)]
        assert await count_untaken(scene) == 0

    in_each_layout(scenario)
