"""tronweb, which shares no code with us, reads and signs what the service hands out for an offline signer."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.chains.test_tron_independent import ask_tronweb
from tests.chains.tron_scene import TronScene
from tests.cold.cold_scene import COLD, COLD_KEY, HELD, USDT, ColdScene, Moved, make_tron

from merchant_wallet.custody.cold import store
from merchant_wallet.custody.cold.limits import ELSEWHERE, TO_HOT
from merchant_wallet.custody.cold.signatures import describe_unsigned, read_answer

if TYPE_CHECKING:
    from tests.cold.conftest import InScene

UNITS = 250 * USDT


@pytest.fixture
def moved(tron: TronScene, tmp_path: Path) -> Moved:
    """tronweb signs for TRON alone."""
    return make_tron(tron, tmp_path)


def test_tronweb_signs_the_document_and_its_signature_is_taken(in_scene: "InScene", moved: Moved) -> None:
    async def scenario(scene: ColdScene) -> None:
        moved.give(COLD, UNITS)
        moved.fuel(COLD)
        moved.settle()
        number, worker = await scene.begin(UNITS, TO_HOT, ELSEWHERE), scene.worker()
        await scene.turn(worker)
        waiting = await scene.shown(number)
        document = describe_unsigned(waiting)
        made, raw = document["transaction"]["raw_data"], document["transaction"]["raw_data_hex"]
        signature = COLD_KEY.sign_recoverable(bytes.fromhex(document["signingHash"]), hasher=None)
        [said] = ask_tronweb(
            [
                {
                    "kind": made["contract"][0]["type"],
                    "raw_data_hex": raw,
                    "txid": document["transaction"]["txID"],
                    "signature_hex": signature.hex(),
                    "envelope_hex": await scene.sign_elsewhere(number),
                    "secret_hex": COLD_KEY.secret.hex(),
                }
            ]
        )
        assert (said["is_whole"], said["raw_data_hex"], said["txid"]) == (True, raw, document["signingHash"])
        value = made["contract"][0]["parameter"]["value"]
        assert {key: str(said["value"][key]).lower() for key in value} == value
        assert (said["expiration"], said["timestamp"]) == (made["expiration"], made["timestamp"])
        assert (said["fee_limit"], said["ref_block_bytes"].lower()) == (
            made["fee_limit"],
            made["ref_block_bytes"],
        )
        # tronweb's own signature of it, with v as it writes it.
        answer = said["r_and_s"] + bytes([27 + signature[64]]).hex()
        signed = read_answer(waiting, answer)
        assert await store.take_signature(scene.connection, waiting, signed, scene.clock())
        assert (await scene.finish(worker, number)).step == "done"
        assert moved.balance(moved.hot) == HELD + UNITS

    in_scene(scenario)
