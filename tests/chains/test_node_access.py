"""What a process shares about a node: a budget of calls, connections and rests, on real connections."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest
from tests.chains.node_proxy import Forward, NodeProxy, Raw
from tests.waits import TIMEOUT_S, eventually

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.node_addresses import CallLimits, NodeAddress
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.base.workers import repeat, run_workers
from merchant_wallet.chains import call_budget, node_access, node_rests
from merchant_wallet.chains.call_budget import Purpose
from merchant_wallet.chains.jsonrpc import JsonRpc, read_quantity
from merchant_wallet.chains.node_access import NodeAccess, access_of, end_reading, list_accesses, list_figures
from merchant_wallet.chains.protocol import ChainAway
from merchant_wallet.chains.recent import Recent
from merchant_wallet.chains.transport import (
    Endpoints,
    NodeFailed,
    NodeRefused,
    NodeSilent,
    attempt,
    for_signed,
)

SECOND_S = 0.1
PER_DAY = 100_000
SUSPENDED = b'{"Error":"The key exceeds the frequency limit(15), and the server is suspended for 30 s"}'
NEVER = "http://127.0.0.1:9"
"""What is asked of this node is never forwarded: the proxies answer everything themselves."""


@pytest.fixture(autouse=True)
def short_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_budget, "SECOND_S", SECOND_S)


def play(count: int, story: Callable[..., Awaitable[None]]) -> None:
    """Run a story with so many nodes, each of which answers 1 to everything."""

    async def whole(*proxies: NodeProxy) -> None:
        if len(proxies) < count:
            async with NodeProxy(NEVER) as proxy:
                proxy.always("*", "0x1")
                await whole(*proxies, proxy)
            return
        async with asyncio.timeout(TIMEOUT_S):
            await story(*proxies)

    asyncio.run(whole())


def open_rpc(
    *proxies: NodeProxy, per_s: int | None = None, per_day: int | None = None, **given: Any
) -> JsonRpc:
    limits = CallLimits(per_s, per_day)
    return JsonRpc(Endpoints([NodeAddress(proxy.url, limits=limits) for proxy in proxies], **given))


async def ask(rpc: JsonRpc, node: int = 0, method: str = "eth_chainId") -> int:
    return await rpc.ask(node, read_quantity, method)


def test_calls_wait_in_order_and_payouts_and_reading_take_turns() -> None:
    async def story(proxy: NodeProxy) -> None:
        payouts = open_rpc(proxy, connections=1)
        reading = open_rpc(proxy, connections=1, purpose=Purpose.READING)
        asked = [asyncio.create_task(ask(reading, method=f"r{number}")) for number in range(6)]
        asked += [asyncio.create_task(ask(payouts, method=f"p{number}")) for number in range(3)]
        await asyncio.gather(*asked)
        assert proxy.asked == ["r0", "p0", "r1", "p1", "r2", "p2", "r3", "r4", "r5"]
        await payouts.endpoints.close()
        assert await ask(reading) == 1, "the connections are closed when nobody uses them"
        await reading.endpoints.close()

    play(1, story)


def test_reading_in_batches_leaves_payouts_as_many_calls_as_it_takes() -> None:
    sent = ""

    async def send(access: NodeAccess, calls: int, purpose: Purpose) -> None:
        nonlocal sent
        async with access.turn(calls, purpose):
            sent += purpose.value[0] * calls

    async def read(access: NodeAccess) -> None:
        for _ in range(3):
            await send(access, 4, Purpose.READING)

    async def story() -> None:
        access = NodeAccess(NodeAddress(NEVER, limits=CallLimits(4)), connections=9)
        payouts = [send(access, 1, Purpose.PAYOUTS) for _ in range(8)]
        await asyncio.gather(read(access), *payouts)

    play(0, story)
    assert sent == "rrrrpppprrrrpppprrrr"


def test_payouts_and_reading_share_the_budget_of_a_node() -> None:
    async def story(proxy: NodeProxy) -> None:
        rpcs = [open_rpc(proxy, per_s=4, purpose=purpose) for purpose in Purpose]
        await asyncio.gather(*[ask(rpc) for rpc in rpcs for _ in range(4)])
        [access] = list_accesses()
        # Four were sent at once. The others had to wait for a second.
        assert access.waited_s > 0
        assert access.sent == dict.fromkeys(Purpose, 4)
        assert access.describe_use().used_today == 12
        name = proxy.url.removeprefix("http://")
        assert list_figures() == {name: (access.sent, access.waited_s, 0)}
        for rpc in rpcs:
            await rpc.endpoints.close()

    play(1, story)


def test_connections_to_a_node_are_bounded_over_the_whole_process() -> None:
    most = 0

    async def story(proxy: NodeProxy) -> None:
        under_way, goes_on = 0, asyncio.Event()

        async def answer(_forward: Forward, _params: list[Any]) -> str:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            await goes_on.wait()
            under_way -= 1
            return "0x1"

        proxy.behaviours["*"] = answer
        rpcs = [open_rpc(proxy, connections=3, purpose=purpose) for purpose in Purpose]
        asked = [asyncio.create_task(ask(rpc)) for rpc in rpcs for _ in range(5)]

        async def are_under_way() -> bool:
            return under_way == 3

        await eventually(are_under_way)
        # One that is given up leaves its place to the others, whether it had a turn or not.
        asked[0].cancel()
        asked.pop().cancel()
        goes_on.set()
        assert await asyncio.gather(*asked[1:]) == [1] * 13
        for rpc in rpcs:
            await rpc.endpoints.close()

    play(1, story)
    # The one that was given up was answered all the same.
    assert most <= 4


def test_who_gets_no_turn_in_time_asks_the_next_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(node_access.PATIENCE_S, Purpose.PAYOUTS, 0.05)
    monkeypatch.setattr(call_budget, "SECOND_S", 60.0)

    async def story(one: NodeProxy, two: NodeProxy) -> None:
        rpc = open_rpc(one, two, per_s=1)
        assert await rpc.first(lambda node: ask(rpc, node)) == 1
        assert await rpc.first(lambda node: ask(rpc, node)) == 1
        assert (one.asked, two.asked) == (["eth_chainId"], ["eth_chainId"])
        text = r"no turn within 0\.05 s: more calls wait than its limits \(1/s\) allow"
        with pytest.raises(ChainAway, match=text):
            await rpc.first(lambda node: ask(rpc, node))
        await rpc.endpoints.close()

    play(2, story)


def test_when_the_days_calls_are_used_the_text_says_so() -> None:
    async def story(proxy: NodeProxy) -> None:
        payouts = open_rpc(proxy, per_day=20)
        reading = open_rpc(proxy, per_day=20, purpose=Purpose.READING)
        # Whatever time of day it is: the nineteenth call is above the line of nine tenths.
        for _ in range(18):
            await ask(payouts)
        with pytest.raises(NodeFailed, match=r"of the 20 calls of today \(UTC\) .* the rest is for payouts"):
            await ask(reading)
        await ask(payouts)
        with pytest.raises(NodeFailed, match=r"of the 20 calls of today \(UTC\) .* for what is signed"):
            await ask(payouts)
        await for_signed(ask)(payouts)
        with pytest.raises(NodeFailed, match=r"the 20 calls of today \(UTC\) that its limits allow are used"):
            await for_signed(ask)(payouts)
        for rpc in (payouts, reading):
            await rpc.endpoints.close()

    play(1, story)


def test_reading_that_waits_for_the_days_line_ends_when_the_process_stops() -> None:
    async def story(proxy: NodeProxy) -> None:
        payouts = open_rpc(proxy, per_day=PER_DAY)
        reading = open_rpc(proxy, per_day=PER_DAY, purpose=Purpose.READING)
        assert await ask(payouts) == 1
        [access] = list_accesses()
        at_ms = now_ms()
        # Twenty calls above the line, each of which takes two seconds of the day.
        line = PER_DAY * (5 * DAY_MS + 4 * (at_ms % DAY_MS)) // (10 * DAY_MS)
        access.budget.take(0.0, at_ms, line + 20)
        stop, begun, said = asyncio.Event(), asyncio.Event(), set[str]()

        async def read() -> None:
            for _ in range(9):
                begun.set()
                said.add(str(await attempt(ask(reading))))

        async def watch(stop: asyncio.Event) -> None:
            await repeat("watcher", read, stop=stop, interval_s=1.0)

        working = asyncio.create_task(run_workers([watch, end_reading], stop))
        await begun.wait()
        assert await ask(payouts) == 1
        stop.set()
        async with asyncio.timeout(TIMEOUT_S):
            await working
        assert said == {f"{proxy.url.removeprefix('http://')}: the process stops"}
        assert await ask(payouts) == 1
        for rpc in (payouts, reading):
            await rpc.endpoints.close()

    play(1, story)


@pytest.mark.parametrize(
    "refusal",
    [
        Raw(SUSPENDED, 403),
        Raw(b"slow down", 429),
        Raw(b"slow down", 429, retry_after="30"),
        Raw(b"later", 503, retry_after="30"),
        Raw(b'{"jsonrpc":"2.0","id":1,"error":{"code":-32005,"message":"slow down"}}', 429),
    ],
)
def test_a_node_that_refuses_calls_rests_even_if_it_is_alone(refusal: Raw) -> None:
    async def story(one: NodeProxy, two: NodeProxy) -> None:
        alone, both = open_rpc(one), open_rpc(one, two)
        one.fail(refusal)
        with pytest.raises((ChainAway, NodeRefused)):
            await alone.first(lambda node: ask(alone, node))
        one.mend()
        one.always("*", "0x1")
        for _ in range(3):
            with pytest.raises(ChainAway, match=r"it rests until \d\d:\d\d:\d\d UTC after eth_chainId: HTTP"):
                await alone.first(lambda node: ask(alone, node))
            assert await both.first(lambda node: ask(both, node)) == 1
        assert (one.asked, two.asked) == (["eth_chainId"], ["eth_chainId"] * 3)
        [use, other] = both.endpoints.list_use()
        assert use.rests_until_ms is not None
        assert use.used_today == 1, "what is not sent does not count"
        assert other.rests_until_ms is None
        for rpc in (alone, both):
            await rpc.endpoints.close()

    play(2, story)


def test_who_waits_for_a_turn_learns_that_the_node_rests_and_then_it_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(node_rests, "FIRST_REST_S", 0.2)

    async def story(proxy: NodeProxy) -> None:
        rpc = open_rpc(proxy, connections=2)
        proxy.fail(Raw(b"slow down", 429))
        answers = await asyncio.gather(*[attempt(ask(rpc)) for _ in range(6)])
        assert [str(answer).count("it rests until") for answer in answers] == [0, 0, 1, 1, 1, 1]
        assert len(proxy.asked) == 2
        proxy.mend()
        proxy.always("*", "0x1")

        async def is_asked_again() -> bool:
            return await attempt(ask(rpc)) == 1

        await eventually(is_asked_again)
        [access] = list_accesses()
        assert access.rest.count == 1
        await rpc.endpoints.close()

    play(1, story)


def test_a_403_about_one_method_is_no_rest() -> None:
    async def story(proxy: NodeProxy) -> None:
        rpc = open_rpc(proxy)
        proxy.fail(Raw(b"<h1>Forbidden</h1>", 403), "eth_getBlockReceipts")
        assert await ask(rpc) == 1
        with pytest.raises(NodeFailed, match="HTTP 403: Forbidden"):
            await ask(rpc, method="eth_getBlockReceipts")
        assert await ask(rpc) == 1
        proxy.fail(
            Raw(b'{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"upgrade"}}', 403), "eth_chainId"
        )
        with pytest.raises(NodeRefused, match="upgrade"):
            await ask(rpc)
        proxy.fail(Raw(b"<h1>Forbidden</h1>", 403), "eth_chainId")
        with pytest.raises(NodeFailed, match="HTTP 403: Forbidden"):
            await ask(rpc)
        with pytest.raises(NodeFailed, match="it rests until"):
            await ask(rpc, method="eth_getBlockReceipts")
        await rpc.endpoints.close()

    play(1, story)


def test_a_method_that_a_plan_lost_costs_one_rest_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_rests, "FIRST_REST_S", 0.2)

    async def story(proxy: NodeProxy) -> None:
        rpc = open_rpc(proxy)
        assert await ask(rpc, method="eth_getBlockReceipts") == 1
        proxy.fail(Raw(b"<h1>Forbidden</h1>", 403), "eth_getBlockReceipts")
        with pytest.raises(NodeFailed, match="HTTP 403: Forbidden"):
            await ask(rpc, method="eth_getBlockReceipts")

        async def is_asked_again() -> bool:
            return await attempt(ask(rpc)) == 1

        await eventually(is_asked_again)
        for _ in range(2):
            with pytest.raises(NodeFailed, match="HTTP 403: Forbidden"):
                await ask(rpc, method="eth_getBlockReceipts")
            assert await ask(rpc) == 1
        [access] = list_accesses()
        assert access.rest.count == 1
        await rpc.endpoints.close()

    play(1, story)


def test_a_batch_counts_as_its_calls_and_is_no_larger_than_a_second() -> None:
    async def story(proxy: NodeProxy) -> None:
        rpc = open_rpc(proxy, per_s=4)
        answers = await rpc.ask_calls(0, read_quantity, "eth_call", [["a"]] * 10)
        assert answers == [1] * 10
        assert [len(batch) for batch in proxy.batches] == [4, 4, 2]
        [access] = list_accesses()
        assert access.describe_use().used_today == 10
        assert access.waited_s >= SECOND_S
        await rpc.endpoints.close()

    play(1, story)


def test_to_wait_for_a_turn_is_no_slowness_of_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_budget, "SECOND_S", 60.0)
    monkeypatch.setitem(node_access.PATIENCE_S, Purpose.PAYOUTS, TIMEOUT_S)
    slow_s = 0.2

    async def story(one: NodeProxy, two: NodeProxy) -> None:
        limited = NodeAddress(one.url, limits=CallLimits(1))
        endpoints = Endpoints([limited, NodeAddress(two.url)], slow_s=slow_s)
        rpc = JsonRpc(endpoints)
        assert await rpc.first(lambda node: ask(rpc, node)) == 1
        # The first node has no turn. The second one is asked after a moment, and no node is called slow.
        assert await rpc.first(lambda node: ask(rpc, node)) == 1
        recent = Recent(60.0, asyncio.get_running_loop().time)
        # The second time somebody else has begun the same question to the first node.
        for asked in (ask, lambda rpc, node: recent.read(node, lambda: ask(rpc, node))):
            begun = asyncio.create_task(attempt(asked(rpc, 0)))
            [held, answer] = await endpoints.every(partial(asked, rpc), is_urgent=True)
            assert isinstance(held, NodeFailed)
            assert not isinstance(held, NodeSilent)
            assert str(held).endswith("its limits make it wait, and others have answered")
            assert answer == 1
            assert endpoints.list_usable() == [0, 1]
            begun.cancel()
        await recent.close()
        access_of(limited, 1).budget = call_budget.CallBudget(CallLimits())
        assert await endpoints.every(lambda node: ask(rpc, node), is_urgent=True) == [1, 1]
        await endpoints.close()

    play(2, story)
