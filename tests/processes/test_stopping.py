"""A worker side that is told to stop waits for no limit of a node."""

import asyncio
from pathlib import Path

import pytest
from tests.crash.shop import MASTER_KEY, open_merchant, run

from merchant_wallet.base.node_addresses import CallLimits, NodeAddress
from merchant_wallet.base.settings import Settings
from merchant_wallet.chains.call_budget import Purpose
from merchant_wallet.chains.node_access import NoTurn, access_of
from merchant_wallet.processes.base import make_base
from merchant_wallet.processes.worker import work


def test_once_work_stops_reading_is_refused_what_it_would_wait_for(database_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        await open_merchant(database_url)
        settings = Settings(data=tmp_path, database_url=database_url, master_key=MASTER_KEY, sandbox=True)
        access = access_of(NodeAddress("http://127.0.0.1:9", limits=CallLimits(per_s=1)), connections=1)
        stop = asyncio.Event()
        await work(make_base(settings, database_url), stop.set, stop)
        async with access.turn(1, Purpose.READING):
            with pytest.raises(NoTurn, match="the process stops"):
                async with access.turn(1, Purpose.READING):
                    raise AssertionError("it got a turn, though another call has the only connection")

    run(scenario())
