"""The scheduler: callbacks run in order, a few in each round of the event loop. Merchants take turns.
Writes come before reads.
"""

import asyncio
from collections.abc import Callable, Sequence

from structlog.contextvars import bound_contextvars, get_contextvars

from merchant_wallet.api.scheduler import CALLBACKS_PER_ROUND, MIN_READS, Scheduler
from merchant_wallet.api.turns import SHARED, Turn

MONEY, READ = False, True
OURS: Turn = ("ours", "192.0.2.1")
THEIRS: Turn = ("theirs", "192.0.2.2")


def _watch_rounds(put: Callable[[Scheduler, list[str]], None], rounds: int) -> list[list[str]]:
    """What ran in each of the first rounds after `put` scheduled callbacks."""

    async def scenario() -> list[list[str]]:
        done: list[str] = []
        put(Scheduler(), done)
        seen = []
        for _ in range(rounds):
            before = len(done)
            await asyncio.sleep(0)
            seen.append(done[before:])
        return seen

    return asyncio.run(scenario())


def _put(
    scheduler: Scheduler, done: list[str], only_reads: bool, names: Sequence[str], turn: Turn = SHARED
) -> None:
    for name in names:
        scheduler.schedule(turn, only_reads, done.append, name)


def test_work_of_one_kind_is_done_in_the_order_in_which_it_came_a_few_pieces_a_round() -> None:
    names = [f"transfer {number}" for number in range(CALLBACKS_PER_ROUND + 3)]

    rounds = _watch_rounds(lambda scheduler, done: _put(scheduler, done, MONEY, names), 3)

    assert rounds == [names[:CALLBACKS_PER_ROUND], names[CALLBACKS_PER_ROUND:], []]


def test_a_flood_of_reads_leaves_transfers_most_of_each_turn() -> None:
    reads = [f"read {number}" for number in range(100)]
    transfers = [f"transfer {number}" for number in range(2 * CALLBACKS_PER_ROUND)]

    def put(scheduler: Scheduler, done: list[str]) -> None:
        _put(scheduler, done, READ, reads)
        _put(scheduler, done, MONEY, transfers)

    first, second, *_ = _watch_rounds(put, 2)

    share = CALLBACKS_PER_ROUND - MIN_READS
    assert first == [*transfers[:share], *reads[:MIN_READS]]
    assert second == [*transfers[share : 2 * share], *reads[MIN_READS : 2 * MIN_READS]]


def test_a_flood_of_transfers_leaves_reads_their_share() -> None:
    def put(scheduler: Scheduler, done: list[str]) -> None:
        _put(scheduler, done, MONEY, ["transfer"] * 100)
        _put(scheduler, done, READ, ["read"])

    (first,) = _watch_rounds(put, 1)

    assert first == ["transfer"] * (CALLBACKS_PER_ROUND - 1) + ["read"]


def test_slots_that_transfers_do_not_need_go_to_reads() -> None:
    def put(scheduler: Scheduler, done: list[str]) -> None:
        _put(scheduler, done, READ, ["read"] * 100)
        _put(scheduler, done, MONEY, ["transfer"])

    (first,) = _watch_rounds(put, 1)

    assert first == ["transfer"] + ["read"] * (CALLBACKS_PER_ROUND - 1)


def test_work_that_is_put_by_work_has_its_turn_as_well() -> None:
    def put(scheduler: Scheduler, done: list[str]) -> None:
        scheduler.schedule(SHARED, MONEY, lambda: scheduler.schedule(SHARED, READ, done.append, "answered"))

    assert _watch_rounds(put, 3) == [[], ["answered"], []]


def test_one_call_does_not_wait_for_another_merchants_crowd() -> None:
    crowd = [f"their transfer {number}" for number in range(4000)]

    def put(scheduler: Scheduler, done: list[str]) -> None:
        _put(scheduler, done, MONEY, crowd, THEIRS)
        _put(scheduler, done, MONEY, ["our transfer"], OURS)
        _put(scheduler, done, READ, ["our read"], OURS)

    (first,) = _watch_rounds(put, 1)

    assert first == [crowd[0], "our transfer", *crowd[1 : CALLBACKS_PER_ROUND - 2], "our read"]


def test_an_answer_does_not_wait_for_another_merchants_crowd() -> None:
    def put(scheduler: Scheduler, done: list[str]) -> None:
        _put(scheduler, done, MONEY, ["their transfer"] * 4000, THEIRS)
        scheduler.schedule(OURS, MONEY, lambda: scheduler.schedule(OURS, MONEY, done.append, "our answer"))

    _, second = _watch_rounds(put, 2)

    assert second[:2] == ["their transfer", "our answer"]


def test_a_merchants_own_calls_stay_in_order_beside_others() -> None:
    ours = [f"our transfer {number}" for number in range(6)]

    def put(scheduler: Scheduler, done: list[str]) -> None:
        _put(scheduler, done, MONEY, ["their transfer"] * 100, THEIRS)
        _put(scheduler, done, MONEY, ours, OURS)

    first, second = _watch_rounds(put, 2)

    assert [name for name in first + second if name in ours] == ours


def test_callbacks_run_in_no_requests_context_whoever_scheduled_the_first() -> None:
    """Otherwise the log lines of all would have the id of the first."""

    async def scenario() -> list[dict[str, object]]:
        scheduler, seen = Scheduler(), list[dict[str, object]]()
        with bound_contextvars(request_id="req_1"):
            scheduler.schedule(OURS, MONEY, lambda: seen.append(dict(get_contextvars())))
        scheduler.schedule(THEIRS, MONEY, lambda: seen.append(dict(get_contextvars())))
        await asyncio.sleep(0)
        return seen

    assert asyncio.run(scenario()) == [{}, {}]
