"""Each client runs on the oldest and the newest version of its language, and is refused on older ones.

Rules:
- A version is a tool of `tests.tools`. Without it the test is skipped; with `CI=true` it fails.
- On each version a client sends signed requests and reads a success and a refusal. Its own tests run on one
  version (`test_clients.py`); those in Java on all, since they are compiled once.
- The Python client's versions are in `tests/client/test_installed.py`.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest
from scripts.site.packages import packages
from tests.clients.conftest import PREFIX, TEST_PREFIX, Account
from tests.clients.languages import LANGUAGES, QUICK, Language
from tests.clients.test_clients import SKIPPED, run
from tests.tools import require_tool, search_path

from devnet import programs

WORKING = True
SETTINGS = {"sandbox_confirm_ms": 100}
TIMEOUT_S = 240.0
RUNTIMES: Final = Path(__file__).with_name("runtimes")
CALLED: Final = "true true 40401\n"
"""A program got a signed success and the refusal of an order that nobody knows."""
NODES: Final = ("18", "26")
PHPS: Final = ("8.1", "8.5")
GOS: Final = ("1.22", "1.27")
JAVAS: Final = ("17", "25")

pytestmark = pytest.mark.timeout(2 * TIMEOUT_S)


def find_language(name: str) -> Language:
    return next(language for language in LANGUAGES if language.name == name)


def type_command(folder: Path, environment: Mapping[str, str], *words: object, status: int = 0) -> str:
    """Run a command, and return all that it printed."""
    done = subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env={**os.environ, "PATH": search_path(), **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == status, f"{words}\n{done.stdout[-5000:]}"
    return done.stdout


def check_payment(said: str) -> None:
    """A quick start took a payment, met a refusal, and received the callback of its payout."""
    assert all(part in said for part in ("amountArrival", "42200", "txnStatus 2")), said


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of npm with the client as the service hands it out, below a folder with Jest and NestJS."""
    require_tool("node-26")
    above = tmp_path_factory.mktemp("npm")
    (above / "node_modules").symlink_to(RUNTIMES / "node_modules")
    folder = above / "project"
    folder.mkdir()
    (folder / "package.json").write_text('{"private": true}')
    for file in ("call.cjs", "call.mjs", "call.test.js", "nest.ts", "tsconfig.json"):
        shutil.copy(RUNTIMES / file, folder)
    [package] = (name for name in packages() if name.endswith(".tgz"))
    for name in (package, "quickstart.mjs"):
        (folder / name).write_bytes(packages()[name])
    npm = require_tool("npm")
    type_command(folder, {}, npm, "install", "--offline", "--no-audit", "--no-fund", f"./{package}")
    return folder


@pytest.mark.parametrize("version", NODES)
@pytest.mark.parametrize("file", ["call.mjs", "call.cjs"])
def test_node_imports_and_requires_the_client(
    version: str, file: str, project: Path, account: Account
) -> None:
    node = require_tool(f"node-{version}")
    # Node.js 18.0 calls its own fetch experimental, on standard error.
    assert type_command(project, account.environment(PREFIX), node, file).endswith(CALLED)


@pytest.mark.parametrize("version", NODES)
def test_the_quick_start_runs_on_node(version: str, project: Path, account: Account) -> None:
    node = require_tool(f"node-{version}")
    check_payment(type_command(project, account.environment(PREFIX), node, "quickstart.mjs"))


@pytest.mark.parametrize("version", NODES)
def test_jest_loads_the_client_as_it_is(version: str, project: Path, account: Account) -> None:
    node, jest = require_tool(f"node-{version}"), RUNTIMES / "node_modules/jest/bin/jest.js"
    said = type_command(project, account.environment(PREFIX), node, jest, "--runInBand")
    assert "1 passed, 1 total" in said


def test_an_application_of_nestjs_calls_with_the_client(project: Path, account: Account) -> None:
    require_tool("typescript")
    compiler = find_language("typescript").folder / "node_modules/typescript/bin/tsc"
    type_command(project, {}, programs.find_node(), compiler, "-p", ".")
    said = type_command(project, account.environment(PREFIX), require_tool("node-26"), "build/nest.js")
    assert said == CALLED


@pytest.mark.parametrize("version", PHPS)
def test_php_loads_every_class_and_calls(version: str, account: Account) -> None:
    node = require_tool("node-24")
    client = {"CLIENT_FOLDER": str(find_language("php").folder), **account.environment(PREFIX)}
    said = type_command(RUNTIMES, client, node, "run_php.mjs", version, RUNTIMES / "call.php")
    assert re.fullmatch(rf"{re.escape(version)}\.\d+ true true\n", said), said


def test_composer_refuses_php_before_the_oldest(tmp_path: Path) -> None:
    """Composer takes the version that its configuration names for that of the machine."""
    composer, client = require_tool("composer"), find_language("php").folder
    shop = {
        "repositories": [{"type": "path", "url": str(client)}, {"packagist.org": False}],
        "require": {"merchant-wallet/client": "*"},
        "config": {"platform": {"php": "8.0.30"}},
    }
    (tmp_path / "composer.json").write_text(json.dumps(shop))
    own = {"COMPOSER_ALLOW_SUPERUSER": "1", "COMPOSER_HOME": "."}
    said = type_command(tmp_path, own, composer, "update", "--dry-run", status=2)
    assert "requires php >=8.1" in said


@pytest.mark.parametrize("version", GOS)
def test_the_quick_start_runs_on_go(version: str, tmp_path: Path, account: Account) -> None:
    go, client = require_tool(f"go-{version}"), find_language("go")
    assert f"go{version}." in type_command(tmp_path, {"GOTOOLCHAIN": "local"}, go, "version")
    [(_, *words)] = client.quickstart
    check_payment(run(client, ((str(go), *words),), tmp_path, account.environment(PREFIX)))


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The client in Java, its tests and its examples, compiled once for the oldest Java."""
    for tool in ("javac", "junit"):
        require_tool(tool)
    build = tmp_path_factory.mktemp("java")
    run(find_language("java"), find_language("java").tests[:-1], build, {})
    return build


@pytest.mark.parametrize("version", JAVAS)
def test_the_tests_and_the_quick_start_of_java_pass(version: str, classes: Path, account: Account) -> None:
    java, client = require_tool(f"java-{version}"), find_language("java")
    steps = ((str(java), *client.tests[-1][1:]),)
    said = run(client, steps, classes, account.environment(TEST_PREFIX))
    assert not re.search(SKIPPED, said), said
    paths = f"{classes}/main:{classes}/examples"
    said = type_command(classes, account.environment(PREFIX), java, *QUICK, "-cp", paths, "Quickstart")
    check_payment(said)


def test_maven_refuses_java_before_the_oldest() -> None:
    maven, java = require_tool("mvn"), require_tool("java-11")
    validate = (maven, "--batch-mode", "validate", "-f", find_language("java").folder)
    # The machine's Java loads the plugin, and is accepted. The old one may lack the machine's certificates.
    type_command(RUNTIMES, {}, *validate)
    home = {"JAVA_HOME": str(java.parents[1])}
    said = type_command(RUNTIMES, home, *validate, "--offline", status=1)
    assert "The client needs Java 17 or newer." in said


def test_what_is_refused_is_below_the_oldest_version_of_these_tests() -> None:
    manifests = {name: find_language(name).folder for name in ("typescript", "php", "go", "java")}
    npm, php = (
        json.loads((manifests[name] / file).read_text())
        for name, file in (("typescript", "package.json"), ("php", "composer.json"))
    )
    assert npm["engines"] == {"node": f">={NODES[0]}"}
    assert php["require"]["php"] == f">={PHPS[0]}"
    assert f"\ngo {GOS[0]}\n" in (manifests["go"] / "go.mod").read_text()
    assert f"<version>[{JAVAS[0]},)</version>" in (manifests["java"] / "pom.xml").read_text()
