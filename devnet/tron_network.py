"""A network of fake TRON nodes: the EVM below it, the deployed token, and any number of nodes."""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from coincurve import PrivateKey

from devnet.evm_node import EvmDevnet
from devnet.fake_tron import CHAIN_ID, SOLID_LAG, FakeTron, selector_of
from devnet.programs import FOLDER
from devnet.tron_api import SOLID, TronServer
from devnet.tron_evm import Evm
from devnet.tron_json import describe_contract
from merchant_wallet.base.addresses import keccak256
from merchant_wallet.chains.evm.transactions import encode_transfer_call
from merchant_wallet.chains.tron.transactions import (
    TronTransaction,
    compute_signing_hash,
    encode_raw,
    join,
    parse_envelope,
    reference_to,
    txid_of,
)

TOKENS = FOLDER / "tokens"
# No fees in the EVM's own coin, and any account may be impersonated: `FakeTron` has checked the signature.
EVM_OPTIONS = ("--block-base-fee-per-gas", "0", "--gas-price", "0", "--auto-impersonate", "--accounts", "0")

_SUPPLY_UNITS = 10**15
_LIFE_MS = 60_000
_FEE_LIMIT_SUN = 50_000_000
_OWNER_SUN = 10**12


class TronNetwork:
    """The chain, its nodes and its token. Everything takes effect in the next block."""

    def __init__(self, fake: FakeTron, token: bytes, owner: PrivateKey, servers: list[TronServer]) -> None:
        self.fake = fake
        self.token = token
        self.owner_key = owner
        self.owner = address_of(owner)
        self.servers = servers

    @property
    def urls(self) -> list[str]:
        """The nodes' addresses."""
        return [server.url for server in self.servers]

    @property
    def chain_id(self) -> int:
        """The number by which a client knows the chain."""
        return CHAIN_ID

    def height(self) -> int:
        """The newest block's number."""
        return self.fake.head.number

    def url_of(self, side: str) -> str:
        """The port of the first node that serves `wallet` or `walletsolidity`."""
        server = self.servers[0]
        return server.solid_url if side == SOLID else server.wallet_url

    def mine(self, count: int = 1, interval_ms: int = 3_000) -> None:
        """See `FakeTron.mine`."""
        self.fake.mine(count, interval_ms)

    def settle(self, interval_ms: int = 3_000) -> None:
        """Mine until everything that waits now is final."""
        self.mine(self.fake.solid_lag + 1, interval_ms)

    def pay(self, key: PrivateKey, recipient: bytes, units: int, *, contract: bytes | None = None) -> str:
        """Transfer tokens with a real transaction of `key`'s account. Returns its id."""
        return self.send(
            key, contract=contract or self.token, call_data=encode_transfer_call(recipient, units)
        )

    def send(
        self, key: PrivateKey, *, contract: bytes, call_data: bytes, fee_limit_sun: int = _FEE_LIMIT_SUN
    ) -> str:
        """Call a contract with a real transaction of `key`'s account. Returns its id."""
        made_ms = self.fake.head.time_ms + self.fake.made + len(self.fake.pending)
        reference = self.fake.blocks[self.fake.solid_number].id
        envelope = sign_call(
            key, reference, self.fake.head.time_ms, made_ms, contract, call_data, fee_limit_sun
        )
        raw, signature = parse_envelope(envelope)
        self.fake.accept(raw, [signature])
        return txid_of(raw)

    def fund(self, address: bytes, *, units: int = 0, sun: int = 0) -> None:
        """Give an address tokens and TRX from nowhere, without a transaction that a scan would see."""
        if sun:
            self.fake.fund(address, sun)
        if units:
            self.operate(encode_transfer_call(address, units))

    def blacklist(self, address: bytes, *, is_listed: bool = True) -> None:
        """Put an address on the token's blacklist, or take it off."""
        function = "addBlackList(address)" if is_listed else "removeBlackList(address)"
        self.operate(selector_of(function) + _word(address))

    def pause(self, *, is_paused: bool = True) -> None:
        """Pause all transfers of the token, or resume them."""
        self.operate(selector_of("pause()" if is_paused else "unpause()"))

    def set_fee(self, basis_points: int, most_usdt: int) -> None:
        """Make the token keep a part of every transfer. The values must be below 20 and 50."""
        words = basis_points.to_bytes(32, "big") + most_usdt.to_bytes(32, "big")
        self.operate(selector_of("setParams(uint256,uint256)") + words)

    def destroy(self, address: bytes) -> str:
        """Blacklist an address, and destroy its tokens with a real transaction. Returns its id."""
        self.blacklist(address)
        self.mine()
        call_data = selector_of("destroyBlackFunds(address)") + _word(address)
        return self.send(self.owner_key, contract=self.token, call_data=call_data)

    def replace(self, *holders: bytes) -> bytes:
        """Deprecate the token for a new contract, which carries the holders' balances over. Returns that."""
        held = {holder: self.balance(holder) for holder in holders}
        successor = deploy_token(self.fake.evm, self.fake, self.owner, "UpgradedUSDT")
        calls = [selector_of("setLegacy(address)") + _word(self.token)]
        calls += [encode_transfer_call(holder, units) for holder, units in held.items()]
        for call_data in calls:
            self.fake.operate(self.owner, successor, call_data)
        self.operate(selector_of("deprecate(address)") + _word(successor))
        return successor

    def operate(self, call_data: bytes) -> None:
        """Call the token as its owner."""
        self.fake.operate(self.owner, self.token, call_data)

    def balance(self, address: bytes) -> int:
        """Units of the token at an address, now."""
        call_data = selector_of("balanceOf(address)") + _word(address)
        return int.from_bytes(self.fake.evm.call(self.owner, self.token, call_data, "latest"), "big")

    def coins(self, address: bytes) -> int:
        """Sun at an address, now."""
        return self.fake.coins.get(address, 0)

    def fee_of(self, txid: str) -> int:
        """What a transaction burnt, in sun. Raises KeyError."""
        found = self.fake.find(txid)
        if found is None:
            raise KeyError(txid)
        return int(found[2].get("fee", 0))

    def deploy(self) -> bytes:
        """Deploy another token of the same kind and owner."""
        return deploy_token(self.fake.evm, self.fake, self.owner)


def start_evm() -> EvmDevnet:
    """The EVM node that runs the contracts. Raises NodeError, ProgramMissing."""
    return EvmDevnet(chain_id=CHAIN_ID, options=EVM_OPTIONS)


@contextmanager
def run_network(
    nodes: int = 1,
    *,
    solid_lag: int = SOLID_LAG,
    clock: Callable[[], int] | None = None,
    ports: tuple[int, ...] = (),
    open_evm: Callable[[], AbstractContextManager[EvmDevnet]] = start_evm,
) -> Iterator[TronNetwork]:
    """A network with this many nodes and its token. The token's owner holds all of it. Removed at the end."""
    with ExitStack() as stack:
        evm = Evm(stack.enter_context(open_evm()).url)
        fake = FakeTron(evm, solid_lag=solid_lag, clock=clock)
        owner = PrivateKey(hashlib.sha256(b"the owner of the devnet's token").digest())
        token = deploy_token(evm, fake, address_of(owner))
        fake.fund(address_of(owner), _OWNER_SUN)
        fake.mine()
        servers = []
        for number in range(nodes):
            servers.append(TronServer(fake, ports[number] if ports else 0))
            stack.callback(servers[-1].close)
        yield TronNetwork(fake, token, owner, servers)


def deploy_token(evm: Evm, fake: FakeTron, owner: bytes, contract: str = "MockUSDTTron") -> bytes:
    """Deploy a token of `tokens/` for its owner, mined at once. Returns its address."""
    compiled = json.loads((TOKENS / f"{contract}.json").read_text())
    code = bytes.fromhex(compiled["bytecode"][2:]) + _SUPPLY_UNITS.to_bytes(32, "big")
    deployed = evm.send(owner, None, code)
    evm.ask("evm_mine")
    token = bytes.fromhex(evm.ask("eth_getTransactionReceipt", deployed)["contractAddress"][2:])
    fake.contracts[token] = describe_contract(token, owner)
    fake.operations += 1
    return token


def sign_call(
    key: PrivateKey,
    reference: str,
    now_ms: int,
    made_ms: int,
    contract: bytes,
    call_data: bytes,
    fee_limit_sun: int,
) -> bytes:
    """A signed call of a contract. `made_ms` makes the bytes of two equal calls differ."""
    return _sign(key, reference, now_ms, made_ms, fee_limit_sun, contract=contract, call_data=call_data)


def sign_coins(
    key: PrivateKey, reference: str, now_ms: int, made_ms: int, recipient: bytes, amount_sun: int
) -> bytes:
    """A signed transfer of TRX."""
    return _sign(key, reference, now_ms, made_ms, 0, recipient=recipient, amount_sun=amount_sun)


def _sign(
    key: PrivateKey, reference: str, now_ms: int, made_ms: int, fee_limit_sun: int, **fields: Any
) -> bytes:
    block_bytes, block_hash = reference_to(reference)
    raw = encode_raw(
        TronTransaction(
            ref_block_bytes=block_bytes,
            ref_block_hash=block_hash,
            expiration_ms=now_ms + _LIFE_MS,
            timestamp_ms=made_ms,
            fee_limit_sun=fee_limit_sun,
            owner=address_of(key),
            **fields,
        )
    )
    return join(raw, key.sign_recoverable(compute_signing_hash(raw), hasher=None))


def address_of(key: PrivateKey) -> bytes:
    """The 20 bytes of a key's address."""
    return keccak256(key.public_key.format(compressed=False)[1:])[12:]


def _word(address: bytes) -> bytes:
    return address.rjust(32, b"\0")
