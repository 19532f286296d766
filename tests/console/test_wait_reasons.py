"""Why an order is not paid: the text for staff and the text for merchants."""

import ast
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.reporting.lines import ORDER as LINE

import merchant_wallet
from merchant_wallet.console import freeing, wait_reasons
from merchant_wallet.console.wait_reasons import UNCLAIMED_MS, find_reason, find_reasons, for_merchant
from merchant_wallet.reporting.orders import OrderLine
from merchant_wallet.reporting.payout_blockers import PayoutBlocker

SOURCES = Path(merchant_wallet.__file__).parent
NOW_MS = 1_000_000
STOP = PayoutBlocker("stop", "TRC20", "cli:ann", "the node lies", 5, 0)
WALLET = PayoutBlocker("wallet", "TRC20", "", "a stranger's transaction", 6, 0)
FUNDS = PayoutBlocker("funds", "TRC20", "", "holds 1 of 2", 7, 3)
ORDER = msgspec.structs.replace(LINE, approved_ms=NOW_MS, deadline_ms=NOW_MS)


def text_of(order: OrderLine, *blockers: PayoutBlocker, if_approved: bool = False) -> str | None:
    """The English text of an order's wait reason."""
    found = find_reason(order, blockers, NOW_MS, if_approved=if_approved)
    return None if found is None else found.text


def an_order(**changes: Any) -> OrderLine:
    return msgspec.structs.replace(ORDER, **changes)


def kinds_of_obstacles() -> set[str]:
    """Every kind of obstacle that the code of payouts and chains names."""
    found = set()
    for folder in ("chains", "hot_wallet", "withdrawals"):
        for path in (SOURCES / folder).rglob("*.py"):
            # An obstacle of a sweep is shown with the sweep.
            if path.stem.endswith("sweeps"):
                continue
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
                    kind = node.args[0]
                    if node.func.id == "Obstacle" and isinstance(kind, ast.Constant):
                        found.add(str(kind.value))
    return found


def test_every_obstacle_has_words_on_the_pages_and_a_line_in_the_documents() -> None:
    kinds = kinds_of_obstacles()
    assert {"funds", "token_fee", "stale", "clock", "stopped"} <= kinds
    # A stop has a text of its own, with its actor and cause.
    assert kinds - {"stopped"} <= set(wait_reasons.OBSTACLES)
    chains = (SOURCES.parents[1] / "docs" / "chains.md").read_text(encoding="utf-8")
    table = chains.split("## Why an order waits")[1].split("## ")[0]
    assert {kind for kind in kinds | set(wait_reasons.OBSTACLES) if f"`{kind}`" not in table} == set()


def test_an_order_that_nothing_keeps_has_no_reason() -> None:
    assert text_of(ORDER) is None
    assert text_of(an_order(chain="ERC20"), STOP) is None, "another chain's stop"
    for final in (2, 4, 5, 6):
        assert text_of(an_order(status=final), STOP) is None


def test_a_stop_names_who_why_and_since_when() -> None:
    found = find_reason(ORDER, [STOP], NOW_MS)
    assert found is not None
    assert (found.text, found.who, found.why, found.since_ms) == (
        wait_reasons.STOPPED,
        "cli:ann",
        "the node lies",
        5,
    )
    assert text_of(ORDER, WALLET) == wait_reasons.WALLET_FROZEN


def test_a_stop_keeps_a_taken_up_order_until_something_is_signed_for_it() -> None:
    assert text_of(an_order(status=1), STOP) == wait_reasons.STOPPED
    assert text_of(an_order(status=1, signed_no=1), STOP) is None


def test_an_unapproved_order_waits_for_approval_alone_but_the_dialog_may_ask_what_comes_after() -> None:
    unapproved = an_order(approved_ms=None, approved_by=None)
    assert text_of(unapproved, STOP) is None
    assert text_of(unapproved, STOP, if_approved=True) == wait_reasons.STOPPED
    assert text_of(unapproved, FUNDS, if_approved=True) == wait_reasons.OBSTACLES["funds"]
    assert text_of(unapproved, if_approved=True) is None
    stuck = msgspec.structs.replace(FUNDS, kind="stuck")
    assert text_of(unapproved, stuck, if_approved=True) is None, "another order's own trouble"
    assert text_of(ORDER, FUNDS, if_approved=True) is None, "an obstacle is each order's own"


def test_after_a_rollback_every_order_waits_whatever_was_signed_for_it() -> None:
    rollback = PayoutBlocker("rollback", "TRC20", "", "the book of merchant 1 is behind", 8, 0)
    for order in (ORDER, an_order(status=1, signed_no=1), an_order(status=3)):
        assert text_of(order, STOP, rollback) == wait_reasons.ROLLED_BACK


def test_the_first_reason_that_applies_is_shown() -> None:
    everything = {
        "frozen_cause": "differs",
        "frozen_ms": 4,
        "is_merchant_active": False,
        "obstacle_kind": "funds",
        "obstacle_cause": "too little",
        "obstacle_ms": 3,
    }
    order = an_order(**everything)
    assert text_of(order, STOP) == wait_reasons.FROZEN
    begun = find_reason(msgspec.structs.replace(order, status=1), [], NOW_MS)
    assert begun is not None
    assert (begun.way, wait_reasons.WAYS[begun.text]) == (freeing.FROZEN_BEGUN, freeing.FROZEN)
    order = msgspec.structs.replace(order, frozen_cause=None, frozen_ms=None)
    assert text_of(order, STOP) == wait_reasons.SUSPENDED
    order = msgspec.structs.replace(order, is_merchant_active=True)
    assert text_of(order, STOP) == wait_reasons.STOPPED
    assert text_of(order) == wait_reasons.OBSTACLES["funds"]


def test_a_suspended_merchants_order_that_was_begun_goes_on() -> None:
    assert text_of(an_order(status=1, is_merchant_active=False)) is None


def test_a_stop_that_was_lifted_is_no_reason_though_it_stays_noted_at_the_order() -> None:
    order = an_order(obstacle_kind="stopped", obstacle_cause="cli:ann stopped payouts", obstacle_ms=3)
    assert text_of(order) is None


def test_an_obstacle_without_its_own_text_is_shown_with_its_cause() -> None:
    order = an_order(obstacle_kind="of tomorrow", obstacle_cause="5 transfers in a row", obstacle_ms=3)
    found = find_reason(order, [], NOW_MS)
    assert found is not None
    assert (found.text, found.why, found.since_ms) == (wait_reasons.OTHER_OBSTACLE, "5 transfers in a row", 3)


@pytest.mark.parametrize(
    ("age_ms", "told"), [(UNCLAIMED_MS, None), (UNCLAIMED_MS + 1, wait_reasons.UNCLAIMED)]
)
def test_an_approved_order_that_no_worker_takes_up_says_so_after_a_minute(
    age_ms: int, told: str | None
) -> None:
    assert text_of(an_order(is_taken_up=False, approved_ms=NOW_MS - age_ms)) == told


def test_a_merchants_user_reads_no_name_and_no_cause() -> None:
    orders = [
        ORDER,
        an_order(order_id=10, frozen_cause="differs", frozen_ms=4),
        an_order(
            order_id=11, chain="ERC20", obstacle_kind="funds", obstacle_cause="holds 1 of 2", obstacle_ms=3
        ),
    ]
    found = find_reasons(1, orders, [STOP], NOW_MS)
    assert {number: one.text for number, one in found.items()} == {
        9: wait_reasons.THEIR_STOP,
        10: wait_reasons.THEIR_FROZEN,
        11: wait_reasons.THEIR_OBSTACLE,
    }
    assert {(one.who, one.why) for one in found.values()} == {("", "")}
    assert for_merchant(wait_reasons.Reason("warn", wait_reasons.UNCLAIMED, {})) is None


def constants() -> set[str]:
    """Every text that a reason can have."""
    own = {value for key, value in vars(wait_reasons).items() if key.isupper() and isinstance(value, str)}
    return {text for text in own if " " in text} | set(wait_reasons.OBSTACLES.values())


def test_every_reason_says_who_can_free_the_order_and_how() -> None:
    assert constants() == set(wait_reasons.WAYS)
    for text, way in wait_reasons.WAYS.items():
        assert way.roles or way.who, text
        assert way.text.format(chain="TRC20"), text


def test_a_stop_is_freed_by_two_people_with_the_right_and_a_rollback_at_the_server() -> None:
    stopped = find_reason(ORDER, [STOP], NOW_MS)
    assert stopped is not None
    assert (stopped.way.roles, stopped.way.people) == (["owner", "operator"], 2)
    assert stopped.way.command.format(**stopped.values) == "merchant-wallet wallets resume TRC20"
    rolled_back = find_reason(ORDER, [PayoutBlocker("rollback", "TRC20", "", "behind", 5, 0)], NOW_MS)
    assert rolled_back is not None
    assert (rolled_back.way.roles, rolled_back.way.who) == ([], freeing.SERVER)


def test_a_merchants_user_is_told_that_the_platform_frees_it() -> None:
    told = for_merchant(find_reason(ORDER, [STOP], NOW_MS))
    assert told is not None
    assert (told.way.roles, told.way.who, told.way.command) == ([], freeing.STAFF, "")
