"""The order in which people are told of what waits, and after how long the next one is.

Rules: owners change it, with an entry in the audit log. Everybody who sees the operators sees it.
"""

from typing import Any, Final

import msgspec
from starlette.responses import Response

from merchant_wallet.base.user_input import parse_digits
from merchant_wallet.console.form_state import EMPTY_FORM, FormState
from merchant_wallet.console.inbox import list_people
from merchant_wallet.console.request import POST, Connection, ConsoleRequest, Page
from merchant_wallet.notifications import escalation, outbox
from merchant_wallet.operators import records
from merchant_wallet.operators.roles import Operator, Right
from merchant_wallet.web.inbox_sources import SOURCES
from merchant_wallet.web.languages import N_

PATH: Final = "/console/operators/escalation"
MINUTE_S: Final = 60
MAX_STEP: Final = 999
BAD_STEP: Final = N_("A whole number from 1 to 999, and no two people with the same one.")
BAD_MINUTES: Final = N_("A whole number of minutes from 1 to 10080, or nothing.")


class Person(msgspec.Struct, frozen=True):
    """An operator in the form: the typed place in the order, and whether messages reach this person."""

    operator: Operator
    step: str
    is_reachable: bool


async def show(request: ConsoleRequest, conn: Connection) -> Response:
    """The order and the times."""
    return await _show(request, conn)


async def save(request: ConsoleRequest, conn: Connection) -> Response:
    """Store the order and the times."""
    people = await _list_active(request, conn)
    errors: dict[str, str] = {}
    order = _read_order(request, people, errors)
    times = _read_times(request, errors)
    if errors:
        return await _show(request, conn, FormState(request.form.kept(), errors))
    async with conn.transaction():
        before = await _describe(conn)
        await escalation.write(conn, [one.operator_id for one in order], times)
        after = await _describe(conn)
        await request.author.record(conn, "operator.escalation", "escalation", before=before, after=after)
    return request.redirect(PATH, N_("Saved."))


def _read_order(request: ConsoleRequest, people: list[Operator], errors: dict[str, str]) -> list[Operator]:
    places: dict[int, Operator] = {}
    for one in people:
        name = f"step.{one.operator_id}"
        if not (text := request.form.text(name)):
            continue
        number = _read_number(text, MAX_STEP)
        if number is None or number in places:
            errors[name] = request.translate(BAD_STEP)
        else:
            places[number] = one
    return [places[number] for number in sorted(places)]


def _read_times(request: ConsoleRequest, errors: dict[str, str]) -> dict[str, int]:
    times = {}
    for source in SOURCES:
        name = f"minutes.{source.kind}"
        if not (text := request.form.text(name)):
            continue
        minutes = _read_number(text, escalation.MAX_AFTER_S // MINUTE_S)
        if minutes is None:
            errors[name] = request.translate(BAD_MINUTES)
        else:
            times[source.kind] = minutes * MINUTE_S
    return times


def _read_number(text: str, most: int) -> int | None:
    number = parse_digits(text)
    return number if number is not None and 1 <= number <= most else None


async def _describe(conn: Connection) -> dict[str, Any]:
    """Order and times for the audit log."""
    order = " ".join(step.name for step in await escalation.list_steps(conn))
    times = await escalation.list_times(conn)
    return {"order": order, **{f"{kind} after (s)": after_s for kind, after_s in times.items()}}


async def _list_active(request: ConsoleRequest, conn: Connection) -> list[Operator]:
    return [one for one in await list_people(request, conn) if one.status == records.ACTIVE]


async def _show(request: ConsoleRequest, conn: Connection, form_state: FormState = EMPTY_FORM) -> Response:
    steps = {step.operator_id: str(step.step_no) for step in await escalation.list_steps(conn)}
    reachable = {one.person.operator_id for one in await outbox.list_readers(conn) if one.contact.targets}
    people = [
        Person(one, steps.get(one.operator_id, ""), one.operator_id in reachable)
        for one in await _list_active(request, conn)
    ]
    people.sort(key=lambda one: (int(one.step or MAX_STEP + 1), one.operator.name.lower()))
    times = await escalation.list_times(conn)
    return request.page(
        "console/escalation.html",
        active="operators",
        status=200 if form_state.ok else 422,
        form_state=form_state,
        people=people,
        kinds=SOURCES,
        minutes={kind: after_s // MINUTE_S for kind, after_s in times.items()},
    )


ROUTES: Final = (
    Page(PATH, show, Right.READ_AUDIT),
    Page(PATH, save, Right.MANAGE_OPERATORS, POST),
)
