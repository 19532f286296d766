"""What two people do at the console: one proposes a change, another accepts it."""

from typing import Any

from tests.console.conftest import ConsoleUser, read_text
from tests.console.test_merchants import settings_form
from tests.journeys.conftest import Platform, Shop

PROPOSALS = "/console/proposals"
OPERATORS = "/console/operators"
WHY = "contract of 3 March"


def set_(person: ConsoleUser, shop: Shop, **changed: str) -> Any:
    """Save the settings form."""
    form = settings_form(person, shop) | {name.replace("_", "-"): text for name, text in changed.items()}
    return person.post(f"/console/merchants/{shop.merchant_id}/settings", form)


def limits(platform: Platform, shop: Shop) -> tuple[Any, ...]:
    """Both approval limits, in USDT."""
    found = platform.rows(
        "select approval_limit_units / 1000000, second_approval_limit_units / 1000000 from merchant"
        " where merchant_id = %s",
        shop.merchant_id,
    )
    return tuple(int(value) for value in found[0])


def accept(person: ConsoleUser, url: str) -> Any:
    """Accept a proposal on its page."""
    return person.post(f"{url}/accept")


def proposal_of(answer: Any) -> str:
    """The URL of the proposal that a form created."""
    assert answer.status_code == 303, read_text(answer.text)
    location: str = answer.headers["location"]
    assert location.startswith(f"{PROPOSALS}/")
    return location


def last_entry(platform: Platform) -> tuple[Any, ...]:
    """The latest entry of the audit log: actor, action, before and after."""
    return platform.rows(
        "select actor, action, before, after from audit_entry order by audit_no desc limit 1"
    )[0]
