"""The definition of a sub-user: every field is read as it stands, and a new one has the defaults."""

from typing import Any

import pytest
from psycopg.rows import dict_row
from tests.book.groups import commit, judge, make_batch, open_connection, read_draft
from tests.book.sub_users import CHANGES
from tests.crash.shop import ALICE, Shop, open_shop, run

from merchant_wallet.base.currencies import KFB
from merchant_wallet.base.db import connect
from merchant_wallet.book import commands as c
from merchant_wallet.book.sub_user import CONTROLS, SELECTED, SubUser

FIXED = {"user_id", "ext_user_id", "currency", "evm_address", "tron_address"}
"""What never changes after the registration."""


async def _read(shop: Shop, command: c.Command) -> SubUser:
    """The one sub-user of the draft that this command would be judged on."""
    (sub_user,) = (await read_draft(shop.url, shop.merchant_id, command)).sub_users.values()
    return sub_user


async def _select(shop: Shop) -> dict[str, Any]:
    """The sub-user as psycopg reads its columns, by the names of the fields."""
    expressions = zip(SELECTED.split(", "), SubUser.__struct_fields__, strict=True)
    fields = ", ".join(f"{expression} as {name}" for expression, name in expressions)
    async with await connect(shop.url) as connection, connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(
            f"select {fields} from sub_user s"
            " join account a on a.merchant_id = s.merchant_id and a.account_id = s.user_id".encode()
        )
        (row,) = await cursor.fetchall()
        return row


def _fields(sub_user: SubUser) -> dict[str, Any]:
    return {name: getattr(sub_user, name) for name in SubUser.__struct_fields__}


def test_every_field_is_fixed_or_changed_here() -> None:
    assert FIXED | CHANGES.keys() == set(SubUser.__struct_fields__)
    assert not FIXED & CHANGES.keys()
    assert CHANGES.keys() >= set(CONTROLS)


@pytest.mark.parametrize("changed", [None, *CHANGES])
def test_every_field_is_read_as_it_stands_by_own_id_and_by_address(
    database_url: str, changed: str | None
) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        before = await _select(shop)
        if changed is not None:
            await shop.rows(CHANGES[changed])
        after = await _select(shop)
        assert {name for name in after if after[name] != before[name]} == ({changed} - {None})
        for command in (c.ReadSubUser(ALICE), c.MerchantToUser("x", shop.alice_address, KFB, 1)):
            assert _fields(await _read(shop, command)) == after

    run(scenario())


def test_a_new_sub_user_is_judged_as_the_database_keeps_it(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        batch = make_batch(shop.merchant_id, c.Register("bert", KFB, 1, b"e" * 20, b"t" * 20))
        async with open_connection(shop.url) as connection:
            await judge(connection, [batch])
            assert await commit(connection, [batch]) == {shop.merchant_id}
        (registered,) = batch.judged.sub_users.values()
        assert registered == await _read(shop, c.ReadSubUser("bert"))

    run(scenario())
