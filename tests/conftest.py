"""Databases for tests: one PostgreSQL for the whole run (all xdist workers), a fresh database for each test.

Rules:
- The server's files lie in memory (`/dev/shm`) if there is enough of it, otherwise in the temporary folder.
- A test's database is a copy of the template's files, which costs about 30 ms in memory.
- A worker holds a shared lock while it needs the server; `postgres_keeper.py` waits for the last one.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import hypothesis
import psycopg
import pytest
import structlog
from argon2 import PasswordHasher
from jinja2 import BytecodeCache, Environment
from jinja2.bccache import Bucket
from psycopg.conninfo import conninfo_to_dict
from tests import durations, extended, other_postgres, roles
from tests.folders import find_base

from merchant_wallet.base.db import HOME_SCHEMA, connect_sync
from merchant_wallet.operators import passwords
from merchant_wallet.postgres import WEB_ROLE, WORKER_ROLE
from merchant_wallet.postgres.grants import Side, grant
from merchant_wallet.postgres.migrate import migrate
from merchant_wallet.sub_users import pins
from merchant_wallet.web import templates

# A busy machine is no fault: no property has a deadline.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")

START_TIMEOUT_S = 60.0
KEEPER_TIMEOUT_S = 30.0
RUN_FOLDER = pytest.StashKey[Path]()
ROOT = Path(__file__).parents[1]
KEEPER = "tests.postgres_keeper"
TEMPLATE = "wallet_template"
TEMPLATE_WITH_CELL = "wallet_template_with_cell"
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

    def url_of(self, name: str) -> str:
        """The URL of another database on this server."""
        return self.url.replace("/wallet?", f"/{name}?")

    def execute(self, statement: str) -> None:
        """Run one statement in the server's own database."""
        self.admin.execute(statement.encode())

    @contextmanager
    def database(self, template: str) -> Iterator[str]:
        """A database for this worker: a copy, dropped at the end."""
        self.made += 1
        name = f"test_{self.worker}_{self.made}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY = FILE_COPY")
        try:
            yield self.url_of(name)
        finally:
            self.drop(name)

    def drop(self, name: str) -> None:
        """Drop a database and end its sessions."""
        self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    @contextmanager
    def closing(self, url: str) -> Iterator[None]:
        """Let nobody connect to a database, and end its sessions, as if its server was away."""
        name = conninfo_to_dict(url)["dbname"]
        self.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        try:
            self.execute(
                f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
                " AND backend_type = 'client backend'"
            )
            yield
        finally:
            self.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")

    def prepare_template(self) -> None:
        """Migrate the template database, once per run."""
        self._prepare(TEMPLATE, "template0", HOME_SCHEMA)

    def prepare_template_with_cell(self) -> None:
        """Add the schema of an apart cell to a copy of the template, once per run."""
        self._prepare(TEMPLATE_WITH_CELL, TEMPLATE, FAR)

    def _prepare(self, name: str, template: str, schema: str) -> None:
        done = self.root / name
        with _locked(self.root / "start.lock"):
            if not done.exists():
                self.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
                migrate(self.url_of(name), lambda _: None, schema=schema)
                grant(self.url_of(name), {Side.WEB: WEB_ROLE, Side.WORKER: WORKER_ROLE}, schema)
                done.touch()


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
    config.pluginmanager.register(extended)
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(durations.DurationRecorder(durations.FILE))


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
    deadline = time.monotonic() + KEEPER_TIMEOUT_S
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
        deadline = time.monotonic() + START_TIMEOUT_S
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


class CompiledTemplates(BytecodeCache):
    """Compiled templates in memory. Each service in this process would compile all of them again."""

    def __init__(self) -> None:
        self._compiled: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        if bucket.key in self._compiled:
            bucket.bytecode_from_string(self._compiled[bucket.key])

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._compiled[bucket.key] = bucket.bytecode_to_string()


@pytest.fixture(scope="session", autouse=True)
def _templates_are_compiled_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(templates, "Environment", partial(Environment, bytecode_cache=CompiledTemplates()))
        yield


@pytest.fixture(scope="module", autouse=True)
def quick_hashes() -> Iterator[None]:
    """Passwords and PINs are hashed with the smallest parameters. A file that tests the real ones overrides
    this fixture.
    """
    hasher = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "_HASHER", hasher)
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
        with connect_sync(url) as admin:
            shared = SharedPostgres(root, url, worker, admin)
            shared.prepare_template()
            yield shared


@pytest.fixture
def database_url(postgres: SharedPostgres) -> Iterator[str]:
    """A fresh database with every migration applied."""
    with postgres.database(TEMPLATE) as url:
        yield url


@pytest.fixture
def url_with_cell(postgres: SharedPostgres) -> Iterator[str]:
    """A fresh database with home in schema `public` and the tables of an apart cell in schema `far`."""
    postgres.prepare_template_with_cell()
    with postgres.database(TEMPLATE_WITH_CELL) as url:
        yield url


@pytest.fixture
def empty_database_url(postgres: SharedPostgres) -> Iterator[str]:
    """A fresh, empty database."""
    with postgres.database("template0") as url:
        yield url
