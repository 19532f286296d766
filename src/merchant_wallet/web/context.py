"""What both sites get: database connections, cells, responses, keys, and access to the books.

Rules: a site changes balances only by commands to a book, through this module. It changes everything else
through the slices.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

from psycopg import AsyncConnection
from starlette.requests import Request

from merchant_wallet.base.fair_queue import Owner
from merchant_wallet.base.settings import Settings
from merchant_wallet.base.siblings import Siblings
from merchant_wallet.base.trusted_proxies import TrustedProxies
from merchant_wallet.book.commands import Command, Submission
from merchant_wallet.book.outcomes import Outcome
from merchant_wallet.book.submissions import Books
from merchant_wallet.merchants.keys import Keyring
from merchant_wallet.observability.logs import AccessLog, RequestIds
from merchant_wallet.web.cells import CellPools, PageCells
from merchant_wallet.web.client import Client, read_client
from merchant_wallet.web.connections import Connections
from merchant_wallet.web.plays import Plays
from merchant_wallet.web.rate_limiter import PageRateLimiter
from merchant_wallet.web.responses import Responses
from merchant_wallet.web.turns import Turns, is_stranger


@dataclass(frozen=True, slots=True)
class PageContext:
    """See the module. `public_url` is the pages' address for people. `clock` returns the time in ms.

    `strangers` are the connections for requests of which nobody here knows the person. Only a sandbox has
    `plays`.
    """

    settings: Settings
    public_url: str
    database_url: str
    keyring: Keyring
    connections: Connections
    strangers: Connections
    turns: Turns
    cells: CellPools
    responses: Responses
    writer: Books
    clock: Callable[[], int]
    is_ending: Callable[[], bool]
    request_ids: RequestIds
    access_log: AccessLog
    proxies: TrustedProxies
    rate_limiter: PageRateLimiter
    chains: tuple[str, ...]
    siblings: Siblings | None = None
    plays: Plays | None = None

    async def submit(self, merchant_id: int, command: Command, request_id: str = "") -> Outcome:
        """Send a command to a book. Returns the outcome, which may be a refusal, when it is committed."""
        return await self.writer.submit(merchant_id, Submission(command, request_id=request_id))

    def take_for(self, request: Request, token: str = "") -> AbstractAsyncContextManager[AsyncConnection]:
        """A connection for a request, when it is the turn of the person whose session has this token."""
        return self.take_as(self.find_owner(request, token))

    def take_as(self, owner: Owner) -> AbstractAsyncContextManager[AsyncConnection]:
        """A connection, when it is the owner's turn."""
        return (self.strangers if is_stranger(owner) else self.connections).take(owner)

    @asynccontextmanager
    async def take_with_cells(self, owner: Owner) -> AsyncIterator[tuple[AsyncConnection, PageCells]]:
        """A connection to home, when it is the owner's turn, and the cells. Raises CellAway."""
        async with self.take_as(owner) as home, self.cells.open(home, owner) as cells:
            yield home, cells

    def find_owner(self, request: Request, token: str = "") -> Owner:
        """Whose turn a request with this session's token waits for."""
        return self.turns.find(token, self.client(request).source)

    def client(self, request: Request, kept_language: str | None = None) -> Client:
        """The client of a request."""
        return read_client(request, self.proxies, kept_language)
