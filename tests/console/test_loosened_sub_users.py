"""What protects a sub-user from debits is loosened by two people of the platform, and tightened by one."""

from typing import Any

from tests.console.conftest import ConsoleUser, People, read_text
from tests.console.test_safety import work
from tests.console.two_people import accept, proposal_of
from tests.journeys.client import Answer
from tests.journeys.conftest import Platform, Shop

from merchant_wallet.approvals.acts import causes

SETTINGS = {"sandbox_two_people": True, "operator_wait_s": 0}
PLAYER = "player"


def change(person: ConsoleUser, shop: Shop, user: Answer, **typed: str) -> Any:
    form = {
        "limit-debit": "",
        "limit-day": "",
        **{name.replace("_", "-"): text for name, text in typed.items()},
    }
    return person.post(f"/console/merchants/{shop.merchant_id}/users/{user['userId']}", form)


def controls(platform: Platform, user: Answer) -> tuple[Any, ...]:
    read = "select paused, limit_debit_units, limit_day_units from sub_user where user_id = %s"
    return platform.rows(read, user["userId"])[0]


def test_pause_is_lifted_and_limits_are_raised_by_two(platform: Platform, shop: Shop, people: People) -> None:
    user = shop.user(PLAYER)
    ann, ben = people.signed_in("operator"), people.signed_in("operator")
    change(ann, shop, user, do="pause")
    change(ann, shop, user, do="limits", limit_day="10")
    assert controls(platform, user) == (True, None, 10_000_000), "one person tightens"
    alone = change(ann, shop, user, do="resume")
    assert alone.status_code == 422
    assert "needs your reason" in read_text(alone.text)
    resumed = proposal_of(change(ann, shop, user, do="resume", reason="the player asked for it"))
    assert "Limits of a sub-user" in read_text(ben.page(resumed))
    accept(ben, resumed)
    work(platform)
    assert controls(platform, user) == (False, None, 10_000_000)
    raised = proposal_of(change(ann, shop, user, do="limits", limit_day="50", reason="the player asked"))
    accept(ben, raised)
    work(platform)
    assert controls(platform, user) == (False, None, 50_000_000)


def test_nothing_is_loosened_once_it_has_changed_or_one_of_the_two_was_disabled(
    platform: Platform, shop: Shop, people: People
) -> None:
    user = shop.user(PLAYER)
    ann, ben = people.signed_in("operator"), people.signed_in("operator")
    change(ann, shop, user, do="pause")
    for meanwhile, cause in (
        ("update sub_user set limit_day_units = 5 where user_id = %s returning 1", causes.SUB_USER_CHANGED),
        ("update operator set status = 'disabled' where operator_id = %s returning 1", causes.NOT_ALLOWED),
    ):
        accept(ben, proposal_of(change(ann, shop, user, do="resume", reason="the player asked")))
        assert ben.operator is not None
        is_user = cause == causes.SUB_USER_CHANGED
        platform.rows(meanwhile, user["userId"] if is_user else ben.operator.operator_id)
        work(platform)
        assert controls(platform, user)[0]
        failed = "select cause from asked_act where state = 'failed' order by act_no desc limit 1"
        assert platform.rows(failed) == [(cause,)]
