"""A merchant's fees and own exchange rates, with a preview before they are saved.

Rules: a preview is computed from the typed values and saves nothing. Two rates that would let a loop of
exchanges make money are refused, with the largest possible rate.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
from starlette.responses import Response

from merchant_wallet.base.money import format_rate
from merchant_wallet.console import proposal_forms, setting_fields
from merchant_wallet.console.fee_preview import (
    SAMPLE,
    Conditions,
    preview,
    read_amount,
    read_rate,
    read_share,
)
from merchant_wallet.console.form_state import EMPTY_FORM, FormState
from merchant_wallet.console.merchant_settings import (
    ChangedMeanwhile,
    change,
    explain,
    find_errors,
    mark_texts,
    redirect_after_change,
)
from merchant_wallet.console.merchants import ONE, load, url_of
from merchant_wallet.console.proposal_forms import Unproposed
from merchant_wallet.console.rates import (
    NO_RATE,
    RequestedChange,
    format_band,
    format_field_name,
    list_proposed,
    read_typed,
    redirect_saved,
    refill_unproposed,
)
from merchant_wallet.console.rates import change as change_line
from merchant_wallet.console.request import POST, Connection, ConsoleRequest, Page, PoolName
from merchant_wallet.exchange import rates
from merchant_wallet.exchange.rates import DIRECTIONS, EffectiveRate, RateLine, RateRefused
from merchant_wallet.exchange.rates import ONE as LOOP_LIMIT
from merchant_wallet.merchants import acts
from merchant_wallet.merchants.records import Merchant
from merchant_wallet.operators.roles import Right
from merchant_wallet.web.languages import N_

_PUMPS: Final = N_("With the rate back, a loop of exchanges would make money. It can be at most {largest}.")
FEES_REASON: Final = "fees-reason"
FEES: Final = ("transfer-fee-rate", "withdraw-fee-rate", "withdraw-fee-min")


class RateForm(msgspec.Struct, frozen=True):
    """One direction: the rate in force, and the merchant's own rate."""

    direction: str
    field: str
    force: EffectiveRate
    own: RateLine


async def show_rates(request: ConsoleRequest, conn: Connection) -> Response:
    """The merchant's rates and the preview."""
    return await _show(request, conn, await load(request, conn))


async def change_rate(request: ConsoleRequest, conn: Connection) -> Response:
    """Set or remove the merchant's own rate, or pause or resume a direction. `do` says which."""
    merchant = await load(request, conn)
    direction, do = request.form.text("direction"), request.form.text("do")
    if direction not in DIRECTIONS or do not in ("set", "remove", "pause", "resume"):
        return await _show(request, conn, merchant, FormState(problem=request.translate(NO_RATE)))
    rate_e8, max_age_ms, errors = read_typed(request, direction) if do == "set" else (1, None, {})
    if rate_e8 is None or errors:
        return await _show(request, conn, merchant, FormState(request.form.kept(), errors))
    number = merchant.merchant_id
    try:
        requested = RequestedChange(do, direction, rate_e8, number, max_age_ms)
        proposed = await change_line(request, conn, requested)
    except Unproposed as unproposed:
        return await _show(request, conn, merchant, refill_unproposed(request, direction, unproposed))
    except RateRefused:
        errors = {format_field_name(direction): await _describe_arbitrage(request, conn, number, direction)}
        return await _show(request, conn, merchant, FormState(request.form.kept(), errors))
    if proposed is not None:
        return proposal_forms.redirect_to(request, proposed)
    return await redirect_saved(request, conn, f"{url_of(merchant.merchant_id)}/rates")


async def change_fees(request: ConsoleRequest, conn: Connection) -> Response:
    """Set the three fees."""
    merchant = await load(request, conn)
    typed = {name: request.form.raw(name) for name in FEES}
    texts = setting_fields.to_texts(typed)
    if errors := find_errors(request, texts, typed):
        return await _show(request, conn, merchant, FormState(typed, errors), request.form.text("marks"))
    try:
        changed = await change(request, conn, merchant.merchant_id, texts)
    except ChangedMeanwhile as changed_meanwhile:
        refused = FormState(typed, explain(request, changed_meanwhile))
        return await _show(request, conn, merchant, refused, changed_meanwhile.marks)
    except Unproposed as unproposed:
        kept = {**typed, FEES_REASON: request.form.text(proposal_forms.REASON)}
        errors = {FEES_REASON: text} if (text := unproposed.errors.get(proposal_forms.REASON)) else {}
        refused = FormState(kept, errors, unproposed.problem)
        return await _show(request, conn, merchant, refused, request.form.text("marks"))
    return redirect_after_change(request, f"{url_of(merchant.merchant_id)}/rates", changed)


async def show_preview(request: ConsoleRequest, conn: Connection) -> Response:
    """The preview for the typed amount, requested while the user types."""
    merchant = await load(request, conn)
    force = await rates.read_effective(conn, merchant.merchant_id)
    query = request.http.query_params
    shown = preview(query.get("amount", ""), _read_conditions(merchant, force, request.at_ms, query))
    return request.part("console/fee_preview.html", preview=shown)


async def _show(
    request: ConsoleRequest,
    conn: Connection,
    merchant: Merchant,
    form_state: FormState = EMPTY_FORM,
    marks: str = "",
) -> Response:
    force = await rates.read_effective(conn, merchant.merchant_id)
    forms = [
        RateForm(d, format_field_name(d), force[d], await rates.find_line(conn, merchant.merchant_id, d))
        for d in DIRECTIONS
    ]
    settings = setting_fields.show_fields(merchant)
    fees = {name: settings[name] for name in FEES}
    conditions = _read_conditions(merchant, force, request.at_ms, {**fees, **form_state.values})
    return request.page(
        "console/merchant_rates.html",
        active="merchants",
        status=200 if form_state.ok else 422,
        merchant=merchant,
        tab="rates",
        form_state=form_state,
        forms=forms,
        fees=fees,
        marks=marks or mark_texts(merchant),
        sample=SAMPLE,
        preview=preview(SAMPLE, conditions),
        proposed=[
            *await list_proposed(request, conn, merchant.merchant_id),
            *await proposal_forms.list_about(request, conn, acts.format_subject(merchant.merchant_id)),
        ],
        rate_band=format_band(request),
    )


def _read_conditions(
    merchant: Merchant, force: Mapping[str, EffectiveRate], at_ms: int, typed: Mapping[str, str]
) -> Conditions:
    """The typed values. Without a typed rate, the rate in force."""

    def read(direction: str) -> int | None:
        text = typed.get(format_field_name(direction), "").strip()
        return read_rate(text) if text else force[direction].usable_at(at_ms)

    return Conditions(
        transfer_rate_e8=read_share(typed.get("transfer-fee-rate", "")),
        withdraw_rate_e8=read_share(typed.get("withdraw-fee-rate", "")),
        withdraw_minimum_units=read_amount(typed.get("withdraw-fee-min", "")),
        rates_e8=tuple((direction, read(direction)) for direction in DIRECTIONS),
        has_kfb=merchant.currency_mode != "USDT",
    )


async def _describe_arbitrage(
    request: ConsoleRequest, conn: Connection, merchant_id: int, direction: str
) -> str:
    opposite = next(other for other in DIRECTIONS if other != direction)
    back = (await rates.read_effective(conn, merchant_id))[opposite].rate_e8
    return (
        request.translate(_PUMPS, largest=format_rate(LOOP_LIMIT // back))
        if back
        else request.translate(NO_RATE)
    )


ROUTES: Final = (
    Page(f"{ONE}/rates", show_rates, Right.READ),
    Page(f"{ONE}/rates", change_rate, Right.SET_RATE, POST, pool=PoolName.SAFETY),
    Page(f"{ONE}/fees", change_fees, Right.CHANGE_MERCHANT, POST),
    Page(f"{ONE}/preview", show_preview, Right.READ),
)
