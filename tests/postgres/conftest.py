"""Data folders for the own PostgreSQL."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.folders import copy_folder, make_folder

from merchant_wallet import postgres
from merchant_wallet.postgres import RunningPostgres


@contextmanager
def opened_folder() -> Iterator[Path]:
    """A data folder that every user may enter. A server that still runs on it is stopped at the end."""
    parent = make_folder("merchant-wallet-test-")
    folder = parent / "data"
    yield folder
    if folder.exists():
        postgres.start(folder, lambda _: None).stop()
    shutil.rmtree(parent)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Such a folder for one test."""
    with opened_folder() as folder:
        yield folder


@pytest.fixture(scope="session")
def stopped_server() -> Iterator[Path]:
    """The data folder of a server that was started once."""
    parent = make_folder("merchant-wallet-test-")
    postgres.start(parent / "data", lambda _: None).stop()
    yield parent / "data"
    shutil.rmtree(parent)


@pytest.fixture
def made_folder(open_folder: Path, stopped_server: Path) -> Path:
    """An open data folder where the database is created."""
    copy_folder(stopped_server, open_folder)
    return open_folder


@pytest.fixture(scope="module")
def fresh_folder() -> Iterator[Path]:
    """The folder of `fresh_server`."""
    with opened_folder() as folder:
        yield folder


@pytest.fixture(scope="module")
def fresh_server(fresh_folder: Path) -> Iterator[RunningPostgres]:
    """A server that was started on a fresh folder, for tests that only look at it."""
    running = postgres.start(fresh_folder, lambda _: None)
    yield running
    running.stop()


@pytest.fixture
def closed_folder(tmp_path: Path) -> Path:
    """A data folder inside a folder that is closed to all but its owner."""
    tmp_path.chmod(0o700)
    return tmp_path / "data"
