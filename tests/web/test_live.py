"""Open pages get changes live, through one query for all of them."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing

import pytest
from tests.crash.shop import run

from merchant_wallet.web import live
from merchant_wallet.web.connections import Away
from merchant_wallet.web.live import MAX_OF_ONE, Hub, SessionEnded, TooManyStreams, write_event

QUICK_S = 0.001


class Books:
    """What a hub reads: balances by wallet and ended sessions. It records each question."""

    def __init__(self, **balances: int) -> None:
        self.balances = balances
        self.asked: list[list[str]] = []
        self.over: set[str] = set()
        self.checked: list[list[str]] = []
        self.broken = 0
        self.ending = False

    async def look(self, wallets: Sequence[str]) -> Mapping[str, int]:
        """The balances of these wallets. Raises `broken` times."""
        self.asked.append(sorted(wallets))
        if self.broken:
            self.broken -= 1
            raise (Away if self.broken % 2 else RuntimeError)("the database was away")
        return {wallet: self.balances[wallet] for wallet in wallets if wallet in self.balances}

    async def check(self, sessions: Sequence[str]) -> set[str]:
        """Those of these sessions that are still valid. Raises `broken` times."""
        self.checked.append(sorted(sessions))
        if self.broken:
            self.broken -= 1
            raise Away("the database was away")
        return set(sessions) - self.over

    def make_hub(self) -> Hub[str, int, str]:
        """A hub that reads from these books."""
        return Hub(self.look, self.check, lambda: self.ending, QUICK_S)


def test_a_page_gets_the_state_and_its_changes_and_nothing_twice() -> None:
    async def scenario() -> None:
        books = Books(alice=5)
        hub = books.make_hub()
        async with aclosing(hub.follow("alice", "session")) as told:
            assert await anext(told) == 5
            looks = len(books.asked)
            while len(books.asked) < looks + 3:  # noqa: ASYNC110 - the hub tells nobody that it has looked
                await asyncio.sleep(0)
            books.balances["alice"] = 7
            assert await anext(told) == 7
        await hub.close()

    run(scenario())


def test_many_pages_cost_one_question() -> None:
    async def scenario() -> None:
        books = Books(alice=1, bob=2)
        hub = books.make_hub()
        followed = [hub.follow(wallet, "session") for wallet in ("alice", "bob", "alice")]
        told = await asyncio.gather(*(anext(stream) for stream in followed))
        assert told == [1, 2, 1]
        assert len(hub) == 3
        assert books.asked[-1] == ["alice", "bob"]
        for stream in followed:
            await stream.aclose()
        assert len(hub) == 0
        await hub.close()

    run(scenario())


def test_nobody_is_asked_about_once_every_page_is_closed() -> None:
    async def scenario() -> None:
        books = Books(alice=1)
        hub = books.make_hub()
        async with aclosing(hub.follow("alice", "session")) as told:
            await anext(told)
        await asyncio.sleep(20 * QUICK_S)
        looks = len(books.asked)
        await asyncio.sleep(20 * QUICK_S)
        assert len(books.asked) == looks
        async with aclosing(hub.follow("alice", "session")) as told:
            assert await anext(told) == 1
        await hub.close()

    run(scenario())


def test_a_failed_look_is_followed_by_another() -> None:
    async def scenario() -> None:
        books = Books(alice=1)
        books.broken = 4
        hub = books.make_hub()
        async with aclosing(hub.follow("alice", "session")) as told:
            assert await anext(told) == 1
        assert len(books.asked) >= 5
        await hub.close()

    run(scenario())


def test_a_page_that_is_slow_gets_the_newest_state() -> None:
    async def scenario() -> None:
        books = Books(alice=0)
        hub = books.make_hub()
        async with aclosing(hub.follow("alice", "session")) as told:
            assert await anext(told) == 0
            for balance in range(1, 40):
                looks = len(books.asked)
                books.balances["alice"] = balance
                while len(books.asked) < looks + 2:  # noqa: ASYNC110 - as above
                    await asyncio.sleep(0)
            seen = [await anext(told) for _ in range(8)]
        assert seen[-1] == 39
        await hub.close()

    run(scenario())


def test_streams_end_when_the_server_stops() -> None:
    async def scenario() -> None:
        books = Books(alice=1)
        hub = books.make_hub()
        told = hub.follow("alice", "session")
        assert await anext(told) == 1
        books.ending = True
        assert [state async for state in told] == []
        with pytest.raises(TooManyStreams):
            hub.follow("alice", "session")

    run(scenario())


def test_closing_the_hub_ends_every_stream() -> None:
    async def scenario() -> None:
        hub = Books(alice=1).make_hub()
        told = hub.follow("alice", "session")
        assert await anext(told) == 1
        await hub.close()
        assert [state async for state in told] == []

    run(scenario())


def test_one_wallet_can_not_take_every_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        hub = Books(alice=1, bob=2).make_hub()
        pages = [hub.follow("alice", "session") for _ in range(MAX_OF_ONE)]
        for page in pages:
            assert await anext(page) == 1
        with pytest.raises(TooManyStreams):
            hub.follow("alice", "session")
        bob = hub.follow("bob", "session")
        assert await anext(bob) == 2
        monkeypatch.setattr(live, "MAX_STREAMS", len(hub))
        with pytest.raises(TooManyStreams):
            hub.follow("carol", "session")
        for page in (*pages, bob):
            await page.aclose()
        await hub.close()

    run(scenario())


def test_a_quiet_stream_has_beats_and_ends_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "BEAT_S", 0.01)
    monkeypatch.setattr(live, "LIFETIME_S", 0.1)

    async def scenario() -> None:
        hub = Books(alice=1).make_hub()
        told = [state async for state in hub.follow("alice", "session")]
        assert told[0] == 1
        # On a busy machine a read can come later than a beat. Then the state is sent again.
        assert set(told) == {1, None}
        await hub.close()

    run(scenario())


def test_while_nothing_can_be_looked_at_there_is_no_beat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "BEAT_S", 0.01)
    monkeypatch.setattr(live, "LIFETIME_S", 1.0)

    async def scenario() -> None:
        books = Books(alice=1)
        # The hub reads rarely, because each failed read logs a traceback. Beats would come between the reads.
        hub = Hub(books.look, books.check, lambda: False, 0.1)
        told = hub.follow("alice", "session")
        assert [await anext(told), await anext(told)] == [1, None]
        looks, books.broken = len(books.asked), 1_000_000
        looks_at_beats = [len(books.asked) async for _ in told]
        assert len(books.asked) > looks
        assert set(looks_at_beats) <= {looks}, "no beat after the first failed look"
        await hub.close()

    run(scenario())


def test_a_page_that_opens_while_reads_fail_gets_no_old_state(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live, "LIFETIME_S", 0.1)
    # A stream looks at its age with each beat.
    monkeypatch.setattr(live, "BEAT_S", 0.05)

    async def scenario() -> None:
        books = Books(alice=1)
        hub = books.make_hub()
        first = hub.follow("alice", "session")
        assert await anext(first) == 1
        looks, books.broken = len(books.asked), 1_000_000
        while len(books.asked) < looks + 2:  # noqa: ASYNC110 - the hub tells nobody that it has looked
            await asyncio.sleep(0)
        assert [state async for state in hub.follow("alice", "session")] == []
        books.broken = 0
        async with aclosing(hub.follow("alice", "session")) as told:
            assert await anext(told) == 1
        await first.aclose()
        await hub.close()

    run(scenario())


def test_the_streams_of_a_session_that_is_over_end_and_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "CHECK_S", 0.0)

    async def scenario() -> None:
        books = Books(alice=1)
        hub = books.make_hub()
        phone, tablet = hub.follow("alice", "phone"), hub.follow("alice", "tablet")
        assert [await anext(phone), await anext(tablet)] == [1, 1]
        books.over = {"phone"}
        with pytest.raises(SessionEnded):
            await anext(phone)
        assert ["phone", "tablet"] in books.checked, "one question for all"
        books.balances["alice"] = 2
        assert await anext(tablet) == 2
        await tablet.aclose()
        await hub.close()

    run(scenario())


def test_a_session_that_can_not_be_looked_at_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "CHECK_S", 0.0)

    async def scenario() -> None:
        books = Books(alice=1)
        books.broken = 2
        hub = books.make_hub()
        async with aclosing(hub.follow("alice", "phone")) as told:
            assert await anext(told) == 1
        assert len(books.checked) >= 3
        await hub.close()

    run(scenario())


def test_sessions_are_not_looked_at_with_every_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "CHECK_S", 3600.0)

    async def scenario() -> None:
        books = Books(alice=1)
        hub = books.make_hub()
        async with aclosing(hub.follow("alice", "phone")) as told:
            assert await anext(told) == 1
            while len(books.asked) < 5:  # noqa: ASYNC110 - the hub tells nobody that it has looked
                await asyncio.sleep(0)
        assert books.checked == []
        await hub.close()

    run(scenario())


def test_an_event_of_several_lines_stays_one_event() -> None:
    assert write_event("balance", "1\n2") == "event: balance\ndata: 1\ndata: 2\n\n"
