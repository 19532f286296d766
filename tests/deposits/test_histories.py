"""Random histories of a chain: whatever happens before blocks are final, the books are right."""

import asyncio
from collections import Counter
from contextlib import ExitStack
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import TEMPLATE, SharedPostgres
from tests.deposits.conftest import COIN, FINAL_DEPTH, MINIMUM, DepositScene, FakeChainReader, address, visit

NAMES = ["ulla", "otto", "stranger"]
AMOUNTS = [0, COIN // 2, COIN, 5 * COIN]

sent = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(AMOUNTS)), max_size=3)
moves = st.one_of(
    st.tuples(st.just("mine"), sent, st.integers(1, 3)),
    st.tuples(st.just("mine"), sent, st.integers(1, 3)),
    st.tuples(st.just("reorganise"), st.integers(1, FINAL_DEPTH), st.booleans()),
    st.tuples(st.just("follow"), st.integers(0, 1), st.integers(1, 2)),
    st.tuples(st.just("follow"), st.integers(0, 1), st.integers(1, 2)),
    st.tuples(st.just("lag"), st.integers(0, 2), st.none()),
    st.tuples(st.just("credit"), st.none(), st.none()),
)
numbers = count(1)


async def live(
    scene: DepositScene, history: list[tuple[str, object, object]]
) -> tuple[FakeChainReader, Counter[str]]:
    """Play this history on a new chain, until all of it is final."""
    number = next(numbers)
    # A new chain, whose blocks and transactions have names that no earlier example has.
    await scene.home_rows("delete from chain_cursor")
    await scene.home_rows("delete from chain_block")
    await scene.home_rows("delete from chain_transfer")
    await scene.rows("delete from chain_position")
    await scene.rows("delete from deposit where status = 'dust'")
    before = await balances(scene)
    chain = FakeChainReader(transfer_count=number * 10_000, branch=number * 1000)
    watchers, crediting_worker = [scene.watcher(chain) for _ in range(2)], scene.crediting_worker()
    await watchers[0].follow()
    for kind, first, second in history:
        if kind == "mine":
            assert isinstance(first, list)
            assert isinstance(second, int)
            chain.mine(*[(address(name), units) for name, units in first], blocks=second)
        elif kind == "reorganise":
            assert isinstance(first, int)
            # Blocks that a watcher may have seen as final are never taken back.
            depth = min(first, len(chain.blocks) - 1)
            if depth:
                chain.reorganise(depth, keep=bool(second))
        elif kind == "lag":
            assert isinstance(first, int)
            chain.behind = min(first, len(chain.blocks) - 1)
        elif kind == "follow":
            assert isinstance(first, int)
            assert isinstance(second, int)
            for _ in range(second):
                await watchers[first].follow()
        else:
            await crediting_worker.credit_due()
    chain.behind = 0
    chain.mine(blocks=FINAL_DEPTH)
    for watcher in watchers:
        await scene.catch_up(watcher)
        await watcher.close()
    await crediting_worker.credit_due()
    await crediting_worker.close()
    after = await balances(scene)
    after.subtract(before)
    return chain, after


async def balances(scene: DepositScene) -> Counter[str]:
    found = {**await scene.balances(1001), **await scene.balances(1002)}
    return Counter({name: found.get(name, 0) for name in NAMES})


def brought(chain: FakeChainReader) -> Counter[str]:
    """What each of our addresses received in the final branch."""
    logs = [log for block in chain.blocks for log in chain.logs[block.hash]]
    return Counter(
        {name: sum(log.amount_units for log in logs if log.recipient == address(name)) for name in NAMES[:2]}
    )


async def dust(scene: DepositScene) -> Counter[str]:
    """The dust at each address."""
    found = await scene.rows(
        "select address, sum(amount)::bigint from deposit where status = 'dust' group by 1"
    )
    held = {bytes(row[0]): row[1] for row in found}
    return Counter({name: held.get(address(name), 0) for name in NAMES[:2]})


@pytest.mark.parametrize("is_apart", [pytest.param(False, marks=pytest.mark.extended), True])
def test_what_a_chain_has_brought_for_good_is_what_the_books_say(
    database_url: str, postgres: SharedPostgres, is_apart: bool
) -> None:
    async def nothing(scene: DepositScene) -> None:
        return None

    with ExitStack() as closing:
        home_url = closing.enter_context(postgres.database(TEMPLATE)) if is_apart else None
        asyncio.run(visit(database_url, nothing, is_new=True, home_url=home_url))
        _play_histories(database_url, home_url)


def _play_histories(url: str, home_url: str | None) -> None:
    @settings(
        max_examples=20,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(moves, max_size=14))
    def play(history: list[tuple[str, object, object]]) -> None:
        async def scenario(scene: DepositScene) -> None:
            chain, gained = await live(scene, history)
            left = await dust(scene)
            assert gained["stranger"] == 0
            assert gained + left == brought(chain)
            assert all(units < MINIMUM for units in left.values())
            await scene.expect_sound()

        asyncio.run(visit(url, scenario, home_url=home_url))

    play()
