"""`scripts/test`, which is `make test`: if a check fails, it fails, and its last line says so."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.conftest import LONGEST
from tests.other_postgres import FROM_DEBIAN, FROM_NPM

ROOT = Path(__file__).parents[1]
OTHER_VERSIONS = (*FROM_DEBIAN, *FROM_NPM)
# Stands in for Python: a tool fails if a file with its name exists, and prints that it was run.
PYTHON = 'echo "ran $*"; if [ -e "$2" ]; then echo "$2 found a fault"; exit 1; fi'


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The files that the script needs, in a folder whose name has a space."""
    folder = tmp_path / "merchant wallet"
    for name in ("test", "test_postgres", "check"):
        (folder / "scripts").mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "scripts" / name, folder / "scripts" / name)
    programs = folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name, script in (("python", PYTHON), ("lint-imports", f"set -- -m lint-imports\n{PYTHON}")):
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)
    return folder


def run_tests(clone: Path, *arguments: str, faults: tuple[str, ...] = ()) -> tuple[int, str, str]:
    """The exit status, the output, and the last line."""
    for tool in faults:
        (clone / tool).touch()
    done = subprocess.run(
        [clone / "scripts" / "test", *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    return done.returncode, done.stdout, done.stderr.splitlines()[-1]


def test_it_runs_the_tests_and_all_that_make_check_runs(clone: Path) -> None:
    status, printed, last = run_tests(clone, "-k", "two words")
    assert (status, last) == (0, "make test: passed: checks and tests")
    for run in ("ruff format --check .", "ruff check .", "lint-imports", "mypy"):
        assert f"ran -m {run}\n" in printed
    assert "ran -m pytest -n auto --dist loadfile --no-loadscope-reorder -k two words\n" in printed


@pytest.mark.parametrize("tool", ["ruff", "lint-imports"])
def test_after_a_quick_check_that_failed_no_test_is_run(clone: Path, tool: str) -> None:
    status, printed, last = run_tests(clone, faults=(tool,))
    assert (status, last) == (1, "make test: FAILED: the checks (make check); no test was run")
    assert "pytest" not in printed


def test_wrong_types_fail_it_though_every_test_passes(clone: Path) -> None:
    status, printed, last = run_tests(clone, faults=("mypy",))
    assert (status, last) == (1, "make test: FAILED: types (make check)")
    assert "mypy found a fault" in printed


def test_a_failed_test_fails_it(clone: Path) -> None:
    status, _, last = run_tests(clone, "-k", "words", faults=("pytest",))
    assert (status, last) == (1, "make test: FAILED: tests")


def test_both_are_said_where_both_fail(clone: Path) -> None:
    last = run_tests(clone, "-k", "words", faults=("mypy", "pytest"))[2]
    assert last == "make test: FAILED: tests and types (make check)"


def test_without_arguments_some_tests_are_run_on_other_versions_of_postgres(clone: Path) -> None:
    status, printed, last = run_tests(clone)
    assert (status, last) == (0, "make test: passed: checks and tests")
    for version in OTHER_VERSIONS:
        assert f"ran -m pytest --postgres-bin ran -m tests.other_postgres {version} -n" in printed


def test_a_failed_test_on_another_version_of_postgres_fails_it(clone: Path) -> None:
    status, _, last = run_tests(clone, faults=("pytest",))
    assert (status, last) == (1, "make test: FAILED: tests and tests on other versions of PostgreSQL")


def test_versions_of_postgres_that_are_not_installed_are_named_and_fail_nothing(clone: Path) -> None:
    (clone / "tests.other_postgres").touch()
    done = subprocess.run(
        [clone / "scripts" / "test"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0
    assert "--postgres-bin" not in done.stdout
    for version in OTHER_VERSIONS:
        assert f"make test: LEFT OUT: the tests on PostgreSQL {version}." in done.stderr


def test_the_tests_for_other_versions_of_postgres_are_there() -> None:
    named = re.findall(r"tests/\w+/test_\w+\.py", (ROOT / "scripts" / "test_postgres").read_text())
    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_files_that_come_first_are_there() -> None:
    assert [name for name in LONGEST if not (ROOT / "tests" / name).exists()] == []
