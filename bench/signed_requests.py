"""Signed requests, ready to send: each is written once, to a file that `walk.lua` reads.

Rules: a nonce and an order id are used once (a random prefix and a count). Amounts are small enough that no
balance runs out. The seed determines what a run draws. A request is valid for 300 seconds, so slices are
written right before they are sent.
"""

import os
import random
import secrets
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from bench.merchants import NOTIFY_URL, PAYOUT_ADDRESS, BenchMerchant, MerchantSet, read_merchants
from merchant_wallet.base.signing import HMAC, sign

BLOCK: Final = 2000
MIX: Final = "mix"
SHARED_MEMORY: Final = Path("/dev/shm")
RECORD_BYTES: Final = 512
"""More than a transfer needs in a slice."""

Draw = random.Random
Values = dict[str, str | int]


def _debit(merchant: BenchMerchant, draw: Draw, mc_order_id: str) -> Values:
    name = merchant.draw_name(draw)
    return {"extUserId": name, "currency": "KFB", "amount": "0.01", "mcOrderId": mc_order_id}


def _credit(merchant: BenchMerchant, draw: Draw, mc_order_id: str) -> Values:
    address = merchant.draw_address(draw)
    return {"currency": "KFB", "amount": "0.01", "mcOrderId": mc_order_id, "address": address}


def _withdraw(merchant: BenchMerchant, draw: Draw, mc_order_id: str) -> Values:
    return {
        "amount": "0.01",
        "chainType": "TRC20",
        "currency": "USDT",
        "mcOrderId": mc_order_id,
        "address": PAYOUT_ADDRESS,
        "notifyUrl": NOTIFY_URL,
    }


def _query(merchant: BenchMerchant, draw: Draw, mc_order_id: str) -> Values:
    known = draw.choice(merchant.orders)
    return {"orderId": known.order_id, "mcOrderId": known.mc_order_id}


def _look_up(merchant: BenchMerchant, draw: Draw, mc_order_id: str) -> Values:
    return {"extUserId": merchant.draw_name(draw)}


def _read_balance(merchant: BenchMerchant, draw: Draw, mc_order_id: str) -> Values:
    return {}


def _exchange(merchant: BenchMerchant, draw: Draw, mc_order_id: str) -> Values:
    send, receive = ("USDT", "KFB") if draw.random() < 0.5 else ("KFB", "USDT")
    return {"amount": "0.10", "sendCurrency": send, "receiveCurrency": receive, "mcOrderId": mc_order_id}


def _quote(merchant: BenchMerchant, draw: Draw, mc_order_id: str) -> Values:
    return {"amount": "12.50", "currency": "USDT"}


DEBIT: Final = "transferFromUserToMerchant"
CREDIT: Final = "transferFromMerchantToUser"
WITHDRAW: Final = "createMerchantWithdrawOrder"
BALANCE: Final = "getMerchantBalance"

FIELDS: Final[dict[str, Callable[[BenchMerchant, Draw, str], Values]]] = {
    BALANCE: _read_balance,
    "getWithdrawFee": _quote,
    "getMerchantCustomer": _look_up,
    "queryOrder": _query,
    DEBIT: _debit,
    CREDIT: _credit,
    "exchange": _exchange,
    WITHDRAW: _withdraw,
}
"""The eight operations, each with its fields beside the common ones."""

SHARES: Final = {
    DEBIT: 30,
    CREDIT: 20,
    BALANCE: 15,
    "getMerchantCustomer": 10,
    "queryOrder": 8,
    "getWithdrawFee": 7,
    "exchange": 7,
    WITHDRAW: 3,
}
"""The mix of operations, in percent."""


class SliceSpec(NamedTuple):
    """The content of a slice: `size` requests of an operation (or the mix) by the merchants of a
    population.
    """

    population: str
    operation: str
    size: int
    prefix: str


def make_request(merchant: BenchMerchant, operation: str, draw: Draw, name: str, at_ms: int) -> bytes:
    """One signed HTTP request. `name`, unique and at most 20 characters, is its nonce and its order id."""
    path = f"/merchant/{operation}"
    values: Values = {
        "appKey": merchant.app_key,
        "timestamp": at_ms,
        "nonceStr": name,
        **FIELDS[operation](merchant, draw, name),
    }
    values["sign"] = sign(HMAC, merchant.secret, path, {key: str(value) for key, value in values.items()})
    body = msgspec.json.encode(values)
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def make_requests(
    merchant_set: MerchantSet, spec: SliceSpec, at_ms: int, first: int, count: int
) -> list[bytes]:
    """A part of a slice's requests, numbered from `first`."""
    draw = random.Random(f"{spec.prefix}{first}")
    merchants = merchant_set.populations[spec.population]
    operations = (
        draw.choices(list(SHARES), list(SHARES.values()), k=count)
        if spec.operation == MIX
        else [spec.operation] * count
    )
    return [
        make_request(draw.choice(merchants), operation, draw, f"{spec.prefix}{number:x}", at_ms)
        for number, operation in enumerate(operations, first)
    ]


def write_slice(merchants_path: str, path: str, spec: SliceSpec) -> None:
    """Write one slice, in a process of its own."""
    merchant_set = _read_merchants(merchants_path)
    with open(path, "wb") as file:
        for first in range(0, spec.size, BLOCK):
            at_ms = time.time_ns() // 1_000_000
            block = make_requests(merchant_set, spec, at_ms, first, min(BLOCK, spec.size - first))
            file.write(b"".join([b"%05d%b" % (len(request), request) for request in block]))


@lru_cache(maxsize=1)
def _read_merchants(path: str) -> MerchantSet:
    return read_merchants(Path(path))


def find_memory() -> Path | None:
    """A folder in memory, so that signed requests do not go to the measured disk, if the machine has one."""
    return SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else None


class RequestWriter:
    """Writes slices with several processes. Each slice is `folder/name.N`, N from 0."""

    def __init__(self, merchants_path: Path, folder: Path, processes: int) -> None:
        self._merchants_path = merchants_path
        self._folder = folder
        self._pool = ProcessPoolExecutor(processes, mp_context=get_context("spawn"))

    def count_room(self) -> int:
        """How many requests fit into the folder; a shared memory may be small."""
        return shutil.disk_usage(self._folder).free // 2 // RECORD_BYTES

    def write_slices(self, name: str, population: str, operation: str, count: int, slices: int) -> Path:
        """Write `count` requests and return the common path of the slices."""
        path = self._folder / name
        each = -(-count // slices)
        written = [
            self._pool.submit(
                write_slice,
                str(self._merchants_path),
                f"{path}.{number}",
                SliceSpec(population, operation, each, secrets.token_hex(5)),
            )
            for number in range(slices)
        ]
        for future in written:
            future.result()
        return path

    def discard(self, path: Path) -> None:
        """Delete the slices."""
        for piece in path.parent.glob(f"{path.name}.*"):
            piece.unlink()

    def close(self) -> None:
        """Stop the processes."""
        self._pool.shutdown(cancel_futures=True)
