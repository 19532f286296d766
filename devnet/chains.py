"""Both development chains together: started, funded, making blocks, and named as the service's settings."""

import hashlib
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from coincurve import PrivateKey

from devnet.evm_node import COIN, EvmDevnet, Token
from devnet.tron_network import TronNetwork, address_of, run_network
from merchant_wallet.base.addresses import ERC20, TRC20, to_eip55, to_tron
from merchant_wallet.base.clock import now_ms

USDT: Final = 1_000_000
# The same key on both chains. Anybody can know it: it is for these chains alone.
HOT_KEY: Final = PrivateKey(hashlib.sha256(b"the hot wallet of the devnet").digest())
GIVEN_UNITS: Final = 1_000_000 * USDT
GIVEN_WEI: Final = 100 * COIN
GIVEN_SUN: Final = 100_000 * 1_000_000
# Small, so that what is shown to somebody becomes final while they watch.
SOLID_LAG: Final = 3
TRON_NODES: Final = 2


@dataclass(frozen=True)
class Devnet:
    """Two running chains with the token deployed on each."""

    evm: EvmDevnet
    token: Token
    tron: TronNetwork

    @property
    def settings(self) -> dict[str, str]:
        """What a service needs to know to run on these chains."""
        return {
            "WALLET_SANDBOX": "false",
            "WALLET_ERC20_RPC": self.evm.url,
            "WALLET_ERC20_TOKEN": to_eip55(self.token.address),
            "WALLET_ERC20_CHAIN_ID": str(int(self.evm.ask("eth_chainId"), 16)),
            "WALLET_TRC20_RPC": ",".join(self.tron.urls),
            "WALLET_TRC20_TOKEN": to_tron(self.tron.token),
        }

    def fund(self, chain: str, address: bytes) -> str:
        """Give an address a million USDT and coins for the fees, without waiting for the next block.

        The USDT come by a real transaction, whose hash this gives; the coins come from nowhere.
        """
        if chain == ERC20:
            self.evm.fund(address, GIVEN_WEI)
        else:
            self.tron.fund(address, sun=GIVEN_SUN)
        tx_hash = self.send(chain, address, GIVEN_UNITS)
        if chain == ERC20:
            self.evm.mine()
        else:
            self.tron.mine()
        return tx_hash

    def send(self, chain: str, address: bytes, units: int) -> str:
        """Pay an address from the issuer's purse, in the next block; the transaction's hash."""
        if chain == ERC20:
            call = self.token.call_data("transfer(address,uint256)", address, units)
            return self.evm.send_as(self.token.issuer, self.token.address, call)
        return self.tron.pay(self.tron.owner_key, address, units)

    def serve(self, block_time_s: float, stop: threading.Event) -> None:
        """Make a block on each chain at this pace until `stop` is set."""
        while not stop.wait(block_time_s):
            self.evm.mine()
            self.tron.mine()


@contextmanager
def run_devnet(
    *,
    evm_port: int = 0,
    tron_ports: Sequence[int] = (),
    funded: Sequence[tuple[str, bytes]] = (),
) -> Iterator[Devnet]:
    """Both chains, gone at the end. The hot wallet of `HOT_KEY` and every address in `funded` have money.

    Ports of 0, or none, are chosen. Raises NodeError, ProgramMissing.
    """
    ports = tuple(tron_ports)
    with (
        EvmDevnet(port=evm_port) as evm,
        run_network(TRON_NODES, solid_lag=SOLID_LAG, clock=now_ms, ports=ports) as tron,
    ):
        devnet = Devnet(evm, evm.deploy(), tron)
        wallet = address_of(HOT_KEY)
        for chain, address in ((ERC20, wallet), (TRC20, wallet), *funded):
            devnet.fund(chain, address)
        devnet.evm.mine(SOLID_LAG)
        tron.settle()
        yield devnet
