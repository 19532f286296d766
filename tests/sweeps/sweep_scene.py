"""A merchant whose deposit addresses come from the tests' seed, and the workers that sweep them."""

import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString

from devnet.evm_node import CHAIN_ID
from psycopg import AsyncConnection
from tests.chains.evm_scene import KEY
from tests.chains.signing import SEED
from tests.chains.tron_scene import key_of
from tests.roles import as_worker

from merchant_wallet.audit.records import Author
from merchant_wallet.base.addresses import derive_account
from merchant_wallet.base.cells import Databases
from merchant_wallet.base.chains import COIN_TYPES, ERC20, TRC20
from merchant_wallet.base.db import connect
from merchant_wallet.base.money import RATE_SCALE
from merchant_wallet.book.chart import FIXED
from merchant_wallet.book.journal import FIRST_HASH
from merchant_wallet.chains.evm.chain import EvmChain
from merchant_wallet.chains.evm.rules import EvmRules
from merchant_wallet.chains.evm.sweeps import EvmSweeper
from merchant_wallet.chains.keys.keystore import Keystore
from merchant_wallet.chains.keys.local_signer import LocalSigner
from merchant_wallet.chains.keys.signing_rules import ChainLimits, SigningRules
from merchant_wallet.chains.sweeps import Sweeper
from merchant_wallet.chains.transport import Endpoints
from merchant_wallet.chains.tron.chain import TronChain, TronNodes, TronRules
from merchant_wallet.chains.tron.sweeps import TronSweeper
from merchant_wallet.custody.sweeps import store
from merchant_wallet.custody.sweeps.manual_end import end_sweep
from merchant_wallet.custody.sweeps.plan import PlannedSweep, SweepPolicy, make_plan
from merchant_wallet.custody.sweeps.store import SweepShown
from merchant_wallet.custody.sweeps.survey import survey
from merchant_wallet.custody.sweeps.worker import SweepWorker
from merchant_wallet.hot_wallet.store import find_address, open_wallet

NOW_MS = 1_763_712_000_000
USDT = 1_000_000
MERCHANT_ID, ACCOUNT = 1001, 3
SAFE = b"owner's own address!"
"""Where the signer's settings let rescues go."""
HOT_KEYS = {ERC20: KEY.secret, TRC20: key_of("hot wallet").secret}
POLICY = {
    ERC20: SweepPolicy(3_000 * USDT, 10**18, RATE_SCALE // 10, 20 * USDT, 10, 2 * 10**16),
    TRC20: SweepPolicy(USDT // 4, 10**6, RATE_SCALE // 10, 20 * USDT, 10, 60_000_000),
}
"""A coin costs 3000 USDT on ERC20 and 0.25 USDT on TRC20. A tenth of the amount may be burnt."""


@dataclass
class Clock:
    """A clock that moves only when a test moves it."""

    now_ms: int = NOW_MS

    def __call__(self) -> int:
        return self.now_ms


def address_of(index: int, chain: str = ERC20, *, branch: int = 0) -> bytes:
    """A deposit address of the merchant."""
    account = derive_account(SEED, COIN_TYPES[chain], ACCOUNT)
    return account.child(branch).child(index).public().address()


def open_evm(
    folder: Path, url: str, token: bytes, *, keys: Mapping[str, bytes] = HOT_KEYS, **rules: Any
) -> EvmSweeper:
    """A sweeper on a development node, with a signer that has real keys."""
    made = EvmRules(chain_id=CHAIN_ID, token=token, **{"stuck_blocks": 5, "recent_s": 0, **rules})
    policy = ChainLimits(token, made.fee_cap_wei, CHAIN_ID, rescue=frozenset({SAFE}))
    signer = LocalSigner(Keystore(folder, keys, SEED), SigningRules({ERC20: policy}, USDT, USDT))
    endpoints = Endpoints(url.split(","), timeout_s=60)
    wallet = Keystore(folder, keys).wallets()[ERC20]
    return EvmSweeper(EvmChain(made, endpoints, wallet=wallet, signer=signer), signer)


def open_tron(
    folder: Path, urls: list[str], rules: TronRules, *, kind: type[TronSweeper] = TronSweeper
) -> TronSweeper:
    """A sweeper on the fake TRON network."""
    policy = ChainLimits(rules.token, rules.fee_cap_sun, rescue=frozenset({SAFE}))
    signer = LocalSigner(Keystore(folder, HOT_KEYS, SEED), SigningRules({TRC20: policy}, USDT, USDT))
    wallet = Keystore(folder, HOT_KEYS).wallets()[TRC20]
    nodes = TronNodes(urls, timeout_s=60)
    return kind(TronChain(rules, nodes, wallet=wallet, signer=signer), signer)


@dataclass
class SweepScene:
    """The database of one merchant with deposits, and sweep workers made on demand."""

    url: str
    connection: AsyncConnection
    closing: AsyncExitStack
    clock: Clock
    deposits: int = 0

    async def connect(self) -> AsyncConnection:
        """A database connection as the workers have it."""
        return await connect(as_worker(self.url))

    async def rows(self, statement: LiteralString, *parameters: object) -> list[tuple[Any, ...]]:
        cursor = await self.connection.execute(statement, parameters)
        return await cursor.fetchall() if cursor.description else []

    async def deposit(
        self, index: int, units: int, chain: str = ERC20, *, status: str = "credited", branch: int = 0
    ) -> bytes:
        """Insert a deposit to an address. The test moves the money on the chain itself."""
        address, user_id = address_of(index, chain, branch=branch), None if branch else 9_000 + index
        if user_id is not None:
            await self._add_user(index, user_id)
        self.deposits += 1
        await self.rows(
            "insert into deposit (merchant_id, chain, tx_hash, log_index, block_number, block_hash, sender,"
            " address, user_id, amount, status, seen_ms, final_ms)"
            " values (%s, %s, %s, 0, 1, '0xb', %s, %s, %s, %s, %s, %s, %s)",
            *(MERCHANT_ID, chain, f"0xd{self.deposits}", b"S" * 20, address, user_id, units, status),
            *(NOW_MS, None if status == "seen" else NOW_MS),
        )
        return address

    async def _add_user(self, index: int, user_id: int) -> None:
        await self.rows(
            "insert into account (merchant_id, account_id, kind, currency) values (%s, %s, 'subuser', 'USDT')"
            " on conflict do nothing",
            *(MERCHANT_ID, user_id),
        )
        await self.rows(
            "insert into sub_user (merchant_id, user_id, ext_user_id, username, address_index, evm_address,"
            " tron_address, created_ms) values (%s, %s, %s, %s, %s, %s, %s, %s) on conflict do nothing",
            *(MERCHANT_ID, user_id, f"u{index}", f"u{index}", index),
            *(address_of(index), address_of(index, TRC20), NOW_MS),
        )

    def worker(self, sweepers: Mapping[str, Sweeper], **settings: Any) -> SweepWorker:
        worker = SweepWorker(self.connect, sweepers, clock=self.clock, **settings)
        self.closing.push_async_callback(worker.close)
        return worker

    async def plan(self, chain: str, sweeper: Sweeper, *, again: bool = False) -> list[PlannedSweep]:
        policy = POLICY[chain]
        databases = Databases(self.connection)
        candidates = await survey(databases, chain, sweeper, minimum_units=policy.minimum_units)
        under_way = await store.count_open(self.connection, chain)
        return make_plan(candidates, policy, under_way=under_way, again=again)

    async def begin(self, worker: SweepWorker, chain: str = ERC20, *, again: bool = False) -> list[int]:
        """Plan and decide, as `sweep run` does. Before the first sweep it makes the hot wallet known."""
        if await find_address(self.connection, chain) is None:
            await open_wallet(self.connection, chain, worker.sweepers[chain].wallet, NOW_MS)
        plan = await self.plan(chain, worker.sweepers[chain], again=again)
        return await worker.open(chain, plan, POLICY[chain], "tests")

    async def shown(self) -> list[SweepShown]:
        """All sweeps, oldest first."""
        return list(reversed(await store.list_sweeps(self.connection)))

    async def steps(self) -> list[str]:
        return [sweep.step for sweep in await self.shown()]


async def end(
    connection: AsyncConnection, sweepers: Mapping[str, Sweeper], sweep_id: int, reason: str = "stuck"
) -> None:
    """Ann ends a sweep."""
    author = Author("cli:ann", "terminal", NOW_MS, {"reason": reason})
    await end_sweep(connection, author, sweepers, sweep_id, actor="ann", reason=reason)


async def open_sweep_scene(url: str, closing: AsyncExitStack) -> SweepScene:
    """A scene on an empty database."""
    connection = await closing.enter_async_context(await connect(url))
    scene = SweepScene(url, connection, closing, Clock())
    await scene.rows(
        "insert into merchant (merchant_id, name, app_key, currency_mode, created_ms)"
        " values (%s, 'shop', 'shop', 'USDT', %s)",
        *(MERCHANT_ID, NOW_MS),
    )
    await scene.rows("insert into id_range values (1, %s)", MERCHANT_ID)
    await scene.rows(
        "insert into book (merchant_id, id_range, head_hash, last_ms) values (%s, 1, %s, %s)",
        *(MERCHANT_ID, FIRST_HASH, NOW_MS),
    )
    for account in FIXED:
        await scene.rows(
            "insert into account (merchant_id, account_id, kind, currency) values (%s, %s, %s, %s)",
            *(MERCHANT_ID, *account),
        )
    await give_account(scene)
    return scene


async def give_account(scene: SweepScene) -> None:
    """Give the merchant an account from the pool and its own addresses."""
    for chain in COIN_TYPES:
        own = address_of(0, chain, branch=1)
        await scene.rows("insert into merchant_address values (%s, %s, %s)", MERCHANT_ID, chain, own)
    xpubs = json.dumps({chain: "not asked for" for chain in COIN_TYPES})
    await scene.rows("insert into xpub_pool values (%s, %s, %s)", ACCOUNT, xpubs, MERCHANT_ID)
