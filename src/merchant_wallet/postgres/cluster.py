"""Making the database's files on the first start.

Rules: the cluster is made beside its place and moved there whole, so that a broken attempt is never taken for
one. No moment has a login without a password.
"""

import os
import secrets
import shutil
from pathlib import Path

from merchant_wallet.postgres.folder import NAME, Folder, sync_folder, write_secret
from merchant_wallet.postgres.programs import Programs

INITDB = (
    "--username=postgres",
    "--encoding=UTF8",
    # Sorts by code point and knows Unicode's letters, the same on every machine whatever its C library.
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--locale=C",
    "--auth=scram-sha-256",
    "--data-checksums",
    "--no-instructions",
)


def create_cluster(folder: Folder, programs: Programs, private_dir: Path) -> None:
    """Make the cluster, the service's role with its password, and its database.

    `private_dir` is a folder that only the server's user may enter. Raises `PostgresError`.
    """
    draft = folder.root / "postgres.new"
    if draft.exists():
        shutil.rmtree(draft)
    draft.mkdir(mode=0o700)
    _give(draft, programs)
    _initialize(draft, folder, programs, private_dir / "superuser")
    password = secrets.token_urlsafe(32)
    write_secret(folder.password, password)
    # The single-user mode needs no login to make the role that will log in.
    single = ["--single", "-D", str(draft), "-c", "exit_on_error=on", "-c", "log_statement=none", "postgres"]
    statements = (
        f"CREATE ROLE {NAME} LOGIN CREATEDB PASSWORD '{password}'",
        f"GRANT pg_monitor, pg_checkpoint TO {NAME}",
        f"CREATE DATABASE {NAME} OWNER {NAME}",
    )
    programs.run("postgres", single, folder, "".join(f"{statement};\n" for statement in statements))
    draft.rename(folder.cluster)
    sync_folder(folder.root)


def _initialize(draft: Path, folder: Folder, programs: Programs, pwfile: Path) -> None:
    # The superuser's password is forgotten at once: nobody logs in as superuser.
    write_secret(pwfile, secrets.token_urlsafe(32))
    try:
        _give(pwfile, programs)
        programs.run("initdb", [*INITDB, f"--pwfile={pwfile}", f"--pgdata={draft}"], folder)
    finally:
        pwfile.unlink()


def _give(path: Path, programs: Programs) -> None:
    if programs.account:
        os.chown(path, programs.account.uid, programs.account.gid)
