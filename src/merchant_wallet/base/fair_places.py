"""Places of which each owner gets its turn, such as connections of a pool.

Rules:
- Groups take turns, and within a group its members (`RoundRobin`).
- A member holds at most half of the places, a group all but one. So one owner's slow work can't keep all
  others out. Work of the service itself (`SERVICE`) has a turn, too, and no such limit.
- Work that gets no place in time is refused.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from merchant_wallet.base.fair_queue import Owner, RoundRobin
from merchant_wallet.base.pool import PoolBusy

SERVICE: Final[Owner] = ("", "")
"""The owner of work that no person asked for."""


@dataclass(slots=True, eq=False)
class _Waiter:
    owner: Owner
    place: asyncio.Future[None]
    is_served: bool = False


class FairPlaces:
    """`limit` places. Used in one event loop only."""

    def __init__(self, limit: int) -> None:
        self._free = limit
        self._of_member = max(1, limit // 2)
        self._of_group = max(1, limit - 1)
        self._held: Counter[Owner | str] = Counter()
        self._waiting: RoundRobin[_Waiter] = RoundRobin(attrgetter("owner"))

    @asynccontextmanager
    async def hold(self, owner: Owner, timeout_s: float) -> AsyncIterator[None]:
        """Wait for a place and hold it. Raises PoolBusy."""
        await self._wait(owner, timeout_s)
        try:
            yield
        finally:
            self._leave(owner)

    async def _wait(self, owner: Owner, timeout_s: float) -> None:
        waiter = _Waiter(owner, asyncio.get_running_loop().create_future())
        self._waiting.append(waiter)
        self._fill()
        try:
            async with asyncio.timeout(timeout_s):
                await waiter.place
        except BaseException as error:
            # The place may be given in the moment in which the waiter gives up.
            if waiter.is_served:
                self._leave(owner)
            else:
                self._waiting.remove(waiter)
            if isinstance(error, TimeoutError):
                raise PoolBusy("all places are taken") from None
            raise

    def _fill(self) -> None:
        """Give free places to those whose turn it is."""
        while self._free:
            waiter = self._waiting.take_ready(self._may_hold, self._may_group_hold)
            if waiter is None:
                return
            self._free -= 1
            self._held.update((waiter.owner, waiter.owner[0]))
            waiter.is_served = True
            if not waiter.place.done():
                waiter.place.set_result(None)

    def _may_hold(self, owner: Owner) -> bool:
        return self._held[owner] < self._of_member or owner == SERVICE

    def _may_group_hold(self, group: str) -> bool:
        return self._held[group] < self._of_group or group == SERVICE[0]

    def _leave(self, owner: Owner) -> None:
        self._free += 1
        for key in (owner, owner[0]):
            self._held[key] -= 1
            if not self._held[key]:
                del self._held[key]
        self._fill()
