"""A shop whose orders are screened: the scene of the payouts' tests, with a provider and a list."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.callbacks.receiver import Receiver, open_receiver
from tests.screening.provider import SECRET, say
from tests.withdrawals.conftest import MERCHANT_ID, Shop, in_apart_shop, in_each_layout, in_shop
from tests.withdrawals.conftest import in_shop as in_shop_of_one_database

from merchant_wallet.audit.records import Author
from merchant_wallet.base.cells import DEFAULT_CELL_ID
from merchant_wallet.processes.screening import DecisionFollower, make_order_screen
from merchant_wallet.screening import store
from merchant_wallet.screening.address_list import ListFile
from merchant_wallet.screening.hook import ScreeningHook
from merchant_wallet.screening.screener import Screener
from merchant_wallet.screening.store import Screening
from merchant_wallet.withdrawals.payer import Payer

__all__ = ["in_apart_shop", "in_each_layout", "in_shop", "in_shop_of_one_database"]


def ann(at_ms: int) -> Author:
    """Ann, who decides on a page."""
    return Author("operator:ann", "test", at_ms)


@dataclass
class Screened:
    """A shop with a provider and a list, both of which it may use."""

    shop: Shop
    provider: Receiver
    list_path: Path
    seconds: float = 0.0
    """The clock of the list and of the hook's rest. A test moves it."""

    def hook(self, *, timeout_ms: int = 5000, port: int | None = None) -> ScreeningHook:
        hook = ScreeningHook(
            f"http://127.0.0.1:{port or self.provider.port}/screen",
            SECRET,
            timeout_ms=timeout_ms,
            clock=self.shop.clock,
            monotonic=lambda: self.seconds,
        )
        self.shop.closing.push_async_callback(hook.close)
        return hook

    def write_list(self, *lines: str) -> None:
        """Replace the list, as `mv` does. It is seen at the next look."""
        new = self.list_path.with_suffix(".new")
        new.write_text("\n".join(lines) + "\n")
        new.replace(self.list_path)
        self.seconds += 2

    def list_file(self) -> ListFile:
        return ListFile(self.list_path, monotonic=lambda: self.seconds)

    def payer(
        self, address_list: ListFile | None = None, hook: ScreeningHook | None = None, **settings: Any
    ) -> Payer:
        fails_open = settings.pop("fails_open", False)
        screener = Screener(address_list, hook, fails_open=fails_open, clock=self.shop.clock)
        return self.shop.payer(screen_order=make_order_screen(screener), **settings)

    async def screening(self, order_id: int) -> Screening:
        found = await store.find_order(self.shop.connection, MERCHANT_ID, order_id)
        assert found is not None
        return found

    async def obstacle(self, order_id: int) -> tuple[str, str]:
        """What kind of obstacle an order waits for, and its cause."""
        rows = await self.shop.rows(
            "select obstacle_kind, obstacle_cause from payout where order_id = %s", order_id
        )
        (found,) = rows
        assert found[0] is not None, "it waits for nothing"
        return found

    async def set_rules(self, **rules: object) -> None:
        """Set payout rules of the merchant, by their columns."""
        for column, value in rules.items():
            await self.shop.connection.execute(f"update public.merchant set {column} = %s".encode(), (value,))

    async def follow(self) -> int:
        """Carry on what was decided, as the worker does each second."""
        cell_id = DEFAULT_CELL_ID if self.shop.layout is None else self.shop.layout.far_id
        connect_cell = self.shop.connect if self.shop.layout is None else self.shop.connect_cell
        follower = DecisionFollower(self.shop.connect, connect_cell, cell_id, clock=self.shop.clock)
        try:
            return await follower.follow()
        finally:
            await follower.close()


@asynccontextmanager
async def open_screened(shop: Shop) -> AsyncIterator[Screened]:
    """The shop's provider listens until the block ends. It lets everything pass."""
    async with open_receiver() as provider:
        provider.behave = say("pass")
        yield Screened(shop, provider, shop.folder / "list.txt")


InScreened = Callable[[Callable[[Screened], Awaitable[None]]], None]


@pytest.fixture
def screened(in_shop: Any) -> InScreened:
    """Runs a scenario in a fresh shop with a provider."""

    def run(scenario: Callable[[Screened], Awaitable[None]]) -> None:
        async def inside(shop: Shop) -> None:
            async with open_screened(shop) as scene:
                await asyncio.wait_for(scenario(scene), 120)

        in_shop(inside)

    return run
