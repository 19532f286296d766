"""What `doctor` says of the archive: whether the files that alone have a book's entries can be read here."""

import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from merchant_wallet.base.counted import count_of
from merchant_wallet.cli.findings import Finding, fetch

if TYPE_CHECKING:
    from merchant_wallet.base.settings import Settings
    from merchant_wallet.book.archive.files import ArchiveFolder

NAME: Final = "archive"


async def check_archive(home: Any, settings: "Settings", url: str) -> AsyncIterator[Finding]:
    """A finding if rows of any book were removed. Cells that are away have a finding of their own."""
    from merchant_wallet.book.archive.files import ArchiveFolder
    from merchant_wallet.merchants.cells.directory import Directory
    from merchant_wallet.processes.cell_connections import reach_apart

    async with reach_apart(Directory(url, dict(settings.cell_urls))) as apart:
        months = await fetch(home, "list_archived_months")
        for reached in apart.values():
            months += await fetch(reached, "list_archived_months")
    if months:
        yield judge_archive(ArchiveFolder(settings.archive_folder), months)


def judge_archive(folder: "ArchiveFolder", months: Sequence[tuple[int, str]]) -> Finding:
    """Judge whether the files of these months, each of a merchant, are there and may be read."""
    away = [path for month in months for path in _files(folder, *month) if not os.access(path, os.R_OK)]
    if away:
        text = f"{len(away)} of {2 * len(months)} files can't be read, the first is {away[0]}"
        advice = (
            "bring them back from their copy, or correct WALLET_ARCHIVE_DIR: nothing else has these entries"
        )
        return Finding(NAME, text, advice)
    return Finding(
        NAME, f"{count_of(len(months), 'month')} in {folder.path}; `archive verify` reads the files"
    )


def _files(folder: "ArchiveFolder", merchant_id: int, month: str) -> tuple[Path, Path]:
    return folder.file_of(merchant_id, month), folder.manifest_of(merchant_id, month)
