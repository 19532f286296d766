"""Answers that are the same for everybody: how long they count, and what is never kept."""

import asyncio

import pytest

from merchant_wallet.chains.recent import Recent, keep

MAX_AGE_S = 3.0


class Asked:
    """A question to a node, answered when the test says so."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.count = 0
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.failure: Exception | None = None
        self.recent = Recent(MAX_AGE_S, lambda: self.now_s)

    async def _ask(self) -> int:
        self.count += 1
        answer = self.count
        await self.may_answer.wait()
        if self.failure is not None:
            raise self.failure
        return answer

    async def read(self) -> int:
        return await self.recent.read("pause", self._ask)

    async def renew(self) -> int:
        return await self.recent.renew("pause", self._ask)


def test_an_answer_counts_until_it_is_too_old_since_its_request_began() -> None:
    async def steps() -> None:
        asked = Asked()
        asked.may_answer.clear()
        slow = asyncio.create_task(asked.read())
        await asyncio.sleep(0)
        asked.now_s = 2.0
        asked.may_answer.set()
        assert await slow == 1
        asked.now_s = MAX_AGE_S
        assert await asked.read() == 1
        asked.now_s = MAX_AGE_S + 0.1
        assert await asked.read() == 2

    asyncio.run(steps())


def test_all_who_ask_at_once_share_one_request_and_its_failure() -> None:
    async def steps() -> None:
        asked = Asked()
        asked.failure = OSError("away")
        answers = await asyncio.gather(*[asked.read() for _ in range(60)], return_exceptions=True)
        assert (set(map(str, answers)), asked.count) == ({"away"}, 1)
        # A failure is not kept.
        asked.failure = None
        assert await asyncio.gather(*[asked.read() for _ in range(60)]) == [2] * 60

    asyncio.run(steps())


def test_who_gives_up_leaves_the_request_to_the_others() -> None:
    async def steps() -> None:
        asked = Asked()
        asked.may_answer.clear()
        first, second = asyncio.create_task(asked.read()), asyncio.create_task(asked.read())
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        asked.may_answer.set()
        assert (await second, asked.count) == (1, 1)
        with pytest.raises(asyncio.CancelledError):
            await first

    asyncio.run(steps())


def test_a_renewed_answer_serves_those_who_ask_after_it() -> None:
    async def steps() -> None:
        asked = Asked()
        assert [await asked.read(), await asked.renew(), await asked.read()] == [1, 2, 2]
        asked.recent.forget()
        assert await asked.read() == 3

    asyncio.run(steps())


def test_closing_ends_a_request_that_nobody_waits_for() -> None:
    async def steps() -> None:
        asked = Asked()
        asked.may_answer.clear()
        waiting = asyncio.create_task(asked.read())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.sleep(0)
        await asked.recent.close()
        assert len(asyncio.all_tasks()) == 1
        asked.may_answer.set()
        assert await asked.read() == 2

    asyncio.run(steps())


def test_the_oldest_makes_room() -> None:
    kept: dict[int, str] = {}
    for number in range(5):
        assert keep(kept, number, str(number), 3) == str(number)
    keep(kept, 3, "again", 3)
    assert kept == {2: "2", 3: "again", 4: "4"}
