"""The development chains together: started, funded, making blocks, and named as the service's settings.

Rules: which chains there are is asked of the table of chains. An EVM chain is a node of its own, with a chain
id of its own; TRON is a network of doubles. The default chains always run, any other when it is asked for.
"""

import hashlib
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple

from coincurve import PrivateKey

from devnet.evm_node import CHAIN_ID, COIN, EvmDevnet, Token
from devnet.tron_network import TronNetwork, address_of, run_network
from merchant_wallet.base.addresses import to_eip55, to_tron
from merchant_wallet.base.chains import BEP20, CHAINS, DEFAULT_CODES, ERC20, TABLE, TRC20, is_evm
from merchant_wallet.base.clock import now_ms

USDT: Final = 1_000_000
# The same key on all chains. Anybody can know it: it is for these chains alone.
HOT_KEY: Final = PrivateKey(hashlib.sha256(b"the hot wallet of the devnet").digest())
GIVEN_UNITS: Final = 1_000_000 * USDT
SUPPLY_UNITS: Final = 10**15
GIVEN_WEI: Final = 100 * COIN
GIVEN_SUN: Final = 100_000 * 1_000_000
# Small, so that what is shown to somebody becomes final while they watch.
SOLID_LAG: Final = 3
TRON_NODES: Final = 2


class EvmKind(NamedTuple):
    """What an EVM chain is here: its chain id, the contract of its token, the service's finality rule."""

    chain_id: int
    contract: str
    finality: str | int


EVM_KINDS: Final = {
    ERC20: EvmKind(CHAIN_ID, "MockUSDT", "finalized"),
    BEP20: EvmKind(31356, "MockBEP20", 3),
}


@dataclass(frozen=True)
class EvmSide:
    """One EVM chain with the token deployed."""

    code: str
    node: EvmDevnet
    token: Token

    @property
    def base_units(self) -> int:
        """The token's smallest units in one unit of the ledger."""
        return CHAINS[self.code].base_units

    @property
    def settings(self) -> dict[str, str]:
        """What a service needs to know to run on this chain."""
        prefix, kind = f"WALLET_{self.code}", EVM_KINDS[self.code]
        told = {
            f"{prefix}_RPC": self.node.url,
            f"{prefix}_TOKEN": to_eip55(self.token.address),
            f"{prefix}_CHAIN_ID": str(int(self.node.ask("eth_chainId"), 16)),
        }
        if kind.finality != CHAINS[self.code].finality:
            told[f"{prefix}_FINALITY"] = str(kind.finality)
        return told

    def send(self, address: bytes, units: int, remainder: int = 0) -> str:
        """Pay an address from the issuer's purse, in the next block; the transaction's hash.

        `remainder` is paid on top, in the token's smallest units.
        """
        amount = units * self.base_units + remainder
        call = self.token.call_data("transfer(address,uint256)", address, amount)
        return self.node.send_as(self.token.issuer, self.token.address, call)


@dataclass(frozen=True)
class Devnet:
    """The running chains, each with the token deployed."""

    evm_sides: Mapping[str, EvmSide]
    tron: TronNetwork

    @property
    def codes(self) -> tuple[str, ...]:
        """The chains that run, in the table's order."""
        return tuple(chain.code for chain in TABLE if chain.code in {TRC20, *self.evm_sides})

    @property
    def evm(self) -> EvmDevnet:
        """The node of ERC20."""
        return self.evm_sides[ERC20].node

    @property
    def token(self) -> Token:
        """The token of ERC20."""
        return self.evm_sides[ERC20].token

    @property
    def settings(self) -> dict[str, str]:
        """What a service needs to know to run on these chains."""
        told = {"WALLET_SANDBOX": "false"}
        for code in self.codes:
            if is_evm(code):
                told |= self.evm_sides[code].settings
            else:
                told[f"WALLET_{code}_RPC"] = ",".join(self.tron.urls)
                told[f"WALLET_{code}_TOKEN"] = to_tron(self.tron.token)
        return told

    def fund(self, chain: str, address: bytes) -> str:
        """Give an address a million USDT and coins for the fees, without waiting for the next block.

        The USDT come by a real transaction, whose hash this gives; the coins come from nowhere.
        """
        if is_evm(chain):
            self.evm_sides[chain].node.fund(address, GIVEN_WEI)
        else:
            self.tron.fund(address, sun=GIVEN_SUN)
        tx_hash = self.send(chain, address, GIVEN_UNITS)
        if is_evm(chain):
            self.evm_sides[chain].node.mine()
        else:
            self.tron.mine()
        return tx_hash

    def send(self, chain: str, address: bytes, units: int) -> str:
        """Pay an address from the issuer's purse, in the next block; the transaction's hash."""
        if is_evm(chain):
            return self.evm_sides[chain].send(address, units)
        return self.tron.pay(self.tron.owner_key, address, units)

    def mine(self, blocks: int = 1) -> None:
        """Make blocks on every chain."""
        for side in self.evm_sides.values():
            side.node.mine(blocks)
        self.tron.mine(blocks)

    def serve(self, block_time_s: float, stop: threading.Event) -> None:
        """Make a block on each chain at this pace until `stop` is set."""
        while not stop.wait(block_time_s):
            self.mine()


def open_side(code: str, node: EvmDevnet) -> EvmSide:
    """Deploy a chain's token on a node."""
    supply = SUPPLY_UNITS * CHAINS[code].base_units
    return EvmSide(code, node, node.deploy(EVM_KINDS[code].contract, supply))


@contextmanager
def run_devnet(
    *,
    ports: Mapping[str, int] | None = None,
    tron_ports: Sequence[int] = (),
    funded: Sequence[tuple[str, bytes]] = (),
    also: Collection[str] = (),
) -> Iterator[Devnet]:
    """The default chains and those in `also`, gone at the end.

    The hot wallet of `HOT_KEY` and every address in `funded` have money. Ports of 0, or none, are chosen;
    `ports` are those of the EVM chains. Raises NodeError, ProgramMissing.
    """
    wanted = [code for code in EVM_KINDS if code in {*DEFAULT_CODES, *also}]
    with ExitStack() as stack:
        sides = {}
        for code in wanted:
            node = EvmDevnet(chain_id=EVM_KINDS[code].chain_id, port=(ports or {}).get(code, 0))
            sides[code] = open_side(code, stack.enter_context(node))
        network = run_network(TRON_NODES, solid_lag=SOLID_LAG, clock=now_ms, ports=tuple(tron_ports))
        devnet = Devnet(sides, stack.enter_context(network))
        wallet = address_of(HOT_KEY)
        for chain, address in (*((code, wallet) for code in devnet.codes), *funded):
            devnet.fund(chain, address)
        for side in sides.values():
            side.node.mine(SOLID_LAG)
        devnet.tron.settle()
        yield devnet
