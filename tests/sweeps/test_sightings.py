"""What is said of a transaction whose contracts are strange, or which moves much."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.sweeps.sweep_scene import MERCHANT_ID, SweepScene

from merchant_wallet.base.addresses import to_eip55
from merchant_wallet.base.chains import ERC20
from merchant_wallet.chains.foreign import Moved, SeenTransaction, TokenWords
from merchant_wallet.chains.protocol import Block
from merchant_wallet.chains.transport import NodeRefused
from merchant_wallet.custody.rescues.sightings import MAX_MOVED, Sightings
from merchant_wallet.custody.rescues.store import KeyOwner, find_owner

if TYPE_CHECKING:
    from tests.sweeps.conftest import InScene

TX_HASH = "0x" + "ab" * 32
MUTE, KNOWN = b"m" * 20, b"k" * 20
STRANGER = b"s" * 20


@dataclass
class FakeChain:
    """A chain with one transaction. The contract `MUTE` fails, without a revert, if it is asked anything."""

    moved: tuple[Moved, ...]

    async def final(self) -> Block:
        return Block(9, "0x9", "0x8", 0)

    async def look_up(self, tx_hash: str) -> SeenTransaction | None:
        assert tx_hash == TX_HASH
        return SeenTransaction(8, True, self.moved)

    async def read_words(self, contract: bytes) -> TokenWords:
        if contract == MUTE:
            raise NodeRefused("node", -32000, "eth_call: invalid opcode: INVALID")
        return TokenWords("OTHER", 2)

    async def foreign_balance(self, address: bytes, contract: bytes | None) -> int:
        return 0


def make_sightings(scene: SweepScene, *moved: Moved) -> Sightings:
    async def find(merchant_id: int, address: bytes) -> KeyOwner | None:
        return await find_owner(scene.connection, merchant_id, address)

    return Sightings(scene.connection, {ERC20: FakeChain(moved)}, {ERC20: b"u" * 20}, find)


def test_a_contract_that_says_nothing_hides_no_transfer(in_scene: "InScene") -> None:
    async def scenario(scene: SweepScene) -> None:
        moved = (Moved(MUTE, STRANGER, STRANGER, 700), Moved(KNOWN, STRANGER, STRANGER, 725))
        [seen] = (await make_sightings(scene, *moved).look(TX_HASH))["chains"]
        assert seen["state"] == "final"
        said = [(one["token"], one["symbol"], one["amount"], one["units"]) for one in seen["moved"]]
        assert said == [(to_eip55(MUTE), None, None, "700"), (to_eip55(KNOWN), "OTHER", "7.25", "725")]

    in_scene(scenario)


def test_of_many_transfers_those_to_us_are_shown(in_scene: "InScene") -> None:
    async def scenario(scene: SweepScene) -> None:
        address = await scene.deposit(0, 70)
        await scene.rows("insert into issued_address values (%s, %s)", address, MERCHANT_ID)
        many = [Moved(KNOWN, STRANGER, STRANGER, 1)] * (MAX_MOVED + 5)
        moved = [*many, Moved(KNOWN, STRANGER, address, 2)]
        [seen] = (await make_sightings(scene, *moved).look(TX_HASH))["chains"]
        assert (len(seen["moved"]), seen["why"]) == (MAX_MOVED, "6 more transfers")
        assert (seen["moved"][0]["to"], seen["moved"][0]["merchantId"]) == (to_eip55(address), MERCHANT_ID)

    in_scene(scenario)
