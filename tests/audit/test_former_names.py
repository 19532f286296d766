"""Entries under a former name of an action: found under any of its names, and still hashed as they were."""

import pytest
from tests.audit.test_records import anyio_backend, conn, note, numbers

from merchant_wallet.audit.records import Connection, list_entries, rename_action
from merchant_wallet.audit.verify import verify

__all__ = ["anyio_backend", "conn"]

pytestmark = pytest.mark.anyio

TODAY, FORMER = "deposits.release", "deposit.release"


async def test_entries_with_a_former_name_are_found_under_any_and_keep_their_hash(conn: Connection) -> None:
    await note(conn, FORMER)
    await note(conn, TODAY)
    await note(conn, FORMER)
    for name in (TODAY, FORMER):
        assert await numbers(conn, action=name) == [3, 2, 1]
        assert await numbers(conn, action=name, limit=2) == [3, 2]
    assert [entry.action for entry in await list_entries(conn, before_no=2)] == [FORMER]
    assert (await verify(conn)).ok


@pytest.mark.parametrize("stage", ["propose", "fail", "refuse", "asked"])
async def test_each_stage_of_an_act_is_found_under_any_name_of_the_act(conn: Connection, stage: str) -> None:
    await note(conn, f"{FORMER}.{stage}")
    await note(conn, FORMER)
    await note(conn, f"{TODAY}.{stage}")
    for name in (TODAY, FORMER):
        assert await numbers(conn, action=f"{name}.{stage}") == [3, 1]
        assert await numbers(conn, action=f"{name}.{stage}", actor="operator:ann", merchant_id=1001) == [3, 1]


async def test_a_name_that_only_begins_like_another_is_another(conn: Connection) -> None:
    await note(conn, "deposit.released")
    assert await numbers(conn, action=TODAY) == []
    assert rename_action("deposit.released") == "deposit.released"
    assert rename_action(f"{FORMER}.propose") == f"{TODAY}.propose"
