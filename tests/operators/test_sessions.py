"""Operators' sessions: how long they live, what is stored, and who may end them."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.waits import wait_until_blocked

from merchant_wallet.base.db import connect
from merchant_wallet.base.units import MINUTE_MS
from merchant_wallet.operators import records
from merchant_wallet.operators.records import Connection
from merchant_wallet.operators.sessions import (
    ENDED_MS,
    IDLE_MS,
    LIFE_MS,
    PENDING_MS,
    SessionOver,
    end_session,
    end_sessions,
    find_ended,
    list_sessions,
    open_session,
    read_pending,
    read_session,
)

pytestmark = pytest.mark.anyio

NOW_MS = 1_763_712_000_000
GOOD = "seven otters sing"


@pytest.fixture
async def ann(conn: Connection) -> int:
    made = await records.create(conn, "ann", "owner", password=GOOD, at_ms=NOW_MS)
    return made.operator.operator_id


async def open_one(
    conn: Connection, operator_id: int, at_ms: int = NOW_MS, *, totp_passed: bool = True, agent: str = "Fox/1"
) -> str:
    return await open_session(
        conn, operator_id, totp_passed=totp_passed, source="192.0.2.1", user_agent=agent, at_ms=at_ms
    )


async def test_a_session_names_its_operator_and_where_it_was_opened(conn: Connection, ann: int) -> None:
    token = await open_one(conn, ann)
    session = await read_session(conn, token, NOW_MS)
    assert session is not None
    assert (session.operator.operator_id, session.operator.name) == (ann, "ann")
    assert (session.shown.source, session.shown.user_agent) == ("192.0.2.1", "Fox/1")
    assert (session.shown.created_ms, session.shown.expires_ms) == (NOW_MS, NOW_MS + LIFE_MS)
    for other in ("", token[:-1], token + "x", session.session_id, "\udcff"):
        assert await read_session(conn, other, NOW_MS) is None


async def test_the_token_is_not_in_the_database(conn: Connection, ann: int) -> None:
    token = await open_one(conn, ann)
    row = await (await conn.execute("select operator_session::text from operator_session")).fetchone()
    assert row is not None
    assert token not in row[0]
    assert token.encode().hex() not in row[0]


async def test_the_password_alone_opens_no_session_that_is_through(conn: Connection, ann: int) -> None:
    pending = await open_one(conn, ann, totp_passed=False)
    assert await read_session(conn, pending, NOW_MS) is None
    session = await read_pending(conn, pending, NOW_MS)
    assert session is not None
    assert await read_pending(conn, pending, NOW_MS + PENDING_MS) is None
    token = await open_session(
        conn,
        ann,
        totp_passed=True,
        source="192.0.2.1",
        user_agent="",
        at_ms=NOW_MS,
        replaced=session.session_id,
    )
    assert await read_pending(conn, pending, NOW_MS) is None
    assert await read_pending(conn, token, NOW_MS) is None
    assert await read_session(conn, token, NOW_MS) is not None


async def test_a_session_that_is_not_used_for_half_an_hour_is_over(conn: Connection, ann: int) -> None:
    token = await open_one(conn, ann)
    assert await read_session(conn, token, NOW_MS + IDLE_MS - 1) is not None
    assert await read_session(conn, token, NOW_MS + 2 * IDLE_MS - 2) is not None
    assert await read_session(conn, token, NOW_MS + 3 * IDLE_MS - 2) is None


async def test_a_session_is_over_after_twelve_hours_however_much_it_is_used(
    conn: Connection, ann: int
) -> None:
    token, at_ms = await open_one(conn, ann), NOW_MS
    while at_ms + IDLE_MS // 2 < NOW_MS + LIFE_MS:
        at_ms += IDLE_MS // 2
        assert await read_session(conn, token, at_ms) is not None
    assert await read_session(conn, token, NOW_MS + LIFE_MS) is None


async def test_its_use_is_written_at_most_once_a_minute(conn: Connection, ann: int) -> None:
    token = await open_one(conn, ann)

    async def seen_after(at_ms: int) -> int:
        assert await read_session(conn, token, NOW_MS + at_ms) is not None
        row = await (await conn.execute("select seen_ms from operator_session")).fetchone()
        assert row is not None
        return int(row[0]) - NOW_MS

    assert await seen_after(MINUTE_MS - 1) == 0
    assert await seen_after(MINUTE_MS) == MINUTE_MS
    assert await seen_after(MINUTE_MS + 1) == MINUTE_MS


async def test_another_role_holds_from_the_next_request_on(conn: Connection, ann: int) -> None:
    await records.create(conn, "bob", "owner", password=GOOD, at_ms=NOW_MS)
    token = await open_one(conn, ann)
    await records.set_role(conn, ann, "auditor")
    session = await read_session(conn, token, NOW_MS)
    assert session is not None
    assert session.operator.role == "auditor"


async def test_operators_see_and_end_their_own_sessions_only(conn: Connection, ann: int) -> None:
    made = await records.create(conn, "bob", "operator", password=GOOD, at_ms=NOW_MS)
    bob = made.operator.operator_id
    first, second = await open_one(conn, ann, agent="one"), await open_one(conn, ann, NOW_MS + 1, agent="two")
    await open_one(conn, ann, totp_passed=False)
    bobs = await open_one(conn, bob)
    listed = await list_sessions(conn, ann, NOW_MS + 1)
    assert [shown.user_agent for shown in listed] == ["one", "two"]
    assert await end_session(conn, bob, listed[0].session_id) is False
    assert await end_session(conn, ann, "no hex") is False
    assert await end_session(conn, ann, listed[0].session_id) is True
    assert await read_session(conn, first, NOW_MS + 1) is None
    assert await read_session(conn, second, NOW_MS + 1) is not None
    third = await open_one(conn, ann)
    assert await end_sessions(conn, ann, kept_session=listed[1].session_id) == 2
    assert await read_session(conn, third, NOW_MS + 1) is None
    assert await read_session(conn, second, NOW_MS + 1) is not None
    assert await end_sessions(conn, ann) == 1
    assert await read_session(conn, bobs, NOW_MS + 1) is not None


async def test_a_session_that_showed_the_password_opens_one_and_after_a_reset_none(
    conn: Connection, ann: int
) -> None:
    async def go_on(pending: str) -> str:
        session = await read_pending(conn, pending, NOW_MS)
        assert session is not None
        waiting.append(session.session_id)
        return await follow(session.session_id)

    async def follow(replaced: str) -> str:
        return await open_session(
            conn, ann, totp_passed=True, source="a", user_agent="", at_ms=NOW_MS, replaced=replaced
        )

    waiting: list[str] = []
    token = await go_on(await open_one(conn, ann, totp_passed=False))
    assert await read_session(conn, token, NOW_MS) is not None
    with pytest.raises(SessionOver):
        await follow(waiting[0])
    late = await read_pending(conn, await open_one(conn, ann, totp_passed=False), NOW_MS)
    assert late is not None
    await records.reset(conn, ann)
    with pytest.raises(SessionOver):
        await follow(late.session_id)
    assert await list_sessions(conn, ann, NOW_MS) == []


@pytest.mark.parametrize("act", [records.reset, records.disable])
async def test_a_session_that_opens_while_an_owner_ends_them_all_ends_too(
    conn: Connection, ann: int, database_url: str, act: Callable[[Connection, int], Awaitable[object]]
) -> None:
    await records.create(conn, "bob", "owner", password=GOOD, at_ms=NOW_MS)
    pending = await read_pending(conn, await open_one(conn, ann, totp_passed=False), NOW_MS)
    assert pending is not None
    async with await connect(database_url) as other:
        async with conn.transaction():
            token = await open_session(
                conn,
                ann,
                totp_passed=True,
                source="a",
                user_agent="",
                at_ms=NOW_MS,
                replaced=pending.session_id,
            )
            acting = asyncio.ensure_future(act(other, ann))
            await wait_until_blocked(conn, other.info.backend_pid, acting)
        await acting
    await records.enable(conn, ann)
    assert await read_session(conn, token, NOW_MS) is None


async def test_what_a_browser_says_about_itself_is_cut_and_cleaned(conn: Connection, ann: int) -> None:
    token = await open_session(
        conn, ann, totp_passed=True, source="", user_agent="A\0\x1b[31m" + "x" * 500, at_ms=NOW_MS
    )
    session = await read_session(conn, token, NOW_MS)
    assert session is not None
    assert session.shown.user_agent == "A??[31m" + "x" * 193
    assert session.shown.source == "unknown"


async def test_sessions_that_expired_a_day_ago_are_dropped_when_somebody_signs_in(
    conn: Connection, ann: int
) -> None:
    tokens = [await open_one(conn, ann) for _ in range(3)]
    await open_one(conn, ann, NOW_MS + LIFE_MS)
    # Until then a form that was sent too late still belongs to somebody, and the session opens nothing.
    assert await find_ended(conn, tokens[0], NOW_MS + LIFE_MS) == ann
    assert await read_session(conn, tokens[0], NOW_MS + LIFE_MS) is None
    await open_one(conn, ann, NOW_MS + LIFE_MS + ENDED_MS)
    row = await (await conn.execute("select count(*) from operator_session")).fetchone()
    assert row == (2,)


async def test_a_live_session_and_one_that_was_ended_are_nobodys_ended_one(
    conn: Connection, ann: int
) -> None:
    token = await open_one(conn, ann)
    assert await find_ended(conn, token, NOW_MS) is None
    await end_sessions(conn, ann)
    assert await find_ended(conn, token, NOW_MS + LIFE_MS) is None
    await open_one(conn, ann, NOW_MS + LIFE_MS + 2 * ENDED_MS)
    row = await (await conn.execute("select count(*) from operator_session")).fetchone()
    assert row == (1,)
