"""Prometheus's promtool, for tests."""

import subprocess
from pathlib import Path

from tests.tools import require_tool


def run_promtool(*words: str, given: bytes = b"", folder: Path | None = None, status: int = 0) -> str:
    """What promtool says about it. Fails if it ends with another status: 1 refuses, 3 advises."""
    program = require_tool("prometheus").with_name("promtool")
    ran = subprocess.run([program, *words], input=given, capture_output=True, check=False, cwd=folder)
    said = (ran.stdout + ran.stderr).decode()
    assert ran.returncode == status, said
    return said
