"""A merchant's keys: list, add, name and limit, roll with overlap, revoke.

Rules:
- A secret is shown once, in the answer to the request that made it.
- A merchant's user changes the keys of its own merchant. What allows a key more is proposed, and an operator
  accepts it.
- A key that the platform's staff adds or rolls is proposed. Who accepts it sees the secret.
"""

from collections.abc import Mapping
from typing import Final

from starlette.exceptions import HTTPException
from starlette.responses import Response

from merchant_wallet.approvals.changes import ProposedChange
from merchant_wallet.base.units import HOUR_MS
from merchant_wallet.console import flash, proposal_forms
from merchant_wallet.console.form_state import EMPTY_FORM, FormState
from merchant_wallet.console.merchants import (
    APP_SECRET,
    ONE,
    load,
    makes_by_two,
    propose_secret,
    show_secrets,
    url_of,
)
from merchant_wallet.console.proposal_forms import REASON, Unproposed
from merchant_wallet.console.request import POST, Connection, ConsoleRequest, Page, read_id
from merchant_wallet.merchants import acts, app_keys, key_acts, key_changes
from merchant_wallet.merchants.app_keys import AppKey, KeyRefusal, KeyRefused
from merchant_wallet.merchants.key_acts import KeyTooWide
from merchant_wallet.merchants.key_limits import (
    NETWORKS_LIMIT,
    OPERATIONS_LIMIT,
    KeyLimits,
    parse_name,
    parse_networks,
)
from merchant_wallet.merchants.records import OPERATIONS, Merchant
from merchant_wallet.merchants.settings import SettingRefused
from merchant_wallet.operators.roles import Right
from merchant_wallet.web.languages import N_

OVERLAPS: Final = (
    (HOUR_MS, N_("1 hour")),
    (24 * HOUR_MS, N_("24 hours")),
    (7 * 24 * HOUR_MS, N_("7 days")),
    (30 * 24 * HOUR_MS, N_("30 days")),
    (0, N_("It ends now")),
)
FIELDS: Final = ("name", OPERATIONS_LIMIT, NETWORKS_LIMIT, REASON)
_NAME: Final = N_("A name has 1 to 64 printable characters.")
_NETWORK: Final = N_("One of these is no network. Write one such as 192.0.2.0/24 on each line, 50 at most.")
_OPERATION: Final = N_("Choose at least one operation.")
_TOO_WIDE: Final = N_(
    "No key of this merchant may do that much. Add it with the limits of a key that there is, then widen it:"
    " that needs a second person."
)
NEW_KEY: Final = N_("{name} has another key")
NEW_SECRET: Final = N_("{name} has a new secret")
_WRONG: Final = N_("Nothing was changed. Correct the marked fields.")
_SAVED: Final = N_("Saved. It takes effect from the next request on.")
_PROPOSED: Final = N_("An operator must accept what allows the key more. The rest takes effect now.")
REFUSALS: Final[Mapping[KeyRefusal, str]] = {
    KeyRefusal.UNKNOWN: N_("There is no such key."),
    KeyRefusal.REVOKED: N_("This key is revoked: it can't be changed any more."),
    KeyRefusal.TOO_MANY: N_("A merchant has at most 20 keys. Revoke one that is not used any more."),
    KeyRefusal.TOO_MANY_EVER: N_("This merchant has had 1000 keys. Rename and roll one of them instead."),
    KeyRefusal.FIRST_STAYS: N_(
        "The first key can't be revoked: callbacks are signed with it. Roll it, or limit it."
    ),
    KeyRefusal.TWO_SECRETS: N_("The older secret of this key still works. End it first, then roll again."),
    KeyRefusal.ONE_SECRET: N_("This key has one valid secret only. There is none to end."),
    KeyRefusal.OVERLAP: N_("The old secret works for at most 30 days after a roll."),
}

KEYS: Final = f"{ONE}/keys"
KEY: Final = f"{KEYS}/{{key_no:int}}"


async def show_keys(request: ConsoleRequest, conn: Connection) -> Response:
    """All keys of a merchant."""
    merchant = await load(request, conn)
    keys = await app_keys.list_keys(conn, merchant.merchant_id, request.at_ms)
    return request.page(
        "console/merchant_keys.html",
        active="merchants",
        merchant=merchant,
        tab="app-keys",
        keys=[key for key in keys if key.revoked_ms is None],
        revoked=[key for key in keys if key.revoked_ms is not None],
        most=app_keys.MAX_KEYS,
    )


async def show_new(request: ConsoleRequest, conn: Connection) -> Response:
    """The form for a new key."""
    form_state = FormState({OPERATIONS_LIMIT: " ".join(OPERATIONS)})
    return _show_new(request, await load(request, conn), form_state)


async def add(request: ConsoleRequest, conn: Connection) -> Response:
    """Add a key and show its secret once, or propose it if two people are needed."""
    merchant = await load(request, conn)
    try:
        name, limits = _read_form(request)
        async with conn.transaction():
            made = await _add(request, conn, merchant.merchant_id, name, limits)
    except _Wrong as wrong:
        return _show_new(request, merchant, wrong.form_state)
    except Unproposed as unproposed:
        return _show_new(request, merchant, _refill(request, unproposed.errors, unproposed.problem))
    except (KeyRefused, KeyTooWide) as refused:
        return _show_new(request, merchant, _refill(request, problem=_explain(request, refused)))
    if isinstance(made, ProposedChange):
        return proposal_forms.redirect_to(request, made)
    await request.cells.carry(merchant.merchant_id)
    return show_new_secret(request, merchant, made, NEW_KEY)


async def show_key(request: ConsoleRequest, conn: Connection) -> Response:
    """One key: its limits, its secrets, its last use."""
    merchant = await load(request, conn)
    return await _show(request, conn, merchant, await _find(request, conn))


async def change(request: ConsoleRequest, conn: Connection) -> Response:
    """Save a key's name and limits."""
    merchant, key = await load(request, conn), await _find(request, conn)
    try:
        name, wanted = _read_form(request)
        async with conn.transaction():
            proposed = await _change(request, conn, key, name, wanted)
    except _Wrong as wrong:
        return await _show(request, conn, merchant, key, wrong.form_state)
    except Unproposed as unproposed:
        form_state = _refill(request, unproposed.errors, unproposed.problem)
        return await _show(request, conn, merchant, key, form_state)
    except KeyRefused as refused:
        return _refuse(request, refused)
    await request.cells.carry(merchant.merchant_id)
    return request.redirect(_key_url(request), _SAVED if proposed is None else _PROPOSED)


async def roll(request: ConsoleRequest, conn: Connection) -> Response:
    """Add a secret to a key and show it once, or propose it. The present one works for the chosen time."""
    merchant, key = await load(request, conn), await _find(request, conn)
    overlap = request.form.text("overlap")
    if overlap not in (str(ms) for ms, _ in OVERLAPS):
        raise HTTPException(400)
    try:
        if makes_by_two(request):
            proposed = await propose_secret(request, conn, key.key_no, int(overlap))
            return proposal_forms.redirect_to(request, proposed)
        made = await key_acts.roll_key(
            conn,
            request.context.keyring,
            request.author.with_facts(proposal_forms.read_reason(request)),
            merchant.merchant_id,
            key.key_no,
            overlap_ms=int(overlap),
            secret_wait_ms=request.context.settings.secret_wait_ms,
        )
    except Unproposed as unproposed:
        return await _show(request, conn, merchant, key, FormState(problem=unproposed.problem))
    except KeyRefused as refused:
        return _refuse(request, refused)
    await request.cells.carry(merchant.merchant_id)
    return show_new_secret(request, merchant, made, NEW_SECRET)


async def end_old(request: ConsoleRequest, conn: Connection) -> Response:
    """End the older of a key's two secrets."""
    key = await _find(request, conn)
    try:
        await key_acts.end_old_secret(conn, request.author, _merchant_id(request), key.key_no)
    except KeyRefused as refused:
        return _refuse(request, refused)
    await request.cells.carry(_merchant_id(request))
    return request.redirect(_key_url(request), N_("The older secret signs nothing any more."))


async def revoke(request: ConsoleRequest, conn: Connection) -> Response:
    """Revoke a key."""
    key = await _find(request, conn)
    try:
        await key_acts.revoke_key(conn, request.author, _merchant_id(request), key.key_no)
    except KeyRefused as refused:
        return _refuse(request, refused)
    await request.cells.carry(_merchant_id(request))
    return request.redirect(
        f"{url_of(_merchant_id(request))}/keys",
        N_("{name} is revoked: its requests are refused."),
        name=key.name,
    )


class _Wrong(Exception):
    """Typed fields are wrong. `form_state` has them with their errors."""

    def __init__(self, form_state: FormState) -> None:
        super().__init__(", ".join(form_state.errors))
        self.form_state = form_state


async def _add(
    request: ConsoleRequest, conn: Connection, merchant_id: int, name: str, limits: KeyLimits
) -> app_keys.NewSecret | ProposedChange:
    """Add a key. The platform's staff proposes it if two people are needed."""
    settings = request.context.settings
    if makes_by_two(request):
        await key_changes.check_addition(conn, merchant_id, limits, request.at_ms)
        facts, subject = key_changes.describe_new(name, limits), acts.format_subject(merchant_id)
        return await proposal_forms.propose(request, conn, key_acts.ADD, subject, *facts, merchant_id)
    return await key_acts.add_key(
        conn,
        request.context.keyring,
        request.author,
        merchant_id,
        name,
        limits,
        sandbox=settings.sandbox,
        needs_two=settings.needs_two_people,
        secret_wait_ms=settings.secret_wait_ms,
    )


async def _change(
    request: ConsoleRequest, conn: Connection, key: AppKey, name: str, wanted: KeyLimits
) -> ProposedChange | None:
    """Save the name and narrower limits, and propose the wider ones if two people are needed."""
    merchant_id = _merchant_id(request)
    before = await app_keys.lock_key(conn, merchant_id, key.key_no, request.at_ms)
    now, proposed = wanted, None
    if request.context.settings.needs_two_people:
        now, wider = key_changes.split_change(before.limits, wanted)
        if wider:
            facts = key_changes.describe(before.limits, wider), key_changes.describe(wanted, wider)
            subject = key_acts.format_subject(merchant_id, key.key_no)
            proposed = await proposal_forms.propose(request, conn, key_acts.SET, subject, *facts, merchant_id)
    author = request.author.with_facts(proposal_forms.read_reason(request))
    await key_acts.change_key(conn, author, merchant_id, key.key_no, name, now)
    return proposed


def _read_form(request: ConsoleRequest) -> tuple[str, KeyLimits]:
    """The typed name and limits. Raises _Wrong."""
    errors: dict[str, str] = {}
    name, networks = "", tuple[str, ...]()
    try:
        name = parse_name(request.form.text("name"))
    except SettingRefused:
        errors["name"] = request.translate(_NAME)
    try:
        networks = parse_networks(request.form.text(NETWORKS_LIMIT))
    except SettingRefused:
        errors[NETWORKS_LIMIT] = request.translate(_NETWORK)
    chosen = [one for one in OPERATIONS if one in request.form.all(OPERATIONS_LIMIT)]
    if not chosen:
        errors[OPERATIONS_LIMIT] = request.translate(_OPERATION)
    if errors:
        raise _Wrong(_refill(request, errors))
    # All of them is no limit: a later release may have more.
    limited = () if len(chosen) == len(OPERATIONS) else tuple(sorted(chosen))
    return name, KeyLimits(limited, networks)


def _refill(request: ConsoleRequest, errors: Mapping[str, str] | None = None, problem: str = "") -> FormState:
    values = {name: request.form.raw(name) for name in FIELDS}
    values[OPERATIONS_LIMIT] = " ".join(request.form.all(OPERATIONS_LIMIT))
    return FormState(values, errors or {}, problem or request.translate(_WRONG))


async def _find(request: ConsoleRequest, conn: Connection) -> AppKey:
    """The key that the path names. Raises HTTPException 404."""
    key = await app_keys.find_key(conn, _merchant_id(request), read_id(request, "key_no"), request.at_ms)
    if key is None:
        raise HTTPException(404)
    return key


def _merchant_id(request: ConsoleRequest) -> int:
    return read_id(request, "merchant_id")


def _key_url(request: ConsoleRequest) -> str:
    return f"{url_of(_merchant_id(request))}/keys/{read_id(request, 'key_no')}"


def _explain(request: ConsoleRequest, refused: KeyRefused | KeyTooWide) -> str:
    return request.translate(REFUSALS[refused.refusal] if isinstance(refused, KeyRefused) else _TOO_WIDE)


def _refuse(request: ConsoleRequest, refused: KeyRefused) -> Response:
    return request.redirect(_key_url(request), REFUSALS[refused.refusal], tone=flash.WARN)


def show_new_secret(
    request: ConsoleRequest, merchant: Merchant, made: app_keys.NewSecret, title: str
) -> Response:
    """The secret of a new or rolled key, this once."""
    return show_secrets(request, merchant, title, [APP_SECRET(made.secret)], made.key.app_key, "/keys")


def _show_new(request: ConsoleRequest, merchant: Merchant, form_state: FormState) -> Response:
    return request.page(
        "console/merchant_key_new.html",
        active="merchants",
        status=200 if form_state.ok else 422,
        merchant=merchant,
        tab="app-keys",
        form_state=form_state,
        operations=OPERATIONS,
    )


async def _show(
    request: ConsoleRequest,
    conn: Connection,
    merchant: Merchant,
    key: AppKey,
    form_state: FormState = EMPTY_FORM,
) -> Response:
    subject = key_acts.format_subject(merchant.merchant_id, key.key_no)
    return request.page(
        "console/merchant_key.html",
        active="merchants",
        status=200 if form_state.ok else 422,
        merchant=merchant,
        tab="app-keys",
        key=key,
        form_state=form_state,
        operations=OPERATIONS,
        overlaps=[(ms, request.translate(text)) for ms, text in OVERLAPS],
        proposed=await proposal_forms.list_about(request, conn, subject),
    )


ROUTES: Final = (
    Page(KEYS, show_keys, Right.READ),
    Page(f"{KEYS}/new", show_new, Right.CHANGE_SECRET),
    Page(f"{KEYS}/new", add, Right.CHANGE_SECRET, POST),
    Page(KEY, show_key, Right.READ),
    Page(KEY, change, Right.CHANGE_SECRET, POST),
    Page(f"{KEY}/roll", roll, Right.CHANGE_SECRET, POST),
    Page(f"{KEY}/end-old", end_old, Right.CHANGE_SECRET, POST),
    Page(f"{KEY}/revoke", revoke, Right.CHANGE_SECRET, POST),
)
