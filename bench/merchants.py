"""The calling merchants: created, funded and given sub-users and orders before anything is measured.

Rules: everything uses the service's own code, `merchants.store` for merchants and the book's writer for the
rest, so every book verifies. A population is a named group of merchants. They are stored in a file that only
its owner may read, because it holds their secrets.
"""

import asyncio
import os
import random
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import msgspec

from bench.invented import invent_addresses, name_sub_user
from bench.writers import ask, open_writer
from merchant_wallet.base import db
from merchant_wallet.base.addresses import to_eip55
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.currencies import KFB, USDT
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.commands import Adjust, Command, CreateWithdrawal, Register
from merchant_wallet.book.outcomes import Outcome, SubUserFound, Withdrawal
from merchant_wallet.book.writer import Writer
from merchant_wallet.exchange.rates import KFB_TO_USDT, USDT_TO_KFB, set_rate
from merchant_wallet.merchants import store
from merchant_wallet.merchants.issued_addresses import issue_address
from merchant_wallet.merchants.keys import Keyring

HOT: Final = "hot"
THOUSAND: Final = "thousand"
SINGLE: Final = "single"
COLD: Final = "cold"
LARGE: Final = "large"

SETTINGS: Final = {"rate-limit": "0", "approval-limit": "0"}
"""No rate limit. Every order waits for an approval that never comes, so that no payout runs meanwhile."""
USDT_KFB_E8: Final = 7_10000000
KFB_USDT_E8: Final = 14000000
MERCHANT_UNITS: Final = 50_000_000 * 1_000_000
SUB_USER_UNITS: Final = 1_000_000 * 1_000_000
ORDER_UNITS: Final = 1_000_000
PAYOUT_ADDRESS: Final = "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC"
NOTIFY_URL: Final = "http://127.0.0.1:9/notify"
ACTOR: Final = "bench"
CREATORS: Final = 4

Progress = Callable[[str, int, int], None]
"""Called with the present task, how much is done, and how much there is."""


class SubUser(msgspec.Struct, frozen=True):
    """A sub-user; `address` is its EVM address as text, the others its two addresses in hexadecimal."""

    user_id: int
    ext_user_id: str
    address: str
    evm_hex: str
    tron_hex: str


class KnownOrder(msgspec.Struct, frozen=True):
    """An order that can be queried."""

    order_id: int
    mc_order_id: str


class BenchMerchant(msgspec.Struct, frozen=True):
    """A merchant with everything that its requests may name.

    Its sub-users are listed, or there are so many that they are computed: `invented` is their number.
    """

    merchant_id: int
    app_key: str
    secret: str
    account_xpubs: dict[str, str]
    sub_users: list[SubUser]
    orders: list[KnownOrder]
    invented: int = 0

    def draw_name(self, draw: random.Random) -> str:
        """The name of a random sub-user."""
        if self.invented:
            return name_sub_user(draw.randrange(self.invented))
        return draw.choice(self.sub_users).ext_user_id

    def draw_address(self, draw: random.Random) -> str:
        """The EVM address of a random sub-user."""
        if self.invented:
            return f"0x{invent_addresses(self.merchant_id, draw.randrange(self.invented)).evm.hex()}"
        return draw.choice(self.sub_users).address

    def __repr__(self) -> str:
        return f"BenchMerchant({self.merchant_id})"


class MerchantSet(msgspec.Struct, frozen=True):
    """All merchants by population."""

    populations: dict[str, list[BenchMerchant]]


class Size(msgspec.Struct, frozen=True):
    """How many merchants a population has, and how many sub-users and orders each of them.

    `invented` sub-users are not registered with the merchant but by `cold`.
    """

    merchants: int
    sub_users: int
    orders: int
    invented: int = 0


SIZES: Final = {
    HOT: Size(1, 500, 200),
    THOUSAND: Size(1000, 2, 1),
    SINGLE: Size(1, 2, 1),
    COLD: Size(1000, 0, 0, invented=1000),
    LARGE: Size(1, 500, 1),
}


def write_merchants(merchant_set: MerchantSet, path: Path) -> None:
    """Write the merchants to a file for the processes that sign and for the ceiling."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.encode(merchant_set))


def read_merchants(path: Path) -> MerchantSet:
    """Read the merchants from their file."""
    return msgspec.json.decode(path.read_bytes(), type=MerchantSet)


async def prepare_merchants(
    url: str, keyring: Keyring, populations: Sequence[str], progress: Progress
) -> MerchantSet:
    """Set rates, create the populations' merchants and fund them. Raises PreparationFailed."""
    async with AsyncExitStack() as stack:
        connections = [await db.connect(url) for _ in range(CREATORS)]
        for connection in connections:
            stack.push_async_callback(connection.close)
        await set_rate(connections[0], USDT_TO_KFB, USDT_KFB_E8, at_ms=now_ms())
        await set_rate(connections[0], KFB_TO_USDT, KFB_USDT_E8, at_ms=now_ms())
        writer = await stack.enter_async_context(open_writer(url))
        prepared = {}
        for name in populations:
            maker = _Maker(keyring, writer, name, SIZES[name], progress)
            prepared[name] = await maker.make(connections)
    return MerchantSet(prepared)


class _Maker:
    """Creates one population, with one merchant per connection at a time."""

    def __init__(self, keyring: Keyring, writer: Writer, name: str, size: Size, progress: Progress) -> None:
        self._keyring = keyring
        self._writer = writer
        self._name = name
        self._size = size
        self._progress = progress
        self._players: list[BenchMerchant] = []

    async def make(self, connections: Sequence[store.Connection]) -> list[BenchMerchant]:
        """The population's merchants, in any order."""
        numbers = iter(range(1, self._size.merchants + 1))

        async def work(connection: store.Connection) -> None:
            for number in numbers:
                self._players.append(await self._make_one(connection, f"{self._name} {number}"))
                self._progress(f"merchants: {self._name}", len(self._players), self._size.merchants)

        await asyncio.gather(*[work(connection) for connection in connections])
        return self._players

    async def _make_one(self, connection: store.Connection, name: str) -> BenchMerchant:
        seed = self._keyring.sandbox_seed()
        new = await store.create(
            connection, self._keyring, f"bench {name}", seed=seed, at_ms=now_ms(), settings=SETTINGS
        )
        merchant = new.merchant
        merchant_id = merchant.merchant_id
        registrations: list[Command] = []
        for number in range(self._size.sub_users):
            issued = await issue_address(connection, merchant_id, merchant.account_xpubs)
            registrations.append(Register(f"u{number}", KFB, *issued))
        found = await ask(self._writer, merchant_id, registrations)
        sub_users = [_to_sub_user(outcome) for outcome in found]
        credits: list[Command] = [_credit(USDT, MERCHANT_UNITS), _credit(KFB, MERCHANT_UNITS)]
        credits += [_credit(KFB, SUB_USER_UNITS, sub_user.ext_user_id) for sub_user in sub_users]
        await ask(self._writer, merchant_id, credits)
        opened = await ask(self._writer, merchant_id, [_order(number) for number in range(self._size.orders)])
        orders = [_to_order(outcome) for outcome in opened]
        return BenchMerchant(
            merchant_id,
            merchant.app_key,
            new.app_secret,
            merchant.account_xpubs,
            sub_users,
            orders,
            self._size.invented,
        )


def _credit(currency: str, amount_units: int, ext_user_id: str | None = None) -> Adjust:
    return Adjust(currency, amount_units, "funds for a measurement", ACTOR, ext_user_id)


def _order(number: int) -> CreateWithdrawal:
    return CreateWithdrawal(
        mc_order_id=f"q{number}",
        amount_units=ORDER_UNITS,
        chain="TRC20",
        address=PAYOUT_ADDRESS,
        notify_url=NOTIFY_URL,
        fee_rate_e8=0,
        fee_minimum_units=0,
        approval_limit_units=0,
        daily_limit_units=None,
        allowed=True,
        deadline_after_ms=DAY_MS,
    )


def _to_sub_user(outcome: Outcome) -> SubUser:
    assert isinstance(outcome, SubUserFound)
    evm, tron = outcome.evm_address, outcome.tron_address
    return SubUser(outcome.user_id, outcome.ext_user_id, to_eip55(evm), evm.hex(), tron.hex())


def _to_order(outcome: Outcome) -> KnownOrder:
    assert isinstance(outcome, Withdrawal)
    return KnownOrder(outcome.order_id, outcome.mc_order_id)
