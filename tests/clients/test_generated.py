"""Clients that generators make of the OpenAPI document: they compile, and they call the service.

Rules:
- Each client sends a signed request, the same one again, and one with an old timestamp. So it reads a
  success, a refusal whose `data` is null, and one whose `data` has other fields.
- Each generator gets the document as an integrator gets it, with the options that the guide names.
- The rules of linters that are off stand with their reasons in `generated/redocly.yaml` and `spectral.yaml`.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.clients.conftest import PREFIX, Account
from tests.docs.test_code_blocks import read_code
from tests.folders import make_folder
from tests.tools import ROOT, require_tool, search_path

from devnet import programs
from merchant_wallet.api.reference.openapi import build_document, write_document

WORKING = True
SETTINGS = {"sandbox_confirm_ms": 100}
TIMEOUT_S = 300
HERE = Path(__file__).with_name("generated")
PYTHON = ROOT / "build/openapi-python/bin/python"
JARS = ROOT / "build/openapi"
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
GENERATORS: dict[str, tuple[str, dict[str, object]]] = {
    "typescript": ("typescript-fetch", {}),
    "java": ("java", {"library": "native", "useJakartaEe": True, "openApiNullable": False}),
    "generator": ("go", {"packageName": "generator", "withGoMod": False}),
    "python": ("python", {"packageName": "merchant_wallet_api"}),
}
"""Folder, name and properties of each generator of openapi-generator."""
FILES = {name: "false" for name in ("apiTests", "modelTests", "apiDocs", "modelDocs")}

pytestmark = pytest.mark.timeout(2 * TIMEOUT_S)


def run(folder: Path, *words: object, **environment: str) -> str:
    """Run a command, and return its output."""
    done = subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env={
            **os.environ,
            "PATH": search_path(),
            "GOTOOLCHAIN": "local",
            "GOFLAGS": "-mod=mod",
            **environment,
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, f"{words}\n{done.stdout[-5000:]}\n{done.stderr[-5000:]}"
    return done.stdout


def run_npm(folder: Path, package: str, program: str, *words: object) -> str:
    """Run a program of the npm packages."""
    return run(folder, programs.find_node(), HERE / "node_modules" / package / program, *words)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """The document, and the drivers of the clients."""
    for tool in (
        "openapi-generator",
        "openapi-python-client",
        "oapi-codegen",
        "openapi-typescript",
        "go",
        "javac",
    ):
        require_tool(tool)
    made = make_folder("merchant-wallet-generated-")
    (made / "openapi.json").write_text(write_document(build_document()), encoding="utf-8")
    page = (ROOT / "docs/integrating.md").read_text(encoding="utf-8")
    for name in ("wallet.py", "wallet.mjs", "Wallet.java"):
        (made / name).write_text(read_code(page, name), encoding="utf-8")
    (made / "wallet").mkdir()
    (made / "wallet/wallet.go").write_text(read_code(page, "wallet.go"), encoding="utf-8")
    for path in HERE.iterdir():
        if path.is_file() and not path.name.startswith("package"):
            shutil.copy(path, made)
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="module")
def clients(folder: Path) -> Path:
    """The folder with all clients. The generators of openapi-generator share one start of Java."""
    for name, (generator, properties) in GENERATORS.items():
        options: dict[str, object] = {
            "generatorName": generator,
            "inputSpec": str(folder / "openapi.json"),
            "outputDir": str(folder / name),
            "additionalProperties": {"hideGenerationTimestamp": True, **properties},
            "globalProperties": FILES,
        }
        if generator == "go":
            options["typeMappings"] = {"number": "float64"}
        (folder / f"{name}.json").write_text(json.dumps(options))
    (folder / "oapi").mkdir()
    named = {"package_name_override": "generated_client", "post_hooks": []}
    (folder / "client.json").write_text(json.dumps(named))
    commands: Sequence[tuple[object, ...]] = (
        (
            *("java", *QUICK, "-jar", require_tool("openapi-generator"), "batch", "--threads", "2"),
            *(f"{name}.json" for name in GENERATORS),
        ),
        (
            *(require_tool("oapi-codegen"), "-generate", "types,client", "-package", "oapi"),
            *("-o", "oapi/oapi.go", "openapi.json"),
        ),
        (
            *(PYTHON, "-m", "openapi_python_client", "generate", "--path", "openapi.json"),
            *("--output-path", "client", "--config", "client.json", "--meta", "none", "--fail-on-warning"),
        ),
        (
            programs.find_node(),
            HERE / "node_modules/openapi-typescript/bin/cli.js",
            "openapi.json",
            "-o",
            "schema.ts",
        ),
    )
    with ThreadPoolExecutor() as generating:
        list(generating.map(lambda words: run(folder, *words), commands))
    return folder


def expect(names: Sequence[str]) -> list[str]:
    """What the drivers print: a success, a used nonce, and an old timestamp with the service's clock."""
    answers = ("200 alice false", "40103  false", "40102  true")
    return [f"{name} {answer}" for name in names for answer in answers]


def test_clients_in_typescript_compile_and_call(clients: Path, account: Account) -> None:
    run_npm(clients, "typescript", "bin/tsc", "-p", "tsconfig.json")
    said = run(clients, programs.find_node(), "driver.mjs", **account.environment(PREFIX))
    assert said.splitlines() == expect(("typescript-fetch", "openapi-typescript"))


def test_clients_in_go_compile_and_call(clients: Path, account: Account) -> None:
    run(clients, "go", "vet", "./oapi", "./generator", ".")
    said = run(clients, "go", "run", ".", **account.environment(PREFIX))
    assert said.splitlines() == expect(("go", "oapi-codegen"))


def test_the_client_in_java_compiles_and_calls(clients: Path, account: Account) -> None:
    jars = ":".join(map(str, JARS.glob("*.jar")))
    sources = [str(path) for path in (clients / "java/src/main/java").rglob("*.java")]
    (clients / "sources").write_text("\n".join([*sources, "Main.java", "Wallet.java"]))
    quick = [f"-J{option}" for option in QUICK]
    run(clients, "javac", *quick, "-nowarn", "-encoding", "UTF-8", "-cp", jars, "-d", "classes", "@sources")
    said = run(clients, "java", *QUICK, "-cp", f"classes:{jars}", "Main", **account.environment(PREFIX))
    assert said.splitlines() == expect(("java",))


def test_clients_in_python_are_whole_and_call(clients: Path, account: Account) -> None:
    (clients / "generated_client").symlink_to(clients / "client")
    run(clients, PYTHON, "-m", "compileall", "-q", "python", "client")
    path = f"{clients}:{clients / 'python'}"
    said = run(clients, PYTHON, "driver.py", **account.environment(PREFIX), PYTHONPATH=path)
    assert said.splitlines() == expect(("python", "openapi-python-client"))


def test_the_linters_find_nothing(folder: Path) -> None:
    words = ("lint", "openapi.json", "--config", "redocly.yaml", "--format", "json")
    said = json.loads(run_npm(folder, "@redocly/cli", "bin/cli.js", *words))
    assert said["problems"] == []
    ruled = ("lint", "openapi.json", "--ruleset", "spectral.yaml", "--fail-severity", "hint")
    assert "No results" in run_npm(folder, "@stoplight/spectral-cli", "dist/index.js", *ruled)
