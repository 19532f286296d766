"""A process that credits alice with its own writer. `test_two_processes.py` runs several at once.

Arguments: database URL, merchant id, alice's address in hexadecimal, the first and the last order number. It
waits for a line on its standard input, so that all start together, and prints a line of JSON for each answer.
"""

import asyncio
import json
import sys

import uvloop

from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.currencies import KFB
from merchant_wallet.book.commands import MerchantToUser, Submission
from merchant_wallet.book.outcomes import Outcome, Transferred
from merchant_wallet.book.writer import Writer

MAX_CONCURRENT = 64


async def credit(url: str, merchant_id: int, address: bytes, first: int, last: int) -> None:
    """Credit one millionth per order number, `MAX_CONCURRENT` requests at a time."""
    writer = Writer(url, batch_limit=16)
    await writer.open()
    print("open", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    numbers = iter(range(first, last))

    async def client() -> None:
        for number in numbers:
            command = MerchantToUser(f"c{number}", address, KFB, 1)
            _say(number, await writer.submit(merchant_id, Submission(command)))

    await asyncio.gather(*(client() for _ in range(MAX_CONCURRENT)))
    await writer.close()


def _say(number: int, outcome: Outcome) -> None:
    code = outcome.code if isinstance(outcome, Refusal) else 200
    entry_id = outcome.entry_id if isinstance(outcome, Transferred) else None
    print(json.dumps({"number": number, "code": code, "entry_id": entry_id}), flush=True)


if __name__ == "__main__":
    url, merchant_id, address, first, last = sys.argv[1:]
    uvloop.run(credit(url, int(merchant_id), bytes.fromhex(address), int(first), int(last)))
