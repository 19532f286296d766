"""What `doctor` says of back-ups: how far the stored WAL is behind, and how old the base back-up is."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from merchant_wallet.cli.backup_authenticity import MAX_NAMED, list_authentic
from merchant_wallet.cli.findings import Finding

if TYPE_CHECKING:
    from merchant_wallet.base.settings import Settings
    from merchant_wallet.postgres.backups.catalogue import BaseBackup

MAX_BEHIND_S: Final = 60
MAX_AGE_S: Final = 8 * 86_400
NAME: Final = "back-up"
BASE: Final = "base back-up"


async def check_backup(conn: Any, settings: "Settings") -> AsyncIterator[Finding]:
    """A finding about the back-ups of the own PostgreSQL. None for somebody else's."""
    from merchant_wallet import postgres
    from merchant_wallet.base.clock import now_ms
    from merchant_wallet.base.config import ConfigError
    from merchant_wallet.observability.backup_metrics import find_backup
    from merchant_wallet.postgres.backups.errors import BackupError

    stored_ms = await find_backup(conn)
    if settings.backup_url is None:
        if stored_ms is not None:
            behind_s = (now_ms() - stored_ms) // 1000 if stored_ms else None
            yield judge_shipping(behind_s)
        elif settings.database_url is None and postgres.has_cluster(settings.data):
            hint = "set WALLET_BACKUP_URL and WALLET_BACKUP_KEY_FILE for `up`, then `backup create`"
            yield Finding(NAME, "nobody stores this database: a lost disk loses it all", hint=hint)
        return
    behind_s = (now_ms() - stored_ms) // 1000 if stored_ms else None
    shipping = judge_shipping(behind_s)
    yield shipping
    if shipping.advice is None:
        try:
            newest, faults = await asyncio.to_thread(find_newest, settings)
        except (BackupError, ConfigError) as error:
            hint = "make the store and its keys reachable from here, or run doctor where they are"
            yield Finding(NAME, str(error), hint)
            return
        for fault in faults[:MAX_NAMED]:
            yield judge_fault(fault)
        yield judge_base(None if newest is None else (now_ms() - newest.completed.ended_ms) // 1000)


def find_newest(settings: "Settings") -> "tuple[BaseBackup | None, Sequence[str]]":
    """The newest base back-up, and why later ones are not authentic, if the keys are here that show it."""
    from merchant_wallet.postgres.backups.catalogue import list_systems, read_catalogue
    from merchant_wallet.postgres.backups.stores import open_store
    from merchant_wallet.processes.wal_shipping import find_authenticating_key

    assert settings.backup_url is not None, "the caller has looked"
    store = open_store(settings.backup_url, settings.outbound)
    bases = [base for system in list_systems(store)[0] for base in read_catalogue(store, system).bases]
    key = find_authenticating_key(settings)
    if key is None:
        return max(bases, key=lambda base: base.completed.ended_ms, default=None), ()
    found, faults = list_authentic(store, key, bases, 1)
    return next(iter(found), None), faults


def judge_shipping(behind_s: int | None) -> Finding:
    """Judge how far the stored WAL is behind. None: nobody stores it."""
    look = "the log of `up` has `WAL is not being stored` with the reason"
    if behind_s is None:
        return Finding(NAME, "no process stores the WAL now", f"start `up` with WALLET_BACKUP_URL; {look}")
    text = f"WAL is stored up to {behind_s} s ago"
    return Finding(NAME, text, None if behind_s <= MAX_BEHIND_S else look)


def judge_base(age_s: int | None) -> Finding:
    """Judge the age of the newest base back-up. None: there is none."""
    if age_s is None:
        return Finding(BASE, "there is none, so the WAL restores nothing", "run `backup create`")
    if age_s < 0:
        return Finding(BASE, "the newest is dated in the future", "compare the clocks; look who made it")
    text = f"the newest is {age_s // 3600} h old"
    hint = "run `backup create` once a day or week: a restore replays all WAL since then"
    return Finding(BASE, text, hint=hint if age_s > MAX_AGE_S else None)


def judge_fault(fault: str) -> Finding:
    """A base back-up that is not authentic, and newer than those that are."""
    advice = "remove it from the store if you did not make it; a new one is made with `backup create`"
    return Finding(BASE, fault, advice)
