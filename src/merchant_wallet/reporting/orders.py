"""Withdrawal orders for operators: lists, the approval queue, an address's history, counts.

Rules:
- Amounts are units, times are milliseconds.
- With a merchant's id nothing of other merchants is returned.
- Orders are read from their cells, then home's payouts of these orders by key.
- Lists are sorted newest first or largest first. Filters that no index answers may make a page shorter than
  `limit` (`paging`).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import msgspec

from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.chains import CODES
from merchant_wallet.base.db import Queries
from merchant_wallet.base.units import MAX_BIGINT
from merchant_wallet.book.rules import approvals
from merchant_wallet.book.rules.withdrawals import PAID, PENDING, PROCESSING
from merchant_wallet.reporting import paging
from merchant_wallet.reporting.cells import Reach
from merchant_wallet.reporting.paging import MIN_NUMBER, Connection, Order, Page, Row, fetch

QUERIES: Final = Queries(Path(__file__).with_name("orders.sql"))
STATUSES: Final = (0, 1, 2, 3, 4, 5, 6)
SORTS: Final = ("created", "amount")
PLATFORM: Final = 0
"""Stands for all merchants together, in place of a merchant's id."""
MAX_COUNTED: Final = 10_000
"""Counting stops here: "10,000 or more" tells a reader as much as the exact number."""
MAX_OF_ADDRESS: Final = 10_000
ENDED: Final = {"settle": 2, "cancel": 4, "expire": 5, "refund": 6}
"""The final status of an order, by the entry that released its hold."""

_NEWEST: Final = Order("orders by moment", ("created_ms", "order_id"), (MAX_BIGINT, MAX_BIGINT))
_BY_AMOUNT: Final = Order("orders by amount", ("amount", "order_id"), (MAX_BIGINT, MAX_BIGINT))
_QUEUE: Final = Order("orders to approve", ("created_ms", "order_id"), (MIN_NUMBER, MIN_NUMBER))


_NO_PAYOUT: Final[Row] = {
    "is_taken_up": False,
    "obstacle_kind": None,
    "obstacle_cause": None,
    "obstacle_ms": None,
    "frozen_cause": None,
    "frozen_ms": None,
    "signed_no": 0,
}


class OrderLine(msgspec.Struct, frozen=True):
    """One order in a list. `obstacle_cause`: why its payout waits. `frozen_cause`: why it is frozen.

    `is_taken_up`: a worker has begun with it. `signed_no`: how many transfers were signed for it.
    """

    merchant_id: int
    merchant_name: str
    order_id: int
    mc_order_id: str
    amount_units: int
    fee_units: int
    rate_e8: int
    chain: str
    address: str
    status: int
    approved_ms: int | None
    approved_by: str | None
    deadline_ms: int
    created_ms: int
    finished_ms: int | None
    notified_ms: int | None
    tx_hash: str | None
    first_approved_by: str | None
    second_limit_units: int | None
    is_merchant_active: bool
    is_taken_up: bool
    obstacle_kind: str | None
    obstacle_cause: str | None
    obstacle_ms: int | None
    frozen_cause: str | None
    frozen_ms: int | None
    signed_no: int

    @property
    def arrival_units(self) -> int:
        """What is paid to the address: the amount without its fee."""
        return self.amount_units - self.fee_units

    @property
    def approvals_needed(self) -> int:
        """How many people must approve the order."""
        return approvals.count_needed_approvals(self)

    @property
    def approvals_given(self) -> int:
        """How many people have approved it."""
        return approvals.count_given_approvals(self)


class OrderFilter(msgspec.Struct, frozen=True):
    """The filter of a list of orders. Without any field it is all orders. `to_ms` is exclusive."""

    merchant_id: int | None = None
    statuses: tuple[int, ...] = ()
    chain: str | None = None
    from_ms: int | None = None
    to_ms: int | None = None
    min_units: int = 0
    address: str | None = None


class AddressSum(msgspec.Struct, frozen=True):
    """The orders to an address of one merchant and status."""

    merchant_id: int
    merchant_name: str
    status: int
    orders: int
    amount_units: int
    first_ms: int
    last_ms: int
    recent: int


class AddressHistory(msgspec.Struct, frozen=True):
    """What is known of a payout address. The newest `MAX_OF_ADDRESS` orders of each merchant count."""

    sums: tuple[AddressSum, ...]
    is_complete: bool


class StatusCount(msgspec.Struct, frozen=True):
    """How many orders have a status. `oldest_ms` is set only for open ones.

    An open status is counted up to `MAX_COUNTED` in each cell, a final one as far as the figures go.
    """

    status: int
    orders: int
    amount_units: int
    oldest_ms: int | None


async def list_orders(
    home: Connection,
    cells: Reach,
    wanted: OrderFilter,
    *,
    sort: str = "created",
    after: str | None = None,
    limit: int = 50,
) -> Page[OrderLine]:
    """A page of orders. With an address they are always newest first.

    Raises ValueError for an unknown filter, sort, limit or key.
    """
    paging.check_words("sort", [sort], SORTS)
    by_amount = sort == "amount" and wanted.address is None
    name = "page_by_amount" if by_amount else "page_by_moment"
    if wanted.address is not None:
        name = "page_by_address"
    elif wanted.merchant_id is not None:
        name = name.replace("page_", "page_of_merchant_")
    values, is_filtered = _values(wanted), _is_filtered(wanted, by_amount)
    page: Page[Row] = await cells.read_page(
        _BY_AMOUNT if by_amount else _NEWEST,
        lambda cell: paging.make_reader(cell, QUERIES[name], values, is_filtered=is_filtered),
        _keep,
        after,
        limit,
        wanted.merchant_id,
    )
    return await _show_page(home, page)


def _values(wanted: OrderFilter) -> dict[str, Any]:
    return {
        "merchant_id": wanted.merchant_id,
        "statuses": paging.check_words("status", wanted.statuses, STATUSES),
        "chains": paging.check_words("chain", [wanted.chain] if wanted.chain else [], CODES),
        "from_ms": MIN_NUMBER if wanted.from_ms is None else wanted.from_ms,
        "to_ms": MAX_BIGINT if wanted.to_ms is None else wanted.to_ms,
        "min_units": wanted.min_units,
        "address": wanted.address and wanted.address.replace("\0", "").lower(),
    }


def _is_filtered(wanted: OrderFilter, by_amount: bool) -> bool:
    """Whether the filter needs more than the list's index."""
    if wanted.address is not None:
        return bool(wanted.statuses or wanted.chain or wanted.min_units)
    return (wanted.from_ms, wanted.to_ms) != (None, None) if by_amount else wanted.min_units > 0


async def list_unapproved(
    home: Connection,
    cells: Reach,
    merchant_id: int | None = None,
    *,
    after: str | None = None,
    limit: int = 50,
) -> Page[OrderLine]:
    """Orders that wait for approval, oldest first. Raises ValueError like `list_orders`."""
    name = "page_unapproved" if merchant_id is None else "page_unapproved_of_merchant"
    values = {"merchant_id": merchant_id}
    page: Page[Row] = await cells.read_page(
        _QUEUE,
        lambda cell: paging.make_reader(cell, QUERIES[name], values, is_filtered=merchant_id is not None),
        _keep,
        after,
        limit,
        merchant_id,
    )
    return await _show_page(home, page)


def _keep(row: Row) -> Row:
    return row


async def _show_page(home: Connection, page: Page[Row]) -> Page[OrderLine]:
    return Page(tuple(await _show(home, page.rows)), page.next, page.previous)


async def list_held(home: Connection, cells: Reach, *, limit: int = 50) -> list[OrderLine]:
    """Open orders that are frozen or wait for an obstacle, longest first."""
    paging.check_limit(limit)
    keys = _keys_of(await fetch(home, QUERIES["list_held"].text, {"limit": limit}))
    found = await cells.ask(lambda cell: fetch(cell, QUERIES["list_open_by_id"].text, keys))
    places = {key: place for place, key in enumerate(zip(*keys.values(), strict=True))}
    rows = sorted(chain.from_iterable(found), key=lambda row: places[row["merchant_id"], row["order_id"]])
    return await _show(home, rows)


async def find_order(home: Connection, cell: Connection, merchant_id: int, order_id: int) -> OrderLine | None:
    """One order, or None."""
    values = {"merchant_id": merchant_id, "order_id": order_id}
    found = await _show(home, await fetch(cell, QUERIES["find_by_order_id"].text, values))
    return found[0] if found else None


async def find_orders(
    home: Connection, cells: Reach, mc_order_id: str, merchant_id: int | None = None, *, limit: int = 50
) -> list[OrderLine]:
    """The orders with this order id of a merchant, at most one per merchant."""
    paging.check_limit(limit)
    values = {"mc_order_id": mc_order_id.replace("\0", ""), "merchant_id": merchant_id, "limit": limit}
    query = QUERIES["find_by_mc_order_id"].text
    found = await cells.ask(lambda cell: fetch(cell, query, values), merchant_id)
    rows = sorted(chain.from_iterable(found), key=itemgetter("merchant_id"))
    return await _show(home, rows[:limit])


async def show_address(cells: Reach, address: str, merchant_id: int | None = None) -> AddressHistory:
    """How often an address was paid, how much, since when and by which merchants."""
    (history,) = (await show_addresses(cells, [address], merchant_id)).values()
    return history


async def show_addresses(
    cells: Reach, addresses: Iterable[str], merchant_id: int | None = None, *, since_ms: int = MAX_BIGINT
) -> dict[str, AddressHistory]:
    """The same for many addresses, read together. Orders from `since_ms` on count as recent."""
    keys = {address: address.replace("\0", "").lower() for address in addresses}
    values = {
        "addresses": list(set(keys.values())),
        "merchant_id": merchant_id,
        "since_ms": since_ms,
        "most": MAX_OF_ADDRESS,
    }
    found = await cells.ask(lambda cell: fetch(cell, QUERIES["sum_addresses"].text, values), merchant_id)
    rows = sorted(chain.from_iterable(found), key=itemgetter("merchant_id", "status"))
    sums: dict[str, list[AddressSum]] = {key: [] for key in keys.values()}
    for row in rows:
        sums[row.pop("address")].append(AddressSum(**_rename(row, units="amount_units")))
    return {address: _make_history(sums[key]) for address, key in keys.items()}


async def count_to(cells: Reach, address: bytes) -> tuple[int, int]:
    """How many orders to these 20 bytes are open, and how many were paid, on any chain."""
    texts = {format_address(code, address) for code in CODES}
    histories = (await show_addresses(cells, texts)).values()
    counts: Counter[int] = Counter()
    for one in chain.from_iterable(history.sums for history in histories):
        counts[one.status] += one.orders
    return counts[PENDING] + counts[PROCESSING], counts[PAID]


def _make_history(sums: Sequence[AddressSum]) -> AddressHistory:
    counts = Counter({one.merchant_id: 0 for one in sums})
    for one in sums:
        counts[one.merchant_id] += one.orders
    return AddressHistory(tuple(sums), all(count < MAX_OF_ADDRESS for count in counts.values()))


async def count_by_status(cells: Reach, merchant_id: int | None = None) -> list[StatusCount]:
    """How many orders have each status: open ones now, final ones from the figures."""
    of_merchant = "count_open" if merchant_id is None else "count_open_of_merchant"
    scope = PLATFORM if merchant_id is None else merchant_id
    values = {"merchant_id": merchant_id, "most": MAX_COUNTED}

    async def count(cell: Connection) -> list[StatusCount]:
        open_ones = await fetch(cell, QUERIES[of_merchant].text, values)
        ended = await fetch(cell, QUERIES["count_ended"].text, {"merchant_id": scope})
        counts = {row["status"]: (row["orders"], int(row["units"]), row["oldest_ms"]) for row in open_ones}
        counts |= {ENDED[row["kind"]]: (row["orders"], int(row["units"]), None) for row in ended}
        return [StatusCount(status, *counts.get(status, (0, 0, None))) for status in STATUSES]

    return [_add_counts(of_status) for of_status in zip(*await cells.ask(count, merchant_id), strict=True)]


def _add_counts(counts: Sequence[StatusCount]) -> StatusCount:
    """The counts of one status in all cells."""
    return StatusCount(
        counts[0].status,
        sum(one.orders for one in counts),
        sum(one.amount_units for one in counts),
        find_oldest(one.oldest_ms for one in counts),
    )


def find_oldest(times: Iterable[int | None]) -> int | None:
    """The earliest of these times, or None."""
    return min((at_ms for at_ms in times if at_ms is not None), default=None)


async def read_holds(home: Connection, orders: Sequence[tuple[int, int]]) -> dict[tuple[int, int], str]:
    """Why payouts wait, of those that are frozen or have an obstacle, by merchant and order."""
    keys = [{"merchant_id": merchant_id, "order_id": order_id} for merchant_id, order_id in orders]
    return {
        key: f"frozen: {row['frozen_cause']}" if row["frozen_ms"] is not None else row["obstacle_cause"]
        for key, row in (await _read_payouts(home, keys)).items()
        if row["frozen_ms"] is not None or row["obstacle_cause"] is not None
    }


async def _read_payouts(home: Connection, rows: Sequence[Row]) -> dict[tuple[int, int], Row]:
    found = await fetch(home, QUERIES["read_payouts"].text, _keys_of(rows)) if rows else []
    return {(row["merchant_id"], row["order_id"]): row for row in found}


async def _show(home: Connection, rows: Sequence[Row]) -> list[OrderLine]:
    """The orders with their payouts."""
    payouts = await _read_payouts(home, rows)
    with_payouts = [{**row, **payouts.get((row["merchant_id"], row["order_id"]), _NO_PAYOUT)} for row in rows]
    return [_show_one(row) for row in with_payouts]


def _keys_of(rows: Sequence[Row]) -> dict[str, Any]:
    return {
        "merchant_ids": [row["merchant_id"] for row in rows],
        "order_ids": [row["order_id"] for row in rows],
    }


def _show_one(row: Row) -> OrderLine:
    line = {name: value for name, value in row.items() if name != "is_edge"}
    return OrderLine(**_rename(line, amount="amount_units", fee="fee_units"))


def _rename(row: Row, **names: str) -> dict[str, Any]:
    renamed = {names.get(name, name): value for name, value in row.items()}
    # Sums come as decimals.
    return {
        name: int(value) if name.endswith("_units") and value is not None else value
        for name, value in renamed.items()
    }
