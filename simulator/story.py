"""A run: the world is made from a plan, lives for its time, comes to rest, and is checked.

Rules:
- Everything random comes from the plan's seed, with a stream for each actor. What the machine's speed
  decides does not.
- A long life has a quiet point in each minute, and ends with one.
- The first contradiction ends the run. Its story has the plan, the moment, and the history of the merchant.
"""

import asyncio
import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

from merchant_wallet_client.callbacks import AnyCallback
from simulator.administrators import HOME, Administrators
from simulator.book import Book
from simulator.checks import check_audit_log, check_product, check_statement, settle
from simulator.deployment import APART, Deployment
from simulator.door import Account
from simulator.failure import Broken, Contradiction
from simulator.merchants import Merchant
from simulator.nature import Nature
from simulator.operators import FIRST_TARIFF, Operators
from simulator.orders import UNITS
from simulator.overlaps import Overlaps
from simulator.receiver import Receiver
from simulator.shrinking import Plan

FUNDS: Final = {"USDT": 100_000 * UNITS, "KFB": 50_000 * UNITS}
OPENED_AT_ONCE: Final = 4
LOOK_S: Final = 0.2
LEAST_ANSWERS: Final = 60
"""A life is longer than planned until it has had so many."""
RECOVERED_ANSWERS: Final = 50
"""Of each merchant, between two deaths."""
LOG_LINES: Final = 60


@dataclass
class Outcome:
    """What a run has shown. Without `fault` nothing contradicted the model."""

    plan: Plan
    fault: str | None = None
    failed_at_s: float = 0.0
    acknowledged: int = 0
    per_second: float = 0.0
    orders: int = 0
    callbacks: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    operators: Counter[str] = field(default_factory=Counter)
    table: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    history: list[str] = field(default_factory=list)
    log_lines: list[str] = field(default_factory=list)
    folder: Path | None = None
    """The world's folder, which is kept after a fault."""


class World:
    """Everything that lives, from `create` to `close`."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan = plan
        self.deployment = Deployment(folder)
        self.overlaps = Overlaps()
        self.merchants: list[Merchant] = []
        self.per_second = 0.0
        self.administrators: Administrators | None = None
        self.operators = Operators(self.deployment, self.merchants, self._make_random("operators"))
        self.nature = Nature(self.deployment, plan.faults, self.recover, self._make_random("nature"))
        self._secrets: dict[str, str] = {}
        self.receiver = Receiver(self._secrets, self._hear, self._make_random("receiver"))

    async def create(self) -> None:
        """Start the service and open its merchants. Raises Broken."""
        await self.deployment.create()
        await self.receiver.open()
        await self.operators.set_first_rates()
        played = await self._require("finance", "simulate")
        cells = await self._open_merchants()
        self.administrators = Administrators(
            self.deployment,
            self.merchants,
            cells,
            (str(played["merchantId"]), played["month"]),
            self.overlaps,
            self.plan.acts,
            self.recover,
            self._make_random("administrators"),
        )

    async def recover(self, ends: asyncio.Event) -> None:
        """Wait until merchants have got some answers, or `ends` is set."""
        wanted = self.acknowledged + RECOVERED_ANSWERS * len(self.merchants)
        while not ends.is_set() and self.acknowledged < wanted:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await ends.wait()

    async def live(self, seconds: float) -> None:
        """Everybody acts for so long, and until some requests were answered. Raises Contradiction."""
        self.receiver.is_honest = False
        loop = asyncio.get_running_loop()
        before, began_s, ends = self.acknowledged, loop.time(), asyncio.Event()
        lives = [merchant.live(ends) for merchant in self.merchants]
        assert self.administrators is not None, "created before it lives"
        lives += [self.nature.live(ends), self.administrators.live(ends)]
        lives += [self.operators.live(ends)] if self.plan.operators else []
        tasks = [asyncio.create_task(life) for life in lives]
        try:
            await self._watch(tasks, seconds)
            # On a busy machine the service may have been starting for most of the time.
            while self.acknowledged < before + LEAST_ANSWERS:
                await self._watch(tasks, LOOK_S)
            self.per_second = (self.acknowledged - before) / (loop.time() - began_s)
            ends.set()
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def come_to_rest(self) -> None:
        """No more faults: what was begun is finished, and everything is compared. Raises Contradiction."""
        self.receiver.is_honest = True
        await self.deployment.wait_ready()
        assert self.administrators is not None, "created before it comes to rest"
        await self.administrators.finish()
        await self.operators.finish()
        await settle(self.merchants, self.receiver)

    async def check(self) -> int:
        """Compare everything. Returns the number of orders in the books. Raises Contradiction."""
        orders = 0
        for merchant in self.merchants:
            orders += await check_statement(self.deployment, merchant)
            await merchant.see_everything()
        await check_audit_log(self.deployment, self.operators)
        await check_product(self.deployment)
        return orders

    async def close(self) -> None:
        """End everything that was started."""
        for merchant in self.merchants:
            merchant.close()
        await self.receiver.close()
        await self.deployment.close()

    @property
    def acknowledged(self) -> int:
        """How many requests were answered for good."""
        return sum(merchant.acknowledged for merchant in self.merchants)

    async def _watch(self, tasks: Sequence["asyncio.Task[None]"], seconds: float) -> None:
        loop = asyncio.get_running_loop()
        ends_s = loop.time() + seconds
        while (left_s := ends_s - loop.time()) > 0:
            done, _ = await asyncio.wait(
                tasks, timeout=min(LOOK_S, left_s), return_when=asyncio.FIRST_EXCEPTION
            )
            for task in done:
                task.result()
            if self.receiver.fault is not None:
                raise self.receiver.fault

    async def _open_merchants(self) -> dict[str, str]:
        """Open the plan's merchants, some at once. Returns the cell of each."""
        free = asyncio.Semaphore(OPENED_AT_ONCE)

        async def open_next(number: int) -> Merchant:
            async with free:
                return await self._open_merchant(f"shop{number}", _choose_cell(number))

        async with asyncio.TaskGroup() as group:
            opening = [group.create_task(open_next(number)) for number in range(self.plan.merchants)]
        # Whoever chooses one by chance finds them in the same order in each run.
        self.merchants += [task.result() for task in opening]
        return {
            merchant.account.merchant_id: _choose_cell(number)
            for number, merchant in enumerate(self.merchants)
        }

    async def _open_merchant(self, name: str, cell: str) -> Merchant:
        made = await self._require("merchant", "create", name, "--cell", cell)
        account = Account(
            str(made["merchantId"]), name, made["appKey"], made["appSecret"], made["callbackSecret"]
        )
        self._secrets[name] = account.callback_secret
        merchant = Merchant(
            account,
            Book(FUNDS, FIRST_TARIFF, is_apart=cell == APART),
            self.deployment.url,
            self.receiver.url(name),
            self.overlaps,
            self._make_random(name),
        )
        await self.operators.tell_deposits_to(account.merchant_id, self.receiver.url(name))
        for currency, units in FUNDS.items():
            await merchant.take_from_tap(currency, units)
        await merchant.open_wallets()
        return merchant

    async def _require(self, *arguments: str) -> Any:
        ran = await self.deployment.command(*arguments, "--json")
        if not ran.ok:
            raise Broken(f"'{ran.line}' failed: {ran.output}{ran.errors}")
        return ran.read()

    def _hear(self, name: str, callback: AnyCallback) -> None:
        next(each for each in self.merchants if each.account.name == name).hear(callback)

    def _make_random(self, actor: str) -> Random:
        return Random(f"{self.plan.seed}/{actor}")


def _choose_cell(number: int) -> str:
    return (HOME, APART)[number % 2]


async def run(plan: Plan) -> Outcome:
    """Run a plan. The folder is removed unless there is a fault. Raises Broken."""
    folder = Path(tempfile.mkdtemp(prefix="merchant-wallet-simulator-"))
    world = World(plan, folder)
    outcome = Outcome(plan)
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    try:
        try:
            await world.create()
            began_s = loop.time()
            for _ in range(plan.rounds):
                await world.live(plan.seconds / plan.rounds)
                await world.come_to_rest()
                outcome.orders = await world.check()
        except* Contradiction as faults:
            outcome.fault = "; ".join(map(str, faults.exceptions))
            outcome.failed_at_s = loop.time() - began_s
            outcome.history = _collect_history(world)
            outcome.log_lines = _find_log_lines(world)
            outcome.folder = folder
        outcome.acknowledged, outcome.per_second = world.acknowledged, world.per_second
        outcome.callbacks = world.receiver.received
        outcome.faults, outcome.operators = world.nature.counts, world.operators.acknowledged
        outcome.table = world.overlaps.write_table()
        outcome.unfinished = [] if world.administrators is None else world.administrators.failures
    finally:
        await world.close()
    if outcome.fault is None:
        shutil.rmtree(folder)
    return outcome


def write_report(outcome: Outcome) -> list[str]:
    """What a run has shown, as lines."""
    plan = outcome.plan
    lines = [
        f"seed {plan.seed}, {plan.seconds:g} s, {plan.merchants} merchants: "
        f"{outcome.acknowledged} acknowledged requests ({outcome.per_second:.0f}/s in the last round), "
        f"{outcome.orders} orders in the books, {outcome.callbacks} callbacks",
        _count("faults", outcome.faults),
        _count("operators", outcome.operators),
        *outcome.table,
        *(f"not done: {text}" for text in outcome.unfinished),
    ]
    if outcome.fault is not None:
        lines += [f"FAULT after {outcome.failed_at_s:.1f} s: {outcome.fault}"]
        lines += ["history:", *outcome.history, "log:", *outcome.log_lines]
        lines += [f"the folder {outcome.folder} is kept", f"again: {plan.command}"]
    return lines


def _count(what: str, counts: Counter[str]) -> str:
    return f"{what}: " + (", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "none")


def _collect_history(world: World) -> list[str]:
    """The last events of all merchants, by time."""
    events = [event for merchant in world.merchants for event in merchant.client.events]
    return [f"  {event}" for event in sorted(events, key=lambda event: int(event.split(" ", 1)[0]))]


def _find_log_lines(world: World) -> list[str]:
    """The service's log lines of the merchants' last requests."""
    wanted = {request_id for merchant in world.merchants for request_id in merchant.client.request_ids}
    lines = []
    with suppress(FileNotFoundError):
        for line in world.deployment.log.read_text(errors="replace").splitlines():
            if '"error"' in line or any(request_id in line for request_id in wanted):
                lines.append(f"  {line}")
    return lines[-LOG_LINES:]
