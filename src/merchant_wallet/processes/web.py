"""The web side as a process: starts, drains and stops the HTTP server.

Rules: it prints `ready` only when it answers. On stop, it refuses new requests with 50300, finishes those
under way, then ends. It also stops when its parent process ends.
"""

import asyncio
import gc
import socket
from collections.abc import Awaitable, Callable
from functools import partial
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
from merchant_wallet.processes import stop_signals
from merchant_wallet.processes.app import Web, open_web
from merchant_wallet.processes.base import Base
from merchant_wallet.processes.file_limit import raise_file_limit
from merchant_wallet.processes.listener import MAX_CONNECTIONS, RESERVED_FILES, SOURCE_CONNECTIONS, Listener
from merchant_wallet.processes.start_checks import prepare

log = structlog.get_logger("server")

LINGER_S: Final = 0.3
"""A stopping server answers 50300 for this long, so that clients get an answer, not a reset."""
BIND_RETRY_S: Final = 30.0
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
        await serve(base, on_ready, stop)


async def serve(
    base: Base, on_ready: Callable[[str], None], stop: asyncio.Event, clock: Callable[[], int] = now_ms
) -> None:
    """Serve until `stop` is set. Calls `on_ready` with the address once it answers."""
    settings = base.settings
    await open_nonce_days(base.url, clock() // DAY_MS)
    host = await resolve_host(settings.host)
    port = await choose_port(host, settings.port)
    address = f"http://{_in_url(settings.host)}:{port}"
    async with open_web(base, settings.public_url or address, clock) as web:
        keeping = asyncio.create_task(_keep_nonce_days(base, clock))
        try:
            drain = partial(_drain, web, settings.drain_timeout_s)
            await serve_web(
                web, host, port, lambda: on_ready(address), stop, drain, settings.source_connections
            )
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)


async def serve_web(
    web: Web,
    host: str,
    port: int,
    on_ready: Callable[[], None],
    stop: asyncio.Event,
    drain: Callable[[], Awaitable[None]],
    source_connections: int = SOURCE_CONNECTIONS,
) -> None:
    """Serve the web side until `stop` is set and it has drained."""
    files = raise_file_limit(MAX_CONNECTIONS + RESERVED_FILES)
    most = max(1, files - RESERVED_FILES)
    if most < MAX_CONNECTIONS:
        log.warning("few files may be open at once, so few connections are taken", connections=most)
    listener = Listener(web.endpoints, web.dependencies, web.application, most, source_connections)
    await listener.start(host, port)
    try:
        _tune_garbage_collection()
        on_ready()
        await stop.wait()
        await drain()
    finally:
        await listener.stop()


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


class CannotListen(Exception):
    """The server can't listen on its address or port. The text says why."""


async def resolve_host(host: str) -> str:
    """The address of a host name. Raises CannotListen."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise CannotListen(f"WALLET_HOST {host} has no address: {error.strerror}") from error
    return str(found[0][4][0])


async def choose_port(host: str, port: int) -> int:
    """A port to listen on: the given one once it is free, or any free one for 0.

    Raises CannotListen.
    """
    loop = asyncio.get_running_loop()
    ends = loop.time() + BIND_RETRY_S
    while True:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
                return int(probe.getsockname()[1])
            except OSError as error:
                # The previous server may still be finishing its requests.
                if loop.time() > ends or port == 0:
                    raise CannotListen(f"can't listen on {host} port {port}: {error.strerror}") from error
        await asyncio.sleep(0.2)


async def _drain(web: Web, timeout_s: float) -> None:
    in_flight = web.dependencies.in_flight
    log.info("stopping", under_way=in_flight.count)
    if not await in_flight.drain(timeout_s):
        log.warning("requests were still under way when the time to stop ran out", under_way=in_flight.count)
    await asyncio.sleep(LINGER_S)


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
