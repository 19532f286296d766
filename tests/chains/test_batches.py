"""JSON-RPC batches: each answer is matched to its request, or the whole batch counts as no answer."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.chains.evm_liars import play
from tests.chains.evm_scene import HELD, RECIPIENT, WALLET, EvmScene
from tests.chains.node_proxy import NO_BATCHES, Forward, NodeProxy, Raw, Refusal, Silence
from tests.rows import each_row

from merchant_wallet.chains.evm.chain import EvmChain
from merchant_wallet.chains.jsonrpc import CallReverted, JsonRpc, read_quantity
from merchant_wallet.chains.protocol import ChainAway, TokenTransfer
from merchant_wallet.chains.transport import Endpoints, NodeFailed, NodeRefused
from merchant_wallet.custody.balances import CustodyReader, read_balances, read_block_ranges

RECEIPTS = "eth_getBlockReceipts"

Answer = Callable[[list[dict[str, Any]]], bytes]


async def ask(answer: Answer, count: int = 3) -> list[int | CallReverted]:
    """The results read from a node that answers a batch like this."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        body = answer(json.loads(await reader.readexactly(length)))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(body) + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    rpc = JsonRpc(Endpoints([f"http://127.0.0.1:{port}"]))
    try:
        return await rpc.ask_calls(0, read_quantity, "eth_call", [[number] for number in range(count)])
    finally:
        await rpc.endpoints.close()
        server.close()
        await server.wait_closed()


def answers_of(questions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"jsonrpc": "2.0", "id": each["id"], "result": hex(each["params"][0])} for each in questions]


def test_answers_in_any_order_find_their_questions() -> None:
    assert asyncio.run(ask(lambda asked: json.dumps(answers_of(asked)[::-1]).encode())) == [0, 1, 2]


def spoil(change: Callable[[list[dict[str, Any]]], None]) -> Answer:
    def answer(asked: list[dict[str, Any]]) -> bytes:
        answers = answers_of(asked)
        change(answers)
        return json.dumps(answers).encode()

    return answer


def refuse_one(answers: list[dict[str, Any]]) -> None:
    answers[1] = {"id": answers[1]["id"], "error": {"code": -32000, "message": "missing trie node"}}


def revert_one(answers: list[dict[str, Any]]) -> None:
    answers[1] = {"id": answers[1]["id"], "error": {"code": 3, "message": "execution reverted"}}


NO_ANSWERS: dict[str, tuple[Answer, type[Exception]]] = {
    "one is missing": (spoil(lambda answers: answers.__delitem__(1)), NodeFailed),
    "one has another form": (spoil(lambda answers: answers[1].update(result="7")), NodeFailed),
    "one is another question's": (spoil(lambda answers: answers[1].update(id=99)), NodeFailed),
    "one is refused": (spoil(refuse_one), NodeRefused),
    "batches are refused": (
        lambda _: b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no batches"}}',
        NodeRefused,
    ),
    "one answer to all": (lambda _: b'{"jsonrpc":"2.0","id":1,"result":"0x1"}', NodeRefused),
    "plain text": (lambda _: b"try again later", NodeFailed),
    "numbers": (lambda _: b"[1, 2, 3]", NodeFailed),
}


def test_a_simulated_call_that_reverts_is_one_of_the_answers() -> None:
    first, second, third = asyncio.run(ask(spoil(revert_one)))
    assert (first, third) == (0, 2)
    assert isinstance(second, CallReverted)


@each_row("what", NO_ANSWERS)
def test_a_batch_with_anything_wrong_in_it_is_no_answer(what: str) -> None:
    answer, error = NO_ANSWERS[what]
    with pytest.raises(error):
        asyncio.run(ask(answer))


def test_many_balances_are_what_each_is(evm: EvmScene) -> None:
    others = [bytes([number]) * 20 for number in range(1, 251)]

    async def scenario() -> None:
        async with evm.chain() as chain:
            block = await chain.final()
            custody_reader = CustodyReader(chain, True, chain.balances)
            held = await read_balances(custody_reader, [WALLET, RECIPIENT, *others], block)
            assert len(held) == 252
            assert {address: units for address, units in held.items() if units} == {WALLET: HELD}

    asyncio.run(scenario())


def test_a_node_that_takes_no_batches_is_asked_one_by_one(evm: EvmScene) -> None:
    async def refuse(*_: object) -> list[int]:
        raise NodeRefused("node", -32600, "no batches")

    async def scenario() -> None:
        async with evm.chain() as chain:
            held = await read_balances(CustodyReader(chain, True, refuse), [WALLET], await chain.final())
            assert held == {WALLET: HELD}

    asyncio.run(scenario())


@each_row("failure", [ChainAway("too large"), NodeRefused("node", -32000, "too large", status=400)])
def test_a_node_that_answers_for_few_blocks_is_asked_for_few(evm: EvmScene, failure: Exception) -> None:
    class FewBlocks(EvmChain):
        async def transfers(self, first: int, last: int) -> list[TokenTransfer]:
            if last - first >= 4:
                raise failure
            return await super().transfers(first, last)

    async def scenario() -> None:
        head = evm.node.mine(20)
        chain = FewBlocks(evm.rules, Endpoints([evm.node.url], timeout_s=60))
        read = [last async for last, _ in read_block_ranges(CustodyReader(chain, True), 0, head)]
        assert read[-1] == head
        await chain.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("refusal", NO_BATCHES)
def test_a_node_without_batches_is_asked_for_each_balance(evm: EvmScene, refusal: Raw | Refusal) -> None:
    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        proxies[0].refuses_batches = refusal
        assert await chain.balances([WALLET, RECIPIENT], await chain.final()) == [HELD, 0]

    play(evm, 1, story)


def test_a_silent_node_is_asked_in_no_other_form(evm: EvmScene) -> None:
    async def story() -> None:
        async with NodeProxy(evm.node.url) as proxy, evm.chain(proxy.url, timeout_s=1) as chain:
            proxy.behaviours["eth_getBlockByNumber"] = answer_latest_alone
            with pytest.raises(ChainAway, match="no answer within 1 s"):
                await chain.transfers(0, 3)
            assert proxy.batches == [["eth_getBlockByNumber"] * 4]
            assert proxy.singles == ["eth_getBlockByNumber"]

    asyncio.run(story())


async def answer_latest_alone(forward: Forward, params: list[Any]) -> Any:
    if params[0] != "latest":
        raise Silence
    return await forward("eth_getBlockByNumber", *params)


def test_no_question_is_left_running_after_the_first_failure(evm: EvmScene) -> None:
    """The node refuses the first block's receipts and never answers the other requests."""

    async def story() -> None:
        async with NodeProxy(evm.node.url) as proxy, evm.chain(proxy.url) as chain:
            first = evm.node.height() + 1
            for _ in range(12):
                evm.token.give(RECIPIENT, 1)
            pending = asyncio.Event()

            async def answer(forward: Forward, params: list[Any]) -> Any:
                if params[0] == hex(first):
                    raise Raw(b"too many requests", 429)
                await pending.wait()

            proxy.behaviours[RECEIPTS] = answer
            with pytest.raises(ChainAway, match="HTTP 429"):
                await chain.transfers(first, first + 11)
            assert questions_under_way() == []
            assert proxy.asked.count(RECEIPTS) <= 8
            pending.set()

    asyncio.run(story())


def questions_under_way() -> list[str]:
    """Names of tasks that neither serve as a node nor run the test."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    return [text for text in map(repr, others) if "NodeProxy" not in text]
