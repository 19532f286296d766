"""Acts that people ask for: a worker carries each out once, and both are in the audit log."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, LiteralString

import pytest
from psycopg import AsyncConnection, errors
from tests.approvals.proposer_changes import PROPOSER_CHANGES
from tests.roles import as_web, as_worker

from merchant_wallet.approvals.acts import asked
from merchant_wallet.approvals.acts.asked import AskedAct
from merchant_wallet.approvals.acts.causes import LOST, NOBODY, NOT_ALLOWED
from merchant_wallet.approvals.acts.worker import (
    MAX_CLAIMS,
    ActFailed,
    ActWorker,
    Outcome,
    Performer,
    Running,
)
from merchant_wallet.approvals.decisions import Person
from merchant_wallet.audit.records import Author, list_entries
from merchant_wallet.base.db import connect
from merchant_wallet.base.units import MINUTE_MS
from merchant_wallet.operators.records import create

ANN, BEN = Person("operator:ann", "192.0.2.1"), Person("operator:ben", "192.0.2.2")
KIND, SUBJECT = "sweep.run", "chain TRC20"


class Scene:
    """A page's connection, and workers whose clock stands where a test puts it."""

    def __init__(self, url: str, web: AsyncConnection) -> None:
        self.url = url
        self.web = web
        self.now_ms = 1_000_000
        self.done: list[int] = []

    async def ask(self, person: Person = ANN, subject: str = SUBJECT, **arguments: Any) -> asked.Asked:
        """A person asks on a page."""
        author = self.author(person).with_facts({"reason": "the float is low"})
        return await asked.ask(self.web, KIND, subject, arguments, author=author)

    def author(self, person: Person) -> Author:
        """The person, now."""
        return Author(person.actor, person.source, self.now_ms)

    def worker(
        self, perform: Callable[[Running], Awaitable[Outcome | None]] | None = None, **more: Any
    ) -> ActWorker:
        """A worker that notes what it carries out."""

        async def note(running: Running) -> Outcome:
            self.done.append(running.act.act_no)
            return Outcome({"moved": 3}, {"moved": 3})

        performers = {KIND: Performer(perform or note, **more)}
        return ActWorker(lambda: connect(as_worker(self.url)), performers, clock=lambda: self.now_ms)

    async def work(self, worker: ActWorker) -> None:
        """One turn of a worker, to the end of what it began."""
        await worker.begin_waiting()
        await worker.finish_under_way()
        await worker.close()

    async def show(self, act_no: int) -> AskedAct:
        """The act as a page shows it."""
        found = await asked.show(self.web, act_no)
        assert found is not None
        return found

    async def claim_of(self, act: AskedAct) -> tuple[Any, ...] | None:
        """The newest claim of an act, until when it holds, and the progress."""
        statement = "select fence, claimed_until_ms, progress from asked_act where act_no = %s"
        return await (await self.web.execute(statement, [act.act_no])).fetchone()

    async def log(self) -> list[tuple[str, str]]:
        """Who did what, the oldest first."""
        return [(entry.actor, entry.action) for entry in reversed(await list_entries(self.web))]


class Pausing:
    """Acts that are under way until they may end."""

    def __init__(self) -> None:
        self.running: list[Running] = []
        self.has_begun = asyncio.Event()
        self.may_end = asyncio.Event()

    async def perform(self, running: Running) -> Outcome:
        self.running.append(running)
        self.has_begun.set()
        await self.may_end.wait()
        return Outcome({}, {})


Scenario = Callable[[Scene], Awaitable[None]]
InScene = Callable[[Scenario], None]


@pytest.fixture
def in_scene(database_url: str) -> InScene:
    """Runs a scenario."""

    async def run(scenario: Scenario) -> None:
        async with await connect(as_web(database_url)) as web:
            await scenario(Scene(database_url, web))

    return lambda scenario: asyncio.run(run(scenario))


def test_a_worker_carries_out_what_a_page_asked_and_the_audit_log_has_both(in_scene: InScene) -> None:
    async def scenario(scene: Scene) -> None:
        act = (await scene.ask(again=False, proposalNo=7)).act
        arguments = {"again": False, "proposalNo": 7}
        assert (act.state, act.asked_by, act.arguments) == ("waiting", "operator:ann", arguments)
        await scene.work(scene.worker())
        ended = await scene.show(act.act_no)
        assert (ended.state, ended.result, scene.done) == ("done", {"moved": 3}, [act.act_no])
        assert await scene.log() == [("operator:ann", "sweep.run.asked"), ("worker", "sweep.run")]
        told = (await list_entries(scene.web, limit=1))[0].after
        who = {"askedBy": "operator:ann", "proposalNo": 7, "reason": "the float is low"}
        assert told == {"moved": 3, "actNo": act.act_no, **who}

    in_scene(scenario)


def test_the_same_asked_twice_is_done_once(in_scene: InScene) -> None:
    async def scenario(scene: Scene) -> None:
        first, second = await scene.ask(), await scene.ask(BEN)
        assert (first.is_new, second.is_new) == (True, False)
        assert second.act.act_no == first.act.act_no
        other = await scene.ask(subject="chain ERC20")
        assert other.is_new, "another chain is another act"
        await scene.work(scene.worker())
        assert sorted(scene.done) == [first.act.act_no, other.act.act_no]
        assert (await scene.ask()).is_new, "what has ended can be asked again"

    in_scene(scenario)


def test_of_two_workers_one_carries_it_out(in_scene: InScene) -> None:
    async def scenario(scene: Scene) -> None:
        act = (await scene.ask()).act
        await asyncio.gather(*[scene.work(scene.worker()) for _ in range(4)])
        assert scene.done == [act.act_no]

    in_scene(scenario)


def test_a_failure_is_a_sentence_for_the_person_who_asked(in_scene: InScene) -> None:
    async def scenario(scene: Scene) -> None:
        async def refuse(running: Running) -> Outcome:
            raise ActFailed("no price is set")

        async def break_down(running: Running) -> Outcome:
            raise KeyError("a secret detail")

        act = (await scene.ask()).act
        await scene.work(scene.worker(refuse))
        ended = await scene.show(act.act_no)
        assert (ended.state, ended.cause) == ("failed", "no price is set")
        assert (await scene.log())[-1] == ("worker", "sweep.run.failed")
        act = (await scene.ask()).act
        await scene.work(scene.worker(break_down))
        cause = (await scene.show(act.act_no)).cause or ""
        assert "KeyError" in cause
        assert "secret" not in cause

    in_scene(scenario)


def test_an_act_that_no_worker_begins_lapses(in_scene: InScene) -> None:
    async def scenario(scene: Scene) -> None:
        act = (await scene.ask()).act
        scene.now_ms += asked.LASTS_MS + 1
        await scene.work(scene.worker())
        ended = await scene.show(act.act_no)
        assert (ended.state, ended.cause, scene.done) == ("lapsed", NOBODY, [])
        assert (await scene.log())[-1] == ("worker", "sweep.run.lapsed")

    in_scene(scenario)


def test_an_act_that_was_not_begun_can_be_cancelled(in_scene: InScene) -> None:
    async def scenario(scene: Scene) -> None:
        act = (await scene.ask()).act
        assert await asked.cancel(scene.web, act.act_no, author=scene.author(BEN))
        assert await asked.cancel(scene.web, act.act_no, author=scene.author(BEN)) is None
        await scene.work(scene.worker())
        assert scene.done == []
        assert (await scene.log())[-1] == ("operator:ben", "sweep.run.cancel")

    in_scene(scenario)


def test_who_has_an_old_claim_ends_nothing(in_scene: InScene) -> None:
    async def scenario(scene: Scene) -> None:
        act, is_free = (await scene.ask()).act, asyncio.Event()

        async def sleep(running: Running) -> Outcome:
            await is_free.wait()
            return Outcome({"moved": 99}, {})

        slow = scene.worker(sleep)
        await slow.begin_waiting()
        scene.now_ms += 2 * MINUTE_MS
        await scene.work(scene.worker())
        is_free.set()
        await slow.finish_under_way()
        await slow.close()
        ended = await scene.show(act.act_no)
        assert (ended.result, ended.fence, scene.done) == ({"moved": 3}, 2, [act.act_no])
        assert await scene.log() == [("operator:ann", "sweep.run.asked"), ("worker", "sweep.run")]

    in_scene(scenario)


def test_act_that_records_itself_is_ended_and_recorded_with_its_change_or_not_at_all(
    in_scene: InScene,
) -> None:
    async def scenario(scene: Scene) -> None:
        act, is_free = (await scene.ask()).act, asyncio.Event()

        async def change(running: Running) -> None:
            if running.act.fence == 1:
                await is_free.wait()
            async with await connect(as_worker(scene.url)) as home, home.transaction():
                await running.author.record(home, KIND, "chain TRC20", after={"fence": running.act.fence})
                await running.end(home, {"moved": running.act.fence})

        slow = scene.worker(change)
        await slow.begin_waiting()
        scene.now_ms += 2 * MINUTE_MS
        await scene.work(scene.worker(change))
        is_free.set()
        await slow.finish_under_way()
        await slow.close()
        ended = await scene.show(act.act_no)
        assert (ended.state, ended.result) == ("done", {"moved": 2})
        assert await scene.log() == [("operator:ann", "sweep.run.asked"), ("worker", "sweep.run")]
        told = (await list_entries(scene.web, limit=1))[0].after or {}
        assert (told["fence"], told["askedBy"], told["actNo"]) == (2, "operator:ann", act.act_no)

    in_scene(scenario)


def test_who_has_an_old_claim_neither_keeps_it_nor_says_how_far_the_act_is(in_scene: InScene) -> None:
    async def scenario(scene: Scene) -> None:
        act, slow = (await scene.ask()).act, Pausing()
        first, second = scene.worker(slow.perform), scene.worker(slow.perform)
        await first.begin_waiting()
        await slow.has_begun.wait()
        scene.now_ms += 2 * MINUTE_MS
        await second.begin_waiting()
        claimed = await scene.claim_of(act)
        scene.now_ms += MINUTE_MS
        slow.running[0].report("surveying", 9, 12)
        # The first worker ends by itself, since it has lost the act.
        ending = asyncio.create_task(first.finish_under_way())
        while not ending.done():
            assert await scene.claim_of(act) == claimed
        slow.may_end.set()
        await second.finish_under_way()
        for worker in (first, second):
            await worker.close()
        assert (await scene.show(act.act_no)).state == "done"

    in_scene(scenario)


def test_an_act_whose_workers_die_again_and_again_fails(in_scene: InScene) -> None:
    async def scenario(scene: Scene) -> None:
        act = (await scene.ask()).act
        for _ in range(MAX_CLAIMS):
            async with await connect(as_worker(scene.url)) as dying:
                values = {
                    "now_ms": scene.now_ms,
                    "until_ms": scene.now_ms + MINUTE_MS,
                    "worker": "w",
                    "kinds": [KIND],
                }
                assert (await dying.execute(asked.QUERIES["claim"].text, values)).rowcount == 1
            scene.now_ms += 2 * MINUTE_MS
        await scene.work(scene.worker())
        ended = await scene.show(act.act_no)
        assert (ended.state, ended.cause, scene.done) == ("failed", LOST, [])

    in_scene(scenario)


def test_an_act_that_must_not_begin_again_fails_when_its_worker_has_died(in_scene: InScene) -> None:
    async def scenario(scene: Scene) -> None:
        act = (await scene.ask()).act

        async def sleep(running: Running) -> Outcome:
            await asyncio.sleep(3600)
            raise AssertionError

        dying = scene.worker(sleep, is_repeatable=False)
        await dying.begin_waiting()
        await dying.close()
        scene.now_ms += 2 * MINUTE_MS
        await scene.work(scene.worker(is_repeatable=False))
        assert ((await scene.show(act.act_no)).state, scene.done) == ("failed", [])

    in_scene(scenario)


def test_a_worker_that_stops_gives_its_acts_back(in_scene: InScene) -> None:
    async def scenario(scene: Scene) -> None:
        act = (await scene.ask()).act

        async def sleep(running: Running) -> Outcome:
            await asyncio.sleep(3600)
            raise AssertionError

        stopping = scene.worker(sleep)
        await stopping.begin_waiting()
        await asyncio.sleep(0)
        await stopping.close()
        assert (await scene.show(act.act_no)).state == "waiting"
        await scene.work(scene.worker())
        assert scene.done == [act.act_no]

    in_scene(scenario)


def test_an_act_that_was_given_back_lapses_as_one_that_was_begun_and_is_not_called_off(
    in_scene: InScene,
) -> None:
    async def scenario(scene: Scene) -> None:
        act = (await scene.ask()).act

        async def sleep(running: Running) -> Outcome:
            await asyncio.sleep(3600)
            raise AssertionError

        stopping = scene.worker(sleep)
        await stopping.begin_waiting()
        scene.now_ms += asked.LASTS_MS - 1
        await stopping.close()
        scene.now_ms += 2
        assert await asked.cancel(scene.web, act.act_no, author=scene.author(ANN)) is None
        # It goes on with the next worker, if one comes soon. Hours later nobody expects it.
        scene.now_ms += asked.LASTS_MS
        await scene.work(scene.worker())
        ended = await scene.show(act.act_no)
        assert (ended.state, ended.cause, scene.done) == ("lapsed", LOST, [])

    in_scene(scenario)


def test_an_act_whose_worker_died_does_not_begin_again_hours_later(in_scene: InScene) -> None:
    async def scenario(scene: Scene) -> None:
        act = (await scene.ask()).act
        async with await connect(as_worker(scene.url)) as dying:
            until_ms = scene.now_ms + MINUTE_MS
            values = {"now_ms": scene.now_ms, "until_ms": until_ms, "worker": "w", "kinds": [KIND]}
            await dying.execute(asked.QUERIES["claim"].text, values)
        scene.now_ms += MINUTE_MS + asked.LASTS_MS + 1
        await scene.work(scene.worker())
        ended = await scene.show(act.act_no)
        assert (ended.state, ended.cause, scene.done) == ("lapsed", LOST, [])
        assert (await scene.log())[-1] == ("worker", "sweep.run.lapsed")

    in_scene(scenario)


@pytest.mark.parametrize("change", PROPOSER_CHANGES)
def test_an_act_fails_if_the_one_who_asked_lost_the_right_before_it_began(
    in_scene: InScene, change: LiteralString
) -> None:
    async def scenario(scene: Scene) -> None:
        scene.now_ms = 1000
        async with await connect(scene.url) as owner:
            await create(owner, "ann", "operator", at_ms=1)
            act = (await scene.ask()).act
            await owner.execute(change)
        await scene.work(scene.worker(roles=("owner", "operator")))
        ended = await scene.show(act.act_no)
        assert (ended.state, ended.cause, scene.done) == ("failed", NOT_ALLOWED, [])

    in_scene(scenario)


def test_the_page_sees_how_far_an_act_is(in_scene: InScene) -> None:
    async def scenario(scene: Scene) -> None:
        act, is_free = (await scene.ask()).act, asyncio.Event()

        async def survey(running: Running) -> Outcome:
            running.report("surveying", 3, 12)
            await is_free.wait()
            return Outcome({}, {})

        worker = scene.worker(survey)
        await worker.begin_waiting()
        shown = await scene.show(act.act_no)
        while not shown.progress:
            shown = await scene.show(act.act_no)
        assert (shown.state, shown.stage) == ("running", ("surveying", 3, 12))
        is_free.set()
        await worker.finish_under_way()
        await worker.close()

    in_scene(scenario)


def test_a_page_can_neither_begin_nor_end_an_act(in_scene: InScene) -> None:
    async def scenario(scene: Scene) -> None:
        await scene.ask()
        for statement in ("update asked_act set fence = 9", "update asked_act set result = '{}'"):
            with pytest.raises(errors.InsufficientPrivilege):
                await scene.web.execute(statement)

    in_scene(scenario)
