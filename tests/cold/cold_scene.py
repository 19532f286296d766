"""A hot wallet on a real development chain, a cold wallet whose key is elsewhere, and the worker between."""

import json
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, LiteralString

import msgspec
from coincurve import PrivateKey
from devnet.evm_node import CHAIN_ID
from devnet.tron_network import address_of
from psycopg import AsyncConnection
from tests.chains.evm_scene import KEY, EvmScene
from tests.chains.tron_scene import TronScene, key_of
from tests.roles import as_worker

from merchant_wallet.base.chains import ERC20, TRC20, is_evm
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.db import connect
from merchant_wallet.chains.evm import transactions as evm_transactions
from merchant_wallet.chains.evm.chain import EvmChain
from merchant_wallet.chains.evm.rules import EvmRules
from merchant_wallet.chains.keys.keystore import Keystore
from merchant_wallet.chains.keys.local_signer import LocalSigner
from merchant_wallet.chains.keys.signing_rules import ChainLimits, SigningRules
from merchant_wallet.chains.transport import Endpoints
from merchant_wallet.chains.tron import transactions as tron_transactions
from merchant_wallet.chains.tron.chain import TronChain, TronNodes, TronRules
from merchant_wallet.custody.cold import store, wallets
from merchant_wallet.custody.cold.limits import SIGNER, TO_COLD, Direction, Way
from merchant_wallet.custody.cold.store import ColdTransfer, NewTransfer
from merchant_wallet.custody.cold.worker import ColdWorker, TransfersFailed
from merchant_wallet.processes.cold import open_cold_worker
from merchant_wallet.withdrawals.nonce_gaps import NonceGapWorker

NOW_MS = 1_763_712_000_000
USDT = 1_000_000
HELD = 1_000 * USDT
COLD_KEY = key_of("the cold wallet, whose key is on no machine of the service")
COLD = address_of(COLD_KEY)
HOT_KEYS = {ERC20: KEY.secret, TRC20: key_of("hot wallet").secret}


@dataclass
class Clock:
    """A clock that moves only when a test moves it."""

    now_ms: int = NOW_MS

    def __call__(self) -> int:
        return self.now_ms


@dataclass
class Moved:
    """A chain on which money moves: a real EVM node or the fake TRON network."""

    chain: str
    file: Path
    mine: Callable[[], object]
    settle: Callable[[], object]
    balance: Callable[[bytes], int]
    give: Callable[[bytes, int], object]
    fuel: Callable[[bytes], object]
    pay: Callable[[PrivateKey, bytes, int], object]
    """Sends the token with any key, as somebody outside the service does."""
    pass_by: Callable[[], object]
    """The chain goes on for so long that what was signed and not sent is replaced."""

    @property
    def hot(self) -> bytes:
        return Keystore(self.file.parent, HOT_KEYS).wallets()[self.chain]

    @property
    def hot_key(self) -> PrivateKey:
        return PrivateKey(HOT_KEYS[self.chain])

    def pay_hot(self, recipient: bytes, units: int) -> None:
        """Send the token with the hot wallet's key, outside the service."""
        self.pay(self.hot_key, recipient, units)

    def open(self, *, cold: bytes | None = COLD, signer_ahead_ms: int = 0) -> EvmChain | TronChain:
        """The product's chain, whose signer knows this cold wallet."""
        where = json.loads(self.file.read_text()) | {"signer_ahead_ms": signer_ahead_ms}
        return open_real(where, self.file.parent, cold=cold)[1]


def open_real(
    where: dict[str, Any], folder: Path, *, cold: bytes | None = COLD
) -> tuple[str, EvmChain | TronChain]:
    """The chain that a file describes, with a signer that has real keys and rules."""
    name, token = where["chain"], bytes.fromhex(where["token"])
    evm = EvmRules(chain_id=CHAIN_ID, token=token, stuck_blocks=5, recent_s=0)
    tron = TronRules(chain_id=where.get("chain_id", 1), token=token, recent_s=0)
    known = frozenset() if cold is None else frozenset({cold})
    limits = (
        ChainLimits(token, evm.fee_cap_wei, CHAIN_ID, cold=known)
        if is_evm(name)
        else ChainLimits(token, tron.fee_cap_sun, cold=known)
    )
    # The limits of payments are far below what goes to the cold wallet: they do not count there.
    rules_of_signer = SigningRules({name: limits}, USDT, USDT)
    ahead_ms = int(where.get("signer_ahead_ms", 0))
    signer = LocalSigner(Keystore(folder, HOT_KEYS), rules_of_signer, lambda: now_ms() + ahead_ms)
    wallet = Keystore(folder, HOT_KEYS).wallets()[name]
    if is_evm(name):
        endpoints = Endpoints(where["urls"], timeout_s=60)
        return name, EvmChain(evm, endpoints, wallet=wallet, signer=signer)
    return name, TronChain(tron, TronNodes(where["urls"], timeout_s=60), wallet=wallet, signer=signer)


def make_evm(evm: EvmScene, folder: Path) -> Moved:
    where = {"chain": ERC20, "urls": [evm.node.url], "token": evm.token.address.hex()}
    file = folder / "where.json"
    file.write_text(json.dumps(where))

    def pay(key: PrivateKey, recipient: bytes, units: int) -> None:
        evm.token.give(recipient, units, sender=address_of(key))

    token = evm.token
    return Moved(
        ERC20,
        file,
        evm.node.mine,
        evm.settle,
        token.balance,
        token.give,
        evm.node.fund,
        pay,
        lambda: evm.node.mine(20),
    )


def make_tron(tron: TronScene, folder: Path) -> Moved:
    network = tron.network
    where = {"chain": TRC20, "urls": network.urls, "token": network.token.hex()}
    file = folder / "where.json"
    file.write_text(json.dumps(where | {"chain_id": tron.rules.chain_id}))
    return Moved(
        TRC20,
        file,
        network.mine,
        # Quick blocks, so that nothing expires while a process starts.
        lambda: network.settle(interval_ms=10),
        network.balance,
        lambda address, units: network.fund(address, units=units),
        lambda address: network.fund(address, sun=1_000_000_000),
        network.pay,
        tron.let_expire,
    )


@dataclass
class ColdScene:
    """The database, with a registered cold wallet, and workers made on demand."""

    url: str
    connection: AsyncConnection
    closing: AsyncExitStack
    moved: Moved
    clock: Clock = field(default_factory=Clock)

    async def connect(self) -> AsyncConnection:
        return await connect(as_worker(self.url))

    async def rows(self, statement: LiteralString, *parameters: object) -> list[tuple[Any, ...]]:
        cursor = await self.connection.execute(statement, parameters)
        return await cursor.fetchall() if cursor.description else []

    def worker(self, chain: EvmChain | TronChain | None = None) -> ColdWorker:
        opened = chain or self.moved.open()
        worker = open_cold_worker(self.connect, {self.moved.chain: opened}, clock=self.clock)
        self.closing.push_async_callback(opened.close)
        self.closing.push_async_callback(worker.close)
        return worker

    async def begin(
        self,
        units: int,
        direction: Direction = TO_COLD,
        way: Way = SIGNER,
        *,
        tx_hash: str | None = None,
    ) -> int:
        """What two people have approved."""
        chain = self.moved.chain
        new = NewTransfer(chain, direction, way, self.moved.hot, COLD, units, tx_hash, None, "ann")
        transfer_id = await store.open_transfer(self.connection, new, self.clock())
        assert transfer_id is not None
        return transfer_id

    async def shown(self, transfer_id: int) -> ColdTransfer:
        found = await store.read_transfer(self.connection, transfer_id)
        assert found is not None
        return found

    async def turn(self, worker: ColdWorker, *, settles: bool = True) -> None:
        """One round of the worker, and then new final blocks."""
        try:
            await worker.follow()
        except TransfersFailed as failed:
            print(failed)
        if settles:
            self.moved.settle()
        self.clock.now_ms += 60_000

    async def finish(self, worker: ColdWorker, transfer_id: int, rounds: int = 8) -> ColdTransfer:
        """Advance until the transfer has ended."""
        for _ in range(rounds):
            await self.turn(worker)
            if (found := await self.shown(transfer_id)).ended_ms is not None:
                return found
        return await self.shown(transfer_id)

    async def sign_elsewhere(self, transfer_id: int, key: PrivateKey = COLD_KEY) -> str:
        """What a wallet on another machine answers: the whole signed transaction, in hexadecimal digits."""
        one = await self.shown(transfer_id)
        assert one.unsigned is not None
        kind = evm_transactions if is_evm(one.chain) else tron_transactions
        signature = key.sign_recoverable(kind.compute_signing_hash(one.unsigned), hasher=None)
        raw: bytes = kind.join(one.unsigned, signature)
        return raw.hex()

    async def resign(self, transfer_id: int, key: PrivateKey, **changes: Any) -> str:
        """What an EVM wallet program makes of it that chooses some fields itself."""
        one = await self.shown(transfer_id)
        transaction = evm_transactions.parse_unsigned(one.exported.unsigned)
        unsigned = evm_transactions.encode_unsigned(msgspec.structs.replace(transaction, **changes))
        signature = key.sign_recoverable(evm_transactions.compute_signing_hash(unsigned), hasher=None)
        return evm_transactions.join(unsigned, signature).hex()

    async def cancel_gaps(self) -> None:
        """One round of the worker that cancels nonces, and then new final blocks."""
        chain = self.moved.open()
        gaps = NonceGapWorker(self.connect, {self.moved.chain: chain}, clock=self.clock)
        assert await gaps.cancel_gaps() == 1
        await gaps.close()
        await chain.close()
        self.moved.settle()

    async def broadcast(self, raw: str) -> None:
        """What a person's wallet program does by itself, and tells nobody."""
        program = self.moved.open()
        await program.broadcast(bytes.fromhex(raw))
        await program.close()


async def open_cold_scene(url: str, closing: AsyncExitStack, moved: Moved) -> ColdScene:
    """A scene on an empty database with the hot and the cold wallet."""
    connection = await closing.enter_async_context(await connect(url))
    scene = ColdScene(url, connection, closing, moved)
    await wallets.set_current(connection, moved.chain, COLD, NOW_MS)
    await scene.rows("insert into hot_wallet (chain, address) values (%s, %s)", moved.chain, moved.hot)
    return scene
