"""The event stream of an open page: a new balance, a new movement, a deposit with more confirmations.

Rules:
- All open pages together use one connection to home and one to each cell, and a fixed number of queries a
  second. While a cell is away, its wallets' pages get no heartbeat.
- An event says that something changed, and the balance. The page requests the rest.
- A heartbeat follows each check with a change, and comes by itself while nothing changes.
- When a session ends, its page is told so, and gets no more events.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from operator import attrgetter, itemgetter
from typing import NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from merchant_wallet.base.fair_places import SERVICE
from merchant_wallet.base.user_input import parse_digits
from merchant_wallet.sub_users import sessions
from merchant_wallet.sub_users.activity import read_balances
from merchant_wallet.sub_users.sessions import SessionKey
from merchant_wallet.wallet_site.pending_deposits import Wallet, read_versions
from merchant_wallet.wallet_site.request import COOKIE, Connection, find_cell, open_request
from merchant_wallet.web.context import PageContext
from merchant_wallet.web.forms import Form
from merchant_wallet.web.live import EventStream, Hub, SessionEnded, write_event
from merchant_wallet.web.templates import show_money

PATH = "/wallet/events"
BEAT = write_event("beat", "{}")
ENDED = write_event("ended", "{}")


class State(NamedTuple):
    """The state of a wallet that a page shows. `deposits` is the version of its open deposits."""

    balance_units: int
    latest_entry_id: int
    deposits: str


WalletHub = Hub[Wallet, State, SessionKey]


def make_hub(context: PageContext) -> WalletHub:
    """The hub that checks for changes for all open pages of this process."""

    async def look(wallets: Sequence[Wallet]) -> Mapping[Wallet, State]:
        async with context.take_with_cells(SERVICE) as (home, cells):

            async def read(asked: Sequence[Wallet], cell: Connection) -> dict[Wallet, State]:
                balances = await read_balances(cell, asked)
                versions = await read_versions(home, cell, asked, context.clock())
                return {wallet: State(*found, versions[wallet]) for wallet, found in balances.items()}

            answers = await cells.try_groups(wallets, itemgetter(0), read)
        return {wallet: state for _, states in answers if states for wallet, state in states.items()}

    async def check(keys: Sequence[SessionKey]) -> set[SessionKey]:
        async with context.take_with_cells(SERVICE) as (_, cells):

            async def read(asked: Sequence[SessionKey], cell: Connection) -> set[SessionKey]:
                return await sessions.find_live(cell, asked, context.clock())

            answers = await cells.try_groups(keys, attrgetter("merchant_id"), read)
        # While its cell is away, nobody knows whether a session has ended.
        return {key for asked, live in answers for key in (asked if live is None else live)}

    return Hub(look, check, context.is_ending)


def make_events_route(context: PageContext, hub: WalletHub) -> Route:
    """The event stream of a page. Its URL names the latest entry and the deposits that the page shows."""

    async def follow(http: Request) -> Response:
        request = None
        owner = context.find_owner(http, http.cookies.get(COOKIE, ""))
        async with context.take_with_cells(owner) as (home, cells):
            if (cell := await find_cell(http, cells)) is not None:
                request = await open_request(http, context, home, cell, Form([]), extends_session=False)
        headers = context.responses.headers()
        key = None if request is None else sessions.find_key(request.token)
        if request is None or key is None:
            return EventStream(_end(), headers)
        asked = http.query_params
        known = State(-1, _read_id(asked.get("entry", "")), asked.get("deposits", ""))
        states = hub.follow((request.merchant_id, request.user_id), key)
        return EventStream(_stream(states, known), headers)

    return Route(PATH, follow, methods=["GET"])


async def _end() -> AsyncIterator[str]:
    yield ENDED


async def _stream(states: AsyncIterator[State | None], known: State) -> AsyncIterator[str]:
    async with aclosing(states):  # type: ignore[type-var]  # the hub's streams can be closed
        try:
            async for state in states:
                if state is not None:
                    for event in list_events(known, state):
                        yield event
                    known = state
                yield BEAT
        except SessionEnded:
            yield ENDED


def list_events(known: State, state: State) -> list[str]:
    """The events for a page that shows `known` when the wallet's state is `state`."""
    events = []
    if state.balance_units != known.balance_units:
        text = msgspec.json.encode({"balance": show_money(state.balance_units)}).decode()
        events.append(write_event("balance", text))
    if state.latest_entry_id != known.latest_entry_id:
        events.append(write_event("activity", "{}"))
    if state.deposits != known.deposits:
        events.append(write_event("deposits", "{}"))
    return events


def _read_id(text: str) -> int:
    number = parse_digits(text)
    return -1 if number is None else number
