"""A batch's deposits in the database: read as they are, credited by one row, refused where there would be
two.
"""

from collections.abc import Sequence

import pytest
from psycopg.pq.abc import PGresult
from tests.book.groups import commit, judge, make_batch, open_connection
from tests.deposits.conftest import COIN, FINAL_DEPTH, SHOP, DepositScene, FakeChainReader, InScene, address

from merchant_wallet.base.currencies import KFB
from merchant_wallet.book.commands import CreditDeposit, DepositKey, MerchantToUser, ReadBalances, Submission
from merchant_wallet.book.connection import PipelineConnection, StatementCall, StatementFailed
from merchant_wallet.book.drafts import read_drafts
from merchant_wallet.book.outcomes import DEPOSIT_NOT_DUE, DEPOSIT_UNKNOWN, Credited, Transferred
from merchant_wallet.book.rules import apply_batch

ABOUT_DEPOSITS = {
    b"read_deposits",
    b"insert_credited_transactions",
    b"insert_credits",
    b"update_deposits",
    b"check_deposits",
}


def listen(connection: PipelineConnection) -> list[bytes]:
    """Record the names of the statements that this connection runs from now on."""
    names: list[bytes] = []
    run = connection.run

    async def run_and_tell(calls: Sequence[StatementCall]) -> list[PGresult]:
        names.extend(name for name, _ in calls)
        return await run(calls)

    connection.run = run_and_tell  # type: ignore[method-assign]  # Only this connection is recorded.
    return names


async def arrive(scene: DepositScene, name: str, units: int, chain: str = "ERC20") -> CreditDeposit:
    """A final transfer, and the command that credits it."""
    told = FakeChainReader(chain)
    (sent,) = told.mine((address(name, chain), units))
    told.mine(blocks=FINAL_DEPTH)
    await scene.catch_up(scene.watcher(told))
    return CreditDeposit(DepositKey(chain, sent, 0), address(name, chain), units, False)


async def ask(scene: DepositScene, *commands: CreditDeposit) -> list[object]:
    waiting = [scene.book.submit(SHOP, Submission(command)) for command in commands]
    return [await answer for answer in waiting]


def test_a_later_batch_reads_a_credit_as_the_first_one_gave_it(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        command = await arrive(scene, "anna", 3 * COIN, "TRC20")
        (first,) = await ask(scene, command)
        assert isinstance(first, Credited)
        assert first == Credited(first.entry_id, KFB, 3 * COIN, 21 * COIN, 7 * 10**8)
        assert await ask(scene, command, command) == [first, first]
        assert await scene.rows("select count(*) from entry where kind = 'deposit'") == [(1,)]
        await scene.expect_sound()

    in_scene(scenario)


def test_several_deposits_are_credited_by_one_batch_beside_other_commands(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        mine, annas = await arrive(scene, "shop", 5 * COIN), await arrive(scene, "anna", 2 * COIN, "TRC20")
        to_anna = MerchantToUser("m1", address("anna"), KFB, 1)
        waiting = [
            scene.book.submit(SHOP, Submission(each)) for each in (mine, ReadBalances(), annas, to_anna, mine)
        ]
        outcomes = [await answer for answer in waiting]
        assert isinstance(outcomes[0], Credited)
        assert isinstance(outcomes[2], Credited)
        assert outcomes[4] == outcomes[0]
        assert not isinstance(outcomes[3], Transferred)
        assert (await scene.balances())["merchant:USDT"] == 5 * COIN
        await scene.expect_sound()

    in_scene(scenario)


def test_another_books_deposit_is_unknown_and_dust_is_not_due(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        ottos, dust = await arrive(scene, "otto", 5 * COIN), await arrive(scene, "ulla", 5, "TRC20")
        assert await ask(scene, ottos, dust) == [DEPOSIT_UNKNOWN, DEPOSIT_NOT_DUE]

    in_scene(scenario)


@pytest.mark.parametrize(("knows", "sqlstate"), [("the credit", "23505"), ("the deposit", "22012")])
def test_the_database_refuses_a_second_credit_whatever_the_rules_believe(
    in_scene: InScene, knows: str, sqlstate: str
) -> None:
    async def scenario(scene: DepositScene) -> None:
        command = await arrive(scene, "ulla", 5 * COIN)
        await ask(scene, command)
        if knows == "the credit":
            await scene.rows("update deposit set status = 'pending'")
        else:
            await scene.rows("delete from deposit_credit")
        async with open_connection(scene.url) as connection:
            batch = make_batch(SHOP, command)
            await read_drafts(connection, [batch], scene.clock())
            draft = batch.judged
            # Change the draft, so that the rules see no earlier credit.
            for key, deposit in draft.deposits.items():
                values = {
                    name: getattr(deposit, name) for name in ("key", "address", "amount_units", "block_hash")
                }
                draft.deposits[key] = type(deposit)(**values, is_merchants=False, is_due=True)
            assert isinstance(apply_batch(draft, batch.submissions)[0], Credited)
            with pytest.raises(StatementFailed) as failed:
                await commit(connection, [batch])
            assert failed.value.sqlstate == sqlstate
        assert (await scene.balances())["ulla"] == 5 * COIN

    in_scene(scenario)


def test_a_batch_without_deposits_has_no_statement_about_them(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        command = await arrive(scene, "ulla", 5 * COIN)
        names: list[set[bytes]] = []
        for asked in (MerchantToUser("m1", address("anna"), KFB, 1), command):
            async with open_connection(scene.url) as connection:
                heard, batch = listen(connection), make_batch(SHOP, asked)
                await judge(connection, [batch], scene.clock())
                assert await commit(connection, [batch]) == {SHOP}
                names.append(ABOUT_DEPOSITS & set(heard))
        assert names == [set(), ABOUT_DEPOSITS]

    in_scene(scenario)
