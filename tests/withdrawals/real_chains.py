"""The product's chains over the development nodes, for payers in any process. A file says where the nodes
are.
"""

import json
from pathlib import Path

from coincurve import PrivateKey
from devnet.tron_network import address_of
from tests.chains import evm_scene, tron_scene
from tests.chains.evm_scene import EvmScene
from tests.chains.tron_scene import TronScene

from merchant_wallet.chains.evm.chain import EvmChain
from merchant_wallet.chains.evm.rules import EvmRules
from merchant_wallet.chains.transport import Endpoints
from merchant_wallet.chains.tron.chain import TronChain, TronNodes, TronRules

NAME = "real.json"


def write_down(folder: Path, evm: EvmScene, tron: TronScene) -> None:
    """Store where the chains are."""
    where = {
        "evm": evm.node.url,
        "evm_token": evm.token.address.hex(),
        "evm_chain_id": evm.rules.chain_id,
        "tron": tron.network.urls,
        "tron_token": tron.rules.token.hex(),
        "tron_chain_id": tron.rules.chain_id,
        "tron_key": tron.signer.key.secret.hex(),
    }
    (folder / NAME).write_text(json.dumps(where))


def open_real(folder: Path) -> dict[str, EvmChain | TronChain]:
    """Both chains for payouts."""
    where = json.loads((folder / NAME).read_text())
    evm_rules = EvmRules(
        chain_id=where["evm_chain_id"], token=bytes.fromhex(where["evm_token"]), stuck_blocks=5, recent_s=0
    )
    tron_rules = TronRules(
        chain_id=where["tron_chain_id"], token=bytes.fromhex(where["tron_token"]), recent_s=0
    )
    key = PrivateKey(bytes.fromhex(where["tron_key"]))
    return {
        "ERC20": EvmChain(
            evm_rules,
            Endpoints((where["evm"],), timeout_s=60),
            wallet=evm_scene.WALLET,
            signer=evm_scene.KeySigner(),
        ),
        "TRC20": TronChain(
            tron_rules,
            TronNodes(where["tron"], timeout_s=60),
            wallet=address_of(key),
            signer=tron_scene.KeySigner(key),
        ),
    }
