"""The audit log's "before" is the state that the change was made to, not the state that the page had
shown.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, LiteralString

import httpx
import pytest
from tests.console.conftest import People
from tests.journeys.conftest import Platform, Shop
from tests.waits import BLOCKED_BY

from merchant_wallet.base import db

pytestmark = pytest.mark.usefixtures("time_passes")

CLOCK_MS = 1_790_000_000_000


def overtake(
    platform: Platform, statements: list[LiteralString], number: int, act: Callable[[], httpx.Response]
) -> None:
    """Run `act` while another transaction has changed record `number` and not yet committed."""
    with db.connect_sync(platform.url) as other, ThreadPoolExecutor(1) as late:
        with other.transaction():
            for statement in statements:
                other.execute(statement, {"number": number})
            answer = late.submit(act)
            # Asked on another connection: within a transaction `pg_stat_activity` does not change.
            while not platform.rows(BLOCKED_BY, other.info.backend_pid):
                assert not answer.done()
        assert answer.result().status_code == 303


def last_facts(platform: Platform, action: str) -> tuple[Any, ...]:
    """Before and after, as the latest entry of an action has them."""
    query: LiteralString = "select before, after from audit_entry where action = %s order by audit_no"
    return platform.rows(query, action)[-1]


def test_of_two_who_give_a_role_the_second_sees_the_firsts(platform: Platform, people: People) -> None:
    owner, other = people.signed_in("owner"), people.newcomer("operator")
    assert other.operator is not None
    number = other.operator.operator_id
    overtake(
        platform,
        ["update operator set role = 'auditor' where operator_id = %(number)s"],
        number,
        lambda: owner.post(f"/console/operators/{number}/role", {"role": "owner", "merchant": ""}),
    )
    assert [facts["role"] for facts in last_facts(platform, "operator.set_role")] == ["auditor", "owner"]


def test_of_two_who_disable_an_operator_the_second_disables_nobody(
    platform: Platform, people: People
) -> None:
    owner, other = people.signed_in("owner"), people.newcomer("operator")
    assert other.operator is not None
    number = other.operator.operator_id
    overtake(
        platform,
        ["update operator set status = 'disabled' where operator_id = %(number)s"],
        number,
        lambda: owner.post(f"/console/operators/{number}/status", {"status": "disabled"}),
    )
    assert last_facts(platform, "operator.disable") == ({"status": "disabled"}, {"status": "disabled"})


def test_of_two_who_suspend_a_merchant_the_second_suspends_nobody(
    platform: Platform, people: People, shop: Shop
) -> None:
    operator = people.signed_in("operator")
    overtake(
        platform,
        [
            "update book set last_ms = last_ms where merchant_id = %(number)s",
            "update merchant set status = 'suspended' where merchant_id = %(number)s",
        ],
        shop.merchant_id,
        lambda: operator.post(
            f"/console/merchants/{shop.merchant_id}/status", {"status": "suspended"}, seen="/console"
        ),
    )
    assert last_facts(platform, "merchant.suspend") == ({"status": "suspended"}, {"status": "suspended"})


def test_of_two_who_change_a_sub_users_controls_the_second_sees_the_firsts(
    platform: Platform, people: People, shop: Shop
) -> None:
    user = shop.user("alice")
    operator = people.signed_in("operator")
    overtake(
        platform,
        [
            "update book set last_ms = last_ms where merchant_id = %(number)s",
            "update sub_user set paused = true where merchant_id = %(number)s and ext_user_id = 'alice'",
        ],
        shop.merchant_id,
        lambda: operator.post(
            f"/console/merchants/{shop.merchant_id}/users/{user['userId']}", {"do": "resume"}, seen="/console"
        ),
    )
    assert [facts["paused"] for facts in last_facts(platform, "sub_user.set")] == [True, False]


def test_of_two_who_pause_a_rate_the_second_sees_the_firsts(platform: Platform, people: People) -> None:
    operator = people.signed_in("operator")
    overtake(
        platform,
        ["lock table rate in share row exclusive mode", "update rate set usdt_kfb_paused = true"],
        0,
        lambda: operator.post("/console/rates", {"direction": "USDT:KFB", "do": "resume"}, seen="/console"),
    )
    assert [facts["paused"] for facts in last_facts(platform, "rate.resume")] == [True, False]
