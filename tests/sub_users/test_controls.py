"""Sub-users' controls and the list of sub-users, in a real database."""

import asyncio

import pytest
from tests.sub_users.books import HERE, NOW_MS, OTHER, SHOP, add_sub_user, evm_of, tron_of
from tests.waits import wait_until_blocked

from merchant_wallet.audit.records import list_entries
from merchant_wallet.base.addresses import to_eip55, to_tron
from merchant_wallet.base.db import connect
from merchant_wallet.book.sub_user import CONTROLS, LIMITS
from merchant_wallet.sub_users.activity import read_wallet
from merchant_wallet.sub_users.controls import (
    Connection,
    PinMissing,
    SubUserUnknown,
    describe_controls,
    list_sub_users,
    read_by_ext_user_id,
    read_by_user_id,
    set_controls,
    set_controls_by_user,
)
from merchant_wallet.sub_users.pins import set_first

pytestmark = pytest.mark.anyio


async def found(conn: Connection, search: str | None, **page: int) -> list[str]:
    return [line.ext_user_id for line in await list_sub_users(conn, SHOP, search=search, **page)]


async def test_a_sub_user_is_shown_with_wallet_and_controls(conn: Connection) -> None:
    await add_sub_user(conn, "alice", 101)
    line = await read_by_ext_user_id(conn, SHOP, "alice")
    assert (line.user_id, line.ext_user_id, line.username) == (101, "alice", "alice")
    assert (line.currency, line.balance_units, line.day, line.day_debited_units) == (
        "KFB",
        5_000_000,
        20413,
        70,
    )
    assert (line.evm_address, line.tron_address, line.created_ms) == (evm_of(101), tron_of(101), NOW_MS)
    assert (line.paused, line.limit_debit_units, line.limit_day_units, line.has_pin) == (
        False,
        None,
        None,
        False,
    )


async def test_each_control_changes_alone(conn: Connection) -> None:
    await add_sub_user(conn, "alice", 101)
    await add_sub_user(conn, "bob", 102)

    def controls(line: object) -> tuple[object, ...]:
        return tuple(getattr(line, name) for name in ("paused", "limit_debit_units", "limit_day_units"))

    assert controls(await set_controls(conn, SHOP, "alice", paused=True)) == (True, None, None)
    assert controls(await set_controls(conn, SHOP, "alice", limit_debit_units=7)) == (True, 7, None)
    assert controls(await set_controls(conn, SHOP, "alice", limit_day_units=0)) == (True, 7, 0)
    assert controls(await set_controls(conn, SHOP, "alice", limit_debit_units=None)) == (True, None, 0)
    assert controls(await set_controls(conn, SHOP, "alice", paused=False)) == (False, None, 0)
    assert controls(await set_controls(conn, SHOP, "alice", limit_day_units=None)) == (False, None, None)
    assert controls(await set_controls(conn, SHOP, "alice")) == (False, None, None)
    assert controls(await read_by_ext_user_id(conn, SHOP, "bob")) == (False, None, None)


@pytest.mark.parametrize("name", CONTROLS)
async def test_every_control_of_the_definition_can_be_changed_and_is_shown(
    conn: Connection, name: str
) -> None:
    await add_sub_user(conn, "alice", 101)
    before = await read_by_ext_user_id(conn, SHOP, "alice")
    value = 7_500_000 if name in LIMITS else not getattr(before, name)
    line = await set_controls(conn, SHOP, "alice", **{name: value})
    wallet = await read_wallet(conn, SHOP, 101)
    assert wallet is not None
    for shown in (line, wallet):
        changed = {each for each in CONTROLS if getattr(shown, each) != getattr(before, each)}
        assert (changed, getattr(shown, name)) == ({name}, value)
    told, kept = describe_controls(line), describe_controls(before)
    assert len(told) == len(CONTROLS)
    assert [told[key] for key in told if told[key] != kept[key]] == ["7.5" if name in LIMITS else value]


async def test_no_control_of_another_name_is_changed(conn: Connection) -> None:
    await add_sub_user(conn, "alice", 101)
    with pytest.raises(TypeError, match="limit_year_units"):
        await set_controls(conn, SHOP, "alice", limit_year_units=1)


async def test_a_change_waits_for_a_batch_that_holds_the_books_lock(
    conn: Connection, database_url: str
) -> None:
    await add_sub_user(conn, "alice", 101)
    async with await connect(database_url) as batch:
        async with batch.transaction():
            await batch.execute("update book set last_ms = last_ms where merchant_id = %s", [SHOP])
            change = asyncio.create_task(set_controls(conn, SHOP, "alice", paused=True))
            await wait_until_blocked(batch, conn.info.backend_pid, change)
            assert (await read_by_ext_user_id(batch, SHOP, "alice")).paused is False
        assert (await change).paused is True
        assert (await read_by_ext_user_id(batch, SHOP, "alice")).paused is True


@pytest.mark.parametrize("limit_units", [-1, 2**62 + 1])
async def test_a_limit_that_is_no_amount_is_refused(conn: Connection, limit_units: int) -> None:
    await add_sub_user(conn, "alice", 101)
    with pytest.raises(ValueError, match="A limit is between"):
        await set_controls(conn, SHOP, "alice", paused=True, limit_day_units=limit_units)
    assert (await read_by_ext_user_id(conn, SHOP, "alice")).paused is False


async def test_another_merchants_sub_user_is_unknown(conn: Connection) -> None:
    await add_sub_user(conn, "alice", 101)
    with pytest.raises(SubUserUnknown, match="Merchant 1002 has no sub-user 'alice'"):
        await set_controls(conn, OTHER, "alice", paused=True)
    with pytest.raises(SubUserUnknown):
        await read_by_ext_user_id(conn, OTHER, "alice")
    with pytest.raises(SubUserUnknown, match="There is no merchant 999"):
        await set_controls(conn, 999, "alice", paused=True)
    assert (await read_by_ext_user_id(conn, SHOP, "alice")).paused is False


async def test_a_sub_user_with_a_pin_limits_debits_at_its_own_word(conn: Connection) -> None:
    await add_sub_user(conn, "alice", 101)
    await add_sub_user(conn, "bob", 102)
    await set_first(conn, SHOP, 101, "194728", NOW_MS, source=HERE)
    line = await set_controls_by_user(
        conn, SHOP, 101, paused=True, limit_day_units=9, source=HERE, at_ms=NOW_MS
    )
    assert (line.paused, line.limit_debit_units, line.limit_day_units) == (True, None, 9)
    assert line == await read_by_ext_user_id(conn, SHOP, "alice") == await read_by_user_id(conn, SHOP, 101)
    assert (await read_by_ext_user_id(conn, SHOP, "bob")).paused is False
    await set_controls_by_user(conn, SHOP, 101, paused=True, source=HERE, at_ms=NOW_MS)
    (entry, _) = await list_entries(conn, actor="sub-user:alice")
    assert (entry.action, entry.subject, entry.merchant_id) == ("sub_user.set", "sub-user alice", SHOP)
    assert (entry.source, entry.at_ms) == (HERE, NOW_MS)
    assert entry.before == {"paused": False, "limitDebit": None, "limitDay": None}
    assert entry.after == {"paused": True, "limitDebit": None, "limitDay": "0.000009"}


async def test_what_can_not_be_logged_is_not_changed(conn: Connection) -> None:
    await add_sub_user(conn, "alice", 101)
    await set_first(conn, SHOP, 101, "194728", NOW_MS, source=HERE)
    await conn.execute("delete from audit_head")
    with pytest.raises(AssertionError):
        await set_controls_by_user(conn, SHOP, 101, paused=True, source=HERE, at_ms=NOW_MS)
    assert (await read_by_ext_user_id(conn, SHOP, "alice")).paused is False


async def test_without_a_pin_a_sub_user_changes_nothing(conn: Connection) -> None:
    await add_sub_user(conn, "alice", 101)
    with pytest.raises(PinMissing, match=r"^Set a PIN first\.$"):
        await set_controls_by_user(conn, SHOP, 101, paused=True, source=HERE, at_ms=NOW_MS)
    assert (await read_by_ext_user_id(conn, SHOP, "alice")).paused is False
    assert (await set_controls(conn, SHOP, "alice", paused=True)).paused is True


async def test_a_sub_user_changes_nothing_of_another_merchants(conn: Connection) -> None:
    await add_sub_user(conn, "alice", 101)
    await set_first(conn, SHOP, 101, "194728", NOW_MS, source=HERE)
    for merchant_id, said in (
        (OTHER, "Merchant 1002 has no sub-user"),
        (999, "Merchant 999 has no sub-user"),
    ):
        with pytest.raises(SubUserUnknown, match=said):
            await set_controls_by_user(conn, merchant_id, 101, paused=True, source=HERE, at_ms=NOW_MS)
    with pytest.raises(ValueError, match="A limit is between"):
        await set_controls_by_user(conn, SHOP, 101, limit_debit_units=-1, source=HERE, at_ms=NOW_MS)
    assert (await read_by_ext_user_id(conn, SHOP, "alice")).paused is False


async def test_the_list_goes_on_where_the_last_page_ended(conn: Connection) -> None:
    for number in range(7):
        await add_sub_user(conn, f"user{number}", 101 + number)
    await add_sub_user(conn, "elsewhere", 105, OTHER)
    pages, after = [], 0
    while lines := await list_sub_users(conn, SHOP, after_user_id=after, limit=3):
        pages.append([line.ext_user_id for line in lines])
        after = lines[-1].user_id
    assert pages == [["user0", "user1", "user2"], ["user3", "user4", "user5"], ["user6"]]


async def test_a_search_finds_by_beginning_by_id_and_by_either_address(conn: Connection) -> None:
    await add_sub_user(conn, "alice", 101)
    await add_sub_user(conn, "alina", 102)
    await add_sub_user(conn, "102", 103)
    await add_sub_user(conn, "a%_b", 104)
    await add_sub_user(conn, "alien", 101, OTHER)
    assert await found(conn, "ali") == ["alice", "alina"]
    assert await found(conn, "ali", after_user_id=101) == ["alina"]
    assert await found(conn, "ali", limit=1) == ["alice"]
    assert await found(conn, "102") == ["alina", "102"]
    assert await found(conn, "a%") == ["a%_b"]
    assert await found(conn, to_eip55(evm_of(102))) == ["alina"]
    assert await found(conn, to_eip55(evm_of(102)).lower()) == ["alina"]
    assert await found(conn, to_tron(tron_of(101))) == ["alice"]
    assert await found(conn, "") == await found(conn, None) == ["alice", "alina", "102", "a%_b"]


@pytest.mark.parametrize("search", ["Alice", "alicex", "9" * 30, "0x12", "T" * 34, "a\0", "%", "_"])
async def test_a_search_for_what_is_not_there_finds_nothing(conn: Connection, search: str) -> None:
    await add_sub_user(conn, "alice", 101)
    assert await found(conn, search) == []


@pytest.mark.parametrize("limit", [0, 501])
async def test_a_page_is_bounded(conn: Connection, limit: int) -> None:
    with pytest.raises(ValueError, match="1 to 500"):
        await list_sub_users(conn, SHOP, limit=limit)
