"""Who loses the right while an act waits for a lock changes nothing. An act that has begun is waited for."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, LiteralString

import httpx
import pytest
from psycopg import AsyncConnection
from tests.console.conftest import ConsoleUser, People, read_text
from tests.console.test_withdrawals import Till, audit, till
from tests.journeys.conftest import Platform, Shop
from tests.waits import BLOCKED_BY, wait_until

from merchant_wallet import console
from merchant_wallet.base import db
from merchant_wallet.operators import records, sessions

__all__ = ["till"]
pytestmark = pytest.mark.usefixtures("time_passes")

CLOCK_MS = 1_790_000_000_000
SETTINGS = {"sandbox_two_people": True, "operator_wait_s": 0}
LOCK_BOOK: LiteralString = "select 1 from book where merchant_id = %(number)s for update"
WAITS_FOR_ACTS = (
    "select 1 from pg_stat_activity where datname = current_database() and wait_event = 'advisory'"
)


@contextmanager
def held(platform: Platform, lock: LiteralString, number: int) -> Iterator[int]:
    """Another session has a lock, and its process id."""
    with db.connect_sync(platform.url) as other, other.transaction():
        other.execute(lock, {"number": number})
        yield other.info.backend_pid


def begin(platform: Platform, late: ThreadPoolExecutor, pid: int, act: Callable[[], Any]) -> Future[Any]:
    """Begin an act in the background. It waits for the session with this process id."""
    answer = late.submit(act)

    def is_blocked() -> bool:
        assert not answer.done(), answer.result()
        return bool(platform.rows(BLOCKED_BY, pid))

    wait_until(is_blocked, "the act waits")
    return answer


def disable(platform: Platform, person: ConsoleUser) -> None:
    """Disable an operator, over a connection of its own."""
    take_away(platform, lambda conn: records.disable(conn, number_of(person)))


def take_away(platform: Platform, change: Callable[[AsyncConnection], Awaitable[object]]) -> None:
    async def run() -> None:
        async with await db.connect(platform.url) as conn:
            await change(conn)

    asyncio.run(run())


def number_of(person: ConsoleUser) -> int:
    assert person.operator is not None
    return person.operator.operator_id


def test_disabled_operator_whose_act_waits_for_a_lock_changes_nothing(
    platform: Platform, people: People, shop: Shop
) -> None:
    people.signed_in("owner")
    user = shop.user("alice")
    page = f"/console/merchants/{shop.merchant_id}/users/{user['userId']}"
    ann, bob = people.signed_in("operator"), people.signed_in("operator")
    changes: list[tuple[ConsoleUser, Callable[[], None]]] = [
        (ann, lambda: disable(platform, ann)),
        (bob, lambda: take_away(platform, lambda conn: sessions.end_sessions(conn, number_of(bob)))),
    ]
    for person, take_right in changes:
        pause = partial(person.post, page, {"do": "pause"}, seen="/console")
        with ThreadPoolExecutor(1) as late:
            with held(platform, LOCK_BOOK, shop.merchant_id) as pid:
                answer = begin(platform, late, pid, pause)
                take_right()
            refused: httpx.Response = answer.result()
        assert refused.status_code == 403
        assert "Nothing was changed" in read_text(refused.text)
        assert platform.rows("select paused from sub_user where user_id = %s", user["userId"]) == [(False,)]
    assert platform.rows("select count(*) from audit_entry where action = 'sub_user.set'") == [(0,)]


def test_approval_that_waits_for_the_book_is_done_before_its_operator_is_disabled(
    platform: Platform, people: People, till: Till
) -> None:
    people.signed_in("owner")
    ann, number = people.signed_in("operator"), till.order("100")
    form = {"order": number, "confirmed": "1", "back": "order"}
    with ThreadPoolExecutor(2) as late:
        with held(platform, LOCK_BOOK, till.shop.merchant_id) as pid:
            approval = begin(
                platform, late, pid, lambda: ann.post("/console/withdrawals/approve", form, seen="/console")
            )
            disabling = late.submit(lambda: disable(platform, ann))
            wait_until(lambda: platform.rows(WAITS_FOR_ACTS), "the disabling waits for the approval")
            assert not disabling.done()
        assert approval.result().status_code == 303
        disabling.result()
    assert till.approvers(number) == (None, f"operator:{ann.name}")
    assert audit(platform, f"order {number}")[-1] == (f"operator:{ann.name}", "withdrawal.approve")


def test_operator_who_is_disabled_first_approves_nothing(
    platform: Platform, people: People, till: Till
) -> None:
    people.signed_in("owner")
    ann, number = people.signed_in("operator"), till.order("100")
    form = {"order": number, "confirmed": "1", "back": "order"}
    lock: LiteralString = "select 1 from operator where operator_id = %(number)s for update"
    with ThreadPoolExecutor(2) as late:
        with held(platform, lock, number_of(ann)) as pid:
            disabling = begin(platform, late, pid, lambda: disable(platform, ann))
            approval = late.submit(lambda: ann.post("/console/withdrawals/approve", form, seen="/console"))
            wait_until(lambda: platform.rows(WAITS_FOR_ACTS), "the approval waits for the disabling")
        disabling.result()
        assert approval.result().status_code == 403
    assert (till.status(number), till.approvers(number)) == (0, (None, None))


def test_all_acts_of_the_console_are_recorded_with_their_right() -> None:
    """`request.author` reads the right again. What uses the other ways is named here, with its reason."""
    outcomes = {
        "request.py": "makes the author",
        "adjustments.py": "the book has answered",
        "account.py": "ends the own session",
        "sign_in.py": "ends the own session; who signs in has no rights yet",
    }
    ways = ("Author(", ".afterwards", "records.append", "audit.append")
    folder = Path(str(console.__file__)).parent
    found = {path.name for path in folder.glob("*.py") if any(way in path.read_text() for way in ways)}
    assert found == set(outcomes)
