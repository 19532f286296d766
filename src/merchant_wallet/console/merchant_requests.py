"""A merchant's signed requests of the last day, and how many there were, for the developers of its client.

Rules: nothing here is a secret: fields are stored as those of refused requests. The numbers are complete, the
list is a sample when there are many.
"""

import re
from itertools import groupby
from typing import Final

import msgspec
from starlette.responses import Response

from merchant_wallet.api.request_log import listing
from merchant_wallet.api.request_log.listing import KeyUsage, LoggedRequest, RequestFilter, UsageRow
from merchant_wallet.api.request_log.recorder import KEPT, KEPT_IN_ALL, KEPT_OF_EACH
from merchant_wallet.base.codes import CODES, SUCCESS, TOO_MANY_REQUESTS
from merchant_wallet.base.units import DAY_MS, HOUR_MS
from merchant_wallet.console.merchants import ONE, load, url_of
from merchant_wallet.console.request import Connection, ConsoleRequest, Page
from merchant_wallet.console.tables import TableState, read_state
from merchant_wallet.merchants import app_keys
from merchant_wallet.merchants.records import OPERATIONS
from merchant_wallet.operators.roles import Right
from merchant_wallet.reporting import books
from merchant_wallet.reporting.paging import split_page

REQUESTS: Final = f"{ONE}/requests"
USAGE: Final = f"{ONE}/usage"
PAGE_ROWS: Final = 25
FILTERS: Final = ("id", "operation", "code")
SECONDS_OF_MINUTE: Final = 60
_NUMBER: Final = re.compile(r"[0-9]{1,18}")
_CODE: Final = re.compile(r"[0-9]{3,5}")


class RequestLine(msgspec.Struct, frozen=True):
    """A request with the name of its key and of its code."""

    request: LoggedRequest
    key_name: str
    code_name: str

    @property
    def is_success(self) -> bool:
        """Whether the operation was carried out."""
        return self.request.code == SUCCESS


class HourLine(msgspec.Struct, frozen=True):
    """The requests of one hour."""

    hour_ms: int
    requests: int
    refused: int
    rows: list[UsageRow]


async def show_requests(request: ConsoleRequest, conn: Connection) -> Response:
    """A page of the request log, newest first."""
    merchant = await load(request, conn)
    path = f"{url_of(merchant.merchant_id)}/requests"
    state = read_state(path, request.http.query_params, filters=FILTERS)
    before_no = int(state.after) if state.after and _NUMBER.fullmatch(state.after) else None
    rows = await listing.list_requests(
        conn,
        merchant.merchant_id,
        _read_filter(state),
        at_ms=request.at_ms,
        before_no=before_no,
        limit=PAGE_ROWS + 1,
    )
    shown, last = split_page(rows, PAGE_ROWS)
    keys = await app_keys.list_keys(conn, merchant.merchant_id, request.at_ms)
    names = {key.key_no: key.name for key in keys}
    return request.page(
        "console/merchant_requests.html",
        active="merchants",
        merchant=merchant,
        tab="requests",
        state=state,
        rows=[RequestLine(row, names.get(row.key_no, ""), _name_code(row.code)) for row in shown],
        next=str(last.log_no) if last else None,
        operations=OPERATIONS,
        kept=KEPT,
        kept_of_each=KEPT_OF_EACH,
        kept_in_all=KEPT_IN_ALL,
    )


async def show_usage(request: ConsoleRequest, conn: Connection) -> Response:
    """How many requests there were, and how near the limits are."""
    merchant = await load(request, conn)
    since_ms = request.at_ms // HOUR_MS * HOUR_MS - DAY_MS + HOUR_MS
    rows = await listing.list_usage(conn, merchant.merchant_id, since_ms)
    settings = request.context.settings
    cell = await request.cells.of(merchant.merchant_id)
    today = request.at_ms // DAY_MS
    return request.page(
        "console/merchant_usage.html",
        active="merchants",
        merchant=merchant,
        tab="usage",
        hours=group_by_hour(rows),
        totals=_add_up(rows),
        keys=await _name_keys(request, conn, merchant.merchant_id, since_ms),
        requests=sum(row.requests for row in rows),
        refused=sum(row.requests for row in rows if row.code != SUCCESS),
        limited=sum(row.requests for row in rows if row.code == TOO_MANY_REQUESTS),
        busiest=await listing.find_busiest_minute(conn, merchant.merchant_id, request.at_ms - DAY_MS),
        rate_limit=settings.rate_limit if merchant.rate_limit is None else merchant.rate_limit,
        withdrawn_units=await books.read_withdrawn(cell, merchant.merchant_id, today),
        next_day_ms=(today + 1) * DAY_MS,
        name_code=_name_code,
        too_many=TOO_MANY_REQUESTS,
    )


async def _name_keys(
    request: ConsoleRequest, conn: Connection, merchant_id: int, since_ms: int
) -> list[tuple[KeyUsage, str]]:
    """The numbers of each key with its name. A revoked key has them, too."""
    names = {key.key_no: key.name for key in await app_keys.list_keys(conn, merchant_id, request.at_ms)}
    used = await listing.add_up_by_key(conn, merchant_id, since_ms)
    return [(usage, names.get(usage.key_no, "")) for usage in used]


def group_by_hour(rows: list[UsageRow]) -> list[HourLine]:
    """The hours of these rows, in the same order. Pure."""
    lines = []
    for hour_ms, group in groupby(rows, lambda row: row.hour_ms):
        of_hour = list(group)
        refused = sum(row.requests for row in of_hour if row.code != SUCCESS)
        lines.append(HourLine(hour_ms, sum(row.requests for row in of_hour), refused, of_hour))
    return lines


def _add_up(rows: list[UsageRow]) -> list[tuple[str, int, int]]:
    """The numbers of each operation and code, the largest first."""
    sums: dict[tuple[str, int], int] = {}
    for row in rows:
        sums[row.operation, row.code] = sums.get((row.operation, row.code), 0) + row.requests
    ordered = sorted(sums.items(), key=lambda one: (-one[1], one[0]))
    return [(operation, code, count) for (operation, code), count in ordered]


def _read_filter(state: TableState) -> RequestFilter:
    code, operation = state.get("code"), state.get("operation")
    return RequestFilter(
        request_id=state.get("id") or None,
        operation=operation if operation in OPERATIONS else None,
        code=int(code) if _CODE.fullmatch(code) else None,
    )


def _name_code(code: int) -> str:
    return CODES[code].name if code in CODES else ""


ROUTES: Final = (
    Page(REQUESTS, show_requests, Right.READ),
    Page(USAGE, show_usage, Right.READ),
)
