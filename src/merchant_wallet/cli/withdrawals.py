"""`withdrawals`: list orders, show an order with its steps, and decide about one."""

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from merchant_wallet.base.ids import MAX_ID
from merchant_wallet.base.user_input import parse_digits
from merchant_wallet.cli import terminal
from merchant_wallet.cli.failures import CANNOT_RUN, STATUS_WORDS, Failure
from merchant_wallet.cli.lookalikes import find_lookalikes, note_lookalikes
from merchant_wallet.cli.options import (
    BeforeOrderOption,
    Chain,
    DataOption,
    JsonOption,
    LimitOption,
    MerchantOption,
    SinceOption,
    UntilOption,
    keep_former_name,
    read_address,
    read_amount,
    read_days,
    read_status,
)
from merchant_wallet.cli.session import Session, find_actor, run
from merchant_wallet.cli.wallets import read_payout

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from psycopg import AsyncConnection

    from merchant_wallet.book.commands import Command
    from merchant_wallet.reporting.books import WithdrawalView
    from merchant_wallet.reporting.orders import OrderFilter

app = typer.Typer(help="Look at withdrawal orders and decide about them.", no_args_is_help=True)

OPEN: Final = (0, 1, 3)
PAGE_ROWS: Final = 200
LIST_COLUMNS = terminal.Table(
    "merchantId",
    "orderId",
    "mcOrderId",
    "amount",
    "currency",
    "fee",
    "chainType",
    "address",
    "status",
    "approvals",
    "waitsFor",
    "createdMs",
    spare=("fee", "currency", "address", "createdMs", "merchantId", "approvals", "chainType", "mcOrderId"),
)
ATTEMPT_COLUMNS = terminal.Table("attemptNo", "txHash", "signedMs", "broadcastMs")
RESUMPTION_COLUMNS = terminal.Table("frozenMs", "cause", "resumedMs", "resumedBy")
STEP_COLUMNS = terminal.Table("stepNo", "fromStatus", "toStatus", "atMs", "cause")

OrderArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="[MERCHANT] ID",
        help="orderId, mcOrderId, the hash of its transfer, or the eventId of its callback.",
        show_default=False,
    ),
]


@app.command("list")
def list_some(
    merchant: MerchantOption = None,
    status: Annotated[
        str | None,
        typer.Option(metavar="STATUS", help=f"Only {', '.join(STATUS_WORDS)}, or its number from 0 to 6."),
    ] = None,
    address: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Only those to this address.", show_default=False)
    ] = None,
    chain: Annotated[Chain | None, typer.Option(metavar="CHAIN", help="Only those on this chain.")] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    least: Annotated[
        str | None, typer.Option("--at-least", metavar="AMOUNT", help="Only those of this amount or more.")
    ] = None,
    before: BeforeOrderOption = MAX_ID,
    limit: LimitOption = 100,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """List orders, newest first; without a merchant or a filter the open ones, oldest first.

    \b
    Examples:
      merchant-wallet withdrawals list --status pending
      merchant-wallet withdrawals list --merchant Shop
      merchant-wallet withdrawals list --status paid --from 2026-10-01 --to 2026-10-31
    """
    wanted, (from_ms, to_ms) = read_status(status), read_days(since, until)
    least_units = read_amount(least, "--at-least") if least else 0
    read_address(address)
    is_filtered = bool(address or chain or since or until or least)

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.book.rules.withdrawals import PENDING
        from merchant_wallet.reporting.lookalikes import NewAddress
        from merchant_wallet.reporting.orders import OrderFilter, read_holds
        from merchant_wallet.reporting.paging import split_page

        is_paged = False
        if is_filtered or (merchant is None and wanted not in (None, *OPEN)):
            number = None if merchant is None else (await session.find(merchant)).merchant_id
            statuses = () if wanted is None else (wanted,)
            of = OrderFilter(number, statuses, chain, from_ms, to_ms, least_units, address)
            found = await _search(session, of, limit + 1)
        elif merchant is None:
            async with session.reach_cells() as reached:
                found = await _list_open(reached.connections, wanted, limit + 1)
            reached.note_away()
        else:
            is_paged = True
            found = await _list_of(session, merchant, wanted, before, limit + 1)
        rows, last = split_page(found, limit)
        new = [NewAddress(shown.merchant_id, shown.order.address) for shown in rows]
        waiting = [one for one, shown in zip(new, rows, strict=True) if shown.order.status == PENDING]
        alike = await find_lookalikes(session, waiting)
        open_ones = [
            (shown.merchant_id, shown.order.order_id) for shown in rows if shown.order.status in OPEN
        ]
        holds = await read_holds(session.conn, open_ones)
        return {
            "withdrawals": [
                {
                    **describe(shown),
                    "waitsFor": holds.get((shown.merchant_id, shown.order.order_id)) or _need_approval(shown),
                    "lookalikes": alike.get(one, []),
                }
                for one, shown in zip(new, rows, strict=True)
            ],
            "more": last is not None,
            "nextBefore": last.order.order_id if last is not None and is_paged else None,
            "awayCells": session.away,
        }

    document = run(data, act)
    is_narrow = merchant is None and wanted is None and not is_filtered
    hidden = (
        "Only open orders are listed. --merchant MERCHANT or --status STATUS shows others."
        if is_narrow
        else ""
    )
    terminal.print_list(document, "withdrawals", LIST_COLUMNS, as_json, show=_show, hidden=hidden)
    note_lookalikes([alike for order in document["withdrawals"] for alike in order["lookalikes"]])
    if document["more"]:
        next_before = document["nextBefore"]
        terminal.note_more(f"--before {next_before}" if next_before else "a larger --limit, or --merchant")


def _need_approval(shown: "WithdrawalView") -> str | None:
    """What an order waits for besides a worker."""
    from merchant_wallet.book.rules.withdrawals import PENDING

    return "approval" if shown.order.status == PENDING and shown.order.approved_ms is None else None


async def _search(session: Session, wanted: "OrderFilter", limit: int) -> "list[WithdrawalView]":
    """The newest orders that a filter finds in all cells."""
    from merchant_wallet.reporting import books, orders

    lines: list[orders.OrderLine] = []
    after: str | None = None
    async with session.reach() as cells:
        while len(lines) < limit:
            count = min(PAGE_ROWS, limit - len(lines))
            page = await orders.list_orders(session.conn, cells, wanted, after=after, limit=count)
            lines += page.rows
            after = page.next
            if after is None:
                break
        shown = [
            await cells.try_one(
                partial(books.show_withdrawal, merchant_id=line.merchant_id, order_id=line.order_id),
                line.merchant_id,
            )
            for line in lines
        ]
    for name in cells.away:
        terminal.note(f"Cell {name} is away, its merchants are left out.")
    return [one for one in shown if one is not None]


async def _list_open(
    cells: "Sequence[AsyncConnection]", status: int | None, limit: int
) -> "list[WithdrawalView]":
    from merchant_wallet.reporting import books

    found: list[WithdrawalView] = []
    for wanted in OPEN if status is None else (status,):
        for cell in cells:
            found += await books.list_open_withdrawals(cell, wanted, limit=limit)
    return sorted(found, key=lambda shown: (shown.order.created_ms, shown.order.order_id))[:limit]


async def _list_of(
    session: Session, merchant: str, status: int | None, before: int, limit: int
) -> "list[WithdrawalView]":
    from merchant_wallet.reporting import books

    merchant_id = (await session.find(merchant)).merchant_id
    async with session.cell(merchant_id) as cell:
        return await books.list_withdrawals(cell, merchant_id, status=status, before_id=before, limit=limit)


@app.command()
def show(
    names: OrderArgument,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show an order, its steps, and every transfer that was signed for it.

    \b
    Examples:
      merchant-wallet withdrawals show 8589934595
      merchant-wallet withdrawals show Shop 10001
    """

    async def act(session: Session) -> dict[str, Any]:
        return await _read(session, *await _locate(session, names))

    _print_order(run(data, act), as_json)


@app.command()
def approve(names: OrderArgument, data: DataOption = None, as_json: JsonOption = False) -> None:
    """Approve an order that is above the merchant's approval limit.

    Above the second limit two people must approve. You count as the name you are logged in with, here and in
    the console.

    \b
    Examples:
      merchant-wallet withdrawals approve 8589934595
      merchant-wallet withdrawals approve Shop 10001
    """

    async def act(session: Session) -> dict[str, Any]:
        return await _approve(session, names)

    document = run(data, act)
    _print_order(document, as_json)
    terminal.note_repeated(document, f"You approved order {document['orderId']}")
    approvals = document["approvals"]
    if approvals["given"] < approvals["needed"]:
        terminal.note(
            f"Order {document['orderId']} has {approvals['given']} of {approvals['needed']} approvals: "
            "another person must approve it too, before its deadline."
        )


@app.command()
def cancel(
    names: OrderArgument,
    even_frozen: Annotated[
        bool,
        typer.Option("--even-frozen", help="Cancel it although it is frozen: you have looked at the chain."),
    ] = False,
    reason: Annotated[
        str | None,
        typer.Option("--reason", metavar="TEXT", help="Why, for the audit log.", show_default=False),
    ] = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Cancel an order that is not being paid yet, and give its amount back to the merchant.

    A frozen order may have been paid. Look at the chain before you use --even-frozen.

    \b
    Example:
      merchant-wallet withdrawals cancel 8589934595 --reason "the customer asked"
    """
    from merchant_wallet.book.commands import Cancel
    from merchant_wallet.book.rules.withdrawals import CANCELLED

    make_command = partial(Cancel, actor=find_actor(), even_frozen=even_frozen)
    _print_moved(_move(names, make_command, CANCELLED, data, reason), as_json)


@app.command()
def refund(names: OrderArgument, data: DataOption = None, as_json: JsonOption = False) -> None:
    """Give a failed order's amount back to the merchant, if WALLET_HOLD_REFUNDS kept it on hold.

    \b
    Example:
      merchant-wallet withdrawals refund 8589934595
    """
    from merchant_wallet.book.commands import Refund
    from merchant_wallet.book.rules.withdrawals import REFUNDED

    _print_moved(_move(names, Refund, REFUNDED, data), as_json)


@app.command()
def resume(names: OrderArgument, data: DataOption = None, as_json: JsonOption = False) -> None:
    """Resume a frozen order's payout, when you have seen that order, journal and chain agree.

    \b
    Example:
      merchant-wallet withdrawals resume 8589934595
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.book import frozen_orders
        from merchant_wallet.withdrawals import acts

        merchant_id, order_id = await _locate(session, names)
        if not await acts.thaw_order(session.conn, session.author(), merchant_id, order_id):
            raise Failure(f"Order {order_id} was not frozen, nothing was changed.")
        async with session.cell(merchant_id) as cell:
            await frozen_orders.thaw(cell, merchant_id, order_id)
        return await _read(session, merchant_id, order_id)

    document = run(data, act)
    _print_order(document, as_json)
    terminal.note(f"Order {document['orderId']} is resumed. The workers continue the payout.")


keep_former_name(app, "thaw", "resume", resume)


async def _locate(session: Session, names: list[str]) -> tuple[int, int]:
    """Merchant and orderId of an order that is named by whatever id is at hand. An orderId comes first."""
    from merchant_wallet.cli.search import resolve
    from merchant_wallet.reporting import books

    *merchants, typed = names
    if len(merchants) > 1:
        raise Failure("Name the order as ID or as MERCHANT ID.", CANNOT_RUN)
    merchant_id = (await session.find(merchants[0])).merchant_id if merchants else None
    number = parse_digits(typed) or 0
    if 1 <= number <= MAX_ID:
        owner_id = merchant_id or await books.find_book(session.conn, number)
        if owner_id is not None:
            async with session.cell(owner_id) as cell:
                if await books.show_withdrawal(cell, owner_id, number) is not None:
                    return owner_id, number
    hit = await resolve(session, typed, "order", merchant_id)
    return hit.merchant_id, int(hit.key)


async def _approve(session: Session, names: list[str]) -> dict[str, Any]:
    from merchant_wallet.base.clock import now_ms
    from merchant_wallet.base.codes import Refused
    from merchant_wallet.book.commands import Approve
    from merchant_wallet.book.outcomes import ORDER_UNKNOWN
    from merchant_wallet.book.rules.withdrawals import PAID, PENDING, PROCESSING
    from merchant_wallet.operators import order_approvals
    from merchant_wallet.reporting import books

    merchant_id, order_id = await _locate(session, names)
    actor = find_actor()
    async with session.cell(merchant_id) as cell:
        found = await books.show_withdrawal(cell, merchant_id, order_id)

    if found is None:
        raise Refused(ORDER_UNKNOWN)
    if found.approved_by == actor and found.order.status in (PENDING, PROCESSING, PAID):
        return {**await _read(session, merchant_id, order_id), "repeated": True}
    limit_units = session.settings.approval_day_limit
    count = order_approvals.make_count(actor, found.order, at_ms=now_ms(), limit_units=limit_units)
    eligible_ms = await order_approvals.read_eligible_ms(session.conn, actor, merchant_id)
    await session.ask(merchant_id, Approve(order_id, actor, eligible_ms), count)
    return {**await _read(session, merchant_id, order_id), "repeated": False}


def _move(
    names: list[str],
    make_command: "Callable[[int], Command]",
    status: int,
    data: DataOption,
    reason: str | None = None,
) -> dict[str, Any]:
    """Locate an order, and have its book carry out the command that is made for its orderId.

    An order that is in `status` already stays as it is: the command was repeated.
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.cli.second_person import describe_reason

        merchant_id, order_id = await _locate(session, names)
        found = await _read(session, merchant_id, order_id)
        if found["txnStatus"] == str(status):
            return {**found, "repeated": True}
        await session.ask(merchant_id, make_command(order_id), facts=describe_reason(reason))
        return {**await _read(session, merchant_id, order_id), "repeated": False}

    return run(data, act)


async def _read(session: Session, merchant_id: int, order_id: int) -> dict[str, Any]:
    from merchant_wallet.reporting import books
    from merchant_wallet.reporting.lookalikes import NewAddress

    async with session.cell(merchant_id) as cell:
        shown = await books.show_withdrawal(cell, merchant_id, order_id)
    if shown is None:
        raise Failure(f"Merchant {merchant_id} has no order {order_id}.")
    steps = [
        {
            "stepNo": step.step_no,
            "fromStatus": step.from_status,
            "toStatus": step.to_status,
            "atMs": step.at_ms,
            "cause": step.cause,
        }
        for step in shown.steps
    ]
    new = NewAddress(merchant_id, shown.order.address)
    return {
        **describe(shown),
        **await read_payout(session, merchant_id, order_id),
        "steps": steps,
        "lookalikes": (await find_lookalikes(session, [new])).get(new, []),
    }


def _show(document: "Mapping[str, Any]") -> dict[str, Any]:
    """An order for people."""
    approvals = document["approvals"]
    return {**document, "approvals": f"{approvals['given']} of {approvals['needed']}"}


def _show_step(step: "Mapping[str, Any]") -> dict[str, Any]:
    def name(status: int | None) -> str | None:
        return None if status is None else STATUS_WORDS[status]

    return {**step, "fromStatus": name(step["fromStatus"]), "toStatus": name(step["toStatus"])}


def _print_order(document: dict[str, Any], as_json: bool) -> None:
    if as_json:
        terminal.print_document(document)
    else:
        # People see feePercent and the status in words, and what there is.
        left_out = ("rate", "txnStatus", "repeated")
        shown = _show(document)
        terminal.print_answer(
            {
                name: value
                for name, value in shown.items()
                if name not in left_out and value not in (None, [])
            },
            as_json=False,
        )
        for columns, rows in (
            (STEP_COLUMNS, list(map(_show_step, document["steps"]))),
            (ATTEMPT_COLUMNS, document["attempts"]),
            (RESUMPTION_COLUMNS, document["resumptions"]),
        ):
            if rows:
                terminal.print_table(columns, rows, follows=True)
    note_lookalikes(document["lookalikes"])


def _print_moved(document: dict[str, Any], as_json: bool) -> None:
    _print_order(document, as_json)
    terminal.note_repeated(document, f"Order {document['orderId']} was {document['status']}")


def describe(shown: "WithdrawalView") -> dict[str, Any]:
    """An order for output. Where the interface has a name for a field, it is used."""
    from merchant_wallet.base.currencies import USDT
    from merchant_wallet.base.money import format_rate, format_units
    from merchant_wallet.book.rules.approvals import count_given_approvals, count_needed_approvals

    order = shown.order
    return {
        "merchantId": shown.merchant_id,
        "orderId": order.order_id,
        "mcOrderId": order.mc_order_id,
        "amount": format_units(order.amount_units),
        "rate": format_rate(order.rate_e8),
        "feePercent": format_rate(order.rate_e8 * 100),
        "fee": format_units(order.fee_units),
        "amountArrival": format_units(order.arrival_units),
        "currency": USDT,
        "chainType": order.chain,
        "address": order.address,
        "notifyUrl": order.notify_url,
        "txnStatus": str(order.status),
        "status": STATUS_WORDS[order.status],
        "approvals": {"given": count_given_approvals(order), "needed": count_needed_approvals(order)},
        "firstApprovedBy": order.first_approved_by,
        "approvedBy": shown.approved_by,
        "approvedMs": order.approved_ms,
        "deadlineMs": order.deadline_ms,
        "createdMs": order.created_ms,
        "finishedMs": order.finished_ms,
        "notifiedMs": order.notified_ms,
        "txHash": order.tx_hash,
    }
