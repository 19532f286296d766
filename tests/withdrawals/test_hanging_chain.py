"""A chain whose nodes hang delays its own orders, never those of another chain."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs
from tests.withdrawals.conftest import TRC20_ADDRESS
from tests.withdrawals.fake_chains import EvmLikeFake

from merchant_wallet.chains.protocol import Transfer
from merchant_wallet.withdrawals import chain_timeout
from merchant_wallet.withdrawals.payouts import list_blocked

if TYPE_CHECKING:
    from tests.withdrawals.conftest import InShop, Shop

MAX_CONCURRENT = 4


class Hanging(EvmLikeFake):
    """Its nodes accept every request and answer none until they are mended."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "ERC20")
        self.mended = asyncio.Event()

    async def check_payable(self, transfer: Transfer) -> None:
        await self.mended.wait()
        await super().check_payable(transfer)


def test_a_chain_that_hangs_is_an_obstacle_with_a_sentence_and_no_traceback(
    in_shop: "InShop", monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(shop: "Shop") -> None:
        await shop.order()
        with capture_logs() as lines:
            await shop.turn(shop.payer(chains={"ERC20": Hanging(shop.folder / "sequenced")}))
        sentence = "ERC20: no answer of nodes and signer within 0.01 s"
        assert [(one.kind, one.cause) for one in await list_blocked(shop.connection)] == [("node", sentence)]
        [failed] = [line for line in lines if line["event"] == "payout attempt failed"]
        assert (failed["log_level"], failed["reason"]) == ("warning", sentence)

    monkeypatch.setattr(chain_timeout, "CHAIN_TIMEOUT_S", 0.01)
    in_shop(scenario)


def test_orders_of_a_hanging_chain_leave_room_for_the_others(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        hanging, other = Hanging(shop.folder / "sequenced"), shop.fake("expiring")
        payer = shop.payer(chains={"ERC20": hanging, "TRC20": other}, max_concurrent=MAX_CONCURRENT)
        waiting = [await shop.order() for _ in range(MAX_CONCURRENT + 1)]
        order = await shop.order(address=TRC20_ADDRESS)
        for _ in range(40):
            await payer.start_due()
            await asyncio.sleep(0.05)
            if await shop.status(order) == 2:
                break
            other.mine()
            shop.clock.advance(500)
        assert await shop.status(order) == 2
        assert [await shop.status(one) for one in waiting].count(2) == 0
        hanging.mended.set()
        await payer.finish()

    in_shop(scenario)
