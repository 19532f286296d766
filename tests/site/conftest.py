"""The documentation site, built once for all workers of a run, as `make site` builds it."""

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from demo.deployment import Deployment, find_installed_program
from scripts.site.texts import read
from tests.cli.conftest import clean_environment
from tests.forked_commands import ForkedCommand
from tests.site.readers import Reader

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="package")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `site` and `documentation.zip`. A dead link ends the build, and so every test here."""
    own = tmp_path_factory.getbasetemp()
    # A worker's folder is in the folder of the run.
    shared = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "documentation"
    shared.mkdir(exist_ok=True)
    with (shared / "build.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "documentation.zip").exists():
            build(shared)
    return shared


def build(folder: Path) -> None:
    """Build the site into a folder."""
    done = subprocess.run(
        [sys.executable, "-m", "scripts.site", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def site(built: Path) -> Path:
    """The folder with the pages."""
    return built / "site"


@pytest.fixture(scope="package")
def sandbox(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A running service that has the site built into it, as `make site` and `make release` do."""
    source = tmp_path_factory.mktemp("service")
    # The database may run as another user, who must read the program.
    source.chmod(0o755)
    shutil.copytree(ROOT / "src" / "merchant_wallet", source / "merchant_wallet")
    shutil.copy(built / "documentation.zip", source / "merchant_wallet" / "web")
    deployment = Deployment(find_installed_program())
    deployment.set({"WALLET_SANDBOX_CONFIRM_MS": "100", "PYTHONPATH": str(source)})
    try:
        deployment.start(0, lambda _: None)
        yield deployment
    finally:
        deployment.stop()


@pytest.fixture(scope="package")
def exported(sandbox: Deployment) -> dict[str, str]:
    """What the quick start asks for, after the commands for a sandbox of one's own."""
    told: dict[str, str] = {}
    for line in read("docs/site/examples/own_sandbox.sh").splitlines():
        words = [word.strip('"') for word in re.findall(r'"[^"]*"|\S+', line)[1:]]
        is_first = words[:2] == ["merchant", "create"]
        options = ("--data", sandbox.data, *(["--json"] if is_first else []))
        with ForkedCommand(*words, *options, environment=clean_environment()) as command:
            status, said, errors = command.finish()
        assert status == 0, errors
        told = json.loads(said) if is_first else told
    return {
        "MERCHANT_WALLET_URL": sandbox.url,
        "MERCHANT_WALLET_APP_KEY": told["appKey"],
        "MERCHANT_WALLET_SECRET": told["appSecret"],
        "MERCHANT_WALLET_CALLBACK_SECRET": told["callbackSecret"],
    }


@pytest.fixture
def reader(exported: dict[str, str], tmp_path: Path) -> Reader:
    """A reader in an empty folder, with the environment of the quick start."""
    folder = tmp_path / "shop"
    folder.mkdir()
    return Reader(folder, exported)
