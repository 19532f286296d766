"""Create the database's files and its roles at the first start.

Rules:
- The cluster is created beside its final place, then moved there whole. So a failed attempt is never mistaken
  for a cluster.
- At no time can anyone log in without a password.
- A folder of an older version gets the roles of web and worker at its next start.
"""

import os
import secrets
import shutil
from pathlib import Path

from merchant_wallet.base.atomic_files import sync_folder
from merchant_wallet.postgres.data_folder import NAME, SIDE_ROLES, DataFolder, write_secret
from merchant_wallet.postgres.programs import Programs

INITDB = (
    "--username=postgres",
    "--encoding=UTF8",
    # Sorts by code point and knows Unicode's letters. So it is the same on every machine, whatever its C
    # library.
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--locale=C",
    "--auth=scram-sha-256",
    "--data-checksums",
    "--no-instructions",
)


def create_cluster(folder: DataFolder, programs: Programs, private_dir: Path) -> None:
    """Create the cluster, the service's role with its password, and its database.

    `private_dir` is a folder that only the server's user may enter. Raises `PostgresError`.
    """
    draft = folder.root / "postgres.new"
    if draft.exists():
        shutil.rmtree(draft)
    draft.mkdir(mode=0o700)
    _give(draft, programs)
    _initialize(draft, folder, programs, private_dir / "superuser")
    password = secrets.token_urlsafe(32)
    write_secret(folder.password(), password)
    statements = (
        f"CREATE ROLE {NAME} LOGIN CREATEDB PASSWORD '{password}'",
        f"GRANT pg_monitor, pg_checkpoint TO {NAME}",
        f"CREATE DATABASE {NAME} OWNER {NAME}",
    )
    _run_single(statements, draft, folder, programs)
    draft.rename(folder.cluster)
    sync_folder(folder.root)


def create_side_roles(folder: DataFolder, programs: Programs) -> None:
    """Create the roles of web and worker, and their passwords. The server must be stopped.

    A role may exist already, if a start stopped halfway. It gets a new password. Raises `PostgresError`.
    """
    for role in SIDE_ROLES:
        password, file = secrets.token_urlsafe(32), folder.password(role)
        draft = file.with_suffix(".new")
        write_secret(draft, password)
        _run_single(_side_role(role, password), folder.cluster, folder, programs)
        draft.rename(file)
    sync_folder(folder.root)


def _side_role(role: str, password: str) -> tuple[str, ...]:
    # The owner is a member of the role, so it may end the role's sessions. Dropping a database with force
    # needs that.
    missing = f"IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{role}')"
    return (
        f"DO $$ BEGIN {missing} THEN CREATE ROLE {role}; END IF; END $$",
        f"GRANT {role} TO {NAME}",
        f"ALTER ROLE {role} LOGIN PASSWORD '{password}'",
    )


def _run_single(statements: tuple[str, ...], cluster: Path, folder: DataFolder, programs: Programs) -> None:
    """Run statements in single-user mode, which needs no login."""
    # Not even a failed statement may be logged, since it contains a password.
    quiet = [
        part for name in ("log_statement=none", "log_min_error_statement=panic") for part in ("-c", name)
    ]
    single = ["--single", "-D", str(cluster), "-c", "exit_on_error=on", *quiet, "postgres"]
    programs.run("postgres", single, folder, "".join(f"{statement};\n" for statement in statements))


def _initialize(draft: Path, folder: DataFolder, programs: Programs, pwfile: Path) -> None:
    # The superuser's password is not kept: nobody logs in as superuser.
    write_secret(pwfile, secrets.token_urlsafe(32))
    try:
        _give(pwfile, programs)
        programs.run("initdb", [*INITDB, f"--pwfile={pwfile}", f"--pgdata={draft}"], folder)
    finally:
        pwfile.unlink()


def _give(path: Path, programs: Programs) -> None:
    if programs.account:
        os.chown(path, programs.account.uid, programs.account.gid)
