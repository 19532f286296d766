"""The definition of a sub-user: every field is read and compared, and a new one has the defaults."""

from typing import Any

import pytest
from psycopg.rows import dict_row
from tests.book.sub_users import CHANGES, COUNTS
from tests.crash.shop import ALICE, Shop, open_shop, run

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.currencies import KFB
from merchant_wallet.base.db import connect
from merchant_wallet.book import commands as c
from merchant_wallet.book import store
from merchant_wallet.book.connection import PipelineConnection
from merchant_wallet.book.read_set import read_set_of
from merchant_wallet.book.rules import apply_batch
from merchant_wallet.book.sub_user import COLUMNS, COMPARED, CONTROLS, COUNTED, FIXED, SubUser


async def _read(shop: Shop, command: c.Command) -> SubUser:
    """The one sub-user of the draft that this command would be judged on."""
    connection = await PipelineConnection.open(shop.url, store.STATEMENTS)
    try:
        submission = [c.Submission(command)]
        draft = await store.open_draft(connection, shop.merchant_id, read_set_of(submission), now_ms())
        (sub_user,) = draft.sub_users.values()
        return sub_user
    finally:
        await connection.close()


async def _select(shop: Shop) -> dict[str, Any]:
    """The sub-user as psycopg reads its columns, by the names of the fields."""
    fields = ", ".join(f"{column.expression} as {column.name}" for column in COLUMNS)
    async with await connect(shop.url) as connection, connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(
            f"select {fields} from sub_user s"
            " join account a on a.merchant_id = s.merchant_id and a.account_id = s.user_id".encode()
        )
        (row,) = await cursor.fetchall()
        return row


def _fields(sub_user: SubUser) -> dict[str, Any]:
    return {name: getattr(sub_user, name) for name in SubUser.__struct_fields__}


def test_every_field_is_fixed_or_compared_under_the_lock() -> None:
    compared = {column.name for column in COMPARED}
    assert compared | FIXED | COUNTED == set(SubUser.__struct_fields__)
    assert compared >= set(CONTROLS)


@pytest.mark.parametrize("changed", [None, *CHANGES, *COUNTS])
def test_every_field_is_read_as_it_stands_by_own_id_and_by_address(
    database_url: str, changed: str | None
) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        before = await _select(shop)
        if changed is not None:
            await shop.rows({**CHANGES, **COUNTS}[changed])
        after = await _select(shop)
        assert {name for name in after if after[name] != before[name]} == ({changed} - {None})
        for command in (c.ReadSubUser(ALICE), c.MerchantToUser("x", shop.alice_address, KFB, 1)):
            assert _fields(await _read(shop, command)) == after

    run(scenario())


def test_a_new_sub_user_is_judged_as_the_database_keeps_it(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        register = [c.Submission(c.Register("bert", KFB, 1, b"e" * 20, b"t" * 20))]
        connection = await PipelineConnection.open(shop.url, store.STATEMENTS)
        try:
            draft = await store.open_draft(connection, shop.merchant_id, read_set_of(register), now_ms())
            entry_count = draft.entry_count
            apply_batch(draft, register)
            await store.commit_draft(connection, draft, "!batch", entry_count)
        finally:
            await connection.close()
        (registered,) = draft.sub_users.values()
        assert registered == await _read(shop, c.ReadSubUser("bert"))

    run(scenario())
