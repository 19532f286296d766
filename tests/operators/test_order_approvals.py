"""Whose approvals of a merchant's orders do not count: who could have ordered in the merchant's name."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.operators.conftest import SHOP
from tests.operators.sign_in_scene import GOOD, NOW_MS

from merchant_wallet.audit.book_commands import ask_book
from merchant_wallet.audit.records import Author
from merchant_wallet.base.codes import Refused
from merchant_wallet.base.units import HOUR_MS
from merchant_wallet.book.commands import Approve, Command
from merchant_wallet.book.errors import CommitUnknown, Unavailable
from merchant_wallet.book.outcomes import Outcome, Withdrawal
from merchant_wallet.book.rules.approvals import TOO_LATE
from merchant_wallet.book.rules.withdrawals import BY_LIMIT
from merchant_wallet.merchants import staff_secrets
from merchant_wallet.operators import access, records
from merchant_wallet.operators.order_approvals import DAY_LIMIT, make_count, read_eligible_ms
from merchant_wallet.operators.records import Connection
from merchant_wallet.operators.roles import Role
from merchant_wallet.operators.waits import Delays

pytestmark = pytest.mark.anyio

DELAYS = Delays(operator_ms=0, giver_ms=HOUR_MS)
ANN = Author("operator:Ann", "test", NOW_MS)
ANN_FOR_BEN = ANN.with_facts({"proposedBy": "cli:ben"})
Act = Callable[[Connection, int], Awaitable[object]]


def order(amount_units: int, approved_by: str | None = None) -> Withdrawal:
    """An order that waits for one approval, unless it has it."""
    facts: dict[str, Any] = dict.fromkeys(Withdrawal.__struct_fields__)
    return Withdrawal(**{**facts, "order_id": 1, "amount_units": amount_units, "approved_by": approved_by})


async def approve(conn: Connection, before: Withdrawal, answer: Outcome | Exception) -> None:
    """Ann approves an order, and the book answers."""

    async def submit(merchant_id: int, command: Command) -> Outcome:
        if isinstance(answer, Exception):
            raise answer
        return answer

    count = make_count(ANN.actor, before, at_ms=NOW_MS, limit_units=100)
    await ask_book(ANN, conn, submit, SHOP, Approve(1, ANN.actor), check=count)


async def add(conn: Connection, name: str, role: str, merchant_id: int | None = None) -> int:
    made = await records.create(conn, name, role, password=GOOD, merchant_id=merchant_id, at_ms=NOW_MS)
    return made.operator.operator_id


async def enable(conn: Connection, desk: int) -> None:
    await records.disable(conn, desk)
    await access.enable(conn, ANN_FOR_BEN, desk, delays=DELAYS)


async def set_role(conn: Connection, desk: int) -> None:
    await records.set_role(conn, desk, Role.AUDITOR)
    await access.set_role(conn, ANN_FOR_BEN, desk, Role.MERCHANT, SHOP, delays=DELAYS)


GIVING: dict[str, Act] = {
    "create": lambda conn, _: access.create(
        conn, ANN_FOR_BEN, "till", Role.MERCHANT, merchant_id=SHOP, delays=DELAYS
    ),
    "reset": lambda conn, desk: access.reset(conn, ANN_FOR_BEN, desk, delays=DELAYS),
    "enable": enable,
    "set role": set_role,
}


async def list_waiting(conn: Connection) -> list[str]:
    people = ("cli:ANN", "operator:ben", "operator:cy")
    return [one for one in people if await read_eligible_ms(conn, one, SHOP) == NOW_MS + HOUR_MS]


@pytest.mark.parametrize("act", GIVING)
async def test_who_gives_a_person_access_to_a_merchant_waits_and_so_does_who_proposed_it(
    conn: Connection, act: str
) -> None:
    for name in ("ann", "ben", "cy"):
        await add(conn, name, Role.OPERATOR)
    await GIVING[act](conn, await add(conn, "desk", Role.MERCHANT, SHOP))
    assert await list_waiting(conn) == ["cli:ANN", "operator:ben"]


async def test_who_gives_a_person_of_the_platform_access_does_not_wait(conn: Connection) -> None:
    await access.create(conn, ANN_FOR_BEN, "dan", Role.OWNER, delays=DELAYS)
    assert await list_waiting(conn) == []


@pytest.mark.parametrize(
    ("ago_ms", "waits"), [(HOUR_MS - 1, True), (HOUR_MS, False)], ids=["lately", "long ago"]
)
async def test_who_has_disabled_or_demoted_the_others_lately_waits_although_nobody_else_is_left(
    conn: Connection, ago_ms: int, waits: bool
) -> None:
    await add(conn, "ann", Role.OWNER)
    ben, cy = await add(conn, "ben", Role.OWNER), await add(conn, "cy", Role.OPERATOR)
    before = Author(ANN.actor, "test", NOW_MS - ago_ms)
    await access.disable(conn, before, cy)
    await staff_secrets.note(conn, ANN, SHOP, 1, HOUR_MS)
    await access.set_role(conn, before, ben, Role.AUDITOR, None, delays=DELAYS)
    await conn.execute("delete from staff_secret")
    await staff_secrets.note(conn, ANN, SHOP, 1, HOUR_MS)
    assert await list_waiting(conn) == (["cli:ANN"] if waits else [])


async def test_days_sum_has_what_the_book_may_have_done_and_not_what_it_refused_or_had_before(
    conn: Connection,
) -> None:
    for name in ("ann", "ben"):
        await add(conn, name, Role.OPERATOR)
    with pytest.raises(Refused):
        await approve(conn, order(90), TOO_LATE)
    with pytest.raises(Unavailable):
        await approve(conn, order(90), Unavailable())
    await approve(conn, order(90, approved_by="operator:ann"), order(1))
    await approve(conn, order(10, approved_by=BY_LIMIT), order(1))
    with pytest.raises(CommitUnknown):
        await approve(conn, order(60), CommitUnknown())
    await approve(conn, order(40), order(1))
    with pytest.raises(Refused) as refused:
        await approve(conn, order(1), order(1))
    assert refused.value.refusal == DAY_LIMIT.with_figures(
        "this order has 0.000001 USDT, you have approved 0.0001 USDT today, and 0.0001 USDT are allowed"
    )
    assert await (await conn.execute("select person, units from approved_sum")).fetchall() == [("ann", 100)]
