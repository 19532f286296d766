"""What `serve` and `work` check before they begin: database, schema, keys, and today's nonce partition.

Rules:
- If the database can't be reached, the start waits and logs a line every few seconds. A stop ends the wait.
- If the server refuses (password, unknown database, too many connections), the start waits, too. The line is
  then an error, because most of these need a person.
- What Kubernetes says of a Service in variables that look like settings is named once, and ignored.
- A schema that this program does not know ends the start. So do a wrong master key, and a connection pooler
  that gives one session to several clients.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

import psycopg
import structlog

from merchant_wallet.base import db
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.config import ConfigError
from merchant_wallet.base.poolers import PoolerRefused
from merchant_wallet.base.setting_sources import LINKS_ADVICE, list_service_links
from merchant_wallet.base.settings import Settings
from merchant_wallet.base.sqlstates import AGAIN
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.nonce_partitions import open_nonce_days
from merchant_wallet.postgres.migrate import require_schema
from merchant_wallet.processes.base import Base, make_base, prepare_master_key

log = structlog.get_logger("start")

RETRY_S: Final = 1.0
LOG_EVERY: Final = 5
"""There is one line in the log for this many tries."""


def name_service_links(env: Mapping[str, str]) -> None:
    """Log which variables are no settings but links of Kubernetes, if there are any."""
    if links := list_service_links(env):
        log.info("service links of Kubernetes are ignored", variables=links, advice=LINKS_ADVICE)


async def prepare(
    settings: Settings, url: str, stop: asyncio.Event, clock: Callable[[], int] = now_ms
) -> Base | None:
    """Wait for the database, check it, and return what every part needs. None if `stop` was set before.

    Raises ConfigError, MigrationError.
    """
    url, tries = db.for_writing(url), 0
    while not stop.is_set():
        try:
            async with await db.connect(url) as connection:
                await require_schema(connection)
            await prepare_master_key(settings, url)
            await open_nonce_days(url, clock() // DAY_MS)
            return make_base(settings, url)
        except PoolerRefused as error:
            raise ConfigError(str(error)) from error
        except psycopg.Error as error:
            if not db.is_database_away(error):
                raise
            if tries % LOG_EVERY == 0:
                await _log_error(error)
            tries += 1
        await _wait(stop)
    return None


async def _log_error(error: psycopg.Error) -> None:
    found = await asyncio.to_thread(db.explain_error, error)
    # This program tries again by itself.
    reason = str(found).replace(AGAIN, "").strip() if found else " ".join(str(error).split())
    if error.sqlstate is None and await asyncio.to_thread(db.was_reached, error):
        log.error("the database refuses this service; trying again", reason=reason)
    else:
        log.warning("the database is not there yet; waiting for it", reason=reason)


async def _wait(stop: asyncio.Event) -> None:
    try:
        await asyncio.wait_for(stop.wait(), RETRY_S)
    except TimeoutError:
        return
