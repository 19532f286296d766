"""The web side as a process: starts, drains and stops the HTTP server.

Rules: it prints `ready` only when it answers. How it stops is in `ending`. It also stops when its parent
process ends.
"""

import asyncio
import gc
import os
import socket
from collections.abc import Awaitable, Callable
from typing import Final

import structlog
import uvloop

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.config import ConfigError
from merchant_wallet.base.settings import Settings
from merchant_wallet.base.workers import log_failure
from merchant_wallet.book.nonce_partitions import open_nonce_days
from merchant_wallet.book.state import DAY_MS
from merchant_wallet.observability import logs
from merchant_wallet.postgres.grants import Side
from merchant_wallet.processes import ending, stop_signals
from merchant_wallet.processes.app import Web, open_web
from merchant_wallet.processes.base import Base
from merchant_wallet.processes.file_limit import raise_file_limit
from merchant_wallet.processes.instances import Presence
from merchant_wallet.processes.listener import MAX_CONNECTIONS, RESERVED_FILES, SOURCE_CONNECTIONS, Listener
from merchant_wallet.processes.listening_socket import bind, resolve_host, take_systemd_socket
from merchant_wallet.processes.start_checks import prepare

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
    url = settings.database_url
    assert url is not None, "the command line gives the database's URL"
    uvloop.run(_run(settings, url, on_ready, parent_fd))
    return 0


async def _run(settings: Settings, url: str, on_ready: Callable[[str], None], parent_fd: int | None) -> None:
    stop = stop_signals.make_stop_event(parent_fd)
    base = await prepare(settings, url, stop)
    if base is not None:
        await serve(base, on_ready, stop, passed=take_systemd_socket(os.environ))


async def serve(
    base: Base,
    on_ready: Callable[[str], None],
    stop: asyncio.Event,
    clock: Callable[[], int] = now_ms,
    passed: socket.socket | None = None,
) -> None:
    """Serve until `stop` is set. Calls `on_ready` with the address once it answers.

    `passed` is a socket to listen on that somebody else keeps open. Raises CannotListen.
    """
    settings = base.settings
    await open_nonce_days(base.url, clock() // DAY_MS)
    listening = passed or await bind(await resolve_host(settings.host), settings.port)
    address = url_of(settings.host, listening)
    async with open_web(base, settings.public_url or address, clock) as web:
        gone = asyncio.Event()
        keeping = asyncio.create_task(_keep_nonce_days(base, clock))
        presence = asyncio.create_task(Presence(base.cells.connect_home, Side.WEB).run(gone))

        async def run(listener: Listener) -> None:
            on_ready(address)
            await stop.wait()
            await ending.stop(
                web,
                listener,
                unready_s=settings.unready_s,
                drain_s=settings.drain_timeout_s,
                is_kept=passed is not None,
            )

        try:
            await serve_web(web, listening, run, settings.source_connections)
        finally:
            keeping.cancel()
            gone.set()
            await asyncio.gather(keeping, presence, return_exceptions=True)


async def serve_web(
    web: Web,
    listening: socket.socket,
    run: Callable[[Listener], Awaitable[None]],
    source_connections: int = SOURCE_CONNECTIONS,
) -> None:
    """Serve the web side while `run` runs."""
    files = raise_file_limit(MAX_CONNECTIONS + RESERVED_FILES)
    most = max(1, files - RESERVED_FILES)
    if most < MAX_CONNECTIONS:
        log.warning("few files may be open at once, so few connections are taken", connections=most)
    listener = Listener(web.endpoints, web.dependencies, web.application, most, source_connections)
    await listener.start(listening)
    try:
        _tune_garbage_collection()
        await run(listener)
    finally:
        await listener.stop()


def url_of(host: str, listening: socket.socket) -> str:
    """The address to call."""
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listening.getsockname()[1]}"


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
