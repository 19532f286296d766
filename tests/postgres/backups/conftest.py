"""Stores of back-ups, a folder and a bucket of a real S3-compatible server, and a server to back up."""

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.folders import copy_folder, make_folder
from tests.ports import find_port
from tests.postgres.backups.place import Place
from tests.tools import require_tool
from tests.waits import wait_until

BUCKET = "wallet"
FOLDER = "folder"
S3 = "s3"


@pytest.fixture(scope="session")
def s3_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The variables that lead to a server with an empty bucket.

    versitygw checks signatures and keeps objects in a folder.
    """
    program = require_tool("versitygw")
    root = tmp_path_factory.mktemp("s3")
    (root / BUCKET).mkdir()
    port = find_port()
    given = {"ROOT_ACCESS_KEY": "access", "ROOT_SECRET_KEY": "secret-key"}
    server = subprocess.Popen(
        [str(program), "--port", f"127.0.0.1:{port}", "--quiet", "posix", str(root)],
        env={**os.environ, **given},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: _accepts(port), "the S3 server starts")
        yield {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": given["ROOT_ACCESS_KEY"],
            "AWS_SECRET_ACCESS_KEY": given["ROOT_SECRET_KEY"],
        }
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()


def _accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(params=[FOLDER, S3])
def store_url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty store of each kind."""
    if request.param == FOLDER:
        (tmp_path / "store").mkdir()
        return str(tmp_path / "store")
    for name, text in request.getfixturevalue("s3_environment").items():
        monkeypatch.setenv(name, text)
    return f"s3://{BUCKET}/{tmp_path.name}"


@pytest.fixture
def place(stopped_server: Path) -> Iterator[Place]:
    root = make_folder("merchant-wallet-backup-")
    copy_folder(stopped_server, root / "data")
    made = Place(root)
    yield made
    made.server.stop()
    shutil.rmtree(root)
