"""Cold money: how much may stay hot, the cold wallets, and transfers between the two.

Rules:
- One person proposes, another accepts: the cold wallet, the limits and each transfer. In the sandbox one
  person is enough.
- The page signs nothing. Workers have the hot wallet's key, and nobody here has the cold wallet's.
- A transaction that somebody signs elsewhere is a file or a QR code. Its signature comes back as text.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response

from merchant_wallet.approvals.changes import Facts, ProposedChange
from merchant_wallet.audit.records import Author
from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.chains import CODES
from merchant_wallet.base.money import format_units
from merchant_wallet.chains.protocol import Blocked
from merchant_wallet.console import flash, proposal_forms
from merchant_wallet.console.form_state import EMPTY_FORM, FormState
from merchant_wallet.console.proposal_forms import Unproposed
from merchant_wallet.console.request import POST, Connection, ConsoleRequest, Page, read_id
from merchant_wallet.custody.cold import acts, signatures, store, two_person_changes, wallets
from merchant_wallet.custody.cold.limits import (
    ELSEWHERE,
    RECORDED,
    SIGNER,
    TO_COLD,
    TO_HOT,
    Limits,
    Suggestion,
    suggest,
)
from merchant_wallet.custody.cold.signatures import SignatureRefused
from merchant_wallet.custody.cold.store import ColdTransfer
from merchant_wallet.custody.cold.two_person_changes import ColdRefusal, ColdRefused, WantedTransfer
from merchant_wallet.custody.cold.wallets import ColdWallet
from merchant_wallet.hot_wallet.store import WalletShown, find_wallet
from merchant_wallet.operators.roles import Right
from merchant_wallet.reporting import orders
from merchant_wallet.web.languages import N_
from merchant_wallet.web.typed_values import TypedWrong, read_amount

COLD: Final = "/console/cold"
ONE: Final = f"{COLD}/transfers/{{transfer_id:int}}"
ROWS: Final = 20
MOVE: Final = "move"
LIMITS: Final = "limits"
WALLET: Final = "wallet"
MAX_QR_CHARS: Final = 1_200

BEGUN: Final = N_("The transfer has begun. This page shows how far it is.")
CHANGED: Final = N_("Changed.")
CHANGED_PAID: Final = N_("Changed. Orders of merchants were paid to this address before: {count}.")
SIGNED: Final = N_("The signature is right. The workers send the transaction now.")
DROPPED: Final = N_("The workers ask the chain, and give it up if nothing of it is there.")
NOT_DROPPED: Final = N_("It can't be given up any more: it was sent, or it has ended.")
NOT_WAITING: Final = N_("This transfer does not wait for a signature any more.")
STOPPED: Final = N_("Nothing may leave the hot wallet now, so the signature was not taken: {why}")
BAD_SIGNATURE: Final = N_("That is not the signature: {why}")
REFUSALS: Final[Mapping[ColdRefusal, str]] = {
    ColdRefusal.NOT_AN_ADDRESS: N_("That is no address of this chain."),
    ColdRefusal.OWN_HOT: N_("That address is a hot wallet of ours."),
    ColdRefusal.OWN_DEPOSIT: N_("That address is a deposit address of ours."),
    ColdRefusal.OPEN_ORDER: N_(
        "An order to that address is open, and would be paid into our own wallet."
        " Wait until it has ended, or cancel it."
    ),
    ColdRefusal.NO_WALLET: N_("That address is no wallet: it is the token's contract or the zero address."),
    ColdRefusal.LIMITS_ORDER: N_("The limits must be in this order: refill below, target, at most hot."),
    ColdRefusal.NO_COLD_WALLET: N_("This chain has no cold wallet yet: two people register one first."),
    ColdRefusal.NO_HOT_WALLET: N_(
        "No hot wallet of this chain is known yet: it is known once the workers have started."
    ),
    ColdRefusal.UNDER_WAY: N_("A transfer of this chain is under way. Wait for its end, or give it up."),
    ColdRefusal.AMOUNT: N_("The amount must be above 0, with at most 6 decimals."),
    ColdRefusal.WAY: N_(
        "A transfer from the cold wallet is signed elsewhere or recorded: no key of it is here."
    ),
    ColdRefusal.SANDBOX_WAY: N_(
        "In the sandbox only the worker's signer moves cold money: its chains are simulated."
    ),
    ColdRefusal.HASH: N_("A recorded transfer needs its transaction's hash, 64 hexadecimal digits."),
    ColdRefusal.NOT_OPENED: N_(
        "It could not begin: a transfer is under way, or its transaction is recorded already."
    ),
}

Apply = Callable[[Author], Awaitable[object]]


class ChainView(msgspec.Struct, frozen=True):
    """One chain's cold money. `retired` are former cold wallets that still hold something."""

    chain: str
    hot: WalletShown | None
    cold: ColdWallet | None
    cold_address: str
    retired: tuple[ColdWallet, ...]
    limits: Limits | None
    suggestion: Suggestion | None
    under_way: ColdTransfer | None
    proposed: tuple[ProposedChange, ...]


async def show_cold(request: ConsoleRequest, conn: Connection) -> Response:
    """Every chain, and the last transfers."""
    return await _show(request, conn)


async def move(request: ConsoleRequest, conn: Connection) -> Response:
    """Propose a transfer."""
    chain, form = _read_chain(request), request.form
    before = await two_person_changes.read_wallets(conn, chain)
    try:
        # Each button of the form names direction and way.
        wanted = WantedTransfer(
            TO_HOT if form.text("direction") == TO_HOT else TO_COLD,
            next((way for way in (ELSEWHERE, RECORDED) if form.text("way") == way), SIGNER),
            _read_amount(request, "amount"),
            form.text("tx_hash") or None,
        )
        is_sandbox = request.context.settings.sandbox
        after = two_person_changes.describe_transfer(chain, wanted, before, is_sandbox=is_sandbox)
    except (ColdRefused, Unproposed) as refused:
        return await _show_refused(request, conn, chain, MOVE, refused)

    async def begin(author: Author) -> int:
        return await two_person_changes.begin_transfer(conn, author, chain, (before, after))

    return await _change(request, conn, (chain, MOVE), two_person_changes.TRANSFER, (before, after), begin)


async def set_limits(request: ConsoleRequest, conn: Connection) -> Response:
    """Propose limits."""
    chain = _read_chain(request)
    try:
        limits = Limits(*(_read_amount(request, name) for name in ("least", "target", "most")))
        after = two_person_changes.describe_limits(limits)
    except (ColdRefused, Unproposed) as refused:
        return await _show_refused(request, conn, chain, LIMITS, refused)
    before = await two_person_changes.read_limits(conn, chain)

    async def apply(author: Author) -> None:
        await two_person_changes.set_limits(conn, author, chain, (before, after))

    return await _change(request, conn, (chain, LIMITS), two_person_changes.LIMITS, (before, after), apply)


async def set_wallet(request: ConsoleRequest, conn: Connection) -> Response:
    """Propose a cold wallet, or without an address to retire the present one."""
    chain = _read_chain(request)
    tokens = {code: settings.token for code, settings in request.context.settings.chains.items()}
    try:
        text = request.form.text("address") or None
        count_orders = partial(orders.count_to, request.cells)
        after = await two_person_changes.describe_address(conn, chain, text, tokens[chain], count_orders)
    except ColdRefused as refused:
        return await _show_refused(request, conn, chain, WALLET, refused)
    before = await two_person_changes.read_address(conn, chain)

    async def apply(author: Author) -> None:
        await two_person_changes.set_address(conn, author, chain, (before, after), tokens)

    return await _change(request, conn, (chain, WALLET), two_person_changes.ADDRESS, (before, after), apply)


async def _change(
    request: ConsoleRequest,
    conn: Connection,
    place: tuple[str, str],
    kind: str,
    facts: tuple[Facts, Facts],
    apply: Apply,
) -> Response:
    """Propose a change, or in the sandbox make it. `place` is the chain and the form."""
    chain, form = place
    subject = two_person_changes.format_subject(chain)
    try:
        if errors := proposal_forms.find_reason_error(request):
            raise Unproposed(errors, errors[proposal_forms.REASON])
        if request.context.settings.needs_two_people:
            made = await proposal_forms.propose(request, conn, kind, subject, *facts)
            return proposal_forms.redirect_to(request, made)
        async with conn.transaction():
            found = await apply(request.author.with_facts(proposal_forms.read_reason(request)))
    except (ColdRefused, Unproposed) as refused:
        return await _show_refused(request, conn, chain, form, refused)
    if isinstance(found, int):
        return request.redirect(f"{COLD}/transfers/{found}", BEGUN)
    if paid := facts[1].get("paidOrders"):
        return request.redirect(COLD, CHANGED_PAID, tone=flash.WARN, count=str(paid))
    return request.redirect(COLD, CHANGED)


async def show_transfer(request: ConsoleRequest, conn: Connection) -> Response:
    """One transfer, and what somebody must sign elsewhere."""
    return await _show_transfer(request, await _find(request, conn))


async def download_unsigned(request: ConsoleRequest, conn: Connection) -> Response:
    """The file for the offline signer."""
    one = await _find(request, conn)
    if not one.waits_for_signature:
        raise HTTPException(404)
    content = msgspec.json.format(msgspec.json.encode(signatures.describe_unsigned(one)), indent=2)
    name = f"cold-transfer-{one.transfer_id}.json"
    headers = {
        **request.context.responses.headers(),
        "content-disposition": f'attachment; filename="{name}"',
    }
    return Response(content, media_type="application/json", headers=headers)


async def take_signature(request: ConsoleRequest, conn: Connection) -> Response:
    """Take the signature that was made elsewhere."""
    one = await _find(request, conn)
    url = f"{COLD}/transfers/{one.transfer_id}"
    if not one.waits_for_signature:
        return request.redirect(url, NOT_WAITING, tone=flash.WARN)
    try:
        signed = signatures.read_answer(one, request.form.raw("signed"))
    except SignatureRefused as refused:
        error = request.translate(BAD_SIGNATURE, why=refused)
        state = FormState({"signed": request.form.raw("signed")}, {"signed": error})
        return await _show_transfer(request, one, state)
    try:
        is_taken = await acts.take_signature(conn, request.author, one, signed)
    except Blocked as blocked:
        return request.redirect(url, STOPPED, tone=flash.BAD, why=str(blocked))
    if not is_taken:
        return request.redirect(url, NOT_WAITING, tone=flash.WARN)
    return request.redirect(url, SIGNED)


async def drop(request: ConsoleRequest, conn: Connection) -> Response:
    """Ask the workers to give a transfer up. What the chain shows of it counts all the same."""
    one = await _find(request, conn)
    url = f"{COLD}/transfers/{one.transfer_id}"
    if not await acts.drop(conn, request.author, one):
        return request.redirect(url, NOT_DROPPED, tone=flash.WARN)
    return request.redirect(url, DROPPED)


async def _show_transfer(
    request: ConsoleRequest, one: ColdTransfer, form_state: FormState = EMPTY_FORM
) -> Response:
    document = signatures.describe_unsigned(one) if one.waits_for_signature else None
    unsigned = "" if document is None else str(document["unsigned"])
    return request.page(
        "console/cold_transfer.html",
        active="cold",
        status=200 if form_state.ok else 422,
        one=one,
        sender=format_address(one.chain, one.sender),
        recipient=format_address(one.chain, one.transfer.recipient),
        document=document,
        qr_text=unsigned if len(unsigned) <= MAX_QR_CHARS else "",
        form_state=form_state,
    )


async def _show_refused(
    request: ConsoleRequest,
    conn: Connection,
    chain: str,
    form: str,
    refused: ColdRefused | Unproposed,
) -> Response:
    """The page with the form as it was filled in."""
    problem = str(refused)
    if isinstance(refused, ColdRefused):
        problem = request.translate(REFUSALS[refused.refusal])
    errors = refused.errors if isinstance(refused, Unproposed) else {}
    state = FormState(request.form.kept(), errors, problem)
    return await _show(request, conn, (chain, form), state)


async def _show(
    request: ConsoleRequest,
    conn: Connection,
    refused: tuple[str, str] = ("", ""),
    form_state: FormState = EMPTY_FORM,
) -> Response:
    return request.page(
        "console/cold.html",
        active="cold",
        status=200 if form_state.ok else 422,
        chains=await _read_chains(request, conn),
        transfers=await store.list_transfers(conn, limit=ROWS),
        most=ROWS,
        refused=refused,
        form_state=form_state,
        format_units=format_units,
        address=format_address,
        is_sandbox=request.context.settings.sandbox,
    )


async def _read_chains(request: ConsoleRequest, conn: Connection) -> list[ChainView]:
    limits = await wallets.list_limits(conn)
    cold = await wallets.list_wallets(conn)
    known = {*request.context.chains, *(one.chain for one in cold)}
    return [await _read_chain_view(request, conn, chain, limits, cold) for chain in CODES if chain in known]


async def _read_chain_view(
    request: ConsoleRequest,
    conn: Connection,
    chain: str,
    limits: Mapping[str, Limits],
    cold: list[ColdWallet],
) -> ChainView:
    hot, number = await find_wallet(conn, chain), await store.find_open(conn, chain)
    current = next((one for one in cold if one.chain == chain and one.is_current), None)
    retired = [one for one in cold if one.chain == chain and not one.is_current and one.balance_units]
    subject = two_person_changes.format_subject(chain)
    return ChainView(
        chain,
        hot,
        current,
        "" if current is None else format_address(chain, current.address),
        tuple(retired),
        limits.get(chain),
        suggest(None if hot is None else hot.free_units, limits.get(chain)),
        None if number is None else await store.read_transfer(conn, number),
        tuple(await proposal_forms.list_about(request, conn, subject)),
    )


def _read_amount(request: ConsoleRequest, name: str) -> int:
    """An amount of a form, in units. Raises Unproposed."""
    try:
        return read_amount(request.form.text(name))
    except TypedWrong as wrong:
        error = request.translate(wrong.text, **wrong.values)
        raise Unproposed({name: error}, error) from None


def _read_chain(request: ConsoleRequest) -> str:
    chain = str(request.http.path_params["chain"])
    if chain not in request.context.settings.shown_chains:
        raise HTTPException(404)
    return chain


async def _find(request: ConsoleRequest, conn: Connection) -> ColdTransfer:
    found = await store.read_transfer(conn, read_id(request, "transfer_id"))
    if found is None:
        raise HTTPException(404)
    return found


ROUTES: Final = (
    Page(COLD, show_cold, Right.READ),
    Page(ONE, show_transfer, Right.READ),
    Page(f"{ONE}/unsigned", download_unsigned, Right.RECORD_TREASURY),
    Page(f"{ONE}/signed", take_signature, Right.RECORD_TREASURY, POST),
    Page(f"{ONE}/drop", drop, Right.RECORD_TREASURY, POST),
    Page(f"{COLD}/{{chain}}/move", move, Right.RECORD_TREASURY, POST),
    Page(f"{COLD}/{{chain}}/limits", set_limits, Right.RECORD_TREASURY, POST),
    Page(f"{COLD}/{{chain}}/wallet", set_wallet, Right.RECORD_TREASURY, POST),
)
