"""The rehearsal of a restore: a copy in a scratch folder, with a server of its own, verified and removed."""

import asyncio
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from merchant_wallet.base.config import has_master_key
from merchant_wallet.cli import terminal
from merchant_wallet.cli.failures import CANNOT_RUN, Failure
from merchant_wallet.cli.journals import describe, note_fault

if TYPE_CHECKING:
    from merchant_wallet.base.settings import Settings
    from merchant_wallet.postgres.backups.catalogue import Catalogue
    from merchant_wallet.postgres.backups.encryption import BackupKey
    from merchant_wallet.postgres.backups.recovery import Restored
    from merchant_wallet.postgres.backups.stores import Store
    from merchant_wallet.processes.backup_verification import BackupReport, Loss


def verify_in_scratch(
    settings: "Settings",
    store: "Store",
    key: "BackupKey",
    found: "Catalogue",
    name: str | None,
    to_ms: int | None,
    parent: Path | None,
) -> dict[str, Any]:
    """Restore, verify, remove. Returns the document of the answer."""
    from merchant_wallet.postgres.backups.recovery import choose_base, restore

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
        done = restore(scratch / "copy", store, key, found, base, to_ms, progress.show)
        restored_s = time.monotonic()
        report = _verify(settings, scratch / "copy", progress)
    finally:
        progress.end()
        shutil.rmtree(scratch)
    for book in report.wrong:
        note_fault(book)
    return {
        **_describe(done, report),
        "restoreTookMs": int((restored_s - begun_s) * 1000),
        "verifyTookMs": int((time.monotonic() - restored_s) * 1000),
        "books": [{**describe(book), "ok": book not in report.wrong} for book in report.books],
    }


def _verify(settings: "Settings", copy: Path, progress: terminal.Progress) -> "BackupReport":
    from merchant_wallet import postgres
    from merchant_wallet.observability import logs
    from merchant_wallet.processes.backup_verification import verify_copy
    from merchant_wallet.processes.base import make_base

    def show(merchant_id: int, done: int, total: int) -> None:
        progress.show(f"merchant {merchant_id}: {done} of {total} entries")

    # A line in the log would mix with the answer.
    logs.set_up("error", settings.log_format)
    live_url = settings.database_url or postgres.locate(settings.data)
    server = postgres.start(copy, progress.show)
    try:
        return asyncio.run(verify_copy(make_base(settings, server.url), live_url, show))
    finally:
        server.stop()


def _describe(done: "Restored", report: "BackupReport") -> dict[str, Any]:
    return {
        "ok": report.ok,
        "backup": done.base.name,
        "timeline": done.timeline,
        "lastCommitMs": done.last_commit_ms,
        "comparedWithCheckpoints": _describe_loss(report.checkpoints),
        "comparedWithLive": None if report.live is None else _describe_loss(report.live),
        "cellsLeftOut": list(report.cells_left_out),
    }


def _describe_loss(loss: "Loss") -> dict[str, int]:
    return {"lostEntries": loss.entries, "lostBooks": loss.books, "lostSeconds": -(-loss.time_ms // 1000)}
