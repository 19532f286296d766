"""What tests of rescues do on any chain: two people decide one, and it is looked at."""

from tests.sweeps.sweep_scene import ACCOUNT, MERCHANT_ID, NOW_MS, SAFE, SweepScene

from merchant_wallet.audit.records import Author
from merchant_wallet.chains.signer import Source
from merchant_wallet.custody.rescues import store
from merchant_wallet.custody.rescues.store import NewRescue, RescueShown

HELD = 12_500_000
ANN = Author("operator:ann", "127.0.0.1", NOW_MS + 5, {"reason": "looked at"})
"""Who ends rescues."""


async def decide(
    scene: SweepScene,
    chain: str,
    address: bytes,
    contract: bytes | None,
    asked: int | None = None,
    *,
    recipient: bytes = SAFE,
    index: int = 0,
) -> int:
    """What two people decided about an address."""
    source = Source(ACCOUNT, 0, index)
    new = NewRescue(chain, address, MERCHANT_ID, source, contract, asked, recipient, None, "operator:bea")
    return await store.add_rescue(scene.connection, new, NOW_MS)


async def show(scene: SweepScene) -> RescueShown:
    """The newest rescue."""
    return (await store.list_rescues(scene.connection))[0]
