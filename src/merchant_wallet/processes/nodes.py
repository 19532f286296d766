"""The chains that the settings name, over their nodes: to pay on, or only to read.

Rules: a chain without a node in the settings does not exist here. Opening asks no node anything;
`check_chains` does, and says in sentences what does not fit.
"""

from collections.abc import Mapping

from merchant_wallet.base.addresses import ERC20, TRC20
from merchant_wallet.base.config import ConfigError
from merchant_wallet.base.settings import Settings
from merchant_wallet.chains.evm.chain import EvmChain
from merchant_wallet.chains.evm.rules import EvmRules
from merchant_wallet.chains.evm.sweeps import EvmSweeper
from merchant_wallet.chains.signer import Signer
from merchant_wallet.chains.transport import Endpoints
from merchant_wallet.chains.tron.chain import TronChain, TronNodes, TronReader, TronRules
from merchant_wallet.chains.tron.sweeps import TronSweeper


async def open_chains(settings: Settings, signer: Signer) -> dict[str, EvmChain | TronChain]:
    """Every configured chain, by its name, to pay on (and to read).

    Raises SignerAway, and ConfigError for a chain that the signer has no key for.
    """
    wallets = await signer.wallets()
    chains: dict[str, EvmChain | TronChain] = {}
    if settings.erc20_rpc:
        wallet = _wallet(wallets, ERC20)
        endpoints = Endpoints(settings.erc20_rpc)
        chains[ERC20] = EvmChain(_evm_rules(settings), endpoints, wallet=wallet, signer=signer)
    if settings.trc20_rpc:
        wallet = _wallet(wallets, TRC20)
        chains[TRC20] = TronChain(
            _tron_rules(settings), TronNodes(settings.trc20_rpc), wallet=wallet, signer=signer
        )
    return chains


def open_chain_readers(settings: Settings) -> dict[str, EvmChain | TronReader]:
    """Every configured chain, by its name, only to read: no key is needed."""
    readers: dict[str, EvmChain | TronReader] = {}
    if settings.erc20_rpc:
        readers[ERC20] = EvmChain(_evm_rules(settings), Endpoints(settings.erc20_rpc))
    if settings.trc20_rpc:
        readers[TRC20] = TronReader(_tron_rules(settings), TronNodes(settings.trc20_rpc))
    return readers


def open_sweepers(
    settings: Settings, wallets: Mapping[str, bytes], signer: Signer
) -> dict[str, EvmSweeper | TronSweeper]:
    """Every configured chain of which the hot wallet is known, by its name, to sweep on."""
    sweepers: dict[str, EvmSweeper | TronSweeper] = {}
    if settings.erc20_rpc and ERC20 in wallets:
        wallet, endpoints = wallets[ERC20], Endpoints(settings.erc20_rpc)
        evm = EvmChain(_evm_rules(settings), endpoints, wallet=wallet, signer=signer)
        sweepers[ERC20] = EvmSweeper(evm, endpoints, signer)
    if settings.trc20_rpc and TRC20 in wallets:
        wallet, nodes = wallets[TRC20], TronNodes(settings.trc20_rpc)
        tron = TronChain(_tron_rules(settings), nodes, wallet=wallet, signer=signer)
        sweepers[TRC20] = TronSweeper(tron, signer)
    return sweepers


async def check_chains(chains: Mapping[str, EvmChain | TronReader]) -> list[str]:
    """Sentences about what of chain ids, tokens and clocks does not fit; none when all is well."""
    return [sentence for chain in chains.values() for sentence in await chain.check_setup()]


def _wallet(wallets: Mapping[str, bytes], chain: str) -> bytes:
    if chain not in wallets:
        raise ConfigError(f"WALLET_{chain}_RPC is set, and the signer has no key for {chain}.")
    return wallets[chain]


def _evm_rules(settings: Settings) -> EvmRules:
    return EvmRules(
        chain_id=settings.erc20_chain_id,
        token=settings.erc20_token,
        finality=settings.erc20_finality,
        fee_cap_wei=settings.erc20_fee_cap,
        stuck_blocks=settings.erc20_stuck_blocks,
    )


def _tron_rules(settings: Settings) -> TronRules:
    return TronRules(
        chain_id=settings.trc20_chain_id, token=settings.trc20_token, fee_cap_sun=settings.trc20_fee_cap
    )
