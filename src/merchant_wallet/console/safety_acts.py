"""The acts of the page Safety: stop and resume all chains, and what workers are asked for.

Rules:
- One person stops one chain or all. Two people resume; in the sandbox one is enough.
- Comparing, rescanning and sweeping are asked acts: a worker carries them out. One person asks.
- Recording moved USDT takes two people, since it explains a difference away.
- Each is in the audit log in the same transaction.
"""

from collections.abc import Mapping
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.responses import Response

from merchant_wallet.approvals.acts import asked, kinds
from merchant_wallet.approvals.changes import ChangeRefused
from merchant_wallet.base.chains import is_evm
from merchant_wallet.base.user_input import parse_digits
from merchant_wallet.console import flash, proposal_forms
from merchant_wallet.console.form_state import refill
from merchant_wallet.console.freeing import SAFETY
from merchant_wallet.console.payouts import NO_REASON, read_reason
from merchant_wallet.console.proposal_forms import Unproposed
from merchant_wallet.console.request import POST, Connection, ConsoleRequest, Page, PoolName
from merchant_wallet.console.safety import ACTS, is_any_alive, show
from merchant_wallet.custody import two_person_changes as treasury_changes
from merchant_wallet.custody.sweeps.plan import describe_request
from merchant_wallet.custody.sweeps.store import list_sweeps
from merchant_wallet.custody.two_person_changes import NewRecord, RecordRefusal, RecordRefused
from merchant_wallet.deposits.rescan import MAX_BLOCKS
from merchant_wallet.hot_wallet import stops
from merchant_wallet.operators.roles import Right
from merchant_wallet.web.act_rights import ACT_RIGHTS
from merchant_wallet.web.languages import N_
from merchant_wallet.web.typed_values import TypedWrong, read_amount
from merchant_wallet.withdrawals import acts

ALL: Final = "all"
MAX_BLOCK: Final = 2**53

STOPPED_ALL: Final = N_("Stopped: nothing new is signed on {chains}.")
STOPPED_BEFORE: Final = N_("You had stopped every chain before; nothing was changed.")
RESUMED: Final = N_("Payouts go on: {chains}.")
PROPOSED: Final = N_("Proposed for {chains}. Another person must accept each.")
NOTHING_STOPPED: Final = N_("Nothing is stopped that two people could resume; nothing was changed.")
ASKED: Final = N_("Asked. A worker begins within seconds.")
ASKED_NOBODY: Final = N_("Asked. But no worker runs now, so nothing happens until one is started.")
UNDER_WAY: Final = N_("The same is under way already.")
OTHER_UNDER_WAY: Final = N_("Another one for the same chain is under way. Ask again when it has ended.")
NO_BLOCK: Final = N_("Type the number of the first block to read again, 1 or more.")
BAD_LAST_BLOCK: Final = N_(
    "Nothing was asked: the last block is a number from the first block on, at most {count} blocks in all."
    " Leave it empty to read up to now."
)
CANCELLED: Final = N_("Cancelled before a worker began.")
BEGUN: Final = N_("It can't be cancelled any more: look at its state.")
RECORDED: Final = N_("Recorded. The next comparison knows it.")
BAD_RECORD: Final = N_(
    "Nothing was recorded: it needs a chain, a direction, an amount above 0 and the transaction's hash of 64"
    " hexadecimal digits."
)
BAD_CORRECTS: Final = N_("Nothing was recorded: what it corrects is a record's number, or none.")
REFUSALS: Final[Mapping[RecordRefusal, str]] = {
    RecordRefusal.REPEATED: N_("The same movement is recorded already."),
    RecordRefusal.NO_RECORD: N_("There is no record {no} of this transaction."),
    RecordRefusal.NOT_OPPOSITE: N_(
        "Record {no} says {direction} {amount} USDT. Its correction has the same transaction and amount,"
        " and the other direction."
    ),
    RecordRefusal.CORRECTION: N_("Record {no} is a correction itself. Record the movement anew."),
    RecordRefusal.CORRECTED: N_("Record {no} is corrected already, by record {by}."),
    RecordRefusal.UNNAMED: N_(
        "Record {no} says {direction} {amount} USDT of the same transaction. If this corrects it, name it."
        " If this is another movement, say that it corrects none."
    ),
}
"""How the page words the refusals of a record."""


async def stop_all(request: ConsoleRequest, conn: Connection) -> Response:
    """Stop new payouts on every chain."""
    reason = read_reason(request)
    if reason is None:
        return request.redirect(SAFETY, NO_REASON, tone=flash.BAD)
    stopped = await acts.stop_chains(conn, request.author, request.context.settings.shown_chains, reason)
    if not stopped:
        return request.redirect(SAFETY, STOPPED_BEFORE, tone=flash.WARN)
    return request.redirect(SAFETY, STOPPED_ALL, chains=", ".join(stopped))


async def resume_all(request: ConsoleRequest, conn: Connection) -> Response:
    """Resume every stopped chain, or propose it for each if two people are needed."""
    done: list[str] = []
    problem = ""
    for chain in request.context.settings.shown_chains:
        try:
            if await _resume(request, conn, chain):
                done.append(chain)
        except Unproposed as unproposed:
            problem = unproposed.problem
        except ChangeRefused:
            problem = request.translate(proposal_forms.OVER)
    if done:
        needs_two = request.context.settings.needs_two_people
        return request.redirect(SAFETY, PROPOSED if needs_two else RESUMED, chains=", ".join(done))
    return request.redirect(SAFETY, problem or NOTHING_STOPPED, tone=flash.WARN)


async def _resume(request: ConsoleRequest, conn: Connection, chain: str) -> bool:
    """Whether this chain is resumed now, or proposed. Raises Unproposed, ChangeRefused."""
    async with conn.transaction():
        before = await stops.read_stopped(conn, chain)
        if before["stoppedBy"] is None:
            return False
        if request.context.settings.needs_two_people:
            after, subject = acts.describe_resumed(), acts.format_subject(chain)
            await proposal_forms.propose(request, conn, acts.THAW, subject, before, after)
            return True
        if errors := proposal_forms.find_reason_error(request):
            raise Unproposed(errors, errors[proposal_forms.REASON])
        author = request.author.with_facts(proposal_forms.read_reason(request))
        await acts.resume_chain(conn, author, chain, before)
    return True


async def reconcile(request: ConsoleRequest, conn: Connection) -> Response:
    """Ask for a comparison of the books with one chain, or with all."""
    chain = _read_chain(request, or_all=True)
    arguments = {"chain": chain, "everyAddress": request.form.text("every_address") == "1"}
    return await _ask(request, conn, kinds.RECONCILE, kinds.format_chain(chain), arguments)


async def rescan(request: ConsoleRequest, conn: Connection) -> Response:
    """Ask to have a chain read again from a block on, up to another one or up to now."""
    chain, typed_last = _read_chain(request), request.form.text("last_block")
    first, last = _read_block(request, "first_block"), _read_block(request, "last_block")
    if first is None:
        return request.redirect(_place(chain), NO_BLOCK, tone=flash.BAD)
    arguments = {"chain": chain, "firstBlock": first}
    if typed_last:
        if last is None or not first <= last < first + MAX_BLOCKS:
            told = {"count": f"{MAX_BLOCKS:,}"}
            return request.redirect(_place(chain), BAD_LAST_BLOCK, tone=flash.BAD, **told)
        arguments["lastBlock"] = last
    return await _ask(request, conn, kinds.RESCAN, kinds.format_chain(chain), arguments)


def _read_block(request: ConsoleRequest, name: str) -> int | None:
    """The typed number of a block. None if there is none."""
    typed = request.form.text(name).replace(",", "")
    number = parse_digits(typed)
    return number if number is not None and 1 <= number <= MAX_BLOCK else None


async def plan_sweeps(request: ConsoleRequest, conn: Connection) -> Response:
    """Ask what lies at deposit addresses, and what moving it may cost."""
    return await _ask_about_sweeps(request, conn, kinds.PLAN_SWEEPS)


async def run_sweeps(request: ConsoleRequest, conn: Connection) -> Response:
    """Ask to move what is worth it to the hot wallet."""
    return await _ask_about_sweeps(request, conn, kinds.RUN_SWEEPS)


async def _ask_about_sweeps(request: ConsoleRequest, conn: Connection, kind: str) -> Response:
    chain = _read_chain(request)
    arguments = describe_request(chain, again=_again(request))
    return await _ask(request, conn, kind, kinds.format_chain(chain), arguments)


async def end_sweep(request: ConsoleRequest, conn: Connection) -> Response:
    """Ask to end a sweep that can't go on."""
    sweep_id = int(request.http.path_params["sweep_id"])
    shown = await list_sweeps(conn, sweep_id=sweep_id) if sweep_id < MAX_BLOCK else []
    if not shown:
        raise HTTPException(404)
    if read_reason(request) is None:
        return request.redirect(f"{SAFETY}#sweeps", NO_REASON, tone=flash.BAD)
    arguments = {"chain": shown[0].chain, "sweepId": sweep_id}
    return await _ask(request, conn, kinds.END_SWEEP, kinds.format_sweep(sweep_id), arguments)


async def cancel(request: ConsoleRequest, conn: Connection) -> Response:
    """Cancel an act that no worker has begun."""
    number = int(request.http.path_params["act_no"])
    found = await asked.show(conn, number)
    if found is None:
        raise HTTPException(404)
    request.require(ACT_RIGHTS.get(found.kind, Right.STOP_PAYOUTS))
    done = await asked.cancel(conn, number, author=request.author)
    if done is None:
        return request.redirect(f"{ACTS}/{number}", BEGUN, tone=flash.WARN)
    return request.redirect(f"{ACTS}/{number}", CANCELLED)


async def record(request: ConsoleRequest, conn: Connection) -> Response:
    """Record USDT that somebody moved into custody or out of it, or propose it."""
    try:
        return await _record(request, conn, _read_record(request))
    except RecordRefused as refused:
        problem = request.translate(REFUSALS[refused.refusal], **refused.facts)
    except Unproposed as unproposed:
        problem = unproposed.problem
    return await _show_record(request, conn, problem)


async def _record(request: ConsoleRequest, conn: Connection, new: NewRecord) -> Response:
    """Raises RecordRefused, Unproposed."""
    after, subject = treasury_changes.describe_record(new), treasury_changes.format_subject(new)
    await treasury_changes.check(conn, new)
    if request.context.settings.needs_two_people:
        proposed = await proposal_forms.propose(
            request, conn, new.kind, subject, treasury_changes.UNRECORDED, after
        )
        return proposal_forms.redirect_to(request, proposed)
    reason = read_reason(request)
    if reason is None:
        raise Unproposed({}, request.translate(NO_REASON))
    await treasury_changes.record(conn, request.author.with_facts({"reason": reason}), new, reason)
    return request.redirect(RECORD_PLACE, RECORDED)


async def _show_record(request: ConsoleRequest, conn: Connection, problem: str) -> Response:
    """The page with the form as it was typed."""
    names = ("chain", "direction", "amount", "tx_hash", "corrects", "reason")
    return await show(request, conn, refill(request.form, names, problem=problem))


RECORD_PLACE: Final = f"{SAFETY}#record"


async def _ask(
    request: ConsoleRequest, conn: Connection, kind: str, subject: str, arguments: Mapping[str, Any]
) -> Response:
    reason = read_reason(request)
    found = await asked.ask(
        conn,
        kind,
        subject,
        arguments,
        author=request.author if reason is None else request.author.with_facts({asked.REASON: reason}),
    )
    told, tone = await say_asked(conn) if found.is_new else (UNDER_WAY, flash.WARN)
    if found.act.arguments != arguments:
        told = OTHER_UNDER_WAY
    return request.redirect(f"{ACTS}/{found.act.act_no}", told, tone=tone)


async def say_asked(conn: Connection) -> tuple[str, str]:
    """What follows for a new act, and its tone."""
    return (ASKED, flash.GOOD) if await is_any_alive(conn) else (ASKED_NOBODY, flash.WARN)


def _read_chain(request: ConsoleRequest, *, or_all: bool = False) -> Any:
    """The chain in the path. None stands for all."""
    chain = str(request.http.path_params["chain"])
    if or_all and chain == ALL:
        return None
    if chain not in request.context.settings.shown_chains:
        raise HTTPException(404)
    return chain


def _read_record(request: ConsoleRequest) -> NewRecord:
    """The record of the form. Raises Unproposed."""
    form = request.form
    chain, direction = form.text("chain"), form.text("direction")
    digits = form.text("tx_hash").lower().removeprefix("0x")
    try:
        units = read_amount(form.text("amount"), BAD_RECORD)
    except TypedWrong as wrong:
        raise Unproposed({}, request.translate(wrong.text, **wrong.values)) from None
    is_hash = len(digits) == 64 and all(digit in "0123456789abcdef" for digit in digits)
    is_known = chain in request.context.settings.shown_chains and direction in ("IN", "OUT")
    if not is_known or not is_hash or units <= 0:
        raise Unproposed({}, request.translate(BAD_RECORD))
    try:
        corrects = treasury_changes.parse_corrects(form.text("corrects"))
    except ValueError:
        raise Unproposed({}, request.translate(BAD_CORRECTS)) from None
    return NewRecord(chain, direction, units, f"0x{digits}" if is_evm(chain) else digits, corrects)


def _again(request: ConsoleRequest) -> bool:
    return request.form.text("again") == "1"


def _place(chain: str) -> str:
    return f"{SAFETY}#chain-{chain}"


ROUTES: Final = (
    Page(f"{SAFETY}/stop-all", stop_all, Right.STOP_PAYOUTS, POST, pool=PoolName.SAFETY),
    Page(f"{SAFETY}/resume-all", resume_all, Right.STOP_PAYOUTS, POST),
    Page(f"{SAFETY}/{{chain}}/reconcile", reconcile, ACT_RIGHTS[kinds.RECONCILE], POST),
    Page(f"{SAFETY}/{{chain}}/rescan", rescan, ACT_RIGHTS[kinds.RESCAN], POST),
    Page(f"{SAFETY}/{{chain}}/sweep-plan", plan_sweeps, ACT_RIGHTS[kinds.PLAN_SWEEPS], POST),
    Page(f"{SAFETY}/{{chain}}/sweep", run_sweeps, ACT_RIGHTS[kinds.RUN_SWEEPS], POST),
    Page(f"{SAFETY}/sweeps/{{sweep_id:int}}/end", end_sweep, ACT_RIGHTS[kinds.END_SWEEP], POST),
    Page(f"{SAFETY}/record", record, Right.RECORD_TREASURY, POST),
    Page(f"{ACTS}/{{act_no:int}}/cancel", cancel, Right.STOP_PAYOUTS, POST),
)
