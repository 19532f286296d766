"""The workers' loop: turns, pauses, failures, stops."""

import asyncio
from functools import partial

import pytest
from structlog.testing import capture_logs

from merchant_wallet.base import workers
from merchant_wallet.base.db import connect
from merchant_wallet.base.workers import (
    WorkerConnection,
    compute_retry_pause_s,
    limit_time,
    log_failure,
    repeat,
    run_workers,
)
from merchant_wallet.chains.protocol import ChainAway, ChainDisagrees
from merchant_wallet.chains.signer import SignerAway
from merchant_wallet.chains.transport import NodeFailed, NodeRefused
from merchant_wallet.custody.balances import BalanceMoved
from merchant_wallet.custody.still_snapshots import BooksMoved
from merchant_wallet.processes.cell_connections import CellAway


def test_a_turn_is_done_again_when_the_worker_is_woken() -> None:
    async def scenario() -> None:
        stop, wake, turns = asyncio.Event(), asyncio.Event(), 0

        async def turn() -> None:
            nonlocal turns
            turns += 1
            wake.set() if turns < 3 else stop.set()

        await repeat("test", turn, stop=stop, interval_s=3_600, wake=wake)
        assert turns == 3

    asyncio.run(scenario())


def test_a_failed_turn_is_logged_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        stop, turns = asyncio.Event(), 0

        async def turn() -> None:
            nonlocal turns
            turns += 1
            if turns == 3:
                stop.set()
            else:
                raise ConnectionError("away")

        with capture_logs() as logs:
            await repeat("test", turn, stop=stop, interval_s=3_600)
        assert [(line["worker"], line["failures"], line["log_level"]) for line in logs] == [
            ("test", 1, "error"),
            ("test", 2, "error"),
        ]

    monkeypatch.setattr(workers, "FIRST_RETRY_S", 0.001)
    asyncio.run(scenario())


PASSING: list[tuple[Exception, str]] = [
    (ChainAway("n.example: eth_chainId: connection refused"), "n.example: eth_chainId: connection refused"),
    (ChainDisagrees("nodes show\ndifferent blocks 7"), "nodes show different blocks 7"),
    (NodeFailed("n.example", "HTTP 502"), "n.example: HTTP 502"),
    (
        NodeRefused("n.example", -32000, "finalized block not found"),
        "n.example: finalized block not found (-32000)",
    ),
    (SignerAway("no answer in 5 s"), "no answer in 5 s"),
    (TimeoutError("ERC20: no answer within 30 s"), "ERC20: no answer within 30 s"),
    (TimeoutError(), "timeout"),
    (BalanceMoved("the balance of 0x1 was read twice"), "the balance of 0x1 was read twice"),
    (BooksMoved("a book moves"), "a book moves"),
    (CellAway("cell west is away"), "cell west is away"),
]


def test_what_passes_by_itself_is_a_warning_with_a_sentence_and_no_traceback() -> None:
    with capture_logs() as logs:
        for error, _ in PASSING:
            log_failure(workers.log, "failed", error)
        log_failure(workers.log, "failed", ValueError("a fault of ours"))
    *passing, fault = logs
    assert [(line["log_level"], line["reason"]) for line in passing] == [
        ("warning", sentence) for _, sentence in PASSING
    ]
    assert not any("exc_info" in line for line in passing)
    assert (fault["log_level"], str(fault["exc_info"])) == ("error", "a fault of ours")


def test_a_limit_of_time_says_what_took_too_long() -> None:
    async def scenario() -> None:
        with pytest.raises(TimeoutError, match=r"^no answer within 0\.01 s$"):
            async with limit_time(0.01, "no answer"):
                await asyncio.Event().wait()
        with pytest.raises(TimeoutError, match=r"^its own$"):
            async with limit_time(60, "no answer"):
                raise TimeoutError("its own")

    asyncio.run(scenario())


def test_pauses_after_failures_grow_up_to_half_a_minute() -> None:
    assert [compute_retry_pause_s(failures) for failures in (0, 1, 2, 6, 7, 10**6)] == [
        0.25,
        0.5,
        1.0,
        16.0,
        30.0,
        30.0,
    ]


def test_a_stopped_worker_does_not_wait_for_its_interval() -> None:
    async def scenario() -> None:
        stop = asyncio.Event()

        async def turn() -> None:
            asyncio.get_running_loop().call_soon(stop.set)

        await asyncio.wait_for(repeat("test", turn, stop=stop, interval_s=3_600), 60)

    asyncio.run(scenario())


def test_workers_run_side_by_side_and_stop_together_when_one_raises() -> None:
    async def scenario() -> None:
        stop, ended = asyncio.Event(), []

        async def steady(stop: asyncio.Event) -> None:
            await stop.wait()
            ended.append("steady")

        async def broken(stop: asyncio.Event) -> None:
            raise ConnectionError("broken for good")

        with pytest.raises(ConnectionError, match="for good"):
            await run_workers([steady, broken, steady], stop)
        assert ended == ["steady", "steady"]

    asyncio.run(scenario())


def test_when_several_workers_raise_no_error_is_lost() -> None:
    async def broken(stop: asyncio.Event) -> None:
        raise ConnectionError

    async def also_broken(stop: asyncio.Event) -> None:
        await stop.wait()
        raise ValueError

    async def run() -> None:
        await run_workers([broken, also_broken], asyncio.Event())

    with pytest.raises(ExceptionGroup) as raised:
        asyncio.run(run())
    assert [type(error) for error in raised.value.exceptions] == [ConnectionError, ValueError]


def test_a_line_keeps_its_connection_until_it_is_lost(database_url: str) -> None:
    async def scenario() -> None:
        line = WorkerConnection(partial(connect, database_url))
        first, second = await asyncio.gather(line.get(), line.get())
        assert first is second
        await first.close()
        third = await line.get()
        assert third is not first
        await line.close()
        assert third.closed
        await line.close()

    asyncio.run(scenario())
