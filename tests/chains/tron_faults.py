"""Faults of a TRON node, and what a verdict about them may be."""

from typing import Any

from devnet.tron_api import TronServer
from tests.chains.tron_scene import OTHER, TronScene

from merchant_wallet.chains.evm.transactions import encode_transfer_call
from merchant_wallet.chains.protocol import Pending


def both(scene: TronScene) -> tuple[TronServer, TronServer]:
    first, second = scene.network.servers
    return first, second


def is_calm(verdict: object) -> bool:
    return isinstance(verdict, Pending) and verdict.alert is None


def is_alarmed(verdict: object) -> bool:
    return isinstance(verdict, Pending) and verdict.alert is not None and not verdict.stuck


def drain(scene: TronScene) -> None:
    """Move the wallet's tokens away before its signed transaction is mined."""
    call_data = encode_transfer_call(OTHER, scene.network.balance(scene.wallet))
    scene.network.fake.operate(scene.wallet, scene.network.token, call_data)
    scene.network.fake.holds_back = True
    scene.network.mine()
    scene.network.fake.holds_back = False


def without_records(path: str, question: dict[str, Any], answer: Any) -> Any:
    return {} if path.endswith("gettransactioninfobyid") else answer


def forget(server: TronServer) -> None:
    server.switches.keeps_no_records = True


def prune(server: TronServer) -> None:
    server.switches.pruned_below = len(server.api.fake.blocks) - 5
    server.switches.keeps_no_records = True


def fall_behind(server: TronServer) -> None:
    server.switches.lag = 8


def hide(server: TronServer) -> None:
    for block in server.api.fake.blocks:
        server.switches.hidden |= {one.txid for one in block.transactions}


def go_away(server: TronServer) -> None:
    server.switches.edit = lambda path, question, answer: b"<html>502 Bad Gateway</html>"


def talk(server: TronServer) -> None:
    server.switches.edit = lambda path, question, answer: b"upstream busy"


def answer_nothing(server: TronServer) -> None:
    server.switches.edit = lambda path, question, answer: {}


def answer_lists(server: TronServer) -> None:
    server.switches.edit = lambda path, question, answer: [answer]


def follow_another_branch(server: TronServer) -> None:
    def edit(path: str, question: dict[str, Any], answer: Any) -> Any:
        if path.endswith("gettransactioninfobyid"):
            return {}
        if isinstance(answer, dict) and "blockID" in answer:
            answer = {key: value for key, value in answer.items() if key != "transactions"}
            answer["blockID"] = answer["blockID"][:16] + "ab" * 24
            numbers = {**answer["block_header"]["raw_data"], "txTrieRoot": "0" * 64}
            answer["block_header"] = {"raw_data": numbers}
        return answer

    server.switches.edit = edit


FAULTS = [
    forget,
    prune,
    fall_behind,
    hide,
    go_away,
    talk,
    answer_nothing,
    answer_lists,
    follow_another_branch,
]
