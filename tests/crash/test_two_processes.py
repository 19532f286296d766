"""Two processes on one book under load: one hash chain, and every answer once."""

import asyncio
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

from tests.crash.shop import Shop, open_shop, run
from tests.waits import TIMEOUT_S

from merchant_wallet.book.outcomes import Transferred
from merchant_wallet.book.writer import Writer

LOOP = Path(__file__).with_name("credit_loop.py")
EACH = 1500
SHARED = 300


def _start(shop: Shop, first: int, last: int) -> subprocess.Popen[str]:
    arguments = [shop.url, str(shop.merchant_id), shop.alice_address.hex(), str(first), str(last)]
    process = subprocess.Popen(
        [sys.executable, str(LOOP), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    return process


def test_two_processes_write_one_chain_and_every_answer_is_stored_once(database_url: str) -> None:
    shop = run(open_shop(database_url))
    # Both ask for some of the same order ids, and both must get the same entry.
    processes = [_start(shop, 0, EACH), _start(shop, EACH - SHARED, 2 * EACH - SHARED)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    # Both outputs are read at once. A process that can't write would stop while it holds the book's lock.
    with ThreadPoolExecutor() as readers:
        said = list(readers.map(lambda process: process.communicate()[0], processes))
    assert [process.returncode for process in processes] == [0, 0]

    answers = [[json.loads(line) for line in text.splitlines()] for text in said]
    assert [len(each) for each in answers] == [EACH, EACH]
    assert {answer["code"] for each in answers for answer in each} == {200}
    given = [{f"c{answer['number']}": answer["entry_id"] for answer in each} for each in answers]
    stood = run(shop.orders())
    assert {**given[0], **given[1]} == stood
    assert all(given[0][order] == given[1][order] for order in given[0].keys() & given[1].keys())
    assert len(given[0].keys() & given[1].keys()) == SHARED
    assert run(shop.alice_units()) == len(stood) == 2 * EACH - SHARED
    assert run(shop.verify()).entries == 2 + len(stood)
    # They did alternate. Otherwise this test would have shown nothing.
    owners = [entry_id in set(given[0].values()) for entry_id in sorted(stood.values())]
    assert sum(one != other for one, other in pairwise(owners)) > 2


def test_after_a_conflict_the_commands_that_still_wait_need_no_further_submission(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        writer, other = Writer(database_url, batch_limit=2), Writer(database_url)
        await shop.ask(writer, shop.credit("cached"))
        await shop.ask(other, shop.credit("elsewhere"))
        # The first batch conflicts. While it is tried again, the other commands wait.
        async with asyncio.timeout(TIMEOUT_S):
            answers = await shop.gather(writer, [shop.credit(f"c{number}") for number in range(6)])
        assert [type(answer) for answer in answers] == [Transferred] * 6
        await writer.close()
        await other.close()
        await shop.verify()

    run(scenario())
