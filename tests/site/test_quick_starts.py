"""What the pages tell a reader to type takes a payment and pays out, in each language, from an empty folder.

Every command is read from the built page, and typed where nothing is but what the service hands out. The
service is a real one with the site built into it.
"""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from scripts.site.packages import PROGRAMS
from scripts.site.quickstart import CLIENTS, PARTS, Client
from tests.ports import find_port
from tests.site.readers import MAVEN_REPOSITORY, NEEDS, TIMEOUT_S, Reader, read_blocks
from tests.tools import require_tool

each_client = pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.page)
pytestmark = pytest.mark.timeout(2 * TIMEOUT_S)
# The payment, the refusal, and the status that the callback of the payout reports.
DONE = (r"40\.5", r"42200", r"(?i)callback.*status\D{0,9}2\b")
NO_NETWORK = r"Could not transfer artifact|Unknown host|No versions available"
POM = """<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>shop</groupId><artifactId>shop</artifactId><version>1</version>
  {shown}
</project>
"""


def require_tools(*names: str) -> None:
    for name in names:
        require_tool(name)


def has_paid(said: str) -> bool:
    return all(re.search(words, said) for words in DONE)


@pytest.mark.parametrize(
    "client",
    [pytest.param(each, id=each.page) for each in CLIENTS if each.page not in ("python", "typescript")],
)
def test_what_the_page_says_to_type_pays_and_gets_its_callback(
    client: Client, reader: Reader, site: Path
) -> None:
    type_quick_start(client.page, reader, site)


def type_quick_start(language: str, reader: Reader, site: Path) -> str:
    """Type a quick start to its end. Returns the command that starts its program."""
    require_tools(*NEEDS[language])
    blocks = read_blocks(site, f"quick-start/{language}")
    assert read_blocks(site, f"zh/quick-start/{language}") == blocks
    for block in blocks[:-1]:
        if not block.startswith("mvn"):
            reader.type(block)
    assert has_paid(reader.type(blocks[-1]))
    reader.type("".join(read_blocks(site, "clients")))
    says_that_a_port_is_taken(reader, blocks[-1])
    return blocks[-1]


def says_that_a_port_is_taken(reader: Reader, start: str) -> None:
    """A program whose port is taken ends at once, and says so."""
    taken = reader.exported["MERCHANT_WALLET_URL"].rpartition(":")[2]
    done = reader.run(f"export MERCHANT_WALLET_CALLBACK_PORT={taken}\n{start}")
    assert done.returncode != 0
    assert re.search(r"(?i)address already in use|EADDRINUSE", done.stdout + done.stderr), done.stderr


def test_without_composer_the_program_finds_the_client_that_was_unpacked_beside_it(
    reader: Reader, site: Path
) -> None:
    require_tools("php", "curl")
    blocks = read_blocks(site, "quick-start/php")
    reader.type(blocks[0])
    assert has_paid(reader.type(blocks[-1]))


@pytest.mark.extended
def test_a_project_of_maven_finds_the_client_as_the_page_says(reader: Reader, site: Path) -> None:
    require_tools("mvn", "javac", "curl")
    load, _, install, start = read_blocks(site, "quick-start/java")
    reader.type(load)
    ours = MAVEN_REPOSITORY / "merchant-wallet"
    shutil.rmtree(ours, ignore_errors=True)
    done = reader.run(install)
    if re.search(NO_NETWORK, done.stdout):
        pytest.skip("Maven could not load its own plugins: there is no network")
    assert done.returncode == 0, done.stdout
    [shown] = read_blocks(site, "quick-start/java", "xml")
    (reader.folder / "pom.xml").write_text(POM.format(shown=shown))
    reader.type(start.splitlines()[0])
    (reader.folder / "src/main/java").mkdir(parents=True)
    shutil.move(reader.folder / "Quickstart.java", reader.folder / "src/main/java")
    reader.type("mvn --batch-mode -q compile")
    jar = next(ours.rglob("*.jar"))
    assert has_paid(reader.type(f"java -cp 'target/classes:{jar}' Quickstart"))


@pytest.mark.extended
def test_the_quick_start_of_typescript_is_typed_and_the_options_of_its_page_find_every_type(
    reader: Reader, site: Path
) -> None:
    """In one folder, since npm takes its time to install."""
    type_quick_start("typescript", reader, site)
    [options] = read_blocks(site, "quick-start/typescript", "json")
    (reader.folder / "tsconfig.json").write_text(json.dumps({**json.loads(options), "files": ["shop.mts"]}))
    (reader.folder / "shop.mts").write_text(
        'import { createServer } from "node:http";\n'
        'import { CallbackReceiver, FileCallbackStore, type Callback } from "merchant-wallet-client";\n'
        'const receiver = new CallbackReceiver("secret", new FileCallbackStore("callbacks"));\n'
        "createServer(receiver.handler({ onNew: (callback: Callback) => console.log(callback.eventId) }));\n"
    )
    reader.type("npx tsc --noEmit -p tsconfig.json")


@pytest.mark.extended
def test_the_quick_start_of_python_and_then_the_page_of_the_command_line_are_typed_to_their_ends(
    reader: Reader, site: Path
) -> None:
    """In one environment of Python, as its readers do."""
    start = type_quick_start("python", reader, site)
    blocks = read_blocks(site, "command-line")
    assert read_blocks(site, "zh/command-line") == blocks
    install, call, listen, exports, *others = blocks
    port = str(find_port())
    # The environment is there already, and made as this page makes it.
    [make, *added] = install.splitlines()
    assert [made for made in reader.typed if made.startswith(f"{make}\n")]
    reader.type("\n".join(added))
    paths = added[-1]
    reader.type(f"{paths}\n{call}")
    listener = subprocess.Popen(
        ["sh", "-euc", f"{paths}\nexec {listen.strip().replace('8099', port)} --limit 1"],
        cwd=reader.folder,
        env=reader.environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert has_paid(reader.type(f"{exports.replace('8099', port)}\n{start}"))
        told, _ = listener.communicate(timeout=TIMEOUT_S)
    finally:
        listener.kill()
    assert json.loads(told)["accepted"] is True
    for block in others:
        reader.type(f"{paths}\n{block}")


@each_client
def test_a_page_has_every_part_of_its_example_and_how_to_run_it(client: Client, site: Path) -> None:
    for folder in (site, site / "zh"):
        page = (folder / "quick-start" / client.page / "index.html").read_text(encoding="utf-8")
        for part in ("install", "run", *PARTS, "program"):
            assert f'id="{part}"' in page, part
        assert "docs:begin" not in page
    [name] = [name for name, path in PROGRAMS.items() if path == f"{client.folder}/{client.example}"]
    assert "docs:begin" not in (site / "clients" / name).read_text()
