"""A sub-user's security settings: the PIN, pausing debits, and limits.

Rules: every change except the first PIN needs the PIN, which is checked before anything is changed; a wrong
one counts. After an error the form shows again what was typed, but never a PIN.
"""

from collections import defaultdict
from collections.abc import Awaitable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from starlette.responses import Response

from merchant_wallet.base.money import format_units
from merchant_wallet.base.units import DAY_MS, MINUTE_MS
from merchant_wallet.book.sub_user import LIMITS
from merchant_wallet.sub_users import controls, pins
from merchant_wallet.sub_users.activity import read_wallet
from merchant_wallet.sub_users.controls import PinMissing, ResetTooFresh
from merchant_wallet.sub_users.pins import PinLocked, PinRefused, PinWrong
from merchant_wallet.wallet_site.request import Connection, WalletRequest
from merchant_wallet.web.forms import BadForm
from merchant_wallet.web.languages import N_
from merchant_wallet.web.typed_values import TypedWrong, read_amount

PATH: Final = "/wallet/security"
_WRONG: Final = 422
_FIELDS: Final = {name: name.removesuffix("_units") for name in LIMITS}
"""The form's field for each limit."""

NOT_THE_SAME: Final = N_("The two PINs are not the same.")


async def show_security(request: WalletRequest, conn: Connection) -> Response:
    """The present settings, and the forms to change them."""
    return _page(request)


async def set_pin(request: WalletRequest, conn: Connection) -> Response:
    """Set the first PIN, or change it with the old one."""
    old, new, again = (request.form.raw(name) for name in ("old_pin", "pin", "pin_again"))
    whose = (conn, request.merchant_id, request.user_id)
    told: Any = {"source": request.client.source, "home": request.home}
    if new != again:
        errors = {"pin_again": request.translate(NOT_THE_SAME)}
    elif request.wallet.has_pin:
        errors = await _attempt(
            request, pins.change(*whose, old, new, request.at_ms, **told), "old_pin", "pin"
        )
    else:
        errors = await _attempt(request, pins.set_first(*whose, new, request.at_ms, **told), "pin", "pin")
    said = "pin-changed" if request.wallet.has_pin else "pin"
    return await _refuse(request, conn, "pin", errors) if errors else request.redirect(PATH, said)


async def set_debits(request: WalletRequest, conn: Connection) -> Response:
    """Pause or allow the merchant's debits."""
    wished = request.form.text("debits")
    if wished not in ("pause", "resume"):
        raise BadForm("the form names neither pause nor resume")
    paused = wished == "pause"
    errors = await _change(request, conn, paused=paused)
    if errors:
        return await _refuse(request, conn, "debits", errors)
    return request.redirect(PATH, "paused" if paused else "resumed")


async def set_limits(request: WalletRequest, conn: Connection) -> Response:
    """Set the limits per debit and per day. An empty field means no limit."""
    limits: dict[str, int | None] = {}
    errors: dict[str, str] = {}
    for name, field in _FIELDS.items():
        limits[name], error = _read_limit(request, field)
        errors |= error
    errors = errors or await _change(request, conn, **limits)
    return await _refuse(request, conn, "limits", errors) if errors else request.redirect(PATH, "limits")


def _read_limit(request: WalletRequest, name: str) -> tuple[int | None, dict[str, str]]:
    """A typed limit (None: no limit), and what is wrong with it. Raises BadForm if the field is missing."""
    if name not in request.form:
        raise BadForm(f"the form has no {name}")
    text = request.form.text(name)
    try:
        return read_amount(text) if text else None, {}
    except TypedWrong as error:
        return None, {name: request.translate(error.text, **error.values)}


async def _change(request: WalletRequest, conn: Connection, **changes: bool | int | None) -> dict[str, str]:
    """Check the PIN, then make the changes. Returns the errors by field."""
    whose = (conn, request.merchant_id, request.user_id)
    asked = pins.check(
        *whose, request.form.raw("pin"), request.at_ms, source=request.client.source, home=request.home
    )
    if errors := await _attempt(request, asked, "pin", "pin"):
        return errors
    changed = controls.set_controls_by_user(
        conn,
        request.merchant_id,
        request.user_id,
        source=request.client.source,
        at_ms=request.at_ms,
        home=request.home,
        **changes,
    )
    return await _attempt(request, changed, "pin", "pin")


def _show_limit(limit_units: int | None) -> str:
    return "" if limit_units is None else format_units(limit_units)


async def _attempt(
    request: WalletRequest, attempt: Awaitable[object], compared: str, chosen: str
) -> dict[str, str]:
    """The errors by field: `compared` is the field of the PIN that is checked, `chosen` the field of a new
    PIN.
    """
    try:
        await attempt
    except PinWrong as error:
        return {
            compared: request.translate(
                N_("That is not your PIN. Tries left: {count}."), count=error.tries_left
            )
        }
    except PinLocked as error:
        return {compared: _describe_lock(request, error.until_ms)}
    except PinMissing as error:
        return {compared: request.translate(str(error))}
    except ResetTooFresh as error:
        return {compared: _describe_reset(request, error.until_ms)}
    except PinRefused as error:
        return {chosen: request.translate(str(error))}
    return {}


def _describe_lock(request: WalletRequest, until_ms: int) -> str:
    minutes = -(-(until_ms - request.at_ms) // MINUTE_MS)
    if minutes < 60:
        return request.translate(N_("Too many wrong PINs. Try again in {count} min."), count=minutes)
    return request.translate(N_("Too many wrong PINs. Try again in {count} h."), count=-(-minutes // 60))


def _describe_reset(request: WalletRequest, until_ms: int) -> str:
    hours = -(-(until_ms - request.at_ms) // (60 * MINUTE_MS))
    told = N_(
        "Your PIN was reset a short time ago. For {count} h more, you can only lower limits and pause debits."
    )
    return request.translate(told, count=hours)


async def _refuse(request: WalletRequest, conn: Connection, wrong: str, errors: dict[str, str]) -> Response:
    """The page again, with the errors of one of its forms: `pin`, `debits` or `limits`."""
    wallet = await read_wallet(conn, request.merchant_id, request.user_id)
    return _page(replace(request, wallet=wallet or request.wallet), wrong, errors)


def _page(
    request: WalletRequest, wrong: str = "", errors: Mapping[str, str] = MappingProxyType({})
) -> Response:
    wallet, form = request.wallet, request.form
    is_today = wallet.day == request.at_ms // DAY_MS
    kept = {
        field: form.text(field) if wrong == "limits" else _show_limit(getattr(wallet, name))
        for name, field in _FIELDS.items()
    }
    locked = wallet.pin_locked_until_ms > request.at_ms
    return request.page(
        "wallet/security.html",
        status=_WRONG if errors else 200,
        active="security",
        here=PATH,
        wrong=wrong,
        changing=wrong or request.http.query_params.get("change", ""),
        errors=defaultdict(str, errors),
        kept=kept,
        used_units=wallet.day_debited_units if is_today else 0,
        lock=_describe_lock(request, wallet.pin_locked_until_ms) if locked else "",
    )
