"""What a merchant can play in a sandbox: a held deposit, a reorganisation, a frozen order, a month's end.

Rules:
- Everything that is played goes the way that the merchant's own test would take. What follows from it is
  decided on the pages that are there for it, or here.
- A month is closed on its own page: it is of all merchants. In a young sandbox a command makes one up, since
  only the tables' owner may open days that are over.
- A live service has no such page.
"""

from collections.abc import Mapping
from typing import Final

from starlette.exceptions import HTTPException
from starlette.responses import Response

from merchant_wallet.base.codes import Refused
from merchant_wallet.book.errors import CommandFailed, CommitUnknown, Unavailable
from merchant_wallet.console.form_state import FormState, refill
from merchant_wallet.console.merchants import ONE, load, url_of
from merchant_wallet.console.request import POST, Connection, ConsoleRequest, Page, Work
from merchant_wallet.operators.roles import Right
from merchant_wallet.reporting import books
from merchant_wallet.reporting.finance import months
from merchant_wallet.screening import store as screenings
from merchant_wallet.screening.screening_states import State
from merchant_wallet.web import plays
from merchant_wallet.web.languages import N_
from merchant_wallet.web.plays import Plays
from merchant_wallet.web.refusals import translate_refusal
from merchant_wallet.withdrawals import payouts

SANDBOX: Final = f"{ONE}/sandbox"
FIELDS: Final = ("chainType", "amount", "extUserId", "notifyUrl", "txHash", "orderId")
TYPED: Final = ("chainType", "amount", "extUserId", "notifyUrl")
NOWHERE: Final = "http://127.0.0.1:9/"
"""A notifyUrl at which nobody listens: the callback is shown all the same."""
SHOWN: Final = 20
PLAYED: Final[Mapping[str, str]] = {
    plays.HELD_DEPOSIT: N_("The deposit arrives, and screening holds it. It appears below in a few seconds."),
    plays.RELEASE: N_("Released: it is credited now, and its callback is sent."),
    plays.WAITING_DEPOSIT: N_("The deposit is in a block that is not final."),
    plays.REORGANISE: N_("Its block has left the chain: nothing is credited, and no callback is sent."),
    plays.CONFIRM: N_("Its block is final: it is credited now, and its callback is sent."),
    plays.FROZEN_ORDER: N_("The order is frozen: it rests, and no callback is sent."),
    plays.RESUME: N_("Resumed: the order is paid, and its callback is sent."),
}
"""What can be played, and what is said afterwards."""
UNKNOWN: Final = N_("There was no answer in time. Look below before you try again.")


async def show_sandbox(request: ConsoleRequest, conn: Connection) -> Response:
    """What can be played, and what was played and waits."""
    return await _show(request, conn)


async def play(request: ConsoleRequest) -> Response:
    """Play what the form names. The workers do the most of it, so it has no connection while it waits."""
    form, name = request.form, request.form.text("play")
    if name not in PLAYED:
        raise HTTPException(400)
    async with request.connect() as (present, conn):
        merchant = await load(present, conn)
    fields = {field: text for field in FIELDS if (text := form.text(field))}
    try:
        await _plays_of(request).play(merchant, name, fields, request.author)
    except Refused as refused:
        problem = translate_refusal(request.client.language, refused.refusal.msg)
    except (CommandFailed, CommitUnknown, Unavailable):
        problem = request.translate(UNKNOWN)
    else:
        return request.redirect(f"{url_of(merchant.merchant_id)}/sandbox", PLAYED[name])
    async with request.connect() as (present, conn):
        return await _show(present, conn, refill(form, TYPED, problem=problem))


def _plays_of(request: ConsoleRequest) -> Plays:
    if request.context.plays is None:
        raise HTTPException(404)
    return request.context.plays


async def _show(request: ConsoleRequest, conn: Connection, form_state: FormState | None = None) -> Response:
    played = _plays_of(request)
    merchant = await load(request, conn)
    merchant_id = merchant.merchant_id
    held = await screenings.list_waiting(conn, state=State.HELD, merchant_id=merchant_id, limit=SHOWN)
    cell = await request.cells.of(merchant_id)
    frozen = [one for one in await payouts.list_frozen(conn) if one.merchant_id == merchant_id]
    prepared = await months.list_months(conn, limit=1) if request.merchant_id is None else []
    month = await months.find_open(conn) if prepared else None
    return request.page(
        "console/merchant_sandbox.html",
        active="merchants",
        status=200 if form_state is None else 422,
        merchant=merchant,
        tab="sandbox",
        form_state=form_state or FormState({"notifyUrl": merchant.deposit_notify_url or NOWHERE}),
        chains=[(chain, chain) for chain in request.context.chains],
        waiting=await played.list_waiting(conn, merchant_id),
        held=[one for one in held if one.tx_hash is not None],
        frozen=[await books.show_withdrawal(cell, merchant_id, one.order_id) for one in frozen[:SHOWN]],
        month=month,
        has_months=bool(prepared),
    )


ROUTES: Final = (
    Page(SANDBOX, show_sandbox, Right.READ),
    Page(SANDBOX, Work(play), Right.PLAY_SANDBOX, POST),
)
