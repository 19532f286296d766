"""What a sub-user lets the merchant do: the PIN, pausing debits, and limits.

Rules: every change but the first PIN takes the PIN, which is asked for before anything is changed and counts
when it is wrong. What was typed is shown again when something is wrong with it, a PIN never.
"""

from collections import defaultdict
from collections.abc import Awaitable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from merchant_wallet.base.money import format_units, parse_units
from merchant_wallet.book.sub_user import LIMITS
from merchant_wallet.sub_users import controls, pins
from merchant_wallet.sub_users.activity import read_wallet
from merchant_wallet.sub_users.controls import PinMissing
from merchant_wallet.sub_users.pins import PinLocked, PinRefused, PinWrong
from merchant_wallet.wallet_site.request import Connection, Holder
from merchant_wallet.web.forms import BadForm
from merchant_wallet.web.languages import N_

PATH: Final = "/wallet/security"
_DAY_MS: Final = 86_400_000
_MINUTE_MS: Final = 60_000
_WRONG: Final = 422
_FIELDS: Final = {name: name.removesuffix("_units") for name in LIMITS}
"""The form's field of each limit."""

NOT_THE_SAME: Final = N_("The two PINs are not the same.")
NO_AMOUNT: Final = N_("An amount such as 1000 or 12.50: no commas, at most 6 decimals.")


async def show_security(request: Request, holder: Holder, conn: Connection) -> Response:
    """What is set, and the forms to change it."""
    return _page(holder)


async def set_pin(request: Request, holder: Holder, conn: Connection) -> Response:
    """Set the first PIN, or change it with the old one."""
    old, new, again = (holder.form.raw(name) for name in ("old_pin", "pin", "pin_again"))
    whose, source = (conn, holder.merchant_id, holder.user_id), holder.visitor.source
    if new != again:
        errors = {"pin_again": holder.say(NOT_THE_SAME)}
    elif holder.wallet.has_pin:
        errors = await _attempt(
            holder, pins.change(*whose, old, new, holder.at_ms, source=source), "old_pin", "pin"
        )
    else:
        errors = await _attempt(
            holder, pins.set_first(*whose, new, holder.at_ms, source=source), "pin", "pin"
        )
    said = "pin-changed" if holder.wallet.has_pin else "pin"
    return await _refuse(holder, conn, "pin", errors) if errors else holder.go(PATH, said)


async def set_debits(request: Request, holder: Holder, conn: Connection) -> Response:
    """Pause the merchant's debits, or allow them again."""
    wished = holder.form.text("debits")
    if wished not in ("pause", "resume"):
        raise BadForm("the form names neither pause nor resume")
    paused = wished == "pause"
    errors = await _change(holder, conn, paused=paused)
    if errors:
        return await _refuse(holder, conn, "debits", errors)
    return holder.go(PATH, "paused" if paused else "resumed")


async def set_limits(request: Request, holder: Holder, conn: Connection) -> Response:
    """Set what the merchant may debit at once and in a day; an empty field is no limit."""
    limits: dict[str, int | None] = {}
    errors: dict[str, str] = {}
    for name, field in _FIELDS.items():
        limits[name], error = _read_limit(holder, field)
        errors |= error
    errors = errors or await _change(holder, conn, **limits)
    return await _refuse(holder, conn, "limits", errors) if errors else holder.go(PATH, "limits")


def _read_limit(holder: Holder, name: str) -> tuple[int | None, dict[str, str]]:
    """A limit as typed, None for none, and what is wrong with it. Raises BadForm where no such field came."""
    if name not in holder.form:
        raise BadForm(f"the form has no {name}")
    text = holder.form.text(name)
    try:
        return parse_units(text) if text else None, {}
    except ValueError:
        # The parser's own sentence is for a terminal, in English.
        return None, {name: holder.say(NO_AMOUNT)}


async def _change(holder: Holder, conn: Connection, **changes: bool | int | None) -> dict[str, str]:
    """Ask for the PIN, then make the changes; gives what is wrong."""
    whose = (conn, holder.merchant_id, holder.user_id)
    asked = pins.check(*whose, holder.form.raw("pin"), holder.at_ms, source=holder.visitor.source)
    if errors := await _attempt(holder, asked, "pin", "pin"):
        return errors
    changed = controls.set_controls_by_user(
        conn, holder.merchant_id, holder.user_id, source=holder.visitor.source, at_ms=holder.at_ms, **changes
    )
    return await _attempt(holder, changed, "pin", "pin")


def _show_limit(limit_units: int | None) -> str:
    return "" if limit_units is None else format_units(limit_units)


async def _attempt(holder: Holder, attempt: Awaitable[object], compared: str, chosen: str) -> dict[str, str]:
    """What is wrong, by the field to tell it at: of the PIN `compared`, or of the one `chosen`."""
    try:
        await attempt
    except PinWrong as error:
        return {
            compared: holder.say(N_("That is not your PIN. Tries left: {count}."), count=error.tries_left)
        }
    except PinLocked as error:
        return {compared: _tell_lock(holder, error.until_ms)}
    except PinMissing as error:
        return {compared: holder.say(str(error))}
    except PinRefused as error:
        return {chosen: holder.say(str(error))}
    return {}


def _tell_lock(holder: Holder, until_ms: int) -> str:
    minutes = -(-(until_ms - holder.at_ms) // _MINUTE_MS)
    if minutes < 60:
        return holder.say(N_("Too many wrong PINs. Try again in {count} min."), count=minutes)
    return holder.say(N_("Too many wrong PINs. Try again in {count} h."), count=-(-minutes // 60))


async def _refuse(holder: Holder, conn: Connection, wrong: str, errors: dict[str, str]) -> Response:
    """The page as it now stands, with what is wrong in one of its forms: `pin`, `debits` or `limits`."""
    wallet = await read_wallet(conn, holder.merchant_id, holder.user_id)
    return _page(replace(holder, wallet=wallet or holder.wallet), wrong, errors)


def _page(holder: Holder, wrong: str = "", errors: Mapping[str, str] = MappingProxyType({})) -> Response:
    wallet, form = holder.wallet, holder.form
    is_today = wallet.day == holder.at_ms // _DAY_MS
    kept = {
        field: form.text(field) if wrong == "limits" else _show_limit(getattr(wallet, name))
        for name, field in _FIELDS.items()
    }
    locked = wallet.pin_locked_until_ms > holder.at_ms
    return holder.page(
        "wallet/security.html",
        status=_WRONG if errors else 200,
        active="security",
        here=PATH,
        wrong=wrong,
        errors=defaultdict(str, errors),
        kept=kept,
        used_units=wallet.day_debited_units if is_today else 0,
        lock=_tell_lock(holder, wallet.pin_locked_until_ms) if locked else "",
    )
