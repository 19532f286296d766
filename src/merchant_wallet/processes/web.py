"""The web side as a process: starts, drains and stops the HTTP server.

Rules: it prints `ready` only when it answers. How it stops is in `ending`. It also stops when its parent
process ends.
"""

import asyncio
import gc
import os
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import structlog
import uvloop

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.config import ConfigError
from merchant_wallet.base.host_watch import watching
from merchant_wallet.base.settings import Settings
from merchant_wallet.base.siblings import Siblings
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.base.workers import log_failure, wait_for_any
from merchant_wallet.book.nonce_partitions import open_nonce_days
from merchant_wallet.observability import logs
from merchant_wallet.postgres.grants import Side
from merchant_wallet.processes import ending, stop_signals, systemd
from merchant_wallet.processes.app import Web, open_web
from merchant_wallet.processes.base import Base
from merchant_wallet.processes.file_limit import raise_file_limit
from merchant_wallet.processes.instances import Presence
from merchant_wallet.processes.listener import (
    MAX_CONNECTIONS,
    RESERVED_FILES,
    SOURCE_CONNECTIONS,
    Listener,
    count_connections,
)
from merchant_wallet.processes.listening_socket import bind, resolve_host, take_systemd_socket, url_of
from merchant_wallet.processes.start_checks import name_service_links, prepare
from merchant_wallet.processes.web_group import run_group
from merchant_wallet.processes.web_member import CHECK, HAND_OVER, Membership, take_membership

log = structlog.get_logger("server")

NONCE_DAYS_INTERVAL_S: Final = 3600.0
GARBAGE_THRESHOLD: Final = 50_000


def run_serve(settings: Settings, on_ready: Callable[[str], None], parent_fd: int | None = None) -> int:
    """Run the web side until SIGTERM, SIGINT or the parent's end. Returns the exit status.

    Raises ConfigError, MigrationError.
    """
    if settings.keystore_passphrase is not None:
        raise ConfigError(
            "WALLET_KEYSTORE_PASSPHRASE is set, and the web side must not know it: set it for `work` alone."
        )
    if settings.checkpoint_key is not None:
        raise ConfigError(
            "WALLET_CHECKPOINT_KEY is set, and the web side must not know it: set it for `work` alone."
        )
    logs.set_up(settings.log_level, settings.log_format)
    if os.environ.get(CHECK):
        return 0
    claim_files()
    member = take_membership()
    if member is None:
        name_service_links(os.environ)
    if member is None and settings.processes > 1:
        return run_group(settings, on_ready, parent_fd)
    url = settings.database_url
    assert url is not None, "the command line gives the database's URL"
    uvloop.run(_run(settings, url, on_ready, parent_fd, member))
    return 0


async def _run(
    settings: Settings,
    url: str,
    on_ready: Callable[[str], None],
    parent_fd: int | None,
    member: Membership | None,
) -> None:
    if member is not None:
        parent_fd = member.parent_fd
    stop = stop_signals.make_stop_event(parent_fd)
    hand_over = stop_signals.make_event(HAND_OVER) if member else asyncio.Event()
    base = await prepare(settings, url, stop)
    if base is None:
        return
    if member is None:
        passed = take_systemd_socket(os.environ)
        place = Place(passed, is_kept=passed is not None)
    else:
        siblings = Siblings(member.shared_fd, member.seat, Path(member.folder))
        listening = socket.socket(fileno=member.listening_fd)
        place = Place(listening, member.is_kept, siblings, hand_over)

    def say_ready(address: str) -> None:
        on_ready(address)
        systemd.notify_ready()

    bounding = asyncio.create_task(_bound_end(settings, stop, place.hand_over))
    await serve(base, say_ready, stop, place=place)
    bounding.cancel()
    systemd.notify_stopping()


async def _bound_end(settings: Settings, stop: asyncio.Event, hand_over: asyncio.Event) -> None:
    """A database that answers nothing must not keep this process."""
    await wait_for_any(stop, hand_over)
    if not stop.is_set():
        ending.end_within(ending.hand_over_limit_s(settings))
        await stop.wait()
    ending.end_within(ending.stop_limit_s(settings))


@dataclass(frozen=True)
class Place:
    """Where a web process listens, and with whom. `passed` is a socket that it did not open itself.

    `is_kept`: somebody keeps it open when all web processes have ended. `hand_over` is set when the siblings
    shall go on alone.
    """

    passed: socket.socket | None = None
    is_kept: bool = False
    siblings: Siblings | None = None
    hand_over: asyncio.Event = field(default_factory=asyncio.Event)


async def serve(
    base: Base,
    on_ready: Callable[[str], None],
    stop: asyncio.Event,
    clock: Callable[[], int] = now_ms,
    place: Place | None = None,
) -> None:
    """Serve until `stop` is set. Calls `on_ready` with the address once it answers.

    Raises CannotListen, ConfigError.
    """
    async with watching(base.cells):
        await _serve(base, on_ready, stop, clock, place or Place())


async def _serve(
    base: Base, on_ready: Callable[[str], None], stop: asyncio.Event, clock: Callable[[], int], place: Place
) -> None:
    settings = base.settings
    await open_nonce_days(base.url, clock() // DAY_MS)
    listening = place.passed or await bind(await resolve_host(settings.host), settings.port)
    address = url_of(settings.host, listening)
    async with open_web(base, settings.public_url or address, clock, place.siblings) as web:
        gone = asyncio.Event()
        keeping = asyncio.create_task(_keep_nonce_days(base, clock))
        presence = asyncio.create_task(Presence(base.cells.connect_home, Side.WEB, web.clock).run(gone))

        async def run(listener: Listener) -> None:
            on_ready(address)
            await wait_for_any(stop, place.hand_over)
            if not stop.is_set():
                await ending.hand_over(web, listener, stop, settings.drain_timeout_s)
                return
            await ending.stop(
                web,
                listener,
                unready_s=settings.unready_s,
                drain_s=settings.drain_timeout_s,
                is_kept=place.is_kept,
            )

        try:
            await serve_web(web, listening, run, settings.source_connections, place.siblings)
        finally:
            keeping.cancel()
            gone.set()
            await asyncio.gather(keeping, presence, return_exceptions=True)


async def serve_web(
    web: Web,
    listening: socket.socket,
    run: Callable[[Listener], Awaitable[None]],
    source_connections: int = SOURCE_CONNECTIONS,
    siblings: Siblings | None = None,
) -> None:
    """Serve the web side while `run` runs. Raises ConfigError."""
    most = claim_files()
    if most < MAX_CONNECTIONS:
        log.warning("few files may be open at once, so few connections are taken", connections=most)
    listener = Listener(web.endpoints, web.dependencies, web.application, most, source_connections, siblings)
    await listener.start(listening)
    try:
        _tune_garbage_collection()
        await run(listener)
    finally:
        await listener.stop()


def claim_files() -> int:
    """Raise the limit of open files as far as connections need. Returns the most connections.

    Raises ConfigError if the limit stays too low.
    """
    return count_connections(raise_file_limit(MAX_CONNECTIONS + RESERVED_FILES))


async def _keep_nonce_days(base: Base, clock: Callable[[], int]) -> None:
    """Create nonce partitions of coming days here, too, so that the web side needs no worker for them."""
    while True:
        await asyncio.sleep(NONCE_DAYS_INTERVAL_S)
        try:
            await open_nonce_days(base.url, clock() // DAY_MS)
        except Exception as error:
            log_failure(log, "the coming days' nonce partitions could not be made; trying again", error)


def _tune_garbage_collection() -> None:
    """Exclude objects that live as long as the process from garbage collection."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_THRESHOLD, 50, 100)
