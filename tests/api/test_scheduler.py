"""The scheduler: callbacks run in order, a few in each turn of the event loop, writes before reads."""

import asyncio
from collections.abc import Callable, Sequence

from merchant_wallet.api.scheduler import CALLBACKS_PER_TURN, MIN_READS, Scheduler

MONEY, READ = False, True


def _watch_turns(put: Callable[[Scheduler, list[str]], None], turns: int) -> list[list[str]]:
    """What ran in each of the first turns after `put` scheduled callbacks."""

    async def scenario() -> list[list[str]]:
        done: list[str] = []
        put(Scheduler(), done)
        seen = []
        for _ in range(turns):
            before = len(done)
            await asyncio.sleep(0)
            seen.append(done[before:])
        return seen

    return asyncio.run(scenario())


def _put(scheduler: Scheduler, done: list[str], only_reads: bool, names: Sequence[str]) -> None:
    for name in names:
        scheduler.schedule(only_reads, done.append, name)


def test_work_of_one_kind_is_done_in_the_order_in_which_it_came_a_few_pieces_a_turn() -> None:
    names = [f"transfer {number}" for number in range(CALLBACKS_PER_TURN + 3)]

    turns = _watch_turns(lambda scheduler, done: _put(scheduler, done, MONEY, names), 3)

    assert turns == [names[:CALLBACKS_PER_TURN], names[CALLBACKS_PER_TURN:], []]


def test_a_flood_of_reads_leaves_transfers_most_of_each_turn() -> None:
    reads = [f"read {number}" for number in range(100)]
    transfers = [f"transfer {number}" for number in range(2 * CALLBACKS_PER_TURN)]

    def put(scheduler: Scheduler, done: list[str]) -> None:
        _put(scheduler, done, READ, reads)
        _put(scheduler, done, MONEY, transfers)

    first, second, *_ = _watch_turns(put, 2)

    share = CALLBACKS_PER_TURN - MIN_READS
    assert first == [*transfers[:share], *reads[:MIN_READS]]
    assert second == [*transfers[share : 2 * share], *reads[MIN_READS : 2 * MIN_READS]]


def test_a_flood_of_transfers_leaves_reads_their_share() -> None:
    def put(scheduler: Scheduler, done: list[str]) -> None:
        _put(scheduler, done, MONEY, ["transfer"] * 100)
        _put(scheduler, done, READ, ["read"])

    (first,) = _watch_turns(put, 1)

    assert first == ["transfer"] * (CALLBACKS_PER_TURN - 1) + ["read"]


def test_slots_that_transfers_do_not_need_go_to_reads() -> None:
    def put(scheduler: Scheduler, done: list[str]) -> None:
        _put(scheduler, done, READ, ["read"] * 100)
        _put(scheduler, done, MONEY, ["transfer"])

    (first,) = _watch_turns(put, 1)

    assert first == ["transfer"] + ["read"] * (CALLBACKS_PER_TURN - 1)


def test_work_that_is_put_by_work_has_its_turn_as_well() -> None:
    def put(scheduler: Scheduler, done: list[str]) -> None:
        scheduler.schedule(MONEY, lambda: scheduler.schedule(READ, done.append, "answered"))

    assert _watch_turns(put, 3) == [[], ["answered"], []]
