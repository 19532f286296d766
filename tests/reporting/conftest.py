"""Merchants with books made by the writer. Their clock moves only when a test moves it."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from tests.book.conftest import fake_writer as fake_writer
from tests.book.conftest import named as named

from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.db import connect
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.commands import (
    Adjust,
    Approve,
    Cancel,
    Command,
    CreateWithdrawal,
    Fail,
    MerchantToUser,
    Refund,
    Register,
    Settle,
    Submission,
    TakeUp,
    UserToMerchant,
)
from merchant_wallet.book.nonce_partitions import ensure_nonce_partitions
from merchant_wallet.book.outcomes import Outcome, SubUserFound, Withdrawal
from merchant_wallet.book.writer import Writer
from merchant_wallet.merchants import store
from merchant_wallet.merchants.addresses import write_issued
from merchant_wallet.merchants.keys import Keyring
from merchant_wallet.reporting.cells import Reach, reach_one
from merchant_wallet.reporting.paging import Connection

START_MS = 20_000 * DAY_MS + 1000
COIN = 1_000_000
TRON_ADDRESS = "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC"
EVM_ADDRESS = "0x52908400098527886E0F7030069857D2E4169EE7"


@dataclass
class Clock:
    """A clock that moves only when a test moves it."""

    now_ms: int = START_MS

    def __call__(self) -> int:
        return self.now_ms

    def advance_s(self, seconds: int) -> None:
        self.now_ms += 1000 * seconds


@dataclass
class ReportingScene:
    """Merchants with 1000 USDT and 1000 KFB each."""

    url: str
    conn: Connection
    writer: Writer
    clock: Clock
    keyring: Keyring = field(default_factory=lambda: Keyring(bytes(range(32))))
    made: int = 0

    @property
    def cells(self) -> Reach:
        """The only cell, in home's own database."""
        return reach_one(self.conn)

    async def open_shop(self, name: str) -> int:
        """Open a merchant. Returns its id."""
        opened = await store.create(
            self.conn, self.keyring, name, seed=self.keyring.sandbox_seed(), at_ms=self.clock()
        )
        shop = opened.merchant.merchant_id
        for currency in ("USDT", "KFB"):
            await self.ask(shop, Adjust(currency, 1000 * COIN, "opening balance", "test", None))
        return shop

    async def ask(self, shop: int, command: Command) -> Outcome:
        """Submit a command, which the book must accept. Returns the outcome."""
        outcome = await self.writer.submit(shop, Submission(command))
        assert not isinstance(outcome, Refusal), outcome
        self.clock.advance_s(1)
        return outcome

    async def register(self, shop: int, ext_user_id: str, currency: str = "KFB") -> SubUserFound:
        """A sub-user whose addresses are made from its number."""
        self.made += 1
        evm, tron = evm_of(self.made), tron_of(self.made)
        await write_issued(self.conn, shop, (evm, tron))
        outcome = await self.ask(shop, Register(ext_user_id, currency, self.made, evm, tron))
        assert isinstance(outcome, SubUserFound)
        return outcome

    async def pay_out(self, shop: int, user: SubUserFound, units: int) -> None:
        """Transfer from the merchant to a sub-user."""
        self.made += 1
        await self.ask(shop, MerchantToUser(f"out-{self.made}", user.evm_address, user.currency, units))

    async def charge(self, shop: int, user: SubUserFound, units: int, fee_rate_e8: int = 0) -> None:
        """Transfer from a sub-user to the merchant."""
        self.made += 1
        name = f"in-{self.made}"
        await self.ask(shop, UserToMerchant(name, user.ext_user_id, user.currency, units, fee_rate_e8, False))

    async def order(
        self, shop: int, units: int = 10 * COIN, *, address: str = TRON_ADDRESS, needs_word: bool = True
    ) -> Withdrawal:
        """A withdrawal with a fee of one coin. `needs_word` says whether it needs approval."""
        self.made += 1
        command = CreateWithdrawal(
            mc_order_id=f"w-{self.made}",
            amount_units=units,
            chain="ERC20" if address.startswith("0x") else "TRC20",
            address=address,
            notify_url="https://example.com/notify",
            fee_rate_e8=0,
            fee_minimum_units=COIN,
            approval_limit_units=0 if needs_word else units,
            daily_limit_units=None,
            allowed=True,
            deadline_after_ms=DAY_MS,
        )
        outcome = await self.ask(shop, command)
        assert isinstance(outcome, Withdrawal)
        return outcome

    async def settle(self, shop: int, order: Withdrawal, tx_hash: str = "hash") -> None:
        """Pay an order."""
        for command in (
            Approve(order.order_id, "operator"),
            TakeUp(order.order_id),
            Settle(order.order_id, tx_hash),
        ):
            await self.ask(shop, command)

    async def refund(self, shop: int, order: Withdrawal) -> None:
        """Fail and refund an order."""
        for command in (
            Approve(order.order_id, "operator"),
            TakeUp(order.order_id),
            Fail(order.order_id, "void"),
            Refund(order.order_id),
        ):
            await self.ask(shop, command)

    async def cancel(self, shop: int, order: Withdrawal) -> None:
        """Cancel an order."""
        await self.ask(shop, Cancel(order.order_id, "operator"))

    async def add_deposit(
        self,
        shop: int,
        tx_hash: str,
        *,
        chain: str = "TRC20",
        status: str = "credited",
        user_id: int | None = None,
    ) -> None:
        """Insert a deposit, as the watcher and the crediting worker leave it."""
        self.clock.advance_s(1)
        address = tron_of(shop) if user_id is None else tron_of(user_id % 1000)
        is_final = status not in ("seen", "undone")
        await self.conn.execute(
            "insert into deposit (merchant_id, chain, tx_hash, log_index, block_number, block_hash, sender,"
            " address, user_id, amount, status, seen_ms, final_ms)"
            " values (%s, %s, %s, 0, 1, 'b', %s, %s, %s, 5, %s, %s, %s)",
            (
                shop,
                chain,
                tx_hash,
                bytes(20),
                address,
                user_id,
                status,
                self.clock(),
                self.clock() if is_final else None,
            ),
        )


def evm_of(number: int) -> bytes:
    """An address on ERC20."""
    return number.to_bytes(20, "big")


def tron_of(number: int) -> bytes:
    """An address on TRC20."""
    return b"\x01" + number.to_bytes(19, "big")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def scene(database_url: str) -> AsyncIterator[ReportingScene]:
    """A scene without merchants."""
    clock = Clock()
    async with await connect(database_url) as conn:
        await ensure_nonce_partitions(conn, clock() // DAY_MS)
        writer = Writer(database_url, connections=2, clock=clock)
        await writer.open()
        try:
            yield ReportingScene(database_url, conn, writer, clock)
        finally:
            await writer.close()
