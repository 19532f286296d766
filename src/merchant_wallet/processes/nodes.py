"""The chains of the settings, through their nodes: to pay on, or only to read.

Rules: a chain without a node in the settings does not exist here. Opening sends nothing to a node.
`check_chains` asks the nodes and describes in sentences what does not fit the settings.
"""

from collections.abc import Mapping

from merchant_wallet.base.chains import CHAINS, STATE_BLOCKS, Chain, is_evm
from merchant_wallet.base.config import ConfigError
from merchant_wallet.base.node_addresses import NodeAddress
from merchant_wallet.base.settings import Settings
from merchant_wallet.chains.call_budget import Purpose
from merchant_wallet.chains.evm.chain import EvmChain
from merchant_wallet.chains.evm.rules import EvmRules
from merchant_wallet.chains.evm.sweeps import EvmSweeper
from merchant_wallet.chains.signer import Signer
from merchant_wallet.chains.transport import Endpoints
from merchant_wallet.chains.tron.chain import TronChain, TronNodes, TronReader, TronRules
from merchant_wallet.chains.tron.sweeps import TronSweeper

ChainReaders = Mapping[str, EvmChain | TronReader]
"""Chains by their code, to read."""


async def open_chains(settings: Settings, signer: Signer) -> dict[str, EvmChain | TronChain]:
    """Every configured chain, by its code, to pay on (and to read).

    Raises SignerAway, and ConfigError for a chain that the signer has no key for.
    """
    wallets = await signer.wallets()
    return {code: _open_chain(settings, code, _wallet(wallets, code), signer) for code in _list(settings)}


def open_chain_readers(settings: Settings) -> dict[str, EvmChain | TronReader]:
    """Every configured chain, by its code, only to read: no key is needed."""
    return {code: _open_reader(settings, code) for code in _list(settings)}


def open_sweepers(
    settings: Settings, wallets: Mapping[str, bytes], signer: Signer
) -> dict[str, EvmSweeper | TronSweeper]:
    """Every configured chain with a known hot wallet, by its code, to sweep on."""
    known = [code for code in _list(settings) if code in wallets]
    return make_sweepers({code: _open_chain(settings, code, wallets[code], signer) for code in known}, signer)


def make_sweepers(
    chains: Mapping[str, EvmChain | TronChain], signer: Signer
) -> dict[str, EvmSweeper | TronSweeper]:
    """A sweeper for each chain, over the chain's own nodes."""
    return {
        code: EvmSweeper(chain, signer) if isinstance(chain, EvmChain) else TronSweeper(chain, signer)
        for code, chain in chains.items()
    }


async def check_chains(chains: ChainReaders) -> list[str]:
    """Sentences about chain ids, tokens and clocks that do not fit the settings. Empty if all fit."""
    return [sentence for chain in chains.values() for sentence in await chain.check_setup()]


def list_deep_finality(settings: Settings) -> list[str]:
    """Sentences about chains whose final block is older than the state of a full node."""
    return [
        f"WALLET_{code}_FINALITY is {finality}, and a full node has the state of {STATE_BLOCKS} blocks: "
        "without an archive node nothing is paid"
        for code in _list(settings)
        if isinstance(finality := settings.chains[code].finality, int) and finality > STATE_BLOCKS
    ]


async def find_successors(chains: ChainReaders) -> dict[str, str]:
    """Each chain whose token the issuer has replaced, with the new contract. Raises ChainAway."""
    found = {code: await chain.successor() for code, chain in chains.items()}
    return {code: successor for code, successor in found.items() if successor is not None}


def _list(settings: Settings) -> list[str]:
    return [code for code, chain in settings.chains.items() if chain.rpc]


def _wallet(wallets: Mapping[str, bytes], code: str) -> bytes:
    if code not in wallets:
        raise ConfigError(f"WALLET_{code}_RPC is set, and the signer has no key for {code}.")
    return wallets[code]


def _list_nodes(settings: Settings, code: str) -> list[NodeAddress]:
    return [node._replace(outbound=settings.outbound) for node in settings.chains[code].nodes]


def _open_chain(settings: Settings, code: str, wallet: bytes, signer: Signer) -> EvmChain | TronChain:
    nodes = _list_nodes(settings, code)
    if is_evm(code):
        return EvmChain(_evm_rules(settings, CHAINS[code]), Endpoints(nodes), wallet=wallet, signer=signer)
    return TronChain(_tron_rules(settings, CHAINS[code]), TronNodes(nodes), wallet=wallet, signer=signer)


def _open_reader(settings: Settings, code: str) -> EvmChain | TronReader:
    nodes = _list_nodes(settings, code)
    if is_evm(code):
        return EvmChain(_evm_rules(settings, CHAINS[code]), Endpoints(nodes, purpose=Purpose.READING))
    return TronReader(_tron_rules(settings, CHAINS[code]), TronNodes(nodes, purpose=Purpose.READING))


def _evm_rules(settings: Settings, chain: Chain) -> EvmRules:
    said = settings.chains[chain.code]
    return EvmRules(
        name=chain.code,
        chain_id=said.chain_id,
        token=said.token,
        token_decimals=chain.token_decimals,
        finality=said.finality,
        fee_cap_wei=said.fee_cap,
        min_tip_wei=chain.min_tip,
        stuck_blocks=said.stuck_blocks,
        recent_s=chain.recent_s,
    )


def _tron_rules(settings: Settings, chain: Chain) -> TronRules:
    said = settings.chains[chain.code]
    return TronRules(chain_id=said.chain_id, token=said.token, fee_cap_sun=said.fee_cap)
