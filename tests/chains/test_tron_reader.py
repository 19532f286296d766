"""The TRON chain as deposits and reconciliation read it, from honest and from faulty nodes."""

from typing import Any

import pytest
from coincurve import PrivateKey
from devnet.tron_network import address_of
from tests.chains.tron_faults import go_away, without_records
from tests.chains.tron_scene import OTHER, RECIPIENT, WALLET_SUN, WALLET_UNITS, TronScene, key_of
from tests.rows import each_row

from merchant_wallet.base.chains import TRC20
from merchant_wallet.chains import transport
from merchant_wallet.chains.cold import read_moved
from merchant_wallet.chains.protocol import ChainAway, ChainDisagrees, TokenTransfer
from merchant_wallet.chains.tron.chain import TronReader


def payer_of(scene: TronScene) -> PrivateKey:
    """An account with tokens that is no wallet of ours."""
    key = key_of("payer")
    scene.network.fund(address_of(key), units=WALLET_UNITS, sun=WALLET_SUN)
    scene.network.settle()
    return key


def scan(scene: TronScene, first: int | None = None) -> list[TokenTransfer]:
    fake = scene.network.fake
    start = fake.head.number if first is None else first
    return scene.play(scene.chain.transfers(start, fake.head.number))


def test_every_transfer_has_its_block_and_log_index(tron: TronScene) -> None:
    payer, fake = payer_of(tron), tron.network.fake
    first = fake.head.number + 1
    hashes = [tron.network.pay(payer, RECIPIENT, 5), tron.network.pay(payer, OTHER, 6)]
    tron.network.mine()
    hashes.append(tron.network.pay(payer, RECIPIENT, 7))
    tron.network.settle()
    sender = address_of(payer)
    expected = [
        (hashes[0], first, RECIPIENT, 5),
        (hashes[1], first, OTHER, 6),
        (hashes[2], first + 1, RECIPIENT, 7),
    ]
    assert scan(tron, first) == [
        TokenTransfer(TRC20, tx_hash, 0, number, fake.blocks[number].id, sender, recipient, units)
        for tx_hash, number, recipient, units in expected
    ]


def test_a_reader_needs_no_key(tron: TronScene) -> None:
    reader = TronReader(tron.rules, tron.chain.nodes)
    assert tron.play(reader.balance(tron.wallet)) == WALLET_UNITS
    assert tron.play(reader.coin_balance(tron.wallet)) == WALLET_SUN
    assert tron.play(reader.coin_balance(OTHER)) == 0


def test_transfers_show_before_they_are_final(tron: TronScene) -> None:
    payer = payer_of(tron)
    tx_hash = tron.network.pay(payer, RECIPIENT, 5)
    tron.network.mine()
    number = tron.network.fake.head.number
    assert [transfer.tx_hash for transfer in scan(tron, number - 2)] == [tx_hash]
    assert tron.play(tron.chain.final()).number == number - tron.network.fake.solid_lag


def test_other_tokens_and_failed_transfers_never_appear(tron: TronScene) -> None:
    payer, network = payer_of(tron), tron.network
    fake = network.deploy()
    first = network.fake.head.number + 1
    network.pay(network.owner_key, RECIPIENT, 5, contract=fake)
    network.pay(payer, RECIPIENT, WALLET_UNITS * 2)
    network.settle()
    held = network.fake.blocks[first]
    assert [record["receipt"]["result"] for record in held.records] == ["SUCCESS", "REVERT"]
    assert scan(tron, first) == []


def test_a_failed_transfer_moved_nothing_whatever_logs_a_node_adds(tron: TronScene) -> None:
    def fail(path: str, question: dict[str, Any], answer: Any) -> Any:
        if not path.endswith("gettransactioninfobyblocknum"):
            return answer
        return [{**record, "result": "FAILED", "receipt": {"result": "REVERT"}} for record in answer]

    payer = payer_of(tron)
    first = tron.network.fake.head.number + 1
    tron.network.pay(payer, RECIPIENT, 5)
    tron.network.settle()
    for server in tron.network.servers:
        server.switches.edit = fail
    assert scan(tron, first) == []


def test_a_fee_taking_transfer_is_two_logs_of_what_really_moved(tron: TronScene) -> None:
    payer, network = payer_of(tron), tron.network
    network.set_fee(10, 5)
    network.mine()
    network.pay(payer, RECIPIENT, 1_000_000)
    network.settle()
    transfers = scan(tron, network.fake.solid_number)
    assert {(one.log_index, one.recipient, one.amount_units) for one in transfers} == {
        (0, network.owner, 1_000),
        (1, RECIPIENT, 999_000),
    }


def test_final_is_what_two_nodes_have(tron: TronScene) -> None:
    tron.network.mine(10)
    fake, [_, second] = tron.network.fake, tron.network.servers
    second.switches.lag = 2
    final = tron.play(tron.chain.final())
    block = fake.blocks[fake.solid_number - 2]
    assert (final.number, final.hash, final.parent_hash, final.time_ms) == (
        block.number,
        block.id,
        block.parent,
        block.time_ms,
    )
    assert tron.play(tron.chain.head()).number == fake.head.number


def test_one_answer_of_two_makes_nothing_final(tron: TronScene) -> None:
    tron.network.servers[1].switches.edit = lambda path, question, answer: b"busy"
    with pytest.raises(ChainAway, match="not a TRON answer"):
        tron.play(tron.chain.final())
    with pytest.raises(ChainAway):
        scan(tron)


def test_nodes_with_different_final_blocks_disagree(tron: TronScene) -> None:
    def fork(path: str, question: dict[str, Any], answer: Any) -> Any:
        if isinstance(answer, dict) and "blockID" in answer:
            return {**answer, "blockID": answer["blockID"][:16] + "cd" * 24}
        return answer

    tron.network.servers[1].switches.edit = fork
    with pytest.raises(ChainDisagrees):
        tron.play(tron.chain.final())


def test_nodes_that_tell_of_different_transfers_disagree(tron: TronScene) -> None:
    def inflate(path: str, question: dict[str, Any], answer: Any) -> Any:
        if not path.endswith("gettransactioninfobyblocknum"):
            return answer
        return [
            {**record, "log": [{**log, "data": f"{10**12:064x}"} for log in record["log"]]}
            for record in answer
        ]

    payer = payer_of(tron)
    first = tron.network.fake.head.number + 1
    tron.network.pay(payer, RECIPIENT, 5)
    tron.network.settle()
    for server in tron.network.servers:
        server.switches.edit = inflate
        with pytest.raises(ChainDisagrees):
            scan(tron, first)
        server.switches.edit = None


def test_a_block_that_was_shown_wrongly_once_is_read_anew(tron: TronScene) -> None:
    def empty(path: str, question: dict[str, Any], answer: Any) -> Any:
        if not path.endswith("getblockbylimitnext"):
            return answer
        return {"block": [{**block, "transactions": []} for block in answer["block"]]}

    payer = payer_of(tron)
    first = tron.network.fake.head.number + 1
    hashes = [tron.network.pay(payer, RECIPIENT, 5)]
    tron.network.settle()
    _, second = tron.network.servers
    second.switches.edit = empty
    with pytest.raises(ChainAway, match="shows other results than those of block"):
        scan(tron, first)
    second.switches.edit = None
    assert [each.tx_hash for each in scan(tron, first)] == hashes
    # A transfer that is left out of the block and of its results shows only beside another node.
    hashes += [tron.network.pay(payer, RECIPIENT, 6), tron.network.pay(payer, RECIPIENT, 7)]
    tron.network.settle()
    second.switches.hidden = {hashes[-1]}
    with pytest.raises(ChainDisagrees):
        scan(tron, first)
    second.switches.hidden = set()
    assert [each.tx_hash for each in scan(tron, first)] == hashes


def test_no_single_node_says_where_a_transaction_is_and_so_that_it_moved_nothing(tron: TronScene) -> None:
    def displace(path: str, question: dict[str, Any], answer: Any) -> Any:
        is_record = path.endswith("gettransactioninfobyid") and isinstance(answer, dict) and "id" in answer
        return {**answer, "blockNumber": 1} if is_record else answer

    payer = payer_of(tron)
    tx_hash = tron.network.pay(payer, RECIPIENT, 5)
    tron.network.settle()
    for server in tron.network.servers:
        server.switches.edit = displace
        with pytest.raises(ChainDisagrees, match="in different blocks"):
            tron.play(read_moved(tron.chain, tx_hash))
        server.switches.edit = without_records
        assert tron.play(read_moved(tron.chain, tx_hash)) is None
        server.switches.edit = None
    assert [each.amount_units for each in tron.play(read_moved(tron.chain, tx_hash)) or ()] == [5]


def test_a_node_that_has_thrown_the_records_away_is_no_source(tron: TronScene) -> None:
    payer = payer_of(tron)
    first = tron.network.fake.head.number + 1
    tron.network.pay(payer, RECIPIENT, 5)
    tron.network.settle()
    forgetful, _ = tron.network.servers
    forgetful.switches.keeps_no_records = True
    with pytest.raises(ChainAway, match="does not keep"):
        scan(tron, first)
    forgetful.switches.keeps_no_records = False
    forgetful.switches.pruned_below = first + 1
    with pytest.raises(ChainAway, match="does not keep"):
        scan(tron, first)


def test_unconfirmed_transfers_come_from_a_node_that_has_them(tron: TronScene) -> None:
    payer = payer_of(tron)
    tx_hash = tron.network.pay(payer, RECIPIENT, 5)
    tron.network.mine()
    tron.network.servers[0].switches.keeps_no_records = True
    assert [transfer.tx_hash for transfer in scan(tron)] == [tx_hash]


def test_garbage_in_a_log_is_the_nodes_fault_and_the_next_is_asked(tron: TronScene) -> None:
    def spoil(path: str, question: dict[str, Any], answer: Any) -> Any:
        if not path.endswith("gettransactioninfobyblocknum"):
            return answer
        return [{**record, "log": [{"address": "zz", "topics": ["??"], "data": "0x"}]} for record in answer]

    payer = payer_of(tron)
    tx_hash = tron.network.pay(payer, RECIPIENT, 5)
    tron.network.mine()
    tron.network.servers[0].switches.edit = spoil
    assert [transfer.tx_hash for transfer in scan(tron)] == [tx_hash]


def test_a_reorganisation_shows_in_the_blocks_parents(tron: TronScene) -> None:
    fake = tron.network.fake
    tron.network.mine(2)
    number = fake.head.number
    before = tron.play(tron.chain.block(number))
    fake.reorganise(2)
    assert tron.play(tron.chain.block(number)) is None
    tron.network.mine(2)
    after, parent = tron.play(tron.chain.block(number)), tron.play(tron.chain.block(number - 1))
    assert before is not None
    assert after is not None
    assert parent is not None
    assert before.hash != after.hash
    assert after.parent_hash == parent.hash != before.parent_hash


def test_a_node_that_is_asked_again_after_a_while_shows_the_branch_of_now(
    tron: TronScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "COOLDOWN_S", 0.0)
    fake, [first, _] = tron.network.fake, tron.network.servers
    tron.network.mine(2)
    number = fake.head.number
    go_away(first)
    assert tron.play(tron.chain.head()) == tron.play(tron.chain.block(number))
    first.switches.edit = None
    fake.reorganise(2)
    tron.network.mine(3)
    assert tron.play(tron.chain.head()).hash == fake.head.id
    go_away(first)
    shown = tron.play(tron.chain.block(number))
    assert shown is not None
    assert shown.hash == fake.blocks[number].id


def test_a_balance_at_a_final_block_leaves_out_what_is_not_final(tron: TronScene) -> None:
    payer = payer_of(tron)
    tron.network.pay(payer, RECIPIENT, 5)
    tron.network.mine()
    final = tron.play(tron.chain.final())
    assert tron.play(tron.chain.balance(RECIPIENT)) == 5
    assert tron.play(tron.chain.balance(RECIPIENT, final)) == 0
    tron.network.settle()
    assert tron.play(tron.chain.balance(RECIPIENT, final)) == 5


def test_a_long_range_is_read_in_order(tron: TronScene) -> None:
    payer = payer_of(tron)
    hashes = []
    for units in range(1, 21):
        hashes.append(tron.network.pay(payer, RECIPIENT, units))
        tron.network.mine()
    tron.network.settle()
    transfers = scan(tron, 0)
    assert [transfer.tx_hash for transfer in transfers] == hashes
    assert [transfer.amount_units for transfer in transfers] == list(range(1, 21))


@each_row("wrong", [{"blockTimeStamp": 7}, {"blockNumber": 7}, {"id": "ab" * 32}])
def test_results_of_a_block_of_another_branch_are_not_taken(tron: TronScene, wrong: dict[str, Any]) -> None:
    def replace(path: str, question: dict[str, Any], answer: Any) -> Any:
        return [{**each, **wrong} for each in answer] if path.endswith("blocknum") else answer

    payer = payer_of(tron)
    tron.network.pay(payer, RECIPIENT, 5)
    tron.network.mine()
    for server in tron.network.servers:
        server.switches.edit = replace
    with pytest.raises(ChainAway, match="shows other results than those of block"):
        scan(tron)


def test_a_node_that_serves_no_ranges_is_asked_block_by_block(tron: TronScene) -> None:
    payer = payer_of(tron)
    first = tron.network.fake.head.number + 1
    tron.network.pay(payer, RECIPIENT, 5)
    tron.network.settle()
    tron.network.pay(payer, RECIPIENT, 6)
    tron.network.mine()
    for server in tron.network.servers:
        server.switches.lacks = {"getblockbylimitnext"}
    assert [each.amount_units for each in scan(tron, first)] == [5, 6]
