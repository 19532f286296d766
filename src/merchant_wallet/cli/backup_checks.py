"""What `doctor` says of back-ups: what a lost disk would lose, and how old the base back-up is.

Only back-ups of the very cluster that is asked count: others may be in the same store.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from merchant_wallet.cli.backup_authenticity import MAX_NAMED, Authentic, list_authentic
from merchant_wallet.cli.findings import Finding

if TYPE_CHECKING:
    from merchant_wallet.base.settings import Settings
    from merchant_wallet.postgres.backups.catalogue import BaseBackup, WalEnd
    from merchant_wallet.postgres.backups.names import Stored

MAX_BEHIND_S: Final = 60
NAME: Final = "back-up"
BASE: Final = "base back-up"
SYSTEM: Final = "select system_identifier::text from pg_control_system()"


async def check_backup(conn: Any, settings: "Settings") -> AsyncIterator[Finding]:
    """A finding about the back-ups of the own PostgreSQL. None for somebody else's."""
    from merchant_wallet import postgres
    from merchant_wallet.base.clock import now_ms
    from merchant_wallet.base.config import ConfigError
    from merchant_wallet.observability.backup_metrics import NOTHING, find_backup
    from merchant_wallet.postgres.backups.errors import BackupError

    stored = await find_backup(conn)
    if settings.backup_url is None:
        if stored is not None:
            yield judge_shipping(stored, now_ms())
        elif settings.database_url is None and postgres.has_cluster(settings.data):
            hint = "set WALLET_BACKUP_URL and WALLET_BACKUP_KEY_FILE for `up`, then `backup create`"
            yield Finding(NAME, "nobody stores this database: a lost disk loses it all", hint=hint)
        return
    yield judge_shipping(stored or NOTHING, now_ms())
    (system,) = await (await conn.execute(SYSTEM)).fetchone()
    try:
        newest, faults = await asyncio.to_thread(find_newest, settings, system)
    except (BackupError, ConfigError) as error:
        hint = "make the store and its keys reachable from here, or run doctor where they are"
        yield Finding(NAME, str(error), hint)
        return
    for fault in faults[:MAX_NAMED]:
        yield judge_fault(fault)
    if newest is None:
        yield judge_base(None)
        return
    base, end = newest
    if end.hole is not None:
        yield judge_hole(end)
    yield judge_base((now_ms() - base.completed.ended_ms) // 1000)


def find_newest(
    settings: "Settings", system: str
) -> "tuple[tuple[BaseBackup, WalEnd] | None, Sequence[str]]":
    """The newest base back-up of a cluster, how far it reaches, and why later ones are not authentic.

    Without the keys that show who made them all count.
    """
    from merchant_wallet.postgres.backups.catalogue import read_catalogue
    from merchant_wallet.postgres.backups.stores import open_store
    from merchant_wallet.processes.wal_shipping import find_authenticating_key

    assert settings.backup_url is not None, "the caller has looked"
    store = open_store(settings.backup_url, settings.outbound)
    found = read_catalogue(store, system)
    key = find_authenticating_key(settings)
    bases = found.sort_bases()
    counted = Authentic(bases, ()) if key is None else list_authentic(store, key, bases, 1)
    if not counted.bases:
        return None, counted.faults
    return (counted.bases[-1], found.find_end(counted.bases[-1])), counted.faults


def judge_shipping(stored: "Stored", at_ms: int) -> Finding:
    """Judge what a lost disk would lose at a moment. `NOTHING`: nobody stores WAL."""
    from merchant_wallet.base.moments import format_moment
    from merchant_wallet.observability.backup_metrics import NOTHING

    look = "the log of `up` has `WAL is not being stored` with the reason"
    if stored == NOTHING:
        return Finding(NAME, "no process stores the WAL now", f"start `up` with WALLET_BACKUP_URL; {look}")
    if not stored.restorable_ms:
        return Finding(NAME, "nothing of this database can be restored from the store", "run `backup create`")
    behind_s = (at_ms - stored.restorable_ms) // 1000
    if stored.restorable_ms < stored.stored_ms:
        until = format_moment(stored.restorable_ms)
        text = f"nothing after {until} can be restored, WAL is missing: a lost disk would lose {behind_s} s"
        return Finding(NAME, text, "run `backup create`; the log of `up` has `WAL is missing` with the place")
    text = f"WAL is stored up to {behind_s} s ago"
    return Finding(NAME, text, None if behind_s <= MAX_BEHIND_S else look)


def judge_hole(end: "WalEnd") -> Finding:
    """WAL that is missing after the newest base back-up."""
    return Finding(NAME, f"{end.hole}", "run `backup create`, and find out who removed it from the store")


def judge_base(age_s: int | None) -> Finding:
    """Judge the age of the newest base back-up. None: there is none."""
    if age_s is None:
        return Finding(BASE, "there is none, so the WAL restores nothing", "run `backup create`")
    if age_s < 0:
        return Finding(BASE, "the newest is dated in the future", "compare the clocks; look who made it")
    from merchant_wallet.observability.backup_metrics import MAX_BASE_AGE_S

    text = f"the newest is {age_s // 3600} h old"
    hint = "run `backup create` once a day or week: a restore replays all WAL since then"
    return Finding(BASE, text, hint=hint if age_s > MAX_BASE_AGE_S else None)


def judge_fault(fault: str) -> Finding:
    """A base back-up that is not authentic, and newer than those that are."""
    advice = "remove it from the store if you did not make it; a new one is made with `backup create`"
    return Finding(BASE, fault, advice)
