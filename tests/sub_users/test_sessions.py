"""Sessions of the wallet page, in a real database."""

import asyncio

import pytest
from tests.sub_users.books import NOW_MS, OTHER, SHOP, add_sub_user

from merchant_wallet.base.db import connect
from merchant_wallet.base.units import HOUR_MS, MINUTE_MS
from merchant_wallet.sub_users.controls import Connection, SubUserUnknown
from merchant_wallet.sub_users.profile import set_language
from merchant_wallet.sub_users.sessions import (
    MAX_SESSIONS,
    WalletSession,
    drop_expired,
    end_session,
    end_sessions,
    open_session,
    read_session,
)

pytestmark = pytest.mark.anyio

ALICE, BOB = 101, 102


async def count(conn: Connection) -> int:
    row = await (await conn.execute("select count(*) from wallet_session")).fetchone()
    assert row is not None
    return int(row[0])


async def test_a_session_says_whose_wallet_it_shows(conn: Connection) -> None:
    await add_sub_user(conn, "alice", ALICE)
    token = await open_session(conn, SHOP, ALICE, NOW_MS, frame=True, link_ms=NOW_MS)
    await set_language(conn, SHOP, ALICE, "zh-CN")
    session = await read_session(conn, token, NOW_MS + 1)
    until_ms = NOW_MS + 12 * HOUR_MS
    assert session == WalletSession(SHOP, ALICE, True, NOW_MS, NOW_MS, until_ms, "zh-CN")
    plain = await read_session(
        conn, await open_session(conn, SHOP, ALICE, NOW_MS, frame=False, link_ms=NOW_MS), NOW_MS
    )
    assert plain is not None
    assert plain.is_framed is False


async def test_a_token_is_long_new_each_time_and_kept_as_a_hash(conn: Connection) -> None:
    await add_sub_user(conn, "alice", ALICE)
    tokens = [await open_session(conn, SHOP, ALICE, NOW_MS, frame=False, link_ms=NOW_MS) for _ in range(3)]
    assert len(set(tokens)) == 3
    stored = repr(await (await conn.execute("select * from wallet_session")).fetchall())
    for token in tokens:
        secret = token.partition(".")[2]
        assert len(secret) == 43
        assert secret not in stored


async def test_a_session_ends_half_an_hour_after_it_was_used(conn: Connection) -> None:
    await add_sub_user(conn, "alice", ALICE)
    token = await open_session(conn, SHOP, ALICE, NOW_MS, frame=False, link_ms=NOW_MS)
    at_ms = NOW_MS
    for _ in range(3):
        at_ms += 29 * MINUTE_MS
        assert await read_session(conn, token, at_ms) is not None
    assert await read_session(conn, token, at_ms + 30 * MINUTE_MS - 1) is not None
    assert await read_session(conn, token, at_ms + 60 * MINUTE_MS) is None


async def test_a_session_ends_after_twelve_hours_however_much_it_is_used(conn: Connection) -> None:
    await add_sub_user(conn, "alice", ALICE)
    token = await open_session(conn, SHOP, ALICE, NOW_MS, frame=False, link_ms=NOW_MS)
    end_ms = NOW_MS + 12 * HOUR_MS
    for at_ms in range(NOW_MS, end_ms, 20 * MINUTE_MS):
        assert await read_session(conn, token, at_ms) is not None
    assert await read_session(conn, token, end_ms - 1) is not None
    assert await read_session(conn, token, end_ms) is None


async def test_use_is_written_down_once_a_minute_and_never_back(conn: Connection) -> None:
    await add_sub_user(conn, "alice", ALICE)
    token = await open_session(conn, SHOP, ALICE, NOW_MS, frame=False, link_ms=NOW_MS)

    async def seen_after(at_ms: int) -> int:
        await read_session(conn, token, at_ms)
        row = await (await conn.execute("select seen_ms from wallet_session")).fetchone()
        assert row is not None
        return int(row[0]) - NOW_MS

    assert await seen_after(NOW_MS + MINUTE_MS - 1) == 0
    assert await seen_after(NOW_MS + MINUTE_MS) == MINUTE_MS
    assert await seen_after(NOW_MS + MINUTE_MS + 1) == MINUTE_MS
    assert await seen_after(NOW_MS) == MINUTE_MS


async def test_a_page_that_asks_by_itself_keeps_no_session_alive(conn: Connection) -> None:
    await add_sub_user(conn, "alice", ALICE)
    token = await open_session(conn, SHOP, ALICE, NOW_MS, frame=False, link_ms=NOW_MS)
    for minute in range(1, 30):
        assert await read_session(conn, token, NOW_MS + minute * MINUTE_MS, extends_session=False) is not None
    assert await read_session(conn, token, NOW_MS + 30 * MINUTE_MS, extends_session=False) is None


async def test_another_merchants_session_is_never_found(conn: Connection) -> None:
    for merchant_id in (SHOP, OTHER):
        await add_sub_user(conn, "alice", ALICE, merchant_id)
    token = await open_session(conn, SHOP, ALICE, NOW_MS, frame=False, link_ms=NOW_MS)
    secret = token.partition(".")[2]
    assert await read_session(conn, f"{OTHER}.{secret}", NOW_MS) is None
    await end_session(conn, f"{OTHER}.{secret}")
    assert await end_sessions(conn, OTHER, ALICE) == 0
    session = await read_session(conn, token, NOW_MS)
    assert session is not None
    assert session.merchant_id == SHOP


@pytest.mark.parametrize(
    "token",
    ["", "x", "1001", "1001.", f"1001.{'a' * 42}", f"01001.{'a' * 43}", f"{'9' * 19}.{'a' * 43}", "\0"],
)
async def test_what_is_no_token_opens_nothing(conn: Connection, token: str) -> None:
    assert await read_session(conn, token, NOW_MS) is None
    await end_session(conn, token)


async def test_who_was_suspended_takes_no_look_away_from_customers(conn: Connection) -> None:
    await add_sub_user(conn, "alice", ALICE)
    token = await open_session(conn, SHOP, ALICE, NOW_MS, frame=False, link_ms=NOW_MS)
    await conn.execute("update merchant set status = 'suspended' where merchant_id = %s", [SHOP])
    assert await read_session(conn, token, NOW_MS) is not None


async def test_a_session_is_ended_alone_or_with_all_others(conn: Connection) -> None:
    await add_sub_user(conn, "alice", ALICE)
    await add_sub_user(conn, "bob", BOB)
    bobs = await open_session(conn, SHOP, BOB, NOW_MS, frame=False, link_ms=NOW_MS)
    first, second, third = [
        await open_session(conn, SHOP, ALICE, NOW_MS, frame=False, link_ms=NOW_MS) for _ in range(3)
    ]
    await end_session(conn, first)
    assert [await read_session(conn, token, NOW_MS) is None for token in (first, second)] == [True, False]
    assert await end_sessions(conn, SHOP, ALICE) == 2
    assert [await read_session(conn, token, NOW_MS) for token in (second, third)] == [None, None]
    assert await read_session(conn, bobs, NOW_MS) is not None


async def test_a_link_opened_over_and_over_ends_the_oldest_sessions(conn: Connection) -> None:
    await add_sub_user(conn, "alice", ALICE)
    await add_sub_user(conn, "bob", BOB)
    bobs = await open_session(conn, SHOP, BOB, NOW_MS, frame=False, link_ms=NOW_MS)
    tokens = [
        await open_session(conn, SHOP, ALICE, NOW_MS + number, frame=False, link_ms=NOW_MS)
        for number in range(MAX_SESSIONS + 2)
    ]
    held = [await read_session(conn, token, NOW_MS + 100) is not None for token in tokens]
    assert held == [False, False] + [True] * MAX_SESSIONS
    assert await read_session(conn, bobs, NOW_MS) is not None


async def test_a_link_opened_by_many_at_once_leaves_no_more_sessions_than_that(
    conn: Connection, database_url: str
) -> None:
    await add_sub_user(conn, "alice", ALICE)
    others = [await connect(database_url) for _ in range(8)]

    async def open_some(own: Connection) -> None:
        for number in range(5):
            await open_session(own, SHOP, ALICE, NOW_MS + number, frame=False, link_ms=NOW_MS)

    await asyncio.gather(*(open_some(own) for own in others))
    for own in others:
        await own.close()
    assert await count(conn) == MAX_SESSIONS


async def test_upkeep_clears_away_what_is_over_and_nothing_else(conn: Connection) -> None:
    await add_sub_user(conn, "alice", ALICE)
    await open_session(conn, SHOP, ALICE, NOW_MS, frame=False, link_ms=NOW_MS)
    kept = await open_session(conn, SHOP, ALICE, NOW_MS + 1, frame=False, link_ms=NOW_MS)
    assert await drop_expired(conn, NOW_MS + 12 * HOUR_MS) == 1
    assert await count(conn) == 1
    assert await read_session(conn, kept, NOW_MS + 2) is not None


async def test_no_session_is_opened_for_a_sub_user_that_is_not_there(conn: Connection) -> None:
    await add_sub_user(conn, "alice", ALICE)
    with pytest.raises(SubUserUnknown, match="Merchant 1002 has no sub-user"):
        await open_session(conn, OTHER, ALICE, NOW_MS, frame=False, link_ms=NOW_MS)
    assert await count(conn) == 0
