"""`withdrawals`: listing orders, showing one with its steps, approving and cancelling."""

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from merchant_wallet.cli import terminal
from merchant_wallet.cli.failures import UNREACHABLE, Failure
from merchant_wallet.cli.options import DataOption, JsonOption, MerchantArgument, MerchantOption
from merchant_wallet.cli.session import Session, name_actor, run
from merchant_wallet.ids import MAX_ID

if TYPE_CHECKING:
    from merchant_wallet.book.commands import Command
    from merchant_wallet.book.reads import WithdrawalShown

app = typer.Typer(help="Look at withdrawal orders, approve or cancel them.", no_args_is_help=True)

OPEN: Final = (0, 1, 3)
LIST_COLUMNS = (
    "merchantId",
    "orderId",
    "mcOrderId",
    "amount",
    "fee",
    "chainType",
    "txnStatus",
    "status",
    "createdMs",
)
STEP_COLUMNS = ("stepNo", "fromStatus", "toStatus", "atMs", "cause")
WORDS: Final = ("pending", "processing", "paid", "failed", "cancelled", "expired", "refunded")

OrderArgument = Annotated[
    int, typer.Argument(metavar="ORDER_ID", min=1, max=MAX_ID, help="The platform's orderId.")
]


@app.command("list")
def list_some(
    merchant: MerchantOption = None,
    status: Annotated[
        int | None,
        typer.Option(min=0, max=6, metavar="0…6", help="Only this txnStatus; of all merchants: 0, 1 or 3."),
    ] = None,
    before: Annotated[
        int,
        typer.Option(
            metavar="ORDER_ID", min=1, max=MAX_ID, help="Go on before this order (with --merchant)."
        ),
    ] = MAX_ID,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=10_000, help="At most so many.")] = 100,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """List orders: a merchant's, newest first, or those of all merchants that still move, oldest first.

    \b
    Examples:
      merchant-wallet withdrawals list --status 0
      merchant-wallet withdrawals list --merchant Shop
    """

    async def act(session: Session) -> dict[str, Any]:
        if merchant is None:
            found = await _list_open(session, status, limit + 1)
        else:
            found = await _list_of(session, merchant, status, before, limit + 1)
        more = len(found) > limit
        next_before = found[limit - 1].order.order_id if more and merchant is not None else None
        orders = [describe(shown) for shown in found[:limit]]
        return {"withdrawals": orders, "more": more, "nextBefore": next_before}

    document = run(data, act)
    terminal.print_list(document, "withdrawals", LIST_COLUMNS, as_json)
    if document["more"]:
        go_on = f"--before {document['nextBefore']}" if merchant else "a larger --limit, or --merchant"
        terminal.note(f"There are more: {go_on}")


async def _list_open(session: Session, status: int | None, limit: int) -> "list[WithdrawalShown]":
    from merchant_wallet.book import reads

    if status is not None and status not in OPEN:
        raise Failure(f"Orders in status {status} don't move any more: name their --merchant.", UNREACHABLE)
    found: list[WithdrawalShown] = []
    for wanted in OPEN if status is None else (status,):
        found += await reads.list_open_withdrawals(session.conn, wanted, limit=limit)
    return sorted(found, key=lambda shown: (shown.order.created_ms, shown.order.order_id))[:limit]


async def _list_of(
    session: Session, merchant: str, status: int | None, before: int, limit: int
) -> "list[WithdrawalShown]":
    from merchant_wallet.book import reads

    merchant_id = (await session.find(merchant)).merchant_id
    return await reads.list_withdrawals(
        session.conn, merchant_id, status=status, before_id=before, limit=limit
    )


@app.command()
def show(
    merchant: MerchantArgument, order_id: OrderArgument, data: DataOption = None, as_json: JsonOption = False
) -> None:
    """Show an order and every step it has taken.

    \b
    Example:
      merchant-wallet withdrawals show Shop 8589934595
    """

    async def act(session: Session) -> dict[str, Any]:
        return await _read(session, (await session.find(merchant)).merchant_id, order_id)

    _print_order(run(data, act), as_json)


@app.command()
def approve(
    merchant: MerchantArgument, order_id: OrderArgument, data: DataOption = None, as_json: JsonOption = False
) -> None:
    """Let an order that is above the merchant's approval limit be paid.

    \b
    Example:
      merchant-wallet withdrawals approve Shop 8589934595
    """
    from merchant_wallet.book.commands import Approve

    _print_order(_move(merchant, Approve(order_id, name_actor()), order_id, data), as_json)


@app.command()
def cancel(
    merchant: MerchantArgument, order_id: OrderArgument, data: DataOption = None, as_json: JsonOption = False
) -> None:
    """Cancel an order that nobody has begun to pay, and give its amount back to the merchant.

    \b
    Example:
      merchant-wallet withdrawals cancel Shop 8589934595
    """
    from merchant_wallet.book.commands import Cancel

    _print_order(_move(merchant, Cancel(order_id, name_actor()), order_id, data), as_json)


def _move(merchant: str, command: "Command", order_id: int, data: DataOption) -> dict[str, Any]:
    async def act(session: Session) -> dict[str, Any]:
        merchant_id = (await session.find(merchant)).merchant_id
        await session.ask(merchant_id, command)
        return await _read(session, merchant_id, order_id)

    return run(data, act)


async def _read(session: Session, merchant_id: int, order_id: int) -> dict[str, Any]:
    from merchant_wallet.book import reads

    shown = await reads.show_withdrawal(session.conn, merchant_id, order_id)
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
    return {**describe(shown), "steps": steps}


def _print_order(document: dict[str, Any], as_json: bool) -> None:
    terminal.print_answer(document, as_json)
    if not as_json:
        terminal.print_table(STEP_COLUMNS, document["steps"])


def describe(shown: "WithdrawalShown") -> dict[str, Any]:
    """An order as it is printed; names that the interface has are the interface's."""
    from merchant_wallet.money import USDT, format_rate, format_units

    order = shown.order
    return {
        "merchantId": shown.merchant_id,
        "orderId": order.order_id,
        "mcOrderId": order.mc_order_id,
        "amount": format_units(order.amount_units),
        "rate": format_rate(order.rate_e8),
        "fee": format_units(order.fee_units),
        "amountArrival": format_units(order.arrival_units),
        "currency": USDT,
        "chainType": order.chain,
        "address": order.address,
        "notifyUrl": order.notify_url,
        "txnStatus": str(order.status),
        "status": WORDS[order.status],
        "approvedBy": shown.approved_by,
        "approvedMs": order.approved_ms,
        "deadlineMs": order.deadline_ms,
        "createdMs": order.created_ms,
        "finishedMs": order.finished_ms,
        "notifiedMs": order.notified_ms,
        "txHash": order.tx_hash,
    }
