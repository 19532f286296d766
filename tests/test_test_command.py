"""`scripts/test` and `scripts/test_all`, which are `make test` and `make test-all`: if anything fails, they
fail, and their last line says so.
"""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from tests import other_pythons
from tests.extended import EXTENDED, EXTENDED_ROWS, QUICK, QUICK_ALONE, is_extended
from tests.other_postgres import FROM_DEBIAN, FROM_NPM
from tests.other_pythons import NEWEST, OLDEST, PART

ROOT = Path(__file__).parents[1]
OTHER_VERSIONS = (*FROM_DEBIAN, *FROM_NPM)
# Stands in for Python: a tool fails if a file with its name exists, says that it was run, and leaves a file.
PYTHON = """
echo "ran $*"
touch "${TMPDIR:-/tmp}/left by $2"
if [ -e "$2" ]; then echo "$2 found a fault"; exit 1; fi
"""
KEPT = "the folders of the tests are in build/failed-tests"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The files that the scripts need, in a folder whose name has a space."""
    folder = tmp_path / "merchant wallet"
    for name in ("test", "test_all", "test_postgres", "pytest_workers", "check"):
        (folder / "scripts").mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "scripts" / name, folder / "scripts" / name)
    programs = folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name, script in (("python", PYTHON), ("lint-imports", f"set -- -m lint-imports\n{PYTHON}")):
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)
    return folder


def run_tests(
    clone: Path, *arguments: str, script: str = "test", faults: tuple[str, ...] = (), ci: str = ""
) -> tuple[int, str, list[str]]:
    """The exit status, the output, and the lines of standard error."""
    for tool in faults:
        (clone / tool).touch()
    (clone.parent / "temporary").mkdir(exist_ok=True)
    done = subprocess.run(
        [clone / "scripts" / script, *arguments],
        env={**os.environ, "CI": ci, "TMPDIR": str(clone.parent / "temporary")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr.splitlines()


def test_make_test_runs_the_quick_tests_and_all_that_make_check_runs(clone: Path) -> None:
    status, printed, said = run_tests(clone, "-k", "two words")
    assert (status, said) == (0, ["make test: passed: checks and tests; make test-all runs the rest"])
    for run in ("ruff format --check .", "ruff check .", "lint-imports", "mypy"):
        assert f"ran -m {run}\n" in printed
    assert f"ran -m pytest -n auto --dist worksteal -m {QUICK_ALONE} -k two words\n" in printed


@pytest.mark.parametrize("tool", ["ruff", "lint-imports"])
def test_after_a_quick_check_that_failed_no_test_is_run(clone: Path, tool: str) -> None:
    status, printed, said = run_tests(clone, faults=(tool,))
    assert (status, said) == (1, ["make test: FAILED: the checks (make check); no test was run"])
    assert "pytest" not in printed


def test_wrong_types_fail_make_test_though_every_test_passes(clone: Path) -> None:
    status, printed, said = run_tests(clone, faults=("mypy",))
    assert (status, said) == (1, ["make test: FAILED: types (make check)"])
    assert "mypy found a fault" in printed


def test_failed_tests_and_wrong_types_are_both_named(clone: Path) -> None:
    assert run_tests(clone, faults=("pytest",))[2] == [KEPT, "make test: FAILED: tests"]
    assert run_tests(clone, faults=("mypy",))[2] == [KEPT, "make test: FAILED: tests and types (make check)"]


def test_what_tests_leave_is_removed_or_kept_in_the_clone_if_one_failed(clone: Path) -> None:
    def look_for(folder: Path) -> set[str]:
        return {path.name for path in folder.rglob("left by pytest")}

    for _ in range(2):
        run_tests(clone, faults=("pytest",))
        assert look_for(clone / "build" / "failed-tests") == {"left by pytest"}
        assert look_for(clone.parent / "temporary") == set()
    (clone / "pytest").unlink()
    run_tests(clone)
    assert look_for(clone.parent) == set()


def test_make_test_all_runs_the_other_tests_and_some_on_other_versions(clone: Path) -> None:
    status, printed, said = run_tests(clone, script="test_all")
    assert (status, said[-1]) == (0, "make test-all: passed: what make test leaves out")
    assert "ran -m pytest -n auto --dist worksteal -m extended\n" in printed
    assert "ran -m tests.other_pythons\n" in printed
    for version in OTHER_VERSIONS:
        assert f"ran -m pytest --postgres-bin ran -m tests.other_postgres {version} -n" in printed


def test_a_failed_test_fails_make_test_all_on_each_version(clone: Path) -> None:
    status, _, said = run_tests(clone, script="test_all", faults=("pytest", "tests.other_pythons"))
    assert status == 1
    assert said[-1] == (
        "make test-all: FAILED: tests and tests on other versions of Python and "
        "tests on older versions of PostgreSQL"
    )


def test_with_arguments_the_other_versions_are_left_out_aloud(clone: Path) -> None:
    status, printed, said = run_tests(clone, "-k", "words", script="test_all")
    assert status == 0
    assert "--postgres-bin" not in printed
    assert "other_pythons" not in printed
    assert said[0].startswith("make test-all: LEFT OUT: the tests on other versions of Python and PostgreSQL")


@pytest.mark.parametrize(("ci", "expected"), [("", 0), ("true", 1)])
def test_versions_that_are_not_installed_are_named_and_fail_in_ci_alone(
    clone: Path, ci: str, expected: int
) -> None:
    (clone / "tests.other_postgres").touch()
    status, printed, said = run_tests(clone, script="test_all", ci=ci)
    assert status == expected
    assert "--postgres-bin" not in printed
    for version in OTHER_VERSIONS:
        assert any(
            line.startswith(f"make test-all: LEFT OUT: the tests on PostgreSQL {version}.") for line in said
        )


def test_the_tests_for_other_versions_are_there() -> None:
    named = re.findall(r"tests/\w+/test_\w+\.py", (ROOT / "scripts" / "test_postgres").read_text())
    assert named
    assert [name for name in (*named, *PART) if not (ROOT / name).exists()] == []


def test_set_up_and_packages_accept_the_pythons_that_are_tested() -> None:
    service, client = (
        tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"] for folder in (".", "client")
    )
    oldest, newest = (int(version.removeprefix("3.")) for version in (OLDEST, NEWEST))
    assert service["requires-python"] == f">=3.{oldest},<3.{newest + 1}"
    assert client["requires-python"] == f">=3.{oldest}"
    named = [line.rpartition(" ")[2] for line in service["classifiers"] if "Python :: 3." in line]
    assert named == [f"3.{minor}" for minor in range(oldest, newest + 1)]
    setup = (ROOT / "scripts/setup").read_text()
    assert f"(3, {oldest}) <= sys.version_info[:2] <= (3, {newest})" in setup


@pytest.mark.parametrize(("ci", "expected"), [("", 0), ("true", 1)])
def test_a_python_that_is_missing_is_named_and_fails_in_ci_alone(
    ci: str, expected: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr(other_pythons, "find_tool", lambda name: None)
    assert other_pythons.main() == expected
    said = capsys.readouterr().err
    for version in other_pythons.list_others():
        assert f"make test-all: LEFT OUT: the tests on Python {version}. " in said


def test_every_row_of_the_table_of_extended_tests_names_a_test() -> None:
    for row in (*EXTENDED, *EXTENDED_ROWS, *QUICK):
        file, _, name = row.partition("::")
        assert (ROOT / file).exists(), row
        assert f"def {name}" in (ROOT / file).read_text() if name else True, row


def test_one_journey_of_each_site_is_quick_and_every_other_look_at_a_page_is_extended() -> None:
    assert [is_extended(test) for test in QUICK] == [False] * len(QUICK)
    assert is_extended("tests/browser/test_wallet.py::test_language_and_theme_stay_chosen")
    assert not is_extended("tests/book/test_verify.py::test_anything")
    killed = "tests/callbacks/test_killed.py::test_a_sender_killed_at_any_step_loses_nothing"
    assert [is_extended(f"{killed}[{row}]") for row in ("before send", "after send")] == [True, False]
