"""Databases for tests: one PostgreSQL for the whole run (all xdist workers), an empty database for each test.

Rules:
- The server's files lie in memory (`/dev/shm`) if there is enough of it, otherwise in the temporary folder.
- A database is a copy of a template's files. It is emptied for the next test (`recycled_databases.py`).
- Closed sessions are used again (`kept_sessions.py`).
- A worker holds a shared lock while it needs the server; `postgres_keeper.py` waits for the last one.
"""

import fcntl
import gc
import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import hypothesis
import psycopg
import pytest
import structlog
from argon2 import PasswordHasher
from client.tests import certificates
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants
from psycopg.conninfo import conninfo_to_dict
from tests import (
    compiled_templates,
    durations,
    extended,
    kept_sessions,
    node_kinds,
    other_postgres,
    recycled_databases,
    roles,
)
from tests.folders import find_base
from tests.kept_sessions import SESSIONS
from tests.recycled_databases import RecycledDatabase, as_superuser
from tests.waits import TIMEOUT_S

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.db import HOME_SCHEMA, connect_sync, place
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.nonce_partitions import DAYS_AHEAD
from merchant_wallet.operators import passwords
from merchant_wallet.postgres import WEB_ROLE, WORKER_ROLE
from merchant_wallet.postgres.grants import Side, grant
from merchant_wallet.postgres.migrate import migrate
from merchant_wallet.sub_users import pins

# A busy machine is no fault: no property has a deadline.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")

RUN_FOLDER = pytest.StashKey[Path]()
ROOT = Path(__file__).parents[1]
GARBAGE_THRESHOLD = 20_000
KEEPER = "tests.postgres_keeper"
TEMPLATE = "template"
"""With partitions for the nonces of usual days. Copies are used again."""
TEMPLATE_WITH_CELL = "template_with_cell"
BARE_TEMPLATE = "bare_template"
"""As `migrate` leaves it. Each copy is new."""
BARE_TEMPLATE_WITH_CELL = "bare_template_with_cell"
USUAL_CLOCKS_MS = (20_000 * DAY_MS, 1_763_712_000_000, 1_790_000_000_000)
"""Where clocks of tests stand."""
EMPTY = "template0"
FAR = "far"
"""The schema of the tests' apart cell."""


@dataclass
class SharedPostgres:
    """The run's server. `url` is its database `wallet`, to which no test should write."""

    root: Path
    url: str
    worker: str
    admin: psycopg.Connection[Any]
    made: int = 0
    free: dict[str, list[RecycledDatabase]] = field(default_factory=dict)

    def url_of(self, name: str) -> str:
        """The URL of another database on this server."""
        return self.url.replace("/wallet?", f"/{name}?")

    def execute(self, statement: str) -> None:
        """Run one statement in the server's own database."""
        self.admin.execute(statement.encode())

    @contextmanager
    def database(self, template: str) -> Iterator[str]:
        """A database for this worker: a copy of the template, or one that was used and emptied."""
        is_recycled = template in (TEMPLATE, TEMPLATE_WITH_CELL)
        free = self.free.setdefault(template, [])
        used = free.pop() if free else self._copy(template)
        if not SESSIONS.is_on:
            used.end_session()
        try:
            yield used.url
        finally:
            if not is_recycled or used.empty():
                used.end_session()
                self.drop(used.name)
            else:
                free.append(used)

    def end_sessions(self) -> None:
        """End the sessions that empty databases."""
        for used in chain.from_iterable(self.free.values()):
            used.end_session()

    def _copy(self, template: str) -> RecycledDatabase:
        self.made += 1
        name = f"test_{self.worker}_{self.made}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY = FILE_COPY")
        return RecycledDatabase(name, self.url_of(name))

    def drop(self, name: str) -> None:
        """Drop a database and end its sessions: as superuser, since a session of his may still be ending."""
        SESSIONS.end_all(name)
        with psycopg.connect(as_superuser(self.url), autocommit=True) as server:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())

    @contextmanager
    def closing(self, url: str) -> Iterator[None]:
        """Let nobody connect to a database, and end its sessions, as if its server was away."""
        name = str(conninfo_to_dict(url)["dbname"])
        SESSIONS.end_all(name)
        self.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        try:
            self.execute(
                f"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '{name}'"
                " AND backend_type = 'client backend'"
            )
            yield
        finally:
            self.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")

    def prepare_template(self) -> None:
        """Migrate the templates' databases, once per run."""
        self._prepare(TEMPLATE, BARE_TEMPLATE, EMPTY, HOME_SCHEMA)

    def prepare_template_with_cell(self) -> None:
        """The same for copies that have the schema of an apart cell, too."""
        self._prepare(TEMPLATE_WITH_CELL, BARE_TEMPLATE_WITH_CELL, BARE_TEMPLATE, FAR)

    def _prepare(self, name: str, bare: str, start: str, schema: str) -> None:
        """Make `bare` of `start` by migrating a schema, and of `bare` the template `name`."""
        done = self.root / name
        with _locked(self.root / "start.lock"):
            if done.exists():
                return
            url = self._make_template(bare, start)
            migrate(url, lambda _: None, schema=schema)
            grant(url, {Side.WEB: WEB_ROLE, Side.WORKER: WORKER_ROLE}, schema)
            url = self._make_template(name, bare)
            for one in {HOME_SCHEMA, schema}:
                _open_usual_days(place(url, None, one))
            recycled_databases.install(url)
            done.touch()

    def _make_template(self, name: str, start: str) -> str:
        # It is there if an earlier attempt failed.
        self.execute(f"DROP DATABASE IF EXISTS {name}")
        self.execute(f"CREATE DATABASE {name} TEMPLATE {start}")
        return self.url_of(name)


def _open_usual_days(url: str) -> None:
    # Not with `ensure_nonce_partitions`: a browser's event loop may run in this thread.
    with connect_sync(url) as connection:
        for day in {ms // DAY_MS for ms in (*USUAL_CLOCKS_MS, now_ms())}:
            # A day more than programs make: a run may pass midnight.
            connection.execute(b"select add_nonce_days(%s, %s)", [day - 1, day + DAYS_AHEAD + 1])


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that chooses another PostgreSQL."""
    parser.addoption(
        "--postgres-bin",
        type=Path,
        metavar="FOLDER",
        help="the programs of another PostgreSQL, for example /usr/lib/postgresql/15/bin",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Choose the run's PostgreSQL and its folder once. All workers of a run share one server, and two runs
    do not.
    """
    told = getattr(config, "workerinput", {}).get("run_folder")
    config.stash[RUN_FOLDER] = Path(told) if told else _choose_folder()
    _choose_postgres(config.getoption("postgres_bin"))
    # Hypothesis draws constants of the modules that happen to be loaded. The same test had other examples in
    # another worker, and to read all modules takes seconds.
    providers._get_local_constants = Constants
    config.pluginmanager.register(certificates)
    config.pluginmanager.register(compiled_templates)
    config.pluginmanager.register(extended)
    config.pluginmanager.register(kept_sessions)
    config.pluginmanager.register(node_kinds)
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(durations.DurationRecorder(durations.FILE))


def pytest_collection_finish() -> None:
    """Exclude what was imported and collected from garbage collection. It stays until the end."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_THRESHOLD, 20, 50)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker which folder is the run's."""
    node.workerinput["run_folder"] = str(node.config.stash[RUN_FOLDER])


def pytest_unconfigure(config: pytest.Config) -> None:
    """Wait until the server has stopped, so that a finished run leaves nothing running."""
    if hasattr(config, "workerinput"):
        return
    root = config.stash[RUN_FOLDER]
    if (root / "failed").exists():
        shutil.rmtree(root)
    deadline = time.monotonic() + TIMEOUT_S
    while root.exists() and time.monotonic() < deadline:
        time.sleep(0.02)


def _choose_postgres(folder: Path | None) -> None:
    if folder is None:
        return
    other_postgres.Choice.folder = folder.resolve()
    try:
        other_postgres.read_version(folder)
    except other_postgres.NoPrograms as error:
        raise pytest.UsageError(f"--postgres-bin: {error}") from error


def _choose_folder() -> Path:
    # pytest's own folder is closed to `nobody`, and as root PostgreSQL runs as `nobody`.
    return find_base() / f"merchant-wallet-tests-{uuid.uuid4().hex}"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _find_or_start(root: Path) -> str:
    url = root / "url"
    with _locked(root / "start.lock"):
        if url.exists():
            return url.read_text()
        if (root / "failed").exists():
            raise RuntimeError("no PostgreSQL for the tests; the first worker's error says why")
        other = [str(other_postgres.Choice.folder)] if other_postgres.Choice.folder else []
        with (root / "keeper.log").open("wb") as log:
            keeper = subprocess.Popen(
                [sys.executable, "-m", KEEPER, str(root), *other],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + TIMEOUT_S
        while not url.exists():
            if keeper.poll() is not None or time.monotonic() > deadline:
                (root / "failed").touch()
                raise RuntimeError(f"no PostgreSQL for the tests:\n{(root / 'keeper.log').read_text()}")
            time.sleep(0.02)
        # The keeper outlives this worker. It stops after the last worker.
        keeper.returncode = 0
        return url.read_text()


@pytest.fixture(scope="session", autouse=True)
def _loggers_follow_their_configuration() -> Iterator[None]:
    """Loggers are not cached. A cached logger would keep writing to another test's stream."""
    configure = structlog.configure

    def configure_without_cache(**chosen: Any) -> None:
        configure(**{**chosen, "cache_logger_on_first_use": False})

    for renderer in structlog.get_config()["processors"]:
        if isinstance(renderer, structlog.dev.ConsoleRenderer):
            # As the service prints them. The default takes seconds to draw each frame's locals.
            renderer.exception_formatter = structlog.dev.plain_traceback
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(structlog, "configure", configure_without_cache)
        yield


@pytest.fixture(scope="module", autouse=True)
def _logs_are_the_modules_own(_loggers_follow_their_configuration: None) -> Iterator[None]:
    """Reset the log configuration before and after each file."""
    structlog.reset_defaults()
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="module", autouse=True)
def quick_hashes() -> Iterator[None]:
    """Passwords and PINs are hashed with the smallest parameters. A file that tests the real ones overrides
    this fixture.
    """
    hasher = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "_HASHER", hasher)
        patch.setattr(passwords, "_NOBODYS", hasher.hash("nobody's"))
        patch.setattr(pins, "_HASHER", hasher)
        yield


@pytest.fixture(scope="session")
def postgres(request: pytest.FixtureRequest) -> Iterator[SharedPostgres]:
    """The run's PostgreSQL. The first worker that needs it starts it."""
    root = request.config.stash[RUN_FOLDER]
    root.mkdir(mode=0o711, exist_ok=True)
    with (root / "users.lock").open("a") as users:
        fcntl.flock(users, fcntl.LOCK_SH)
        worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
        url = _find_or_start(root)
        roles.store_passwords(root / "data")
        SESSIONS.host = str(conninfo_to_dict(url)["host"])
        with connect_sync(url) as admin:
            shared = SharedPostgres(root, url, worker, admin)
            shared.prepare_template()
            yield shared
            shared.end_sessions()


@pytest.fixture
def database_url(postgres: SharedPostgres, request: pytest.FixtureRequest) -> Iterator[str]:
    """An empty database with every migration applied. With the marker `new_database` nobody has used it, and
    nonces have no partitions yet.
    """
    with postgres.database(BARE_TEMPLATE if _wants_new(request) else TEMPLATE) as url:
        yield url


@pytest.fixture
def url_with_cell(postgres: SharedPostgres, request: pytest.FixtureRequest) -> Iterator[str]:
    """The same with home in schema `public` and the tables of an apart cell in schema `far`."""
    postgres.prepare_template_with_cell()
    with postgres.database(BARE_TEMPLATE_WITH_CELL if _wants_new(request) else TEMPLATE_WITH_CELL) as url:
        yield url


def _wants_new(request: pytest.FixtureRequest) -> bool:
    return request.node.get_closest_marker("new_database") is not None


@pytest.fixture
def empty_database_url(postgres: SharedPostgres) -> Iterator[str]:
    """A fresh, empty database."""
    with postgres.database(EMPTY) as url:
        yield url
