"""Each client of `clients/` runs its own tests and its quick start against a real service."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from glob import glob
from pathlib import Path

import pytest
from tests.clients.conftest import PREFIX, TEST_PREFIX, Account
from tests.clients.languages import LANGUAGES, Language
from tests.tools import ROOT, leave_out, require_tool, search_path

from devnet import programs

WORKING = True
SETTINGS = {"sandbox_confirm_ms": 100}
TIMEOUT_S = 240.0
QUICK_LANGUAGE = "typescript"
"""The client that `make test` tries, beside the Python client."""
SKIPPED = r"(?i)[1-9][0-9]* tests skipped|skipped:? [1-9]|--- SKIP|# SKIP "
"""What JUnit, PHPUnit, Node and Go say of a test that was left out."""

pytestmark = pytest.mark.timeout(2 * TIMEOUT_S)
each_language = pytest.mark.parametrize(
    "language",
    [
        pytest.param(each, id=each.name, marks=() if each.name == QUICK_LANGUAGE else pytest.mark.extended)
        for each in LANGUAGES
    ],
)


def require_tools(language: Language) -> None:
    for tool in language.needs:
        require_tool(tool)


def expand(word: str, folder: Path) -> list[str]:
    """The files of a pattern, or the word itself."""
    return sorted(glob(word, root_dir=folder)) if "*" in word else [word]


def prepare(language: Language, build: Path, leave: str) -> tuple[Path, str]:
    """The folder in which to run a client's commands, and Node.js for a client of npm. Its copy lacks the
    folder `leave`.
    """
    if not language.npm:
        return language.folder, ""
    # `make test` tries this client without `make test-tools`: npm is all that it needs.
    try:
        programs.install(language.folder)
    except programs.ProgramMissing as error:
        leave_out(f"the client of {language.name}: {error}")
    folder = build / language.name
    made = shutil.ignore_patterns("node_modules", "build", leave)
    shutil.copytree(language.folder, folder, ignore=made)
    (folder / "node_modules").symlink_to(language.folder / "node_modules")
    return folder, str(programs.find_node())


def run(
    language: Language,
    steps: Sequence[Sequence[str]],
    build: Path,
    account: Mapping[str, str],
    leave: str = "",
) -> str:
    """Run each step in the client's folder, with an account in the environment. The last one's output."""
    folder, node = prepare(language, build, leave)
    own = {
        "PATH": search_path(),
        "MERCHANT_WALLET_VECTORS": str(ROOT / "vectors"),
        "GOTOOLCHAIN": "local",
        "GOFLAGS": "-mod=mod",
    }
    if "HOME" not in os.environ:
        own["GOCACHE"] = str(build / "go-cache")
    said = ""
    for step in steps:
        words = [word.replace("{build}", str(build)).replace("{node}", node) for word in step]
        done = subprocess.run(
            [part for word in words for part in expand(word, folder)],
            cwd=folder,
            env={**os.environ, **account, **own},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, f"{' '.join(step)}\n{done.stdout}\n{done.stderr}"
        said = done.stdout
    return said


@each_language
def test_the_tests_of_a_client_pass_against_the_service(
    language: Language, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    require_tools(language)
    account: Account = request.getfixturevalue("account")
    said = run(language, language.tests, tmp_path, account.environment(TEST_PREFIX), leave="dist")
    assert not re.search(SKIPPED, said), said
    if language.npm:
        # The service hands `dist` out without a compiler, so it is committed.
        made, committed = (read_all(at / "dist") for at in (tmp_path / language.name, language.folder))
        assert made == committed, "type `npm run build` in clients/typescript and commit dist/"


@pytest.mark.extended
@pytest.mark.parametrize("language", [each for each in LANGUAGES if each.style], ids=lambda each: each.name)
def test_the_files_of_a_client_are_formatted(language: Language, tmp_path: Path) -> None:
    require_tools(language)
    run(language, language.style, tmp_path, {})


def read_all(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


@each_language
def test_no_test_of_a_client_moves_money_in_the_sandbox_of_a_reader(language: Language) -> None:
    """A reader who has the quick start's variables set and types `mvn install` must lose nothing."""
    folder, readers = (
        language.folder,
        re.compile(r"MERCHANT_WALLET_(?!TEST_|VECTORS)(?:\$\{|[A-Z_]+\b(?!'\s*=>)|\")"),
    )
    tests = [
        path
        for path in folder.rglob("*")
        if re.search(r"(?i)[._]?test\.", path.name) and "node_modules" not in path.parts
    ]
    assert tests
    assert [path.name for path in tests if readers.search(path.read_text())] == []


@each_language
def test_the_quick_start_takes_a_payment_a_refusal_and_a_callback(
    language: Language, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    require_tools(language)
    account: Account = request.getfixturevalue("account")
    said = run(language, language.quickstart, tmp_path, account.environment(PREFIX))
    for part in ("amountArrival", "42200", "txnStatus 2"):
        assert part in said, said


@each_language
def test_the_readme_of_a_client_shows_its_examples_as_they_are(language: Language) -> None:
    readme = (language.folder / "README.md").read_text()
    shown = dict(re.findall(r"<!-- example: (\S+) -->\n```\w+\n(.*?)```\n", readme, re.S))
    assert shown, "the README shows no example"
    assert {name: (language.folder / "examples" / name).read_text() for name in shown} == shown
