"""The recorded nodes of the deposit benchmark: same forms as the development nodes, and every deposit is
credited.
"""

import asyncio
import json
from typing import Any

import pytest
from bench.database import open_bench_database
from bench.deposits import OURS, make_record, open_merchant, scan
from bench.plans import Choice
from bench.recorded_nodes import RecordedEvm, RecordedTron, serve
from devnet.evm_node import EvmDevnet
from tests.chains.tron_scene import RECIPIENT, open_tron

from merchant_wallet.base.chains import ERC20, TRC20

TRANSFERS = 250
OWN = [bytes([number]) * 20 for number in range(3)]


def form_of(answer: Any) -> Any:
    """The structure of an answer without its values. A list's entries all have the same form."""
    if isinstance(answer, dict):
        return {name: form_of(value) for name, value in answer.items()}
    if isinstance(answer, list):
        return [form_of(answer[0])] if answer else []
    return type(answer)


def ask_evm(method: str, *params: object) -> Any:
    question = {"id": 1, "method": method, "params": params}
    answer = RecordedEvm(make_record(ERC20, OWN, TRANSFERS)).answer("/", question)
    return json.loads(answer)["result"]


def ask_tron(path: str, **question: object) -> Any:
    return json.loads(RecordedTron(make_record(TRC20, OWN, TRANSFERS)).answer(path, question))


def test_the_recorded_evm_node_answers_in_the_forms_of_a_real_one() -> None:
    with EvmDevnet() as node:
        token = node.deploy()
        token.give(RECIPIENT, 5)
        block = node.ask("eth_getBlockByNumber", "latest", False)
        receipts = node.ask("eth_getBlockReceipts", "latest")
    recorded = form_of(ask_evm("eth_getBlockByNumber", "0x1", False))
    assert recorded.items() <= form_of(block).items()
    (told,) = form_of(ask_evm("eth_getBlockReceipts", "0x1"))
    (real,) = form_of(receipts)
    assert told.items() <= real.items()
    assert told["logs"] == real["logs"]


def test_the_recorded_tron_node_answers_in_the_forms_of_the_double() -> None:
    with open_tron(1) as scene:
        network = scene.network
        network.pay(network.owner_key, RECIPIENT, 5)
        network.settle()
        api, number = network.servers[0].api, network.fake.solid_number
        block = api.answer("/walletsolidity/getblock", {"detail": False})
        became = api.answer("/walletsolidity/gettransactioninfobyblocknum", {"num": number})
    assert form_of(ask_tron("/walletsolidity/getblock", detail=False)) == form_of(block)
    recorded = ask_tron("/walletsolidity/gettransactioninfobyblocknum", num=1)
    assert len(became) == 1
    assert form_of(recorded) == form_of(became)


@pytest.mark.parametrize("chain", [ERC20, TRC20])
def test_of_a_record_exactly_what_is_ours_is_credited(database_url: str, chain: str) -> None:
    async def scenario() -> None:
        async with open_bench_database(database_url) as database:
            addresses = await open_merchant(database, 1, 3)
            record = make_record(chain, [pair[chain == TRC20] for pair in addresses], TRANSFERS)
            async with await serve(record) as server:
                found = await scan(database, record, server.sockets[0].getsockname()[1])
            assert (found.transfers, found.credits) == (TRANSFERS, -(-TRANSFERS // OURS))
            held = await database.count(b"select sum(balance) from account where kind = 'subuser'")
            sent = [units for block in record.blocks for _, units in block]
            assert held == sum(sent[::OURS])

    asyncio.run(scenario())


def test_rows_of_chains_are_picked_by_their_names_and_left_out_of_a_quick_run() -> None:
    one = Choice(quick=False, large=False, only="payouts/ERC20", seconds=1)
    assert (one.payouts, one.deposits, one.is_empty) == ((ERC20,), (), False)
    both = Choice(quick=False, large=False, only="TRC20", seconds=1)
    assert (both.payouts, both.deposits, both.callbacks) == ((TRC20,), (TRC20,), False)
    assert Choice(quick=True, large=False, only="payouts", seconds=1).is_empty
