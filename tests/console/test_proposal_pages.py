"""What a proposal's page says to the second operator, and why one is refused or fails, in both languages."""

import re
from typing import Any

import pytest
from tests.console.conftest import ConsoleUser, People, read_text
from tests.console.two_people import OPERATORS, WHY, accept, proposal_of, set_
from tests.journeys.conftest import Clock, Platform, Shop

from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.nonce_partitions import ensure_nonce_partitions

SETTINGS = {"sandbox_two_people": True}
CLOCK_MS = 1_790_000_000_000
ADDRESS = "0x" + "1" * 40


@pytest.fixture(autouse=True)
def _time_passes(platform: Platform, clock: Clock) -> None:
    clock.advance(3 * DAY_MS)
    platform.operate(lambda conn: ensure_nonce_partitions(conn, clock() // DAY_MS))


def facts(page: str) -> dict[str, tuple[str, str]]:
    """The comparison on a proposal's page: before and after, by the setting's name."""
    table = page.split('class="table table-cards"')[-1].split("</table>")[0]
    rows = [re.findall(r"(?s)<t[hd][^>]*>(.*?)</t[hd]>", row) for row in table.split("<tr>")[2:]]
    return {read_text(cells[0]): (read_text(cells[1]), read_text(cells[2])) for cells in rows}


def in_chinese(person: ConsoleUser) -> ConsoleUser:
    person.http.headers["accept-language"] = "zh-CN"
    return person


def test_a_limit_or_a_list_that_is_taken_away_is_told_as_none_at_all(shop: Shop, people: People) -> None:
    ann, bob = people.signed_in("operator"), people.signed_in("operator")
    set_(ann, shop, allowed_addresses=ADDRESS, daily_limit="7000")
    url = proposal_of(set_(ann, shop, allowed_addresses="", daily_limit="", reason=WHY))
    assert facts(bob.page(url)) == {
        "Where withdrawals may go": (ADDRESS, "anywhere"),
        "Limit of orders a day": ("7,000.00 USDT", "no limit"),
    }
    assert facts(in_chinese(bob).page(url)) == {
        "允许的提现地址": (ADDRESS, "任何地址"),
        "每日订单限额": ("7,000.00 USDT", "不限"),
    }


def test_roles_statuses_and_merchants_are_told_in_words(
    platform: Platform, shop: Shop, people: People
) -> None:
    ann, bob = people.signed_in("owner"), people.signed_in("owner")
    form = {"name": "shop.desk", "role": "merchant", "merchant": str(shop.merchant_id), "reason": WHY}
    url = proposal_of(ann.post(f"{OPERATORS}/new", form))
    name = platform.rows("select name from merchant where merchant_id = %s", shop.merchant_id)[0][0]
    told = facts(bob.page(url))
    assert (told["Role"], told["Merchant"]) == (("none", "Merchant user"), ("none", name))
    assert facts(in_chinese(bob).page(url))["角色"] == ("无", "商户用户")
    accept(bob, url)
    number = platform.rows("select operator_id from operator where name = 'shop.desk'")[0][0]
    raised = proposal_of(ann.post(f"{OPERATORS}/{number}/role", {"role": "owner", "reason": WHY}))
    told = facts(bob.page(raised))
    assert (told["角色"], told["商户"]) == (("商户用户", "所有者"), (name, "无"))
    ann.post(f"{OPERATORS}/{number}/status", {"status": "disabled"})
    enabled = proposal_of(ann.post(f"{OPERATORS}/{number}/status", {"status": "active", "reason": WHY}))
    assert facts(bob.page(enabled))["状态"] == ("已停用", "已启用")


def refusal_of(answer: Any, person: ConsoleUser) -> str:
    return read_text(answer.text if answer.status_code == 422 else person.follow(answer).text)


def test_why_a_decision_is_refused_is_told_in_chinese(
    shop: Shop, people: People, clock: Clock, platform: Platform
) -> None:
    ann, bob, eve = (people.signed_in("operator") for _ in range(3))
    done = proposal_of(set_(ann, shop, approval_limit="5000", reason=WHY))
    open_ = proposal_of(set_(ann, shop, approval_limit="6000", reason=WHY))
    in_chinese(eve)
    told = refusal_of(eve.post(f"{open_}/withdraw"), eve)
    assert f"只有 operator:{ann.name} 可以撤回，您可以拒绝。" in told
    accept(bob, done)
    assert f"已由 operator:{bob.name} 决定，请重新查看。" in refusal_of(accept(eve, done), eve)
    assert f"operator:{bob.name} has already decided it" in refusal_of(accept(bob, done), bob)
    clock.advance(8 * DAY_MS)
    late = in_chinese(people.again(eve))
    assert "已过期：请重新提议。" in refusal_of(accept(late, open_), late)


def test_why_a_proposal_failed_is_told_with_its_rules_own_words(platform: Platform, people: People) -> None:
    ann, bob = people.signed_in("operator"), people.signed_in("operator")
    form = {
        "direction": "USDT:KFB",
        "do": "set",
        "rate-usdt-kfb": "8",
        "rate-usdt-kfb-hours": "",
        "reason": WHY,
    }
    set_back = "update rate set kfb_usdt_e8 = %s where merchant_id = 0"
    platform.rows(set_back, 12_000_000)
    url = proposal_of(ann.post("/console/rates", form))
    platform.rows(set_back, 14_000_000)
    bob.follow(accept(bob, url))
    outcome = platform.rows("select outcome from proposal order by proposal_no desc limit 1")[0][0]
    assert "loop of exchanges" in outcome
    assert f"The change is not allowed now: {outcome}" in read_text(bob.page(url))
    assert f"此更改目前不被允许：{outcome}" in read_text(in_chinese(bob).page(url))


def test_the_second_person_reads_the_reason_first_and_what_accepting_does(
    platform: Platform, people: People
) -> None:
    ann, bob = people.signed_in("operator"), people.signed_in("operator")
    for chain in ("ERC20", "TRC20"):
        ann.post(f"/console/payouts/{chain}/stop", {"reason": "a node lies"})
    ann.post("/console/safety/resume-all", {"reason": "the node was replaced"})
    rows = (
        "select proposal_no from proposal where state = 'open' and kind = 'wallet.thaw' order by proposal_no"
    )
    first, second = [f"/console/proposals/{number}" for (number,) in platform.rows(rows)]
    page = bob.page(first)
    said = read_text(page)
    assert said.index(f"{ann.name} proposed it: the node was replaced") < said.index("Accept")
    assert "Resume payouts on ERC20?" in said
    assert "approved orders are paid at once" in said
    assert f"Stopped by {ann.name}: a node lies nobody" in said
    assert 'href="/console/safety"' in page.partition("<main")[2]
    chinese = read_text(in_chinese(bob).page(first))
    assert f"由 {ann.name} 提议：the node was replaced" in chinese
    assert "该链的所有停付都会解除，已批准的订单将立即付款。" in chinese
    accept(bob, first)
    del bob.http.headers["accept-language"]
    assert f"Next: proposal {second.rpartition('/')[2]}" in read_text(bob.page(first))
    assert second in bob.page(first)
    accept(bob, second)
    table = bob.page("/console/proposals").partition("<main")[2]
    assert f'<a href="{first}">Resuming payouts</a>' in table, "the words are the link, not a number alone"
