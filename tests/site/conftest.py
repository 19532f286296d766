"""The documentation site, built once for all tests here, as `make site` builds it."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="package")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `site` and `documentation.zip`. A dead link ends the build, and so every test here."""
    folder = tmp_path_factory.mktemp("documentation")
    done = subprocess.run(
        [sys.executable, "-m", "scripts.site", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture
def site(built: Path) -> Path:
    """The folder with the pages."""
    return built / "site"
