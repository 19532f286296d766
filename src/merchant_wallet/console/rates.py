"""The platform's exchange rates, which merchants have their own, and the history of changes.

Rules: two rates that would let a loop of exchanges make money, for any merchant, are refused with the largest
possible rate. A merchant's own rates are set on its own page.
"""

from typing import Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response

from merchant_wallet.approvals.changes import Facts, ProposedChange
from merchant_wallet.base.money import MAX_RATE_AGE_S, format_rate
from merchant_wallet.base.user_input import parse_digits
from merchant_wallet.console import flash, proposal_forms
from merchant_wallet.console.fee_preview import read_rate
from merchant_wallet.console.filter_values import find_scope
from merchant_wallet.console.form_state import EMPTY_FORM, FormState
from merchant_wallet.console.proposal_forms import Unproposed
from merchant_wallet.console.request import POST, Connection, ConsoleRequest, Page, PoolName
from merchant_wallet.console.tables import TableState, read_state
from merchant_wallet.exchange import acts, rates, two_person_changes
from merchant_wallet.exchange.rates import DIRECTIONS, ONE, PLATFORM, RateChange, RateLine, RateRefused
from merchant_wallet.operators.roles import Right
from merchant_wallet.reporting import merchants
from merchant_wallet.reporting.paging import split_page
from merchant_wallet.reporting.rate_copies import copy_rates
from merchant_wallet.web.languages import N_
from merchant_wallet.web.typed_values import TypedWrong, read_time_ms

RATES: Final = "/console/rates"
_AWAY: Final = N_(
    "Saved. Cells that do not answer now: {cells}. Their books may use the former rate for up to a minute, "
    "then they refuse exchanges until the cell is told."
)
PAGE_ROWS: Final = 30
SET: Final = "set"
REMOVE: Final = "remove"
DOES: Final = (SET, REMOVE, "pause", "resume")
NO_RATE: Final = N_("A rate is above 0 and at most 1000000, with up to 8 decimals.")
ARBITRAGE: Final = N_("A loop of exchanges would make money. With the rate back it can be at most {largest}.")
ARBITRAGE_FOR: Final = N_(
    "For {name}, which has a rate of its own, a loop of exchanges would make money. At most {largest}."
)


class RateForm(msgspec.Struct, frozen=True):
    """One direction of the platform's rates, and the name of its fields."""

    direction: str
    field: str
    line: RateLine
    is_old: bool


class RequestedChange(msgspec.Struct, frozen=True):
    """The change that a form asks for. `do` is one of DOES."""

    do: str
    direction: str
    rate_e8: int
    merchant_id: int
    max_age_ms: int | None


class MerchantRate(msgspec.Struct, frozen=True):
    """A merchant's own rate or pause."""

    name: str
    line: RateLine


class HistoryLine(msgspec.Struct, frozen=True):
    """A past change, with its merchant's name; empty for the platform."""

    name: str
    change: RateChange


async def show_rates(request: ConsoleRequest, conn: Connection) -> Response:
    """The present rates and the history."""
    return await _show(request, conn)


async def change_rate(request: ConsoleRequest, conn: Connection) -> Response:
    """Set or remove the platform's rate, or pause or resume a direction. `do` says which."""
    direction, do = request.form.text("direction"), request.form.text("do")
    if direction not in DIRECTIONS or do not in DOES:
        raise HTTPException(400)
    rate_e8, max_age_ms, errors = read_typed(request, direction) if do == "set" else (0, None, {})
    if rate_e8 is None or errors:
        return await _show(request, conn, FormState(request.form.kept(), errors))
    requested = RequestedChange(do, direction, rate_e8, PLATFORM, max_age_ms)
    try:
        proposed = await change(request, conn, requested)
    except RateRefused:
        told = await _explain(request, conn, RateLine(PLATFORM, direction, rate_e8))
        return await _show(
            request, conn, FormState(request.form.kept(), {format_field_name(direction): told})
        )
    except Unproposed as unproposed:
        return await _show(request, conn, refill_unproposed(request, direction, unproposed))
    if proposed is not None:
        return proposal_forms.redirect_to(request, proposed)
    return await redirect_saved(request, conn, RATES)


async def redirect_saved(request: ConsoleRequest, conn: Connection, url: str) -> Response:
    """Redirect after a change of a rate, which every cell has that answers."""
    if away := await copy_rates(conn, request.cells):
        return request.redirect(url, _AWAY, tone=flash.WARN, cells=", ".join(away))
    return request.redirect(url, N_("Saved. It takes effect from the next exchange on."))


async def change(
    request: ConsoleRequest, conn: Connection, requested: RequestedChange
) -> ProposedChange | None:
    """Change a rate with a record in the audit log. Returns the proposal if a second person is needed.

    Raises RateRefused, Unproposed.
    """
    direction, scope = requested.direction, requested.merchant_id
    async with conn.transaction():
        await rates.lock_rates(conn)
        if await _needs_two(request, conn, requested):
            await _try_out(request, conn, requested)
            line = await rates.find_line(conn, scope, direction)
            facts = await _describe_proposed(conn, line, requested)
            subject = acts.format_subject(direction)
            return await proposal_forms.propose(request, conn, acts.SET, subject, *facts, scope or None)
        await _apply(request, conn, requested)
    return None


def refill_unproposed(request: ConsoleRequest, direction: str, unproposed: Unproposed) -> FormState:
    """The form again, if its change could not be proposed."""
    errors = {f"{format_field_name(direction)}-reason": text for text in unproposed.errors.values()}
    return FormState(request.form.kept(), errors, unproposed.problem)


async def _needs_two(request: ConsoleRequest, conn: Connection, requested: RequestedChange) -> bool:
    settings = request.context.settings
    if not settings.needs_two_people or requested.do not in (SET, REMOVE):
        return False
    rate_e8 = requested.rate_e8 if requested.do == SET else None
    return await two_person_changes.needs_two(
        conn,
        requested.direction,
        rate_e8,
        requested.merchant_id,
        at_ms=request.at_ms,
        band_e8=settings.rate_band,
    )


async def _describe_proposed(
    conn: Connection, line: RateLine, requested: RequestedChange
) -> tuple[Facts, Facts]:
    """The facts of the proposal: before and after."""
    if requested.do == REMOVE:
        return await two_person_changes.describe_removal(conn, line)
    return acts.describe(line), two_person_changes.describe_wanted(requested.rate_e8, requested.max_age_ms)


async def _try_out(request: ConsoleRequest, conn: Connection, requested: RequestedChange) -> None:
    """Check a change with the rule that will carry it out, then roll it back. Raises RateRefused."""
    async with conn.transaction(force_rollback=True):
        await _apply(request, conn, requested)


async def _apply(request: ConsoleRequest, conn: Connection, requested: RequestedChange) -> None:
    direction, scope, author = requested.direction, requested.merchant_id, request.author
    if requested.do == SET:
        await acts.set_rate(conn, author, direction, requested.rate_e8, scope, requested.max_age_ms)
    elif requested.do == REMOVE:
        await acts.remove_rate(conn, author, direction, scope)
    else:
        await acts.pause(conn, author, direction, scope, paused=requested.do == "pause")


async def _show(request: ConsoleRequest, conn: Connection, form_state: FormState = EMPTY_FORM) -> Response:
    state = read_state(RATES, request.http.query_params, filters=("merchant",))
    lines = await rates.list_rates(conn)
    names = await merchants.read_names(conn, [one.merchant_id for one in lines])
    history, last = split_page(await _read_history(request, conn, state), PAGE_ROWS)
    return request.page(
        "console/rates.html",
        active="rates",
        status=200 if form_state.ok else 422,
        form_state=form_state,
        forms=[_form(request, await rates.find_line(conn, PLATFORM, direction)) for direction in DIRECTIONS],
        own=[MerchantRate(names[one.merchant_id], one) for one in lines if one.merchant_id != PLATFORM],
        state=state,
        history=history,
        next=last and str(last.change.change_no),
        proposed=await list_proposed(request, conn, PLATFORM),
        rate_band=format_band(request),
    )


async def list_proposed(request: ConsoleRequest, conn: Connection, scope: int) -> list[ProposedChange]:
    """The open proposals about a scope's rates."""
    found = [
        one
        for each in DIRECTIONS
        for one in await proposal_forms.list_about(request, conn, acts.format_subject(each))
    ]
    return [one for one in found if (one.merchant_id or PLATFORM) == scope]


def format_band(request: ConsoleRequest) -> str:
    """How far one person may move a rate within a day, in percent."""
    return format_rate(request.context.settings.rate_band * 100)


async def _read_history(request: ConsoleRequest, conn: Connection, state: TableState) -> list[HistoryLine]:
    word = state.get("merchant")
    scope = PLATFORM if word == "platform" else await find_scope(request, conn, word)
    if word and word != "platform" and scope == PLATFORM:
        return []
    before_no = parse_digits(state.after) if state.after else None
    found = await rates.list_history(conn, merchant_id=scope, before_no=before_no, limit=PAGE_ROWS + 1)
    names = await merchants.read_names(conn, [one.merchant_id for one in found])
    # The platform's own rates have no name.
    return [HistoryLine(names[one.merchant_id] if one.merchant_id else "", one) for one in found]


def _form(request: ConsoleRequest, line: RateLine) -> RateForm:
    return RateForm(line.direction, format_field_name(line.direction), line, line.is_too_old(request.at_ms))


def read_typed(request: ConsoleRequest, direction: str) -> tuple[int | None, int | None, dict[str, str]]:
    """The typed rate and maximum age, and their errors."""
    name, errors, max_age_ms = format_field_name(direction), {}, None
    rate_e8 = read_rate(request.form.text(name))
    if rate_e8 is None:
        errors[name] = request.translate(NO_RATE)
    if age := request.form.text(f"{name}-hours"):
        try:
            max_age_ms = read_time_ms(age, MAX_RATE_AGE_S)
        except TypedWrong as error:
            errors[f"{name}-hours"] = request.translate(error.text, **error.values)
    return rate_e8, max_age_ms, errors


async def _explain(request: ConsoleRequest, conn: Connection, requested: RateLine) -> str:
    """Why a rate was refused: which merchant's loop would make money, and the largest possible rate."""
    lines = {(one.merchant_id, one.direction): one for one in await rates.list_rates(conn)}
    lines[PLATFORM, requested.direction] = requested
    arbitrage = rates.find_arbitrage(lines, sorted({PLATFORM, *(number for number, _ in lines)}))
    if arbitrage is None:
        return request.translate(NO_RATE)
    back = arbitrage.kfb_usdt_e8 if requested.direction == rates.USDT_TO_KFB else arbitrage.usdt_kfb_e8
    largest = format_rate(ONE // back)
    if arbitrage.merchant_id == PLATFORM:
        return request.translate(ARBITRAGE, largest=largest)
    names = await merchants.read_names(conn, [arbitrage.merchant_id])
    return request.translate(ARBITRAGE_FOR, name=names[arbitrage.merchant_id], largest=largest)


def format_field_name(direction: str) -> str:
    """The name of a direction's field in forms."""
    return "rate-" + direction.lower().replace(":", "-")


ROUTES: Final = (
    Page(RATES, show_rates, Right.READ),
    Page(RATES, change_rate, Right.SET_RATE, POST, pool=PoolName.SAFETY),
)
