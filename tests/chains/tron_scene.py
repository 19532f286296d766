"""A network of fake TRON nodes with a funded hot wallet, and the product's chain on them."""

import asyncio
import hashlib
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from coincurve import PrivateKey
from devnet.tron_network import TronNetwork, address_of
from tests.evm_nodes import run_tron_network
from tests.named_tron import RUN, NamedTron
from tests.waits import TIMEOUT_S

from merchant_wallet.base.chains import TRC20
from merchant_wallet.chains.protocol import Payout, SignedTransfer, Transfer, Verdict
from merchant_wallet.chains.signer import SigningRequest
from merchant_wallet.chains.tron.chain import TronChain, TronNodes, TronRules
from merchant_wallet.chains.tron.transactions import compute_signing_hash

RECIPIENT = bytes(range(1, 21))
OTHER = bytes(range(101, 121))
ORDER_UNITS = 12_340_000
WALLET_UNITS = 1_000_000_000
WALLET_SUN = 1_000_000_000
SOLID_LAG = 3

T = TypeVar("T")


def key_of(name: str) -> PrivateKey:
    return PrivateKey(hashlib.sha256((name + RUN).encode()).digest())


@dataclass
class KeySigner:
    """Signs everything and records the requests."""

    key: PrivateKey
    requests: list[SigningRequest] = field(default_factory=list)

    async def wallets(self) -> Mapping[str, bytes]:
        return {TRC20: address_of(self.key)}

    async def sign(self, request: SigningRequest) -> bytes:
        self.requests.append(request)
        return self.key.sign_recoverable(compute_signing_hash(request.unsigned), hasher=None)


@dataclass
class TronScene:
    """A TRON network and the product's chain. `play` runs a test's steps and closes the connections."""

    network: TronNetwork
    rules: TronRules
    signer: KeySigner
    wallet: bytes
    chain: TronChain
    first: int
    """The newest block at the start."""

    def play(self, steps: Coroutine[Any, Any, T]) -> T:
        async def whole() -> T:
            try:
                return await steps
            finally:
                await self.chain.close()

        return asyncio.run(whole())

    def with_rules(self, **changes: Any) -> TronChain:
        """The same chain with other rules."""
        fields = {name: getattr(self.rules, name) for name in self.rules.__struct_fields__} | changes
        return TronChain(TronRules(**fields), self.chain.nodes, wallet=self.wallet, signer=self.signer)

    async def sign(self, payout: Payout) -> SignedTransfer:
        return await self.chain.build(payout, [])

    async def pay(self, payout: Payout) -> SignedTransfer:
        """Sign, broadcast and mine. The block is not final yet."""
        signed = await self.sign(payout)
        await self.chain.broadcast(signed.raw)
        self.network.mine()
        return signed

    async def judge(self, payout: Payout, *signed: SignedTransfer) -> Verdict:
        return await self.chain.judge(payout, signed)

    def let_expire(self) -> None:
        """Mine until everything signed so far has expired on the final chain."""
        self.network.mine(4, interval_ms=self.rules.lifetime_ms // 3)
        self.network.mine(self.network.fake.solid_lag + 1, interval_ms=self.rules.grace_ms)


def payout_of(payout_id: int = 1, recipient: bytes = RECIPIENT, amount_units: int = ORDER_UNITS) -> Payout:
    return Payout(payout_id, Transfer(TRC20, "USDT", recipient, amount_units))


@contextmanager
def open_tron(nodes: int = 2, *, named: bool = False) -> Iterator[TronScene]:
    """A scene whose wallet holds tokens and TRX. Everything is final. `named` takes the nodes that
    `WALLET_TEST_TRON` names.
    """
    with closing(NamedTron()) if named else run_tron_network(nodes, solid_lag=SOLID_LAG) as network:
        signer = KeySigner(key_of("hot wallet"))
        wallet = address_of(signer.key)
        network.fund(wallet, units=WALLET_UNITS, sun=WALLET_SUN)
        network.settle()
        rules = TronRules(chain_id=network.chain_id, token=network.token, recent_s=0)
        # The fake nodes are sometimes told to hang. A real one is only slow.
        reached = TronNodes(network.urls, timeout_s=TIMEOUT_S if named else 5)
        chain = TronChain(rules, reached, wallet=wallet, signer=signer)
        yield TronScene(network, rules, signer, wallet, chain, network.height())
