"""What to know about an order before approving it: was its address paid before, whose is it, is the amount
large.

Rules: nothing is decided or written here. A merchant's user sees notes about its own merchant's orders and
wallets only.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from merchant_wallet.base.addresses import parse_wallet_address
from merchant_wallet.base.currencies import USDT
from merchant_wallet.book.rules.withdrawals import PAID
from merchant_wallet.book.state import DAY_MS
from merchant_wallet.console.request import Connection, ConsoleRequest
from merchant_wallet.reporting import deposits, figures, orders, sub_users
from merchant_wallet.reporting.orders import AddressHistory, OrderFilter, OrderLine
from merchant_wallet.reporting.paging import fetch
from merchant_wallet.web.languages import N_
from merchant_wallet.withdrawals.hot_wallet_store import list_addresses

USUAL_DAYS: Final = 30
MIN_USUAL_PAYOUTS: Final = 3
"""With fewer payouts than this there is no usual amount."""
LARGE_TIMES: Final = 5
MAX_SAME_DAY: Final = 20

NEW_ADDRESS: Final = N_("Never paid before")
OF_HOT_WALLET: Final = N_("Our own hot wallet")
OF_SUB_USER: Final = N_("Wallet of sub-user {name}")
OF_MERCHANT: Final = N_("Our own deposit address")
LARGE: Final = N_("{times} times the usual amount")
SAME_DAY: Final = N_("{count} orders to it today")


class ScreeningNote(msgspec.Struct, frozen=True):
    """One note: the English text with its values, and its tone."""

    tone: str
    text: str
    values: Mapping[str, str | int] = {}


class ScreenedOrder(msgspec.Struct, frozen=True):
    """An order with what is known of its address. `paid` counts payments to it."""

    order: OrderLine
    paid: int
    paid_units: int
    first_ms: int | None
    last_ms: int | None
    others: int
    is_complete: bool
    notes: tuple[ScreeningNote, ...]


class UsualAmount(msgspec.Struct, frozen=True):
    """The number and the sum of a merchant's payouts of the last days."""

    orders: int
    units: int

    def times(self, amount_units: int) -> int:
        """How many times the average this amount is; 0 if there is no average."""
        return (
            amount_units * self.orders // self.units if self.orders >= MIN_USUAL_PAYOUTS and self.units else 0
        )


async def screen(
    request: ConsoleRequest, conn: Connection, lines: Sequence[OrderLine]
) -> list[ScreenedOrder]:
    """The orders with their notes, in the same order."""
    usual = {number: await _read_usual(request, number) for number in {one.merchant_id for one in lines}}
    hot = await list_addresses(conn) if lines else frozenset[bytes]()
    return [await _screen(request, conn, one, usual[one.merchant_id], hot) for one in lines]


async def _screen(
    request: ConsoleRequest, conn: Connection, order: OrderLine, usual: UsualAmount, hot: frozenset[bytes]
) -> ScreenedOrder:
    history = await orders.show_address(request.cells, order.address, request.merchant_id)
    paid = [one for one in history.sums if one.status == PAID]
    notes = [*await _note_owner(request, conn, order, hot)]
    if not paid:
        notes.append(ScreeningNote("warn", NEW_ADDRESS))
    if (times := usual.times(order.amount_units)) >= LARGE_TIMES:
        notes.append(ScreeningNote("warn", LARGE, {"times": times}))
    if (count := await _count_today(request, conn, order)) > 1:
        notes.append(ScreeningNote("warn", SAME_DAY, {"count": count}))
    return ScreenedOrder(
        order=order,
        paid=sum(one.orders for one in paid),
        paid_units=sum(one.amount_units for one in paid),
        first_ms=min((one.first_ms for one in paid), default=None),
        last_ms=max((one.last_ms for one in paid), default=None),
        others=_count_others(history, order),
        is_complete=history.is_complete,
        notes=tuple(notes),
    )


def _count_others(history: AddressHistory, order: OrderLine) -> int:
    """How many other merchants have used the address."""
    return len({one.merchant_id for one in history.sums} - {order.merchant_id})


async def _read_usual(request: ConsoleRequest, merchant_id: int) -> UsualAmount:
    rows = await figures.sum_volume(request.cells, request.at_ms // DAY_MS - USUAL_DAYS, merchant_id)
    paid = [row for row in rows if (row.kind, row.currency) == ("settle", USDT)]
    return UsualAmount(
        sum(row.entries for row in paid), sum(row.amount_units + row.fee_units for row in paid)
    )


async def _count_today(request: ConsoleRequest, conn: Connection, order: OrderLine) -> int:
    """How many orders to the address were created this UTC day, up to a bound."""
    since_ms = request.at_ms // DAY_MS * DAY_MS
    wanted = OrderFilter(merchant_id=request.merchant_id, address=order.address, from_ms=since_ms)
    page = await orders.list_orders(conn, request.cells, wanted, limit=MAX_SAME_DAY)
    return len(page.rows)


async def _note_owner(
    request: ConsoleRequest, conn: Connection, order: OrderLine, hot: frozenset[bytes]
) -> tuple[ScreeningNote, ...]:
    """Whether the address belongs to the platform: a payout should not go there."""
    try:
        _, address = parse_wallet_address(order.address)
    except ValueError:
        # An old order with an invalid address, which none of our addresses equals.
        return ()
    if address in hot:
        return (ScreeningNote("bad", OF_HOT_WALLET),)
    scope = request.merchant_id
    if users := await sub_users.find_sub_users(conn, request.cells, order.address, scope, limit=1):
        return (ScreeningNote("bad", OF_SUB_USER, {"name": users[0].ext_user_id}),)
    owners = await fetch(conn, deposits.QUERIES["find_owner"].text, {"address": address})
    if any(request.merchant_id in (None, row["merchant_id"]) for row in owners):
        return (ScreeningNote("bad", OF_MERCHANT),)
    return ()
