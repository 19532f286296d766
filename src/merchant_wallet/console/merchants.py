"""Merchants: create one; a merchant's page with keys, addresses and status.

Rules: a secret is shown once, in the answer to the request that created it. A merchant's own user sees its
own merchant and may only change its keys and its look.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response

from merchant_wallet.approvals.changes import ProposedChange
from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.chains import CHAINS
from merchant_wallet.base.currencies import CURRENCIES
from merchant_wallet.base.signing import HMAC
from merchant_wallet.console import proposal_forms
from merchant_wallet.console.form_state import EMPTY_FORM, FormState, refill
from merchant_wallet.console.merchant_checklist import list_steps
from merchant_wallet.console.proposal_forms import Unproposed
from merchant_wallet.console.request import POST, Connection, ConsoleRequest, Page, PoolName, read_id
from merchant_wallet.merchants import (
    acts,
    key_acts,
    key_changes,
    records,
    settings,
    store,
    two_person_changes,
)
from merchant_wallet.merchants.addresses import give_addresses
from merchant_wallet.merchants.app_keys import FIRST_KEY, KeyRefused
from merchant_wallet.merchants.cells import placement
from merchant_wallet.merchants.cells.placement import PlacementRefused
from merchant_wallet.merchants.id_ranges import RangesExhausted
from merchant_wallet.merchants.records import Merchant
from merchant_wallet.merchants.store import MerchantAmbiguous, MerchantUnknown
from merchant_wallet.merchants.xpub_pool import PoolEmpty
from merchant_wallet.operators.roles import Right
from merchant_wallet.reporting import books
from merchant_wallet.web import documentation, reference
from merchant_wallet.web.languages import N_

MERCHANTS: Final = "/console/merchants"
ONE: Final = f"{MERCHANTS}/{{merchant_id:int}}"
_NAME_RULE: Final = N_("A name has 1 to 128 printable characters and is not digits alone.")
_NAME_TAKEN: Final = N_("There is a merchant of this name already.")
_NO_ACCOUNT: Final = N_("No prepared account is left. Derive more with `merchant-wallet keys` first.")
_NO_CELL: Final = N_("No cell is open for new merchants: `merchant-wallet cell list`.")
_TWO_SECRETS: Final = N_("Two secrets are valid. Retire the older one first.")
_ONE_SECRET: Final = N_("Only one secret is valid. Add the next one first.")


class Deposit(msgspec.Struct, frozen=True):
    """One of a merchant's own deposit addresses, as text."""

    chain: str
    network: str
    address: str


async def show_form(request: ConsoleRequest, conn: Connection) -> Response:
    """The form for a new merchant."""
    return _show_form(request, EMPTY_FORM)


async def create(request: ConsoleRequest, conn: Connection) -> Response:
    """Create a merchant, and show its key and secrets once."""
    context, name = request.context, request.form.text("name")
    mode = request.form.text("currency-mode")
    if error := await _judge_name(request, conn, name):
        return _show_form(request, refill(request.form, ("name", "currency-mode"), {"name": error}))
    if mode not in CURRENCIES:
        raise HTTPException(400)
    seed = context.keyring.sandbox_seed() if context.settings.sandbox else None
    try:
        async with conn.transaction():
            cell_id = await placement.choose_cell(conn, None)
            made = await acts.create(
                conn,
                context.keyring,
                request.author,
                name,
                mode,
                seed=seed,
                cell_id=cell_id,
                secret_wait_ms=context.settings.secret_wait_ms,
            )
            number = made.merchant.merchant_id
    except (PoolEmpty, RangesExhausted, PlacementRefused) as refused:
        problem = _NO_CELL if isinstance(refused, PlacementRefused) else _NO_ACCOUNT
        return _show_form(
            request, refill(request.form, ("name", "currency-mode"), problem=request.translate(problem))
        )
    await request.cells.carry(number)
    shown = [APP_SECRET(made.app_secret), CALLBACK_SECRET(made.callback_secret)]
    return show_secrets(request, made.merchant, N_("{name} is open"), shown)


async def show_merchant(request: ConsoleRequest, conn: Connection) -> Response:
    """A merchant's page."""
    return await _show(request, conn, await load(request, conn))


async def rotate_secret(request: ConsoleRequest, conn: Connection) -> Response:
    """Add a second secret and show it once, or propose it if two people are needed.

    The first one works until it is retired.
    """
    merchant, context = await load(request, conn), request.context
    try:
        if makes_by_two(request):
            proposed = await propose_secret(request, conn, FIRST_KEY, None)
            return proposal_forms.redirect_to(request, proposed)
        made = await key_acts.roll_key(
            conn,
            context.keyring,
            request.author.with_facts(proposal_forms.read_reason(request)),
            merchant.merchant_id,
            FIRST_KEY,
            overlap_ms=None,
            secret_wait_ms=context.settings.secret_wait_ms,
        )
    except Unproposed as unproposed:
        return await _show(request, conn, merchant, FormState(problem=unproposed.problem))
    except KeyRefused:
        return await _show(request, conn, merchant, FormState(problem=request.translate(_TWO_SECRETS)))
    await request.cells.carry(merchant.merchant_id)
    return show_secrets(request, merchant, N_("{name} has a second secret"), [APP_SECRET(made.secret)])


async def retire_secret(request: ConsoleRequest, conn: Connection) -> Response:
    """Retire the older of two secrets."""
    merchant = await load(request, conn)
    try:
        await key_acts.end_old_secret(conn, request.author, merchant.merchant_id, FIRST_KEY)
    except KeyRefused:
        return await _show(request, conn, merchant, FormState(problem=request.translate(_ONE_SECRET)))
    await request.cells.carry(merchant.merchant_id)
    return request.redirect(url_of(merchant.merchant_id), N_("The older secret is no longer valid."))


async def set_status(request: ConsoleRequest, conn: Connection) -> Response:
    """Suspend or resume a merchant, or propose to resume it if two people are needed."""
    merchant = await load(request, conn)
    status = request.form.text("status")
    if status not in (records.ACTIVE, records.SUSPENDED):
        raise HTTPException(400)
    suspends = status == records.SUSPENDED
    try:
        async with conn.transaction():
            proposed = await _set_status(request, conn, merchant.merchant_id, suspends=suspends)
    except Unproposed as unproposed:
        return await _show(request, conn, merchant, FormState(problem=unproposed.problem))
    if proposed is not None:
        return proposal_forms.redirect_to(request, proposed)
    await request.cells.carry(merchant.merchant_id)
    told = (
        N_("{name} is suspended: its requests are refused from now on.")
        if suspends
        else N_("{name} is active again.")
    )
    return request.redirect(url_of(merchant.merchant_id), told, name=merchant.name)


async def _set_status(
    request: ConsoleRequest, conn: Connection, merchant_id: int, *, suspends: bool
) -> ProposedChange | None:
    """Set the status, or propose to resume if two people are needed. Raises Unproposed."""
    keyring = request.context.keyring
    if (
        not suspends
        and request.context.settings.needs_two_people
        and await two_person_changes.read_status(conn, keyring, merchant_id) == records.SUSPENDED
    ):
        facts, subject = two_person_changes.describe_resumption(), acts.format_subject(merchant_id)
        return await proposal_forms.propose(request, conn, acts.RESUME, subject, *facts, merchant_id)
    author = request.author.with_facts(proposal_forms.read_reason(request))
    await (acts.suspend if suspends else acts.resume)(conn, author, merchant_id)
    return None


def makes_by_two(request: ConsoleRequest) -> bool:
    """Whether a secret that the user makes needs a second person: the platform's staff does."""
    return request.context.settings.needs_two_people and request.merchant_id is None


async def propose_secret(
    request: ConsoleRequest, conn: Connection, key_no: int, overlap_ms: int | None
) -> ProposedChange:
    """Propose another secret of a key. Without an overlap the older one works until it is retired.

    Raises Unproposed, KeyRefused.
    """
    merchant_id, at_ms = read_id(request, "merchant_id"), request.at_ms
    subject = key_acts.format_subject(merchant_id, key_no)
    async with conn.transaction():
        facts = await key_changes.describe_roll(conn, merchant_id, key_no, overlap_ms, at_ms)
        return await proposal_forms.propose(request, conn, key_acts.ROLL, subject, *facts, merchant_id)


async def load(request: ConsoleRequest, conn: Connection) -> Merchant:
    """The merchant that the path names. Raises HTTPException 404."""
    found = await store.load(conn, request.context.keyring, read_id(request, "merchant_id"))
    if found is None:
        raise HTTPException(404)
    return found


class NewValue(NamedTuple):
    """A value for a merchant's developers: its English label, and its variable in the clients."""

    label: str
    variable: str
    value: str


APP_SECRET: Final = partial(NewValue, N_("App secret"), "SECRET")
CALLBACK_SECRET: Final = partial(NewValue, N_("Callback secret"), "CALLBACK_SECRET")


def url_of(merchant_id: int) -> str:
    """The URL of a merchant's page."""
    return f"{MERCHANTS}/{merchant_id}"


def show_secrets(
    request: ConsoleRequest,
    merchant: Merchant,
    title: str,
    secrets: Sequence[NewValue],
    app_key: str | None = None,
    back: str = "",
) -> Response:
    """What a merchant's developers need, with new secrets this once.

    `app_key` is their key if it is not the first, `back` where to go on.
    """
    url, is_sandbox = request.context.public_url, request.context.settings.sandbox
    shown = [
        NewValue(N_("Base URL"), "URL", url),
        NewValue(N_("App key"), "APP_KEY", app_key or merchant.app_key),
        *secrets,
    ]
    if merchant.sign_method != HMAC:
        shown.append(NewValue(N_("Signature"), "SIGN_METHOD", merchant.sign_method))
    return request.page(
        "console/merchant_secrets.html",
        active="merchants",
        merchant=merchant,
        title=title,
        values=shown,
        docs_url=url + (f"{documentation.PATH}/" if documentation.PACKED.exists() else reference.PAGE_PATH),
        lines=write_environment(merchant.name, shown, is_sandbox=is_sandbox),
        file_name=f"merchant-{merchant.merchant_id}.env",
        back=url_of(merchant.merchant_id) + back,
    )


def write_environment(name: str, values: Sequence[NewValue], *, is_sandbox: bool) -> str:
    """The lines with which the clients' quick starts begin. Pure."""
    mode = "sandbox" if is_sandbox else "live"
    lines = [f"MERCHANT_WALLET_{one.variable}={one.value}" for one in values]
    return "\n".join([f"# {name}, {mode}", *lines, ""])


async def _judge_name(request: ConsoleRequest, conn: Connection, name: str) -> str:
    """The error of a new merchant's name; empty if there is none."""
    try:
        settings.parse_setting("name", name)
    except settings.SettingRefused:
        return request.translate(_NAME_RULE)
    try:
        await store.find(conn, name)
    except MerchantAmbiguous:
        return request.translate(_NAME_TAKEN)
    except MerchantUnknown:
        return ""
    return request.translate(_NAME_TAKEN)


def _show_form(request: ConsoleRequest, form_state: FormState) -> Response:
    status = 200 if form_state.ok else 422
    return request.page("console/merchant_new.html", active="merchants", status=status, form_state=form_state)


async def _show(
    request: ConsoleRequest, conn: Connection, merchant: Merchant, form_state: FormState = EMPTY_FORM
) -> Response:
    cell = await request.cells.of(merchant.merchant_id)
    book = await books.show_book(cell, merchant.merchant_id, limit=20)
    subjects = (
        acts.format_subject(merchant.merchant_id),
        key_acts.format_subject(merchant.merchant_id, FIRST_KEY),
    )
    proposed = [
        one
        for subject in subjects
        for one in await proposal_forms.list_about(request, conn, subject)
        if one.kind in (acts.RESUME, key_acts.ROLL)
    ]
    return request.page(
        "console/merchant.html",
        active="merchants",
        status=200 if form_state.ok else 409,
        merchant=merchant,
        tab="keys",
        form_state=form_state,
        book=book,
        deposits=await _list_deposits(request, conn, merchant),
        steps=await list_steps(request, conn, merchant),
        proposed=proposed,
    )


async def _list_deposits(request: ConsoleRequest, conn: Connection, merchant: Merchant) -> list[Deposit]:
    # An address that is shown must be watched. An older merchant may not have its addresses yet.
    cell = await request.cells.of(merchant.merchant_id)
    own = await give_addresses(conn, cell, merchant.merchant_id, merchant.account_xpubs)
    chains = [CHAINS[code] for code in request.context.settings.shown_chains]
    texts = {chain: format_address(chain.code, own[chain.family.key_name]) for chain in chains}
    return [Deposit(chain.code, chain.network, text) for chain, text in texts.items()]


ROUTES: Final = (
    Page(f"{MERCHANTS}/new", show_form, Right.CHANGE_MERCHANT),
    Page(f"{MERCHANTS}/new", create, Right.CHANGE_MERCHANT, POST),
    Page(ONE, show_merchant, Right.READ),
    Page(f"{ONE}/secrets/rotate", rotate_secret, Right.CHANGE_SECRET, POST),
    Page(f"{ONE}/secrets/retire", retire_secret, Right.CHANGE_SECRET, POST),
    Page(f"{ONE}/status", set_status, Right.CHANGE_MERCHANT, POST, pool=PoolName.SAFETY),
)
