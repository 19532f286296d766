"""Runs a part of the tests on the service's oldest and newest Python: `python -m tests.other_pythons`.

Rules:
- The Python of .venv is left out: all tests run on it.
- Each other one gets an environment in build/runtimes with what requirements/dev.txt locks.
- A Python that is missing is named and left out; with `CI=true` that fails. `make test-tools` installs it.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.tools import COMMAND, ROOT, find_tool

OLDEST: Final = "3.11"
NEWEST: Final = "3.13"
PART: Final = (
    "tests/book/rules",
    "tests/book/test_store.py",
    "tests/book/test_writer.py",
    "tests/journeys/test_withdrawal_life.py",
    "tests/client/test_against_service.py",
    "client/tests",
)


def say(text: str) -> None:
    """Print a line among those of `make test-all`."""
    print(f"make test-all: {text}", file=sys.stderr, flush=True)


def make_environment(python: Path, version: str) -> Path:
    """The Python of an environment with the locked packages and the project. Raises CalledProcessError."""
    folder = ROOT / f"build/runtimes/environment-{version}"
    made = folder / "bin/python"
    if not made.exists():
        subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True)
    install = (Path(sys.executable).with_name("uv"), "pip", "install", "--quiet", "--python", made)
    locks = ("-r", "requirements/uv.txt", "-r", "requirements/dev.txt")
    subprocess.run([*install, "--require-hashes", *locks], cwd=ROOT, check=True)
    project = ("--no-deps", "--no-build-isolation", "--editable", ".", "--editable", "client")
    subprocess.run([*install, *project], cwd=ROOT, check=True)
    return made


def run(version: str) -> bool:
    """Run the part on a version. False if it failed."""
    python = find_tool(f"python-{version}")
    if python is None:
        say(f"LEFT OUT: the tests on Python {version}. {COMMAND} installs it")
        return os.environ.get("CI") != "true"
    say(f"tests on Python {version}")
    try:
        made = make_environment(python, version)
    except (OSError, subprocess.CalledProcessError) as error:
        say(str(error))
        return False
    words = ("-m", "pytest", "-n", "2", "--dist", "loadfile", "-m", "not extended", *PART)
    return subprocess.run([made, *words], cwd=ROOT, check=False).returncode == 0


def list_others() -> list[str]:
    """The oldest and the newest version, without the one that runs this."""
    here = "{}.{}".format(*sys.version_info)
    return [version for version in (OLDEST, NEWEST) if version != here]


def main() -> int:
    """Run the part on each version. Returns the exit status."""
    failed = [version for version in list_others() if not run(version)]
    if failed:
        say(f"FAILED on Python {' and '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
