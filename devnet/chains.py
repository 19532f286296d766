"""All development chains: started, funded, making blocks, and described as settings of the service.

Rules:
- The table of chains says which chains there are. The default chains always run, any other on request.
- Each EVM chain is its own node with its own chain id. TRON is a network of fake nodes.
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
# The same key on all chains. It is public and only for these chains.
HOT_KEY: Final = PrivateKey(hashlib.sha256(b"the hot wallet of the devnet").digest())
GIVEN_UNITS: Final = 1_000_000 * USDT
SUPPLY_UNITS: Final = 10**15
GIVEN_WEI: Final = 100 * COIN
GIVEN_SUN: Final = 100_000 * 1_000_000
# Small, so that a transaction becomes final while somebody watches.
SOLID_LAG: Final = 3
TRON_NODES: Final = 2


class EvmKind(NamedTuple):
    """The properties of an EVM chain: its chain id, its token's contract, and the service's finality rule."""

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
        """The settings of a service that uses this chain."""
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
        """Send units from the issuer to an address, in the next block. Returns the transaction's hash.

        `remainder` is added, in the token's smallest units.
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
        """The codes of the running chains, in the table's order."""
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
        """The settings of a service that uses these chains."""
        told = {"WALLET_SANDBOX": "false"}
        for code in self.codes:
            if is_evm(code):
                told |= self.evm_sides[code].settings
            else:
                told[f"WALLET_{code}_RPC"] = ",".join(self.tron.urls)
                told[f"WALLET_{code}_TOKEN"] = to_tron(self.tron.token)
        return told

    def fund(self, chain: str, address: bytes) -> str:
        """Give an address a million USDT and coins for fees, without waiting for the next block.

        The USDT come from a real transaction. Returns its hash. The coins come from nowhere.
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
        """Send units from the issuer to an address, in the next block. Returns the transaction's hash."""
        if is_evm(chain):
            return self.evm_sides[chain].send(address, units)
        return self.tron.pay(self.tron.owner_key, address, units)

    def mine(self, blocks: int = 1) -> None:
        """Make blocks on every chain."""
        for side in self.evm_sides.values():
            side.node.mine(blocks)
        self.tron.mine(blocks)

    def serve(self, block_time_s: float, stop: threading.Event) -> None:
        """Make a block on each chain every `block_time_s` seconds until `stop` is set."""
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
    """Run the default chains and those in `also`, and stop them at the end.

    The hot wallet of `HOT_KEY` and every address in `funded` get money. A port of 0 is chosen freely. `ports`
    are those of the EVM chains. Raises NodeError, ProgramMissing.
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
