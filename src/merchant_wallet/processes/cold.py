"""Constructs the worker of cold money. It uses the chains of the payer and their hot wallets."""

from collections.abc import Callable, Mapping

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.workers import Connect
from merchant_wallet.chains.evm.chain import EvmChain
from merchant_wallet.chains.protocol import Chain
from merchant_wallet.chains.tron.chain import TronChain
from merchant_wallet.custody.cold.worker import ColdWorker, HotSide
from merchant_wallet.hot_wallet.wallet import HotWallet


def open_cold_worker(
    connect: Connect,
    chains: Mapping[str, Chain],
    *,
    clock: Callable[[], int] = now_ms,
    may_take_wallets: bool = True,
) -> ColdWorker:
    """The worker for these chains, which stay the caller's."""
    sides = {
        name: open_side(name, chain, clock, may_take_wallet=may_take_wallets)
        for name, chain in chains.items()
    }
    return ColdWorker(connect, sides, clock=clock)


def open_side(name: str, chain: Chain, clock: Callable[[], int], *, may_take_wallet: bool = True) -> HotSide:
    """One chain with its hot wallet. A sandbox chain knows nothing that is signed elsewhere."""
    hot_wallet = HotWallet(name, chain, clock, may_take=may_take_wallet)
    return HotSide(hot_wallet, chain if isinstance(chain, EvmChain | TronChain) else None)
