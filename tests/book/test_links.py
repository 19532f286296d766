"""The writer's connections: how many are shared, and what happens when none can be had."""

import asyncio
from typing import Any

import pytest
from tests.crash.shop import run

from merchant_wallet.base.capacity import WRITER_ASIDE
from merchant_wallet.book import links as module
from merchant_wallet.book import store
from merchant_wallet.book.link import Link, LinkLost
from merchant_wallet.book.links import DEEP, MOST_SHARED, SHARED, SLOW_S, Links

NAP_S = "60"


@pytest.fixture(autouse=True)
def _statements(monkeypatch: pytest.MonkeyPatch) -> None:
    statements = {b"nap": b"select pg_sleep($1::float8)", b"timeout": b"show lock_timeout"}
    monkeypatch.setattr(store, "STATEMENTS", statements)


async def _share(links: Links) -> Link:
    link = await links.share()
    assert link is not None
    return link


def _occupy(link: Link) -> asyncio.Task[Any]:
    return asyncio.create_task(link.run([(b"nap", (NAP_S.encode(),))]))


async def _occupy_all(links: Links, times: int) -> tuple[list[asyncio.Task[Any]], set[Link]]:
    naps, used = [], set()
    for _ in range(times):
        link = await _share(links)
        naps.append(_occupy(link))
        used.add(link)
        await asyncio.sleep(0)
    return naps, used


async def _end(links: Links, naps: list[asyncio.Task[Any]]) -> None:
    """Nobody waits for the naps to end by themselves."""
    await links.close()
    ended = await asyncio.gather(*naps, return_exceptions=True)
    assert all(isinstance(one, LinkLost) for one in ended)


def test_foreseen_batches_share_a_few_connections_and_more_where_each_takes_long(database_url: str) -> None:
    async def scenario() -> None:
        links = Links(database_url, 16)
        first = await _share(links)
        assert await _share(links) is first
        naps, used = await _occupy_all(links, SHARED * (DEEP - 1))
        assert first in used
        # The one with the fewest under way is the next.
        assert [len(link) for link in used] == [DEEP - 1] * SHARED
        for link in used:
            link.takes_s = 2 * SLOW_S
        # That alone is no reason, as long as few wait.
        more, again = await _occupy_all(links, SHARED)
        assert again == used
        further = await _share(links)
        assert further not in used
        await _end(links, naps + more)

    run(scenario())


def test_many_that_wait_are_no_reason_where_each_is_quick(database_url: str) -> None:
    async def scenario() -> None:
        links = Links(database_url, 16)
        naps, used = await _occupy_all(links, 2 * SHARED * DEEP)
        assert len(used) == SHARED
        await _end(links, naps)

    run(scenario())


def test_there_is_an_end_to_it(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SLOW_S", -1.0)
    monkeypatch.setattr(module, "DEEP", 1)

    async def scenario(connections: int) -> int:
        links = Links(database_url, connections)
        naps, used = await _occupy_all(links, MOST_SHARED + 4)
        await _end(links, naps)
        return len(used)

    assert run(scenario(16)) == MOST_SHARED
    assert run(scenario(2)) == 2


def test_a_shared_connection_waits_for_a_lock_only_shortly(database_url: str) -> None:
    async def scenario() -> list[bytes | None]:
        links = Links(database_url, 2)
        (shared,) = await (await _share(links)).run([(b"timeout", ())])
        async with links.lend() as link:
            (lent,) = await link.run([(b"timeout", ())])
        await links.close()
        return [shared.get_value(0, 0), lent.get_value(0, 0)]

    assert run(scenario()) == [b"250ms", b"10s"]


def test_one_that_was_lost_is_replaced(database_url: str) -> None:
    async def scenario() -> None:
        links = Links(database_url, 16)
        first = await _share(links)
        await first.close()
        second = await _share(links)
        assert second is not first
        await second.run([(b"timeout", ())])
        await links.close()

    run(scenario())


def test_a_connection_that_cannot_be_had_costs_nothing_while_there_is_another(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        links = Links(database_url, 16)
        only = await _share(links)
        nap = _occupy(only)
        await asyncio.sleep(0)
        tries = []

        async def refuse(*asked: object, **named: object) -> Link:
            tries.append(asked)
            raise LinkLost("too many clients already")

        with monkeypatch.context() as patch:
            patch.setattr(Link, "open", refuse)
            assert [await _share(links) for _ in range(3)] == [only] * 3
        # It is not tried again at once.
        assert len(tries) == 1
        await _end(links, [nap])

    run(scenario())


def test_while_the_first_is_being_opened_nobody_waits_for_it(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        links = Links(database_url, 16)
        away = asyncio.Event()

        async def be_away(*asked: object, **named: object) -> Link:
            await away.wait()
            raise LinkLost("connection timeout expired")

        with monkeypatch.context() as patch:
            patch.setattr(Link, "open", be_away)
            opening = asyncio.create_task(links.share())
            await asyncio.sleep(0)
            assert [await links.share() for _ in range(3)] == [None] * 3
            away.set()
            with pytest.raises(LinkLost):
                await opening
        await _share(links)
        await links.close()

    run(scenario())


def test_what_was_lost_at_once_is_looked_up_a_few_at_a_time(database_url: str) -> None:
    async def scenario() -> int:
        links = Links(database_url, 16)
        open_now, most = 0, 0

        async def look_up() -> None:
            nonlocal open_now, most
            async with links.open_aside() as link:
                open_now += 1
                most = max(most, open_now)
                await link.run([(b"nap", (b"0.01",))])
                open_now -= 1

        await asyncio.gather(*[look_up() for _ in range(20)])
        await links.close()
        return most

    assert run(scenario()) == WRITER_ASIDE
