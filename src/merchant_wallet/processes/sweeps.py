"""Constructs sweeping from settings, signer and nodes, for the worker side and for the command."""

from collections.abc import Collection, Mapping

from psycopg import AsyncConnection

from merchant_wallet.base.chains import CHAINS
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.settings import Settings
from merchant_wallet.base.workers import Connect
from merchant_wallet.chains.signer import Signer
from merchant_wallet.chains.sweeps import NoSigner, Sweeper
from merchant_wallet.custody.sweeps.plan import SweepPolicy
from merchant_wallet.custody.sweeps.worker import SweepWorker
from merchant_wallet.hot_wallet.store import WalletMoved, find_address, open_wallet
from merchant_wallet.processes.nodes import open_sweepers


def make_sweep_policy(settings: Settings, chain: str, sweeper: Sweeper) -> SweepPolicy:
    """The settings' policy for a chain's sweeps."""
    return SweepPolicy(
        coin_price_units=settings.chains[chain].coin_price,
        coin_scale=10 ** CHAINS[chain].coin_decimals,
        share_e8=settings.sweep_share,
        minimum_units=settings.sweep_minimum,
        max_concurrent=settings.sweep_at_once,
        fee_cap=sweeper.fee_cap,
    )


async def open_reading_sweepers(
    settings: Settings, home: AsyncConnection, chains: Collection[str] | None = None
) -> Mapping[str, Sweeper]:
    """Sweepers that only read, for the chains with a node and a known hot wallet. No key is needed."""
    wallets = {name: await find_address(home, name) for name in chains or settings.open_chains}
    known = {name: wallet for name, wallet in wallets.items() if wallet is not None}
    return open_sweepers(settings, known, NoSigner())


async def open_sweep_worker(settings: Settings, connect: Connect, signer: Signer) -> SweepWorker:
    """The worker that sweeps every chain that the signer has a key for. Raises SignerAway."""
    sweepers: Mapping[str, Sweeper] = open_sweepers(settings, await signer.wallets(), signer)
    return SweepWorker(connect, sweepers)


async def enter_wallets(home: AsyncConnection, sweepers: Mapping[str, Sweeper]) -> list[str]:
    """Make the wallets that are swept to known, as the payers do: before them, a chain may have none.

    To be called after `find_sweep_faults`. Returns why a wallet can't be the hot wallet.
    """
    try:
        for chain, sweeper in sweepers.items():
            await open_wallet(home, chain, sweeper.wallet, now_ms())
    except WalletMoved as moved:
        return [str(moved)]
    return []
