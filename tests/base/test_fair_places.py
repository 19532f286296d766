"""Places of a pool: owners take turns, and nobody's slow work keeps all others out."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.rows import each_row

from merchant_wallet.base.fair_places import SERVICE, FairPlaces
from merchant_wallet.base.fair_queue import Owner
from merchant_wallet.base.pool import PoolBusy
from merchant_wallet.web.turns import person_of_merchant, person_of_platform

ANN, BEN = person_of_merchant(1, 10), person_of_merchant(1, 11)
CAROL = person_of_merchant(2, 12)
OLGA = person_of_platform(13)
LONG_S = 100.0


async def settle() -> None:
    """Let every task go as far as it can."""
    for _ in range(10):
        await asyncio.sleep(0)


class Crowd:
    """Owners who ask for places one after the other. `holding` are those who have one."""

    def __init__(self, limit: int) -> None:
        self.places = FairPlaces(limit)
        self.holding: list[Owner] = []
        self.order: list[Owner] = []
        self._done: dict[Owner, list[asyncio.Event]] = {}
        self.tasks: list[asyncio.Task[None]] = []

    async def ask(self, *owners: Owner) -> None:
        for owner in owners:
            self.tasks.append(asyncio.create_task(self._use(owner)))
            await settle()

    async def _use(self, owner: Owner) -> None:
        async with self.places.hold(owner, LONG_S):
            done = asyncio.Event()
            self._done.setdefault(owner, []).append(done)
            self.holding.append(owner)
            self.order.append(owner)
            await done.wait()
            self.holding.remove(owner)

    async def finish(self, owner: Owner) -> None:
        self._done[owner].pop(0).set()
        await settle()

    async def finish_all(self) -> None:
        while self.holding:
            await self.finish(self.holding[0])
        await asyncio.gather(*self.tasks, return_exceptions=True)


def play(limit: int, story: Callable[[Crowd], Awaitable[None]]) -> list[Owner]:
    """Play a story to its end. Returns the owners in the order in which they got their places."""

    async def scenario() -> list[Owner]:
        crowd = Crowd(limit)
        await story(crowd)
        await crowd.finish_all()
        assert (crowd.places._free, crowd.places._held, len(crowd.places._waiting)) == (limit, {}, 0)
        return crowd.order

    return asyncio.run(scenario())


def test_merchants_take_turns_and_within_a_merchant_its_people() -> None:
    async def story(crowd: Crowd) -> None:
        await crowd.ask(OLGA, ANN, ANN, ANN, BEN, CAROL)

    assert play(1, story) == [OLGA, ANN, CAROL, BEN, ANN, ANN]


@each_row(
    ("limit", "asked", "holding"),
    [
        (4, [ANN] * 9, [ANN] * 2),
        (4, [ANN] * 9 + [BEN] * 9, [ANN, ANN, BEN]),
        (4, [ANN] * 9 + [BEN] * 9 + [OLGA], [ANN, ANN, BEN, OLGA]),
        (4, [ANN] * 9 + [CAROL] * 9 + [OLGA], [ANN, ANN, CAROL, CAROL]),
        (2, [ANN, ANN, BEN, OLGA, OLGA], [ANN, OLGA]),
        (1, [ANN, OLGA], [ANN]),
        (3, [SERVICE] * 4, [SERVICE] * 3),
    ],
)
def test_a_person_holds_half_of_the_places_and_a_merchant_all_but_one(
    limit: int, asked: list[Owner], holding: list[Owner]
) -> None:
    async def story(crowd: Crowd) -> None:
        await crowd.ask(*asked)
        assert crowd.holding == holding

    assert len(play(limit, story)) == len(asked)


def test_who_has_enough_keeps_its_turn_until_one_is_given_back() -> None:
    async def story(crowd: Crowd) -> None:
        await crowd.ask(ANN, ANN, ANN, OLGA, CAROL, CAROL)
        assert crowd.holding == [ANN, ANN, OLGA, CAROL]
        await crowd.finish(OLGA)
        assert crowd.holding == [ANN, ANN, CAROL, CAROL]
        await crowd.finish(ANN)

    assert play(4, story) == [ANN, ANN, OLGA, CAROL, CAROL, ANN]


def test_who_waits_too_long_is_refused_and_takes_no_place_later() -> None:
    async def story(crowd: Crowd) -> None:
        await crowd.ask(ANN)
        with pytest.raises(PoolBusy):
            async with crowd.places.hold(CAROL, 0.001):
                pass
        await crowd.ask(OLGA)

    assert play(1, story) == [ANN, OLGA]


def test_who_gave_up_costs_its_colleagues_no_turn_and_leaves_the_queue() -> None:
    async def story(crowd: Crowd) -> None:
        await crowd.ask(OLGA, ANN, ANN, CAROL, ANN, CAROL)
        for number in (1, 2):
            crowd.tasks[number].cancel()
        await settle()
        assert len(crowd.places._waiting) == 3

    # Ann's third request has her group's first turn.
    assert play(1, story) == [OLGA, ANN, CAROL, CAROL]


def test_who_leaves_in_the_moment_of_its_turn_gives_the_place_back() -> None:
    async def story(crowd: Crowd) -> None:
        async with crowd.places.hold(ANN, LONG_S):
            await crowd.ask(CAROL, OLGA)
        # The place is Carol's now, and she has not run since.
        crowd.tasks[0].cancel()
        await settle()
        assert crowd.holding == [OLGA]

    assert play(1, story) == [OLGA]
