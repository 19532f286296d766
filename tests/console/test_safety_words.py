"""What Safety says in a hurry: what waits behind a stop, how old a comparison is, who decides next."""

import pytest
from tests.console.conftest import People, read_text
from tests.console.test_banner import all_goes_on, hold, stop
from tests.console.test_reconciliation import COIN, keep
from tests.console.test_safety import SAFETY, WHY, nothing_asked
from tests.console.test_withdrawals import Till, till

__all__ = ["all_goes_on", "nothing_asked", "till"]

SETTINGS = {"sandbox_two_people": True, "operator_wait_s": 0}
PROPOSE_ALL = "/console/safety/resume-all"
STOP_ALL = "/console/safety/stop-all"


def test_orders_behind_a_stop_are_counted_and_not_said_to_go_on(till: Till, people: People) -> None:
    ann = people.signed_in("operator")
    stop(till.platform, "TRC20")
    till.order("40", "TRC20")
    english = read_text(ann.page(SAFETY))
    assert "Approved orders that wait behind the stop of TRC20: 1 · 40.00 USDT" in english
    assert "Every order goes on" not in english
    chinese = read_text(ann.get(SAFETY, headers={"accept-language": "zh-CN"}).text)
    assert "TRC20 停付期间等待的已批准订单：1 · 40.00 USDT" in chinese


def test_the_stop_stands_before_what_holds_single_orders(till: Till, people: People) -> None:
    hold(till, till.order("41", "TRC20"), obstacle_kind="fuel", obstacle_cause="holds 1 TRX", obstacle_ms=5)
    stop(till.platform, "TRC20")
    told = read_text(people.signed_in("operator").page(SAFETY)).partition("TRC20")[2]
    assert told.index("Payouts on TRC20 are stopped") < told.index("holds too little coin")


def test_when_all_is_stopped_nothing_offers_to_stop_it_and_a_proposal_leads_to_its_decision(
    till: Till, people: People
) -> None:
    ann, ben = people.signed_in("operator"), people.signed_in("operator")
    assert "Stop all payouts" in read_text(ann.page(SAFETY))
    ann.post(STOP_ALL, {"reason": WHY})
    assert STOP_ALL not in ann.page(SAFETY), "hers are on every chain"
    assert "an open proposal to resume fails" in read_text(ben.page(SAFETY)), "another stop vetoes"
    assert PROPOSE_ALL in ben.page(SAFETY)
    ann.post(PROPOSE_ALL, {"reason": "the node was replaced"})
    assert PROPOSE_ALL not in ben.page(SAFETY), "it is proposed already"
    assert read_text(ben.page(SAFETY)).count("Resume: accept or refuse") == 2
    assert "Resume: accept or refuse" not in read_text(ann.page(SAFETY)), "not an own proposal"


@pytest.mark.parametrize(("intervals", "is_old"), [(2.9, False), (3.1, True)])
def test_a_comparison_that_is_three_intervals_old_says_so(
    till: Till, people: People, intervals: float, is_old: bool
) -> None:
    platform, interval_s = till.platform, 600
    keep(platform, [], 100 * COIN, platform.clock() - int(intervals * interval_s * 1000))
    ann = people.signed_in("operator")
    for path in (SAFETY, "/console"):
        assert (" UTC old" in read_text(ann.page(path))) is is_old, path


def test_the_sandbox_asks_for_no_gas(till: Till, people: People) -> None:
    page = read_text(people.signed_in("operator").page(SAFETY))
    assert "Gas for a week" not in page
    assert "Gas lasts" not in page
    assert "Last seen" not in page, "programs are not sessions: they report"
