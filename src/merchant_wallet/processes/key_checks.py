"""Whether a signer's keys are this database's. It is asked before anything of a signer is taken or paid.

Rules:
- The database's deposit addresses come from one seed. A keystore with another seed is another service's.
- A keystore with the right seed may bring another hot wallet.
- A keystore without a seed pays with the hot wallet that is known. It brings no other one, because nothing
  shows whose it is. On a chain that has none yet it brings the first.
- Without accounts in the database there is nothing to compare.
- Sweeps go to the hot wallet that is known.
"""

from collections.abc import Collection
from typing import Final

from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.chains import CODES
from merchant_wallet.chains.signer import SeededSigner
from merchant_wallet.merchants import own_addresses, xpub_pool
from merchant_wallet.merchants.own_addresses import Connection

OTHER_SEED: Final = (
    "The keystore here has another seed than the one that this database's deposit addresses come from."
    " Use the keystore of this database."
)
NO_SEED: Final = (
    "The keystore has no seed, which would show that it belongs to this database: copy seed.json of the old"
    " keystore into it."
)
NOT_YET: Final = "The workers with this key must take over first."


async def find_key_faults(home: Connection, signer: SeededSigner, swept: Collection[str] = ()) -> list[str]:
    """Sentences about keys that are not this database's. Empty if all fit. Raises SignerAway.

    `swept` are the chains to sweep with these keys: sweeps go to the signer's wallet.
    """
    chains, why = swept, NOT_YET
    if edges := await xpub_pool.find_first_and_last(home):
        # Usually account 0. A restored database may have given up the lowest ones.
        account = dict(await signer.account(edges[0].account_no))
        if not account:
            chains, why = CODES, NO_SEED
        elif account != edges[0].xpubs:
            return [OTHER_SEED]
    if not chains:
        return []
    known = {one.chain: one.address for one in await own_addresses.list_hot(home) if one.is_current}
    return [
        f"The hot wallet of {chain} is {format_address(chain, known[chain])}, and the key here is that of"
        f" {format_address(chain, wallet)}. {why}"
        for chain, wallet in (await signer.wallets()).items()
        if chain in chains and known.get(chain, wallet) != wallet
    ]
