"""The first page of a wallet: balance, pending deposits, movements; and the page of one movement.

Rules: a list continues from the id of its last entry. Entries of other wallets do not exist here, whatever id
is requested.
"""

from typing import Final, NamedTuple, get_args

from starlette.exceptions import HTTPException
from starlette.responses import Response

from merchant_wallet.base.ids import MAX_ID
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.base.user_input import parse_digits
from merchant_wallet.book.archive.months import find_archived_ms
from merchant_wallet.sub_users import activity
from merchant_wallet.sub_users.activity import ActivityLine, Direction
from merchant_wallet.wallet_site import receipts
from merchant_wallet.wallet_site.pending_deposits import list_pending_deposits, version_of
from merchant_wallet.wallet_site.request import NEWEST, Connection, WalletRequest
from merchant_wallet.web.responses import is_part

PAGE_LINES: Final = 20


class Movements(NamedTuple):
    """A page of a list: lines by the start of their UTC day. `direction` is "in", "out", or "" for both.

    `before_id` is where the next page begins, or None. `archived_ms` is on the last page the time of the last
    archived entry of the book, or None.
    """

    days: list[tuple[int, list[ActivityLine]]]
    direction: str
    before_id: int | None
    archived_ms: int | None


async def show_home(request: WalletRequest, conn: Connection) -> Response:
    """The balance and the newest movements."""
    deposits = await list_pending_deposits(request, conn)
    return request.page(
        "wallet/home.html",
        active="home",
        deposits=deposits,
        deposits_version=version_of(deposits),
        list=await _read_list(request, conn),
    )


async def show_activity(request: WalletRequest, conn: Connection) -> Response:
    """More movements: a part for an open page, or a page of their own."""
    template = "wallet/movements.html" if is_part(request.http) else "wallet/activity.html"
    return request.page(template, active="home", list=await _read_list(request, conn))


async def show_entry(request: WalletRequest, conn: Connection) -> Response:
    """One movement: a sheet for an open page, or a page of its own."""
    line = await activity.show_entry(
        conn, request.merchant_id, request.user_id, int(request.http.path_params["entry_id"])
    )
    if line is None:
        raise HTTPException(404)
    template = "wallet/entry_sheet.html" if is_part(request.http) else "wallet/entry.html"
    receipt_path = receipts.path_of(request, line.entry_id)
    return request.page(template, line=line, active="home", receipt_path=receipt_path)


async def show_deposits(request: WalletRequest, conn: Connection) -> Response:
    """The pending deposits, for an open page."""
    deposits = await list_pending_deposits(request, conn)
    return request.page("wallet/pending_deposits.html", deposits=deposits)


async def _read_list(request: WalletRequest, conn: Connection) -> Movements:
    direction = _read_direction(request)
    # One line more than is shown tells whether there is another page.
    lines = await activity.list_activity(
        conn,
        request.merchant_id,
        request.user_id,
        before_id=_read_before(request),
        limit=PAGE_LINES + 1,
        direction=direction,
    )
    shown = lines[:PAGE_LINES]
    goes_on = len(lines) > PAGE_LINES and NEWEST not in request.http.query_params
    before_id = shown[-1].entry_id if goes_on else None
    is_last = before_id is None and NEWEST not in request.http.query_params
    archived_ms = await find_archived_ms(conn, request.merchant_id) if is_last else None
    return Movements(group_by_day(shown), direction or "", before_id, archived_ms)


def group_by_day(lines: list[ActivityLine]) -> list[tuple[int, list[ActivityLine]]]:
    """Lines grouped by UTC day, in their order. Each day with its start in ms."""
    days: list[tuple[int, list[ActivityLine]]] = []
    for line in lines:
        day_ms = line.at_ms - line.at_ms % DAY_MS
        if not days or days[-1][0] != day_ms:
            days.append((day_ms, []))
        days[-1][1].append(line)
    return days


def _read_direction(request: WalletRequest) -> Direction | None:
    wished = request.http.query_params.get("direction")
    return next((direction for direction in get_args(Direction) if direction == wished), None)


def _read_before(request: WalletRequest) -> int | None:
    number = parse_digits(request.http.query_params.get("before", ""))
    return None if number is None else min(number, MAX_ID)
