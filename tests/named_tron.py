"""A TRON network that runs elsewhere, with the interface of `TronNetwork` as far as a client can have it.

- `WALLET_TEST_TRON` has its nodes' URLs, in the form of `WALLET_TRC20_RPC`.
- `WALLET_TEST_TRON_TOKEN` is the address of a token with 6 decimals.
- `WALLET_TEST_TRON_KEY` names a file with the key, in hex, of an account that holds TRX and that token.

Rules:
- Nobody makes its blocks: `mine` and `settle` wait for them.
- Such a chain stays, so each run has accounts of its own (`RUN`).
"""

import os
import time
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx
from coincurve import PrivateKey
from devnet.fake_tron import selector_of
from devnet.tron_network import TronNetwork, address_of, sign_call, sign_coins
from tests.waits import TIMEOUT_S, wait_until

from merchant_wallet.base.addresses import parse_tron
from merchant_wallet.chains.tron.transactions import parse_envelope, txid_of

URLS: Final = tuple(filter(None, os.environ.get("WALLET_TEST_TRON", "").split(",")))
RUN: Final = os.environ.setdefault("WALLET_TEST_TRON_RUN", str(time.time_ns())) if URLS else ""
"""What makes this run's keys differ from those of others. Processes of the run inherit it."""


class NamedTron(TronNetwork):
    """See above. It has no `fake` and no `servers`, so a test that needs these can't run on it."""

    def __init__(self) -> None:
        key = Path(os.environ["WALLET_TEST_TRON_KEY"]).read_text(encoding="utf-8").strip()
        self.owner_key = PrivateKey(bytes.fromhex(key))
        self.owner = address_of(self.owner_key)
        self.token = parse_tron(os.environ["WALLET_TEST_TRON_TOKEN"])
        self._http = httpx.Client(trust_env=False, timeout=TIMEOUT_S)
        self._sent: list[str] = []

    @property
    def urls(self) -> list[str]:
        """The nodes' URLs."""
        return list(URLS)

    @property
    def chain_id(self) -> int:
        """The last four bytes of the first block's id."""
        return int(self.ask("/walletsolidity/getblock", id_or_num="0")["blockID"][-8:], 16)

    def url_of(self, side: str) -> str:
        """See `TronNetwork.url_of`."""
        return URLS[0]

    def height(self) -> int:
        """The newest block's number."""
        return self._number("wallet")

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def ask(self, path: str, **question: Any) -> Any:
        """The first node's answer."""
        answer = self._http.post(URLS[0] + path, json=question).json()
        assert "Error" not in answer, answer
        return answer

    def mine(self, count: int = 1, interval_ms: int = 0) -> None:
        """Wait for more blocks, and until all that was sent from here is in one."""
        self._wait("wallet", self._number("wallet") + count)
        for txid in self._sent:
            wait_until(partial(self._record, txid), f"{txid} is in no block")
        self._sent.clear()

    def settle(self, interval_ms: int = 0) -> None:
        """Wait until all that waits now is final."""
        self.mine()
        self._wait("walletsolidity", self._number("wallet"))

    def send(
        self, key: PrivateKey, *, contract: bytes, call_data: bytes, fee_limit_sun: int = 50_000_000
    ) -> str:
        """See `TronNetwork.send`."""
        head = self.ask("/wallet/getblock", detail=False)
        return self._broadcast(sign_call(key, *_moment_of(head), contract, call_data, fee_limit_sun))

    def fund(self, address: bytes, *, units: int = 0, sun: int = 0) -> None:
        """Give an address tokens and TRX of the key's account."""
        if sun:
            head = self.ask("/wallet/getblock", detail=False)
            self._broadcast(sign_coins(self.owner_key, *_moment_of(head), address, sun))
        if units:
            self.pay(self.owner_key, address, units)

    def balance(self, address: bytes) -> int:
        """Units of the token at an address, now."""
        answer = self.ask(
            "/wallet/triggerconstantcontract",
            owner_address="41" + self.owner.hex(),
            contract_address="41" + self.token.hex(),
            data=(selector_of("balanceOf(address)") + bytes(12) + address).hex(),
        )
        return int(answer["constant_result"][0], 16)

    def coins(self, address: bytes) -> int:
        """Sun at an address, now."""
        return int(self.ask("/wallet/getaccount", address="41" + address.hex()).get("balance", 0))

    def fee_of(self, txid: str) -> int:
        """What a transaction burnt, in sun."""
        return int(self._record(txid).get("fee", 0))

    def _broadcast(self, envelope: bytes) -> str:
        answer = self.ask("/wallet/broadcasthex", transaction=envelope.hex())
        assert answer["result"], answer
        self._sent.append(txid_of(parse_envelope(envelope)[0]))
        return self._sent[-1]

    def _number(self, side: str) -> int:
        numbers = self.ask(f"/{side}/getblock", detail=False)["block_header"]["raw_data"]
        return int(numbers.get("number", 0))

    def _record(self, txid: str) -> dict[str, Any]:
        record: dict[str, Any] = self.ask("/wallet/gettransactioninfobyid", value=txid)
        return record

    def _wait(self, side: str, number: int) -> None:
        wait_until(lambda: self._number(side) >= number, f"{side} does not come to block {number}")


def _moment_of(head: dict[str, Any]) -> tuple[str, int, int]:
    """The block to refer to, the chain's time, and a time that makes the bytes of two transactions differ."""
    now_ms = int(head["block_header"]["raw_data"]["timestamp"])
    return str(head["blockID"]), now_ms, now_ms + time.monotonic_ns() % 10**9 // 1000
