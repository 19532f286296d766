"""Addresses of sub-users: derived, issued once, and in the platform's list before a book has them."""

import psycopg
import pytest
from tests.cells.killed import kill_at_each_step, run_program
from tests.crash.shop import open_merchant, run, verify_sound
from tests.rows import each_row

from merchant_wallet.base.addresses import derive_account, derive_account_xpub
from merchant_wallet.base.db import connect
from merchant_wallet.merchants.issued_addresses import derive_wallets, issue_address

SEED = bytes(range(64))
XPUBS = {"ERC20": derive_account_xpub(SEED, 60, 1001), "TRC20": derive_account_xpub(SEED, 195, 1001)}


@each_row("index", [0, 1, 2**31 - 1])
def test_the_addresses_are_those_that_the_signer_can_spend_from(index: int) -> None:
    evm, tron = derive_wallets(XPUBS, index)
    assert evm == derive_account(SEED, 60, 1001).child(0).child(index).public().address()
    assert tron == derive_account(SEED, 195, 1001).child(0).child(index).public().address()
    assert evm != tron


def test_every_index_has_its_own_addresses() -> None:
    made = [address for index in range(20) for address in derive_wallets(XPUBS, index)]
    assert len(set(made)) == 40


@pytest.mark.parametrize("index", [-1, 2**31])
def test_an_index_that_no_public_key_has_is_refused(index: int) -> None:
    with pytest.raises(ValueError, match="hardened"):
        derive_wallets(XPUBS, index)


def test_a_missing_key_is_told_by_its_chain() -> None:
    with pytest.raises(ValueError, match="TRC20"):
        derive_wallets({"ERC20": XPUBS["ERC20"]}, 0)


def test_each_call_issues_the_next_index_and_writes_both_addresses(database_url: str) -> None:
    async def scenario() -> None:
        merchant = (await open_merchant(database_url)).merchant
        async with await connect(database_url) as conn:
            of_the_merchant = {row[0] for row in await _list_issued(conn)}
            issued = [await issue_address(conn, merchant.merchant_id, merchant.account_xpubs) for _ in (0, 1)]
            assert [address.address_index for address in issued] == [0, 1]
            assert [address[1:] for address in issued] == [
                derive_wallets(merchant.account_xpubs, index) for index in (0, 1)
            ]
            listed = {address for address, _ in await _list_issued(conn)}
        assert listed - of_the_merchant == {address for one in issued for address in one[1:]}

    run(scenario())


def test_an_index_that_came_twice_issues_nothing(database_url: str) -> None:
    """As after a restore of the database, when the counter is behind the addresses."""

    async def scenario() -> None:
        merchant = (await open_merchant(database_url)).merchant
        async with await connect(database_url) as conn:
            await issue_address(conn, merchant.merchant_id, merchant.account_xpubs)
            await conn.execute("update merchant set next_address_index = 0")
            with pytest.raises(psycopg.errors.UniqueViolation):
                await issue_address(conn, merchant.merchant_id, merchant.account_xpubs)
            second = await issue_address(conn, merchant.merchant_id, merchant.account_xpubs)
            assert second.address_index == 1

    run(scenario())


def test_a_first_call_killed_at_any_step_registers_the_sub_user_when_it_is_repeated(
    database_url: str,
) -> None:
    async def scenario() -> None:
        merchant_id = (await open_merchant(database_url)).merchant.merchant_id
        points = []
        async for point in kill_at_each_step(
            "look_up", database_url, database_url, lambda point: (merchant_id, point)
        ):
            points.append(point)
            await run_program("look_up", database_url, database_url, merchant_id, point)
        # The index, the addresses, and the book's command.
        assert points == [f"{word} {step}" for step in (1, 2, 3) for word in ("before", "after")]
        async with await connect(database_url) as conn:
            found = await conn.execute(
                "select ext_user_id, address_index from sub_user order by address_index"
            )
            rows = await found.fetchall()
            # A process that was killed between the index and its registration leaves a gap. The last sub-user
            # is that of the run that was not killed.
            assert rows == [
                ("before 1", 0),
                ("after 1", 2),
                ("before 2", 4),
                ("after 2", 6),
                ("before 3", 8),
                ("after 3", 9),
                ("before 4", 10),
            ]
            owned = "select count(*) from issued_address i join wallet_address w using (merchant_id, address)"
            assert await (await conn.execute(owned.encode())).fetchall() == [(2 * len(rows),)]
            # Both own addresses of the merchant, and two of each index that reached the second step.
            assert len(await _list_issued(conn)) == 2 + 2 * (len(rows) + 2)
            await verify_sound(conn, merchant_id)

    run(scenario())


async def _list_issued(conn: psycopg.AsyncConnection) -> list[tuple[bytes, int]]:
    return await (await conn.execute("select address, merchant_id from issued_address")).fetchall()
