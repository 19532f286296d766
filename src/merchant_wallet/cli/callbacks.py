"""`callbacks`: the callbacks to merchants, their delivery attempts, and an operator's decisions about
them.
"""

import re
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from merchant_wallet.base.ids import MAX_ID
from merchant_wallet.base.moments import format_moment
from merchant_wallet.callbacks.callback_states import State, read_shown_name, show_name
from merchant_wallet.cli import terminal
from merchant_wallet.cli.failures import CANNOT_RUN, STATUS_WORDS, Failure
from merchant_wallet.cli.options import BeforeOrderOption, DataOption, JsonOption, LimitOption, MerchantOption
from merchant_wallet.cli.session import Session, run

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from psycopg import AsyncConnection

    from merchant_wallet.reporting.callbacks import Attempt, Callback

app = typer.Typer(help="Look at callbacks to merchants, send them again, pause them.", no_args_is_help=True)

STATES: Final = tuple(map(show_name, State))
LIST_COLUMNS = terminal.Table(
    "merchantId",
    "eventId",
    "state",
    "attempts",
    "nextMs",
    "waitsFor",
    "createdMs",
    "deliveredMs",
    spare=("createdMs", "merchantId", "nextMs"),
)
ATTEMPT_COLUMNS = terminal.Table(
    "attemptNo", "atMs", "address", "httpStatus", "latencyMillis", "error", "remark", "answer"
)
EVENT_FORM: Final = re.compile(r"evt_([0-9]{1,16})_([2-6]|deposit)")

WhatArgument = Annotated[
    str, typer.Argument(metavar="EVENT_ID|MERCHANT", help="One callback, or everything to one merchant.")
]


@app.command("list")
def list_some(
    merchant: MerchantOption = None,
    state: Annotated[
        str | None,
        typer.Option("--state", "--status", metavar="|".join(STATES), help="Only those in this state."),
    ] = None,
    before: BeforeOrderOption = MAX_ID,
    limit: LimitOption = 100,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """List callbacks: a merchant's, newest orders first, or all that are not delivered, oldest first.

    \b
    Examples:
      merchant-wallet callbacks list --state parked
      merchant-wallet callbacks list --merchant Shop
    """
    if state not in (None, *STATES):
        raise Failure(f"--state is one of {', '.join(STATES)}.", CANNOT_RUN)
    if merchant is None and state == "delivered":
        raise Failure("Delivered callbacks are listed by merchant: name their --merchant.", CANNOT_RUN)

    stored_state = None if state is None else read_shown_name(state)

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.reporting.paging import split_page

        async with session.reach_cells() as reached:
            paused = await _list_pauses(reached.connections)
            if merchant is None:
                found = await _list_undelivered(reached.connections, stored_state, limit + 1)
        if merchant is None:
            reached.note_away()
        else:
            found = await _list_of(session, merchant, stored_state, before, limit + 1)
        rows, last = split_page(found, limit)
        # The limit may cut an order's callbacks in two, so the next page begins with the same order.
        next_before = last.order_id + 1 if last is not None and merchant is not None else None
        pauses = [
            {"merchantId": merchant_id, "sinceMs": since_ms, "pausedBy": paused_by}
            for merchant_id, since_ms, paused_by in paused
        ]
        return {
            "callbacks": [describe(line) for line in rows],
            "more": last is not None,
            "nextBefore": next_before,
            "pausedMerchants": pauses,
            "awayCells": session.away,
        }

    document = run(data, act)
    is_narrow = merchant is None and state is None
    hidden = "Only undelivered callbacks are listed. --merchant MERCHANT shows all." if is_narrow else ""
    terminal.print_list(document, "callbacks", LIST_COLUMNS, as_json, hidden=hidden)
    for pause in document["pausedMerchants"]:
        since = format_moment(pause["sinceMs"])
        terminal.note(f"Merchant {pause['merchantId']} is paused since {since} by {pause['pausedBy']}.")
    if document["more"]:
        go_on = f"--before {document['nextBefore']}" if merchant else "a larger --limit, or --merchant"
        terminal.note_more(go_on)


async def _list_pauses(cells: "Sequence[AsyncConnection]") -> list[tuple[int, int, str]]:
    """The paused merchants of all cells, the longest paused first."""
    from merchant_wallet.callbacks import outbox

    found = [pause for cell in cells for pause in await outbox.list_pauses(cell)]
    return sorted(found, key=lambda pause: (pause[1], pause[0]))


async def _list_undelivered(
    cells: "Sequence[AsyncConnection]", state: str | None, limit: int
) -> "list[Callback]":
    """The undelivered callbacks of all cells, oldest first."""
    from merchant_wallet.reporting.callbacks import list_undelivered

    found = [line for cell in cells for line in await list_undelivered(cell, state=state, limit=limit)]
    found.sort(key=lambda line: (line.created_ms, line.merchant_id, line.order_id, line.status))
    return found[:limit]


async def _list_of(
    session: Session, merchant: str, state: str | None, before: int, limit: int
) -> "list[Callback]":
    from merchant_wallet.reporting.callbacks import list_of_merchant

    merchant_id = (await session.find(merchant)).merchant_id
    async with session.cell(merchant_id) as cell:
        return await list_of_merchant(cell, merchant_id, state=state, before=before, limit=limit)


@app.command()
def show(
    event: Annotated[
        str,
        typer.Argument(
            metavar="ID", help="eventId, or an order's orderId, mcOrderId or hash if it has one callback."
        ),
    ],
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a callback and every attempt to deliver it.

    \b
    Example:
      merchant-wallet callbacks show evt_8589934595_2
    """

    async def act(session: Session) -> dict[str, Any]:
        merchant_id, event_id = await _locate(session, event)
        return await _read(session, merchant_id, event_id)

    document = run(data, act)
    status = document["txnStatus"]
    named = {"txnStatus": f"{status} ({STATUS_WORDS[int(status)]})" if status else None}
    terminal.print_answer(document if as_json else {**document, **named}, as_json)
    if not as_json:
        typer.echo()
        # Answers and errors have any length: a table would now and then become records.
        terminal.print_records(ATTEMPT_COLUMNS, document["history"])


@app.command()
def resend(
    event: Annotated[
        str | None,
        typer.Argument(metavar="[EVENT_ID]", help="The callback's eventId.", show_default=False),
    ] = None,
    parked_of: Annotated[
        str | None,
        typer.Option("--parked-of", metavar="MERCHANT", help="All of a merchant's parked ones instead."),
    ] = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Send a callback again now, delivered or not. It is then repeated like a new one.

    \b
    Examples:
      merchant-wallet callbacks resend evt_8589934595_2
      merchant-wallet callbacks resend --parked-of Shop
    """
    if (event is None) == (parked_of is None):
        raise Failure("Name either an EVENT_ID or --parked-of MERCHANT.", CANNOT_RUN)

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.callbacks import acts

        author = session.author()
        if event is None:
            merchant_id = (await session.find(parked_of or "")).merchant_id
            async with session.cell(merchant_id) as cell:
                return {"resent": await acts.resend_parked(session.conn, cell, author, merchant_id)}
        merchant_id = await _find_book(session, event)
        async with session.cell(merchant_id) as cell:
            if not await acts.resend(session.conn, cell, author, merchant_id, event):
                raise _unknown(event)
        return {"resent": 1}

    document = run(data, act)
    terminal.print_answer(document, as_json)


@app.command()
def pause(what: WhatArgument, data: DataOption = None, as_json: JsonOption = False) -> None:
    """Stop sending a callback, or all callbacks of a merchant, until you resume. Nothing is lost.

    \b
    Examples:
      merchant-wallet callbacks pause evt_8589934595_2
      merchant-wallet callbacks pause Shop
    """

    async def act(session: Session, cell: "AsyncConnection", merchant_id: int) -> None:
        from merchant_wallet.callbacks import acts

        at = session.conn, cell, session.author(), merchant_id
        if _is_event(what):
            if not await acts.pause(*at, what):
                raise Failure(f"{what} is not due, nothing was changed.")
        elif not await acts.pause_all(*at):
            raise Failure(f"Callbacks to merchant {merchant_id} were paused before, nothing was changed.")

    terminal.print_answer(_change(data, "paused", what, act), as_json)


@app.command()
def resume(what: WhatArgument, data: DataOption = None, as_json: JsonOption = False) -> None:
    """Resume a paused callback, or all callbacks of a paused merchant.

    \b
    Examples:
      merchant-wallet callbacks resume evt_8589934595_2
      merchant-wallet callbacks resume Shop
    """

    async def act(session: Session, cell: "AsyncConnection", merchant_id: int) -> None:
        from merchant_wallet.callbacks import acts

        at = session.conn, cell, session.author(), merchant_id
        if _is_event(what):
            if not await acts.resume(*at, what):
                raise Failure(f"{what} was not paused, nothing was changed.")
        elif not await acts.resume_all(*at):
            raise Failure(f"Callbacks to merchant {merchant_id} were not paused, nothing was changed.")

    terminal.print_answer(_change(data, "resumed", what, act), as_json)


def _change(
    data: DataOption,
    name: str,
    what: str,
    act: "Callable[[Session, AsyncConnection, int], Awaitable[None]]",
) -> dict[str, Any]:
    """Change one callback or all of a merchant. The answer's member `name` lists the callbacks concerned."""

    async def both(session: Session) -> dict[str, Any]:
        from merchant_wallet.callbacks.acts import ALL

        is_one = _is_event(what)
        merchant_id = await _find_book(session, what) if is_one else (await session.find(what)).merchant_id
        async with session.cell(merchant_id) as cell:
            await act(session, cell, merchant_id)
        return {"merchantId": merchant_id, name: what if is_one else ALL}

    return run(data, both)


def _is_event(text: str) -> bool:
    return EVENT_FORM.fullmatch(text) is not None


async def _find_book(session: Session, event: str) -> int:
    """The merchant of an event id. Raises Failure."""
    from merchant_wallet.reporting import books

    form = EVENT_FORM.fullmatch(event)
    composed_id = int(form[1]) if form else 0
    merchant_id = await books.find_book(session.conn, composed_id) if 0 < composed_id <= MAX_ID else None
    if merchant_id is None:
        raise _unknown(event)
    return merchant_id


async def _locate(session: Session, text: str) -> tuple[int, str]:
    """Merchant and eventId of a callback, which is named by its id or by one of its order. Raises Failure."""
    from merchant_wallet.book.rules.withdrawals import CALLED_BACK
    from merchant_wallet.cli.search import resolve
    from merchant_wallet.reporting.callbacks import find_callback

    if text.startswith("evt_"):
        return await _find_book(session, text), text
    order = await resolve(session, text, "order")
    events = [f"evt_{order.key}_{status}" for status in sorted(CALLED_BACK)]
    async with session.cell(order.merchant_id) as cell:
        made = [event for event in events if await find_callback(cell, event, order.merchant_id)]
    if len(made) == 1:
        return order.merchant_id, made[0]
    several = f"has {len(made)} callbacks: {', '.join(made)}" if made else "has no callback yet"
    raise Failure(f"Order {order.key} {several}.")


def _unknown(event: str) -> Failure:
    return Failure(f"There is no callback {event}; an eventId is like evt_8589934595_2.")


async def _read(session: Session, merchant_id: int, event: str) -> dict[str, Any]:
    from merchant_wallet.reporting import callbacks

    async with session.cell(merchant_id) as cell:
        line = await callbacks.find_callback(cell, event, merchant_id)
        if line is None:
            raise _unknown(event)
        attempts = await callbacks.list_attempts(cell, line)
    return {**describe(line), "history": [_describe_attempt(attempt) for attempt in reversed(attempts)]}


def describe(shown: "Callback") -> dict[str, Any]:
    """A callback for output."""
    return {
        "merchantId": shown.merchant_id,
        "eventId": shown.event_id,
        "eventType": shown.event_type,
        "orderId": shown.order_id,
        "txnStatus": str(shown.status) if shown.status else None,
        "state": show_name(shown.state),
        "attempts": shown.attempt_no,
        "repeats": shown.retry_no,
        "nextMs": shown.next_ms if shown.state == "due" and shown.next_ms else None,
        "waitsFor": shown.waits_for,
        "createdMs": shown.created_ms,
        "deliveredMs": shown.delivered_ms,
        "claimedBy": shown.claimed_by,
    }


def _describe_attempt(attempt: "Attempt") -> dict[str, Any]:
    return {
        "attemptNo": attempt.attempt_no,
        "atMs": attempt.at_ms,
        "address": attempt.address,
        "httpStatus": attempt.http_status,
        "latencyMillis": attempt.latency_ms,
        "error": attempt.failure,
        "remark": attempt.remark,
        "answer": None if attempt.answer is None else attempt.answer.decode("utf-8", "replace"),
    }
