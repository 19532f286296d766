"""How a web process ends, so that no request is lost; and the longest that any process takes to end.

Rules:
- `stop` without WALLET_UNREADY_S: new requests are refused with 50300, those under way are answered.
- `stop` with it: first `/readyz` turns to 503, so that proxies choose other processes. Everything is still
  answered, and each answer ends its connection. When the time is over, nothing new is accepted, and what was
  accepted is answered. Only then idle connections are closed.
- `hand over`: other processes accept on the same socket. This one accepts nothing more, and each of its
  connections ends with its next answer. An idle one stays until its client uses or closes it, or for as long
  as an idle connection ever stays. So no client finds a connection closed that it was about to use.
- The process has a limit to end, whatever the database does. What still waits then is cut, as by a kill.
"""

import asyncio
import faulthandler
import os
import threading
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Final

import structlog

from merchant_wallet.api.connection import KEEP_ALIVE_S
from merchant_wallet.base.settings import Settings

if TYPE_CHECKING:
    # `work` ends in a bounded time too, and has no web side.
    from merchant_wallet.processes.app import Web
    from merchant_wallet.processes.listener import Listener

log = structlog.get_logger("server")

LINGER_S: Final = 0.3
"""A stopping server answers 50300 for this long, so that clients get an answer, not a reset."""
SETTLED_S: Final = 1.0
"""A connection that was idle for this long has no request on the way."""
HANDOVER_S: Final = KEEP_ALIVE_S + 30.0
"""The longest that a process stays that was replaced: an idle connection, and a slow request on it."""
POLL_S: Final = 0.05
CLOSE_S: Final = 8.0
"""The longest that connections to the database may take to close. A supervisor kills a little later."""


async def stop(web: "Web", listener: "Listener", *, unready_s: float, drain_s: float, is_kept: bool) -> None:
    """End everything that this process answers. `is_kept`: another process inherits the socket."""
    in_flight = web.dependencies.in_flight
    log.info("stopping", under_way=in_flight.count)
    if web.forwarding is not None:
        web.forwarding.leave()
    leaves = unready_s > 0 or is_kept
    if leaves:
        await _leave(web, listener, unready_s, drain_s, is_kept=is_kept)
    await _drain(web, drain_s)
    if not leaves:
        await asyncio.sleep(LINGER_S)


async def _drain(web: "Web", drain_s: float) -> None:
    in_flight = web.dependencies.in_flight
    if not await in_flight.drain(drain_s):
        log.warning("requests were still under way when the time to stop ran out", under_way=in_flight.count)


async def _leave(
    web: "Web", listener: "Listener", unready_s: float, drain_s: float, *, is_kept: bool
) -> None:
    web.dependencies.in_flight.unready = True
    listener.end_connections()
    await asyncio.sleep(unready_s)
    await listener.stop_accepting(is_kept=is_kept)
    web.dependencies.in_flight.left = True
    await _wait_idle(listener, SETTLED_S, drain_s)


async def hand_over(web: "Web", listener: "Listener", stopped: asyncio.Event, drain_s: float) -> None:
    """Answer what was accepted until every connection has ended, or `stopped` is set."""
    log.info("handing over", connections=len(listener.admission))
    if web.forwarding is not None:
        web.forwarding.leave()
    listener.end_connections()
    await listener.stop_accepting(is_kept=True)
    web.dependencies.in_flight.left = True
    waiting = asyncio.create_task(_wait_idle(listener, KEEP_ALIVE_S, HANDOVER_S))
    told = asyncio.create_task(stopped.wait())
    await asyncio.wait((waiting, told), return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    told.cancel()
    await asyncio.gather(waiting, told, return_exceptions=True)
    await _drain(web, drain_s)


async def _wait_idle(listener: "Listener", idle_s: float, longest_s: float) -> None:
    """Wait until all connections have been idle for a time."""
    loop = asyncio.get_running_loop()
    ends_s = loop.time() + longest_s
    # Connections end by themselves and notify nobody.
    while not listener.is_idle_for(idle_s) and loop.time() < ends_s:  # noqa: ASYNC110
        await asyncio.sleep(POLL_S)


def stop_limit_s(settings: Settings) -> float:
    """The longest that a process takes to stop."""
    return settings.unready_s + settings.drain_timeout_s + CLOSE_S


def hand_over_limit_s(settings: Settings) -> float:
    """The longest that a process stays whose siblings go on alone."""
    return HANDOVER_S + settings.drain_timeout_s + CLOSE_S


def end_within(limit_s: float) -> None:
    """End this process with status 1 if it still runs then. Its log says where its tasks and threads stood.

    Called in the event loop of the process.
    """
    timer = threading.Timer(limit_s, _end, (limit_s, asyncio.get_running_loop()))
    timer.daemon = True
    timer.start()


def _end(limit_s: float, loop: asyncio.AbstractEventLoop) -> None:
    waits = sorted(map(_find_wait, asyncio.all_tasks(loop)))
    log.error("did not stop in time and ends now; its threads follow", limit_s=limit_s, tasks_wait_in=waits)
    faulthandler.dump_traceback()
    os._exit(1)


def _find_wait(task: asyncio.Task[object]) -> str:
    """The innermost coroutine in which a task waits."""
    coroutine: object = task.get_coro()
    while isinstance(inner := getattr(coroutine, "cr_await", None), Coroutine):
        coroutine = inner
    frame = getattr(coroutine, "cr_frame", None)
    where = f":{frame.f_lineno}" if frame else ""
    return f"{getattr(coroutine, '__qualname__', coroutine)}{where}"
