"""Create the database's files and its roles at the first start.

Rules:
- The cluster is created beside its final place, then moved there whole. So a failed attempt is never mistaken
  for a cluster.
- At no time can anyone log in without a password.
- A start that broke off while it made the roles is made up for at the next one.
"""

import os
import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from merchant_wallet.base.atomic_files import sync_folder
from merchant_wallet.postgres.data_folder import BACKUP_ROLE, LOGIN_ROLES, NAME, DataFolder, write_secret
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

SETTINGS_FILES: Final = {
    "postgresql.conf": "",
    "postgresql.auto.conf": "",
    "pg_hba.conf": "local all all scram-sha-256\nlocal replication all scram-sha-256\n",
    "pg_ident.conf": "",
}
"""The files that tell a server what to do, as a restored cluster gets them. Each login needs a password."""


def create_cluster(folder: DataFolder, programs: Programs, private_dir: Path) -> None:
    """Create the cluster, the service's role with its password, and its database.

    `private_dir` is a folder that only the server's user may enter. Raises `PostgresError`.
    """
    draft = folder.root / "postgres.new"
    initialize(draft, folder, programs, private_dir)
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


def create_login_roles(folder: DataFolder, programs: Programs) -> None:
    """Create the roles of web, worker and back-ups, and their passwords. The server must be stopped.

    A role may exist already, if a start stopped halfway. It gets a new password. Raises `PostgresError`.
    """
    _set_passwords(LOGIN_ROLES, folder.cluster, folder, programs)


def renew_passwords(cluster: Path, folder: DataFolder, programs: Programs) -> None:
    """Give every role of a restored cluster a new password, and create the roles that it lacks.

    So passwords are in no back-up. The server must be stopped. Raises `PostgresError`.
    """
    _set_passwords((NAME, *LOGIN_ROLES), cluster, folder, programs)


def _set_passwords(roles: Sequence[str], cluster: Path, folder: DataFolder, programs: Programs) -> None:
    statements: list[str] = []
    for role in roles:
        password = secrets.token_urlsafe(32)
        write_secret(_draft(folder, role), password)
        statements += _login_role(role, password)
    _run_single(statements, cluster, folder, programs)
    for role in roles:
        _draft(folder, role).rename(folder.password(role))
    sync_folder(folder.root)


def _draft(folder: DataFolder, role: str) -> Path:
    return folder.password(role).with_suffix(".new")


def _login_role(role: str, password: str) -> tuple[str, ...]:
    if role == NAME:
        return (f"ALTER ROLE {NAME} LOGIN PASSWORD '{password}'",)
    missing = f"IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{role}')"
    create = f"DO $$ BEGIN {missing} THEN CREATE ROLE {role}; END IF; END $$"
    if role == BACKUP_ROLE:
        # It reads the files of the cluster and no table. The owner is no member: it may not replicate.
        return (create, f"ALTER ROLE {role} LOGIN REPLICATION PASSWORD '{password}'")
    # The owner is a member of a side's role, so it may end the role's sessions. Dropping a database with
    # force needs that.
    return (create, f"GRANT {role} TO {NAME}", f"ALTER ROLE {role} LOGIN PASSWORD '{password}'")


def _run_single(statements: Sequence[str], cluster: Path, folder: DataFolder, programs: Programs) -> None:
    """Run statements in single-user mode, which needs no login."""
    # Not even a failed statement may be logged, since it contains a password.
    quiet = [
        part for name in ("log_statement=none", "log_min_error_statement=panic") for part in ("-c", name)
    ]
    single = ["--single", "-D", str(cluster), "-c", "exit_on_error=on", *quiet, "postgres"]
    programs.run("postgres", single, folder, "".join(f"{statement};\n" for statement in statements))


def initialize(draft: Path, folder: DataFolder, programs: Programs, private_dir: Path) -> None:
    """Create an empty cluster, in place of what a failed attempt left there. Raises `PostgresError`."""
    if draft.exists():
        shutil.rmtree(draft)
    draft.mkdir(mode=0o700)
    give(draft, programs)
    pwfile = private_dir / "superuser"
    # The superuser's password is not kept: nobody logs in as superuser.
    write_secret(pwfile, secrets.token_urlsafe(32))
    try:
        give(pwfile, programs)
        programs.run("initdb", [*INITDB, f"--pwfile={pwfile}", f"--pgdata={draft}"], folder)
    finally:
        pwfile.unlink()


def write_settings(cluster: Path, programs: Programs) -> None:
    """Write the settings files of a cluster that was restored, in place of those in the back-up.

    The server's settings are on its command line (`make_server_settings`).
    """
    for name, text in SETTINGS_FILES.items():
        path = cluster / name
        path.write_text(f"# Written by a restore. Nothing here comes from a back-up.\n{text}")
        path.chmod(0o600)
        give(path, programs)


def give(path: Path, programs: Programs) -> None:
    """Give a file or a folder to the user of the server."""
    if programs.account:
        os.chown(path, programs.account.uid, programs.account.gid, follow_symlinks=False)
