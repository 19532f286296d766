"""A development chain with a funded hot wallet, and the product's chain over any nodes."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
from coincurve import PrivateKey
from devnet.evm_node import CHAIN_ID, COIN, EvmNode, Token

from merchant_wallet.base.addresses import keccak256
from merchant_wallet.base.chains import ERC20
from merchant_wallet.chains.evm.chain import EvmChain
from merchant_wallet.chains.evm.rules import EvmRules
from merchant_wallet.chains.evm.transactions import (
    EvmTransaction,
    compute_signing_hash,
    encode_unsigned,
    join,
)
from merchant_wallet.chains.protocol import Payout, SignedTransfer, Transfer
from merchant_wallet.chains.signer import SigningRequest
from merchant_wallet.chains.transport import Endpoints

USDT = 1_000_000
HELD = 1_000 * USDT
RECIPIENT = bytes(range(1, 21))
KEY = PrivateKey(keccak256(b"the hot wallet of the tests"))
WALLET = keccak256(KEY.public_key.format(compressed=False)[1:])[12:]


@dataclass
class KeySigner:
    """Signs everything with one key and records the requests."""

    key: PrivateKey = KEY
    asked: list[SigningRequest] = field(default_factory=list)

    async def wallets(self) -> Mapping[str, bytes]:
        return {ERC20: WALLET}

    async def sign(self, request: SigningRequest) -> bytes:
        self.asked.append(request)
        return sign(request.unsigned, self.key)


def sign(unsigned: bytes, key: PrivateKey = KEY) -> bytes:
    """A signature of 65 bytes."""
    return key.sign_recoverable(compute_signing_hash(unsigned), hasher=None)


@dataclass
class EvmScene:
    """One node, the token on it, and a wallet with 1000 USDT and 10 coins. All of it is final."""

    node: EvmNode
    token: Token
    signer: KeySigner = field(default_factory=KeySigner)

    @property
    def rules(self) -> EvmRules:
        return EvmRules(chain_id=CHAIN_ID, token=self.token.address, stuck_blocks=5, recent_s=0)

    @asynccontextmanager
    async def chain(self, *urls: str, timeout_s: float = 60, **changes: Any) -> AsyncIterator[EvmChain]:
        """The product's chain over these nodes, by default over the real one."""
        rules = msgspec.structs.replace(self.rules, **changes)
        endpoints = Endpoints(urls or (self.node.url,), timeout_s=timeout_s)
        chain = EvmChain(rules, endpoints, wallet=WALLET, signer=self.signer)
        try:
            yield chain
        finally:
            await chain.close()

    def foreign(self, nonce: int, to: bytes = RECIPIENT, units: int = 7, key: PrivateKey = KEY) -> bytes:
        """A signed transaction that the product does not know. By default the hot wallet sends it."""
        call = self.token.call_data("transfer(address,uint256)", to, units)
        unsigned = encode_unsigned(
            EvmTransaction(
                CHAIN_ID, nonce, COIN // 10**9, COIN // 10**7, 100_000, self.token.address, 0, call
            )
        )
        return join(unsigned, sign(unsigned, key))

    def settle(self) -> None:
        """Make the newest block final."""
        self.node.mine(3)


def open_scene(node: EvmNode) -> EvmScene:
    """Deploy the token and fund the wallet."""
    token = node.deploy()
    token.give(WALLET, HELD)
    node.fund(WALLET, 10 * COIN)
    node.mine(3)
    return EvmScene(node, token)


def payout(
    units: int = 25 * USDT, *, nonce: int = 0, recipient: bytes = RECIPIENT, payout_id: int = 1
) -> Payout:
    """A payout."""
    return Payout(payout_id, Transfer(ERC20, "USDT", recipient, units), nonce)


async def send(chain: EvmChain, ordered: Payout, earlier: Sequence[SignedTransfer] = ()) -> SignedTransfer:
    """Build, sign and broadcast."""
    signed = await chain.build(ordered, earlier)
    await chain.broadcast(signed.raw)
    return signed
