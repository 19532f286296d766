"""The worker that notifies operators, with this process's connections, cells, mail server and clients."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any

from psycopg import AsyncConnection

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.fair_places import SERVICE
from merchant_wallet.callbacks.client import CallbackClient
from merchant_wallet.notifications.contacts import EMAIL, WEBHOOK
from merchant_wallet.notifications.mail import find_server
from merchant_wallet.notifications.messages import Site
from merchant_wallet.notifications.transports import MailTransport, WebhookTransport
from merchant_wallet.notifications.worker import Notifier, Transport
from merchant_wallet.processes.base import Base
from merchant_wallet.reporting.inbox import Asked, Inbox, read_inbox
from merchant_wallet.web.cells import CellAway, CellPools
from merchant_wallet.web.inbox_sources import SOURCES

MAX_TOLD = 10_000
"""The most items of a kind that people are told of. Newer ones follow when some of these are gone."""
CELL_CONNECTIONS = 1
"""One to each apart cell: inboxes are read one after the other."""


def open_notifier(base: Base, client: CallbackClient, stack: AsyncExitStack) -> Notifier:
    """The worker. Without a mail server it sends webhooks alone, and mails wait."""
    pools = CellPools(base.cells, CELL_CONNECTIONS)
    stack.push_async_callback(pools.close)
    read = make_reader(pools, base.settings.shown_chains)
    return Notifier(base.cells.connect_home, read, make_transports(base, client))


def make_reader(
    pools: CellPools, chains: Sequence[str], clock: Callable[[], int] = now_ms
) -> Callable[[AsyncConnection[Any], int | None], Awaitable[Inbox]]:
    """Reads the inbox of one merchant's people, or with None of the platform's, from every cell."""

    async def read(home: AsyncConnection[Any], merchant_id: int | None) -> Inbox:
        at_ms = clock()
        try:
            async with pools.open(home, SERVICE) as cells:
                return await read_inbox(Asked(home, cells, merchant_id, at_ms, chains, MAX_TOLD), SOURCES)
        except CellAway as away:
            return Inbox(at_ms, away=(away.name,), unread=tuple(source.kind for source in SOURCES))

    return read


def make_transports(base: Base, client: CallbackClient) -> dict[str, Transport]:
    """The channels that the settings allow."""
    settings, keyring = base.settings, base.keyring
    site = Site(settings.pages_url, settings.sandbox)
    transports: dict[str, Transport] = {WEBHOOK: WebhookTransport(client, keyring, site)}
    if (server := find_server(settings)) is not None:
        transports[EMAIL] = MailTransport(server, keyring, site)
    return transports
