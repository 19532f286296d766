"""Prometheus and its promtool, for tests. `scripts/setup --prometheus` downloads Debian's package.

Rules: the programs are in `.venv/prometheus`, or in the path. Without them a test is skipped; with `CI=true`
it fails.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(sys.prefix) / "prometheus" / "usr" / "bin"


def find_program(name: str) -> Path:
    """The program, or the end of the test."""
    if (FOLDER / name).is_file():
        return FOLDER / name
    if found := shutil.which(name):
        return Path(found)
    missing = f"there is no {name}: run `scripts/setup --prometheus`"
    if os.environ.get("CI"):
        pytest.fail(missing)
    pytest.skip(missing)


def run_promtool(*words: str, given: bytes = b"", folder: Path | None = None, status: int = 0) -> str:
    """What promtool says about it. Fails if it ends with another status: 1 refuses, 3 advises."""
    program = find_program("promtool")
    ran = subprocess.run([program, *words], input=given, capture_output=True, check=False, cwd=folder)
    said = (ran.stdout + ran.stderr).decode()
    assert ran.returncode == status, said
    return said
