"""The rehearsal of a restore: a copy in a scratch folder, with a server of its own, verified and removed.

What is missing is compared with the live database as it was before the restore began: what it writes
meanwhile is no loss.
"""

import asyncio
import shutil
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from merchant_wallet.base.config import has_master_key
from merchant_wallet.cli import terminal
from merchant_wallet.cli.failures import CANNOT_RUN, Failure
from merchant_wallet.cli.journals import describe, note_fault

if TYPE_CHECKING:
    from merchant_wallet.base.settings import Settings
    from merchant_wallet.postgres.backups.catalogue import Catalogue, WalEnd
    from merchant_wallet.postgres.backups.encryption import BackupKey
    from merchant_wallet.postgres.backups.recovery import Restored
    from merchant_wallet.postgres.backups.stores import Store
    from merchant_wallet.processes.backup_verification import BackupReport, Head, Loss


def verify_in_scratch(
    settings: "Settings",
    store: "Store",
    key: "BackupKey",
    found: "Catalogue",
    name: str | None,
    to_ms: int | None,
    parent: Path | None,
    max_missing_s: int | None,
) -> dict[str, Any]:
    """Restore, verify, remove. Returns the document of the answer. `max_missing_s`: None for any."""
    from merchant_wallet import postgres
    from merchant_wallet.postgres.backups.recovery import choose_base, restore
    from merchant_wallet.processes.backup_verification import read_live

    if not has_master_key(settings):
        raise Failure(
            f"The service's master key is not in {settings.data}: give its own folder with --data, "
            "or set WALLET_MASTER_KEY.",
            CANNOT_RUN,
        )
    base = choose_base(found, name, to_ms)
    scratch = Path(tempfile.mkdtemp(prefix="merchant-wallet-verify-", dir=parent))
    # As root the server is another user's, who must pass through.
    scratch.chmod(0o711)
    progress, begun_s = terminal.Progress(), time.monotonic()
    try:
        live_url = settings.database_url or postgres.locate(settings.data)
        live = None if live_url is None else asyncio.run(read_live(live_url))
        done = restore(scratch / "copy", store, key, found, base, to_ms, progress.show)
        restored_s = time.monotonic()
        report = _verify(settings, scratch / "copy", live, done.base.completed.ended_ms, progress)
    finally:
        progress.end()
        shutil.rmtree(scratch)
    for book in report.wrong:
        note_fault(book)
    if done.end.hole is not None:
        terminal.note(f"{done.end.hole}.")
    missing_ms = max((report.live or report.checkpoints).time_ms, done.end.missing_ms)
    missing_s = -(-missing_ms // 1000)
    is_too_old = max_missing_s is not None and missing_ms > max_missing_s * 1000
    if is_too_old:
        terminal.note(
            f"{missing_s} s are missing, and {max_missing_s} are allowed (--max-missing): look "
            "why with `doctor` and `backup list`, then run `backup create`."
        )
    return {
        **_describe(done, report),
        "ok": report.ok and not is_too_old,
        "missingSeconds": missing_s,
        "hole": describe_hole(done.end),
        "restoreTookMs": int((restored_s - begun_s) * 1000),
        "verifyTookMs": int((time.monotonic() - restored_s) * 1000),
        "books": [{**describe(book), "ok": book not in report.wrong} for book in report.books],
    }


def describe_hole(end: "WalEnd") -> dict[str, Any] | None:
    """The JSON object of a hole."""
    if end.hole is None:
        return None
    from merchant_wallet.postgres.backups.names import format_position

    return {
        "timeline": end.hole.timeline,
        "position": format_position(end.hole.position),
        "laterObjects": end.hole.objects,
        "laterToMs": end.hole.until_ms or None,
    }


def _verify(
    settings: "Settings",
    copy: Path,
    live: "Mapping[int, Head] | None",
    since_ms: int,
    progress: terminal.Progress,
) -> "BackupReport":
    from merchant_wallet import postgres
    from merchant_wallet.observability import logs
    from merchant_wallet.processes.backup_verification import verify_copy
    from merchant_wallet.processes.base import make_base

    def show(merchant_id: int, done: int, total: int) -> None:
        progress.show(f"merchant {merchant_id}: {done} of {total} entries")

    # A line in the log would mix with the answer.
    logs.set_up("error", settings.log_format)
    server = postgres.start(copy, progress.show)
    try:
        return asyncio.run(verify_copy(make_base(settings, server.url), live, since_ms, show))
    finally:
        server.stop()


def _describe(done: "Restored", report: "BackupReport") -> dict[str, Any]:
    return {
        "backup": done.base.name,
        "timeline": done.end.timeline,
        "lastCommitMs": done.last_commit_ms,
        "comparedWithCheckpoints": _describe_loss(report.checkpoints),
        "comparedWithLive": None if report.live is None else _describe_loss(report.live),
        "cellsLeftOut": list(report.cells_left_out),
    }


def _describe_loss(loss: "Loss") -> dict[str, int]:
    return {"lostEntries": loss.entries, "lostBooks": loss.books, "lostSeconds": -(-loss.time_ms // 1000)}
