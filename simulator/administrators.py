"""Administrators: structural acts, two at a time, chosen so that pairs overlap that were not seen yet.

Rules:
- An act is one or more commands, each given again until it succeeds: every command says that it may be
  repeated.
- An act that is not done when the time ends is finished at the quiet point, without faults. It must succeed
  there.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from random import Random
from typing import Final

from simulator.deployment import APART, Deployment
from simulator.failure import Contradiction
from simulator.merchants import Merchant
from simulator.nature import Recover
from simulator.overlaps import Overlaps

MOST_TRIES: Final = 60
FEW_TRIES: Final = 3
"""For commands that must wait for a worker first: a checkpoint, a month that is added up."""
PAUSE_S: Final = 0.5
HOME: Final = "main"
AT_ONCE: Final = 2


class Unfinished(Exception):
    """A command has not succeeded yet, and something else is to be done."""


class Administrators:
    """The people who run the platform."""

    def __init__(
        self,
        deployment: Deployment,
        merchants: Sequence[Merchant],
        cells: Mapping[str, str],
        played: tuple[str, str],
        overlaps: Overlaps,
        acts: Sequence[str],
        recover: Recover,
        random: Random,
    ) -> None:
        """`cells` says where each merchant's book is. `played` is the made-up merchant and its month."""
        self._deployment = deployment
        self._merchants = merchants
        self._cells = dict(cells)
        self._played_id, self._month = played
        self._overlaps = overlaps
        self._acts = tuple(acts)
        self._recover = recover
        self._random = random
        self._ends = asyncio.Event()
        self._moving: dict[str, str] = {}
        """Where books go whose move is not done."""
        self._is_closed = False
        self._starting = asyncio.Lock()
        self.failures: list[str] = []

    async def live(self, ends: asyncio.Event) -> None:
        """Act until `ends` is set. Raises Contradiction."""
        self._ends = ends
        if self._acts:
            async with asyncio.TaskGroup() as people:
                for number in range(AT_ONCE):
                    people.create_task(self._live_alone(Random(f"{self._random.random()}/{number}")))

    async def finish(self) -> None:
        """End what was begun, without faults. Raises Contradiction."""
        self._ends = asyncio.Event()
        for merchant_id, target in [*self._moving.items()]:
            await self._carry_over(merchant_id, target)
        if "restore" in self._acts:
            await self._insist("archive", "restore", self._played_id, "--from", self._month)

    async def _live_alone(self, random: Random) -> None:
        bodies: dict[str, Callable[[Random], Awaitable[None]]] = {
            "move": self._move,
            "archive": self._archive,
            "restore": self._restore,
            "close": self._close,
            "rotation": self._rotate,
            "restart": self._restart,
            "resize": self._resize,
        }
        while not self._ends.is_set():
            candidates = [act for act in self._acts if act not in self._overlaps.running]
            random.shuffle(candidates)
            if candidates:
                await self._perform(act := self._overlaps.choose(candidates), bodies[act], random)
            with suppress(TimeoutError):
                async with asyncio.timeout(random.uniform(0.2, 1.5)):
                    await self._ends.wait()

    async def _perform(self, act: str, body: Callable[[Random], Awaitable[None]], random: Random) -> None:
        self._overlaps.begin(act)
        is_done = False
        try:
            await body(random)
            is_done = True
        except Unfinished as error:
            self.failures.append(f"{act}: {error}")
        finally:
            self._overlaps.end(act, is_done)

    async def _move(self, random: Random) -> None:
        """A book to the other cell and the removal of its old copy."""
        free = [each for each in self._merchants if each.account.merchant_id not in self._moving]
        if not free:
            return
        merchant_id = random.choice(free).account.merchant_id
        target = HOME if self._cells[merchant_id] == APART else APART
        self._moving[merchant_id] = target
        await self._carry_over(merchant_id, target)

    async def _carry_over(self, merchant_id: str, target: str) -> None:
        if self._cells[merchant_id] != target:
            merchant = next(each for each in self._merchants if each.account.merchant_id == merchant_id)
            merchant.book.begin_move()
            await self._insist("merchant", "move", merchant_id, target)
            self._cells[merchant_id] = target
            await merchant.end_move(is_apart=target == APART)
        await self._insist("merchant", "move", merchant_id, "--drop-old")
        del self._moving[merchant_id]

    async def _archive(self, random: Random) -> None:
        year, month = map(int, self._month.split("-"))
        following = f"{year + month // 12}-{month % 12 + 1:02}"
        options = ("--before", following, *(("--keep-rows",) if random.random() < 0.3 else ()))
        await self._insist("archive", "run", self._played_id, *options, most_tries=FEW_TRIES)

    async def _restore(self, random: Random) -> None:
        await self._insist("archive", "restore", self._played_id, "--from", self._month)

    async def _close(self, random: Random) -> None:
        """Close the month once; then make it again from journal and archive."""
        if not self._is_closed:
            await self._insist("finance", "prepare", self._month, most_tries=FEW_TRIES)
            about = ("--reason", "the simulator's month")
            await self._insist("finance", "close", self._month, *about, most_tries=FEW_TRIES)
            self._is_closed = True
        await self._insist("finance", "verify", self._month)

    async def _rotate(self, random: Random) -> None:
        """A second secret, which the merchant uses from then on; then the first is retired."""
        merchant = random.choice(self._merchants)
        merchant_id = merchant.account.merchant_id
        # A command that was lost may have made a secret that nobody knows. Then the merchant waits until one
        # is known: the retirement of the older secret would leave it without any.
        ran = await self._deployment.command("merchant", "rotate-secret", merchant_id, "--json")
        if ran.ok:
            merchant.account.secret = ran.read()["appSecret"]
            await self._retire(merchant_id)
            return
        async with merchant.lock:
            await self._find_secret(merchant)

    async def _retire(self, merchant_id: str) -> None:
        """Retire the older secret. A lost command may have done it. Raises Unfinished."""
        while not (
            ran := await self._deployment.command("merchant", "retire-secret", merchant_id, "--json")
        ).ok:
            shown = await self._deployment.command("merchant", "show", merchant_id, "--json")
            if shown.ok and shown.read()["liveSecrets"] == 1:
                return
            if self._ends.is_set():
                raise Unfinished(f"{ran.line}: {(ran.output + ran.errors)[-500:]}")
            await asyncio.sleep(PAUSE_S)

    async def _find_secret(self, merchant: Merchant) -> None:
        merchant_id = merchant.account.merchant_id
        for _ in range(MOST_TRIES):
            ran = await self._deployment.command("merchant", "rotate-secret", merchant_id, "--json")
            if ran.ok:
                merchant.account.secret = ran.read()["appSecret"]
                await self._deployment.command("merchant", "retire-secret", merchant_id, "--json")
                return
            # With two secrets there is no third. Retired is whichever is the older.
            await self._deployment.command("merchant", "retire-secret", merchant_id, "--json")
            await asyncio.sleep(PAUSE_S)
        raise Contradiction(f"{merchant.account.name} got no new secret: {ran.output}{ran.errors}")

    async def _restart(self, random: Random) -> None:
        async with self._starting:
            await self._deployment.restart()
            await self._recover(self._ends)

    async def _resize(self, random: Random) -> None:
        async with self._starting:
            await self._deployment.restart(random.choice((1, 2, 3)))
            await self._recover(self._ends)

    async def _insist(self, *arguments: str, most_tries: int = MOST_TRIES) -> None:
        """Give a command until it succeeds. Raises Unfinished, Contradiction."""
        for _ in range(most_tries):
            ran = await self._deployment.command(*arguments, "--json")
            if ran.ok:
                return
            if self._ends.is_set():
                break
            await asyncio.sleep(PAUSE_S)
        if self._ends.is_set() or most_tries == FEW_TRIES:
            raise Unfinished(f"{ran.line}: {(ran.output + ran.errors)[-500:]}")
        raise Contradiction(f"'{ran.line}' failed {MOST_TRIES} times: {ran.output}{ran.errors}")
