"""A merchant's client: its two connections, how often it asks again, and the history of what it got."""

import asyncio
from collections import Counter, deque
from collections.abc import Mapping
from random import Random
from time import time_ns
from typing import Final, TypeGuard

from merchant_wallet_client import Answer
from simulator.door import Account, Door, Lost
from simulator.failure import Contradiction

UNCERTAIN: Final = (42900, 50000, 50300)
"""Codes after which the same is sent again."""
MOST_TRIES: Final = 400
FIRST_PAUSE_S: Final = 0.02
LONGEST_PAUSE_S: Final = 0.5
KEPT_EVENTS: Final = 60


class Client:
    """What one merchant sends and receives."""

    def __init__(self, account: Account, url: str, random: Random) -> None:
        self.account = account
        self.door, self.second_door = Door(url, random), Door(url, random)
        self.events: deque[str] = deque(maxlen=KEPT_EVENTS)
        self.request_ids: deque[str] = deque(maxlen=KEPT_EVENTS)
        self.answered: Counter[str] = Counter()
        """Answers for good, by operation."""

    async def ask(self, operation: str, fields: Mapping[str, object]) -> Answer | Lost:
        """Ask once."""
        answer = await self.door.ask(self.account, operation, fields)
        self._take_down(operation, fields, answer)
        return answer

    async def ask_twice(self, operation: str, fields: Mapping[str, object]) -> list[Answer | Lost]:
        """Ask on both connections at once."""
        doors = (self.door, self.second_door)
        answers = await asyncio.gather(*(door.ask(self.account, operation, fields) for door in doors))
        for answer in answers:
            self._take_down(operation, fields, answer)
        return answers

    async def insist(self, operation: str, fields: Mapping[str, object]) -> Answer:
        """Ask until there is an answer for good. Raises Contradiction."""
        for number in range(MOST_TRIES):
            answer = await self.ask(operation, fields)
            if is_certain(answer):
                return answer
            await pause(number)
        raise Contradiction(f"{operation} of {self.account.name} got no answer in {MOST_TRIES} tries")

    def note(self, text: str) -> None:
        """Keep an event for the story of a failure."""
        self.events.append(f"{time_ns() // 1_000_000} {self.account.name} {text}")

    def close(self) -> None:
        """Close the connections."""
        self.door.close()
        self.second_door.close()

    def _take_down(self, operation: str, fields: Mapping[str, object], answer: Answer | Lost) -> None:
        what = " ".join(map(str, fields.values()))
        if isinstance(answer, Lost):
            self.note(f"{operation} {what}: {answer.reason}")
            return
        self.note(f"{operation} {what}: {answer.code} {answer.request_id}")
        self.answered[operation] += is_certain(answer)
        if answer.request_id is not None:
            self.request_ids.append(answer.request_id)


def is_certain(answer: Answer | Lost) -> TypeGuard[Answer]:
    """Whether it is an answer for good: asking again would give nothing else."""
    return isinstance(answer, Answer) and answer.code not in UNCERTAIN


async def pause(number: int) -> None:
    """Wait before the next try, longer each time."""
    await asyncio.sleep(min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(number, 6)))
