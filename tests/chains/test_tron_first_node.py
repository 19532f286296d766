"""A lying node, even if it is asked first, decides neither the balance nor the block that payouts refer
to.
"""

from typing import Any

import pytest
from tests.chains.tron_faults import both
from tests.chains.tron_scene import WALLET_UNITS, TronScene, payout_of

from merchant_wallet.chains.protocol import ChainDisagrees

RESERVED = hex(WALLET_UNITS * 1_000)[2:].rjust(64, "0")


def test_funds_are_the_least_that_any_node_shows(tron: TronScene) -> None:
    def boast(path: str, question: dict[str, Any], answer: Any) -> Any:
        if question.get("function_selector") == "balanceOf(address)":
            return {**answer, "constant_result": [RESERVED]}
        return answer

    both(tron)[0].switches.edit = boast
    assert tron.play(tron.chain.funds()) == WALLET_UNITS


def test_the_funds_come_from_any_node_that_answers(tron: TronScene) -> None:
    both(tron)[0].switches.edit = lambda path, question, answer: b"upstream busy"
    assert tron.play(tron.chain.funds()) == WALLET_UNITS


@pytest.mark.parametrize("liar", [0, 1])
def test_no_payout_refers_to_a_block_that_one_node_has_invented(tron: TronScene, liar: int) -> None:
    """No node would accept such a payout, and it could never be proven expired."""

    def invent(path: str, question: dict[str, Any], answer: Any) -> Any:
        if not isinstance(answer, dict) or "blockID" not in answer:
            return answer
        numbers = answer["block_header"]["raw_data"]
        if not path.startswith("/walletsolidity"):
            # A little older than the other node's, so that its answer is the second newest.
            older = {**numbers, "timestamp": numbers["timestamp"] - 1}
            return {**answer, "block_header": {"raw_data": older}}
        return {**answer, "blockID": answer["blockID"][:16] + "ab" * 24}

    both(tron)[liar].switches.edit = invent

    async def story() -> None:
        with pytest.raises(ChainDisagrees):
            await tron.chain.build(payout_of(), [])

    tron.play(story())
