"""Whether a signer's keys are this database's. It is asked before anything of a signer is taken or paid.

Rules:
- The database's deposit addresses come from one seed. A keystore with another seed is another service's: with
  it nothing is paid.
- A keystore with the right seed may bring another hot wallet.
- A keystore without a seed pays with the hot wallets that are known. It brings none, because nothing shows
  whose they are: a person takes them (`wallets take`). Only their chains are not paid.
- Without accounts in the database there is no seed to compare.
- Sweeps go to the hot wallet that is known.
"""

from collections.abc import Collection
from typing import Final, NamedTuple

from merchant_wallet.chains.signer import SeededSigner
from merchant_wallet.hot_wallet.store import NO_SEED, describe_other
from merchant_wallet.merchants import own_addresses, xpub_pool
from merchant_wallet.merchants.own_addresses import Connection

OTHER_SEED: Final = (
    "The keystore here has another seed than the one that this database's deposit addresses come from."
    " Use the keystore of this database."
)
NOT_YET: Final = "The workers with this key must take over first."


async def has_seed(signer: SeededSigner) -> bool:
    """Whether the signer has a seed, which shows whose its keys are. Raises SignerAway."""
    return bool(await signer.account(0))


async def find_key_faults(home: Connection, signer: SeededSigner) -> list[str]:
    """Sentences about a keystore that is not this database's. Empty if it is. Raises SignerAway."""
    edges = await xpub_pool.find_first_and_last(home)
    if not edges:
        return []
    # Usually account 0. A restored database may have given up the lowest ones.
    account = dict(await signer.account(edges[0].account_no))
    return [OTHER_SEED] if account and account != edges[0].xpubs else []


async def find_barred(home: Connection, signer: SeededSigner, chains: Collection[str]) -> list[str]:
    """Sentences about those of the chains that a keystore without a seed can't pay on. Raises SignerAway."""
    if await has_seed(signer):
        return []
    return [describe_other(*other, NO_SEED) for other in await _list_others(home, signer, chains)]


async def find_sweep_faults(home: Connection, signer: SeededSigner, chains: Collection[str]) -> list[str]:
    """The same about keys to sweep these chains with: sweeps go to the signer's wallet. Raises SignerAway."""
    faults = await find_key_faults(home, signer) or await find_barred(home, signer, chains)
    # With the seed, a chain without a hot wallet gets it with its first sweep.
    others = [one for one in await _list_others(home, signer, chains) if one.known is not None]
    return faults or [describe_other(*other, NOT_YET) for other in others]


class _Other(NamedTuple):
    """A wallet of the signer that is not the chain's known hot wallet."""

    chain: str
    wallet: bytes
    known: bytes | None


async def _list_others(home: Connection, signer: SeededSigner, chains: Collection[str]) -> list[_Other]:
    known = {one.chain: one.address for one in await own_addresses.list_hot(home) if one.is_current}
    return [
        _Other(chain, wallet, known.get(chain))
        for chain, wallet in (await signer.wallets()).items()
        if chain in chains and known.get(chain) != wallet
    ]
