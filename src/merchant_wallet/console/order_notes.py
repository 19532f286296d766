"""What to know about an order before approving it: was its address paid before, whose is it, which known one
does it look like, is the amount large.

Rules: nothing is decided or written here. A merchant's user sees notes about its own merchant's orders and
wallets only.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

import msgspec

from merchant_wallet.base.addresses import parse_wallet_address
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.rules.withdrawals import CANCELLED, EXPIRED, FAILED, PAID, REFUNDED
from merchant_wallet.console.request import Connection, ConsoleRequest
from merchant_wallet.merchants.own_addresses import list_wallets
from merchant_wallet.reporting import deposits, figures, orders, sub_users
from merchant_wallet.reporting.lookalikes import Known, Lookalike, NewAddress, find_lookalikes
from merchant_wallet.reporting.orders import AddressHistory, OrderLine
from merchant_wallet.reporting.paging import fetch
from merchant_wallet.web.languages import N_

USUAL_DAYS: Final = 30
MIN_USUAL_PAYOUTS: Final = 3
"""With fewer payouts than this there is no usual amount."""
LARGE_TIMES: Final = 5
MAX_SAME_DAY: Final = 20
_UNPAID: Final = frozenset({FAILED, CANCELLED, EXPIRED, REFUNDED})

NEW_ADDRESS: Final = N_("Never paid before")
OF_WALLET: Final = N_("Our own wallet")
OF_SUB_USER: Final = N_("Wallet of sub-user {name}")
OF_MERCHANT: Final = N_("Our own deposit address")
LARGE: Final = N_("{times} times the usual amount")
SAME_DAY: Final = N_("{count} other orders to it today")
LIKE: Final[Mapping[Known, str]] = {
    Known.PAID: N_("Looks like {ends}, paid {count} times, but is another"),
    Known.ALLOWED: N_("Looks like {ends} of the allow-list, but is another"),
    Known.OURS: N_("Looks like {ends}, an address of ours, but is another"),
}
"""A look-alike address in words."""


class OrderNote(msgspec.Struct, frozen=True):
    """One note: the English text with its values, and its tone."""

    tone: str
    text: str
    values: Mapping[str, str | int] = {}


class NotedOrder(msgspec.Struct, frozen=True):
    """An order with what is known of its address. `paid` counts payments to it.

    `lookalikes` are the known addresses that it looks like.
    """

    order: OrderLine
    paid: int
    paid_units: int
    first_ms: int | None
    last_ms: int | None
    others: int
    is_complete: bool
    notes: tuple[OrderNote, ...]
    lookalikes: tuple[Lookalike, ...] = ()


class UsualAmount(msgspec.Struct, frozen=True):
    """The number and the sum of a merchant's payouts of the last days."""

    orders: int
    units: int

    def times(self, amount_units: int) -> int:
        """How many times the average this amount is; 0 if there is no average."""
        return (
            amount_units * self.orders // self.units if self.orders >= MIN_USUAL_PAYOUTS and self.units else 0
        )


class _Known(NamedTuple):
    """What was read about all orders together: what merchants usually pay, whose the addresses are, and what
    they look like.
    """

    usual: Mapping[int, UsualAmount]
    histories: Mapping[str, AddressHistory]
    wallets: frozenset[bytes]
    owners: Mapping[bytes, int]
    lookalikes: Mapping[NewAddress, Sequence[Lookalike]]


async def add_notes(
    request: ConsoleRequest, conn: Connection, lines: Sequence[OrderLine]
) -> list[NotedOrder]:
    """The orders with their notes, in the same order."""
    if not lines:
        return []
    known = await _read(request, conn, lines)
    return [await _add_notes(request, conn, one, known) for one in lines]


async def _read(request: ConsoleRequest, conn: Connection, lines: Sequence[OrderLine]) -> _Known:
    """What is known of all of them. Each cell is asked once for all, not for each order."""
    today = request.at_ms // DAY_MS
    merchant_ids = {one.merchant_id for one in lines}
    paid = await figures.sum_payouts(request.cells, today - USUAL_DAYS, merchant_ids)
    addresses = {one.address for one in lines}
    raw = [address for text in addresses if (address := _parse(text)) is not None]
    rows = await fetch(conn, deposits.QUERIES["find_owners"].text, {"addresses": raw})
    return _Known(
        {merchant_id: UsualAmount(*sums) for merchant_id, sums in paid.items()},
        await orders.show_addresses(request.cells, addresses, request.merchant_id, since_ms=today * DAY_MS),
        await list_wallets(conn),
        {bytes(row["address"]): row["merchant_id"] for row in rows},
        await find_lookalikes(conn, request.cells, map(_name_address, lines), request.merchant_id),
    )


def _count_same_day(history: AddressHistory, order: OrderLine, since_ms: int) -> int:
    """How many other orders to the address the day has. What ended without a payment does not count."""
    live = sum(one.recent for one in history.sums if one.status not in _UNPAID)
    return live - int(order.created_ms >= since_ms and order.status not in _UNPAID)


async def _add_notes(
    request: ConsoleRequest, conn: Connection, order: OrderLine, known: _Known
) -> NotedOrder:
    since_ms = request.at_ms // DAY_MS * DAY_MS
    history = known.histories[order.address]
    paid = [one for one in history.sums if one.status == PAID]
    lookalikes = tuple(known.lookalikes.get(_name_address(order), ()))
    notes = [*map(note_lookalike, lookalikes), *await _note_owner(request, conn, order, known)]
    if not paid:
        notes.append(OrderNote("warn", NEW_ADDRESS))
    if (times := known.usual[order.merchant_id].times(order.amount_units)) >= LARGE_TIMES:
        notes.append(OrderNote("warn", LARGE, {"times": times}))
    if count := _count_same_day(history, order, since_ms):
        notes.append(OrderNote("warn", SAME_DAY, {"count": min(count, MAX_SAME_DAY)}))
    return NotedOrder(
        order=order,
        paid=sum(one.orders for one in paid),
        paid_units=sum(one.amount_units for one in paid),
        first_ms=min((one.first_ms for one in paid), default=None),
        last_ms=max((one.last_ms for one in paid), default=None),
        others=_count_others(history, order),
        is_complete=history.is_complete,
        notes=tuple(notes),
        lookalikes=lookalikes,
    )


def note_lookalike(lookalike: Lookalike) -> OrderNote:
    """The note of an address that looks like a known one."""
    return OrderNote("bad", LIKE[lookalike.known], {"ends": lookalike.ends, "count": lookalike.paid})


def _name_address(order: OrderLine) -> NewAddress:
    return NewAddress(order.merchant_id, order.address)


def _count_others(history: AddressHistory, order: OrderLine) -> int:
    """How many other merchants have used the address."""
    return len({one.merchant_id for one in history.sums} - {order.merchant_id})


async def _note_owner(
    request: ConsoleRequest, conn: Connection, order: OrderLine, known: _Known
) -> tuple[OrderNote, ...]:
    """Whether the address belongs to the platform: a payout should not go there."""
    address = _parse(order.address)
    if address is None:
        return ()
    if address in known.wallets:
        return (OrderNote("bad", OF_WALLET),)
    owner_id = known.owners.get(address)
    if owner_id is None or request.merchant_id not in (None, owner_id):
        return ()
    user = await request.cells.try_one(
        partial(sub_users.find_by_address, merchant_id=owner_id, address=address), owner_id
    )
    return (OrderNote("bad", OF_SUB_USER, {"name": user}) if user else OrderNote("bad", OF_MERCHANT),)


def _parse(text: str) -> bytes | None:
    """The bytes of a payout address. None for an old order with an invalid one, which none of ours equals."""
    try:
        return parse_wallet_address(text)[1]
    except ValueError:
        return None
