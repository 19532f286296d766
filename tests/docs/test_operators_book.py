"""The operators' page is typed in, block by block."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.clusters import Cluster
from tests.docs.operators_book import COMMAND, NOT_RUN, PAGE, Terminal, list_blocks
from tests.folders import make_folder
from tests.ports import find_port

BLOCKS = list(list_blocks(PAGE.read_text(encoding="utf-8")))
ONE_MACHINE, BACKUP = "one machine", "back-up"
SERVICES = "services"
# A journey is dozens of commands. Alone it takes a minute.
pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder for everything that the page names."""
    made = make_folder("merchant-wallet-book-")
    yield made
    shutil.rmtree(made)


@pytest.fixture
def cluster(folder: Path) -> Iterator[Cluster]:
    """An empty server of one's own."""
    made = Cluster(folder, "db")
    made.initialize()
    made.start()
    yield made
    made.kill()


def type_in(terminal: Terminal, journey: str) -> list[str]:
    """Type a journey's blocks in, one after the other, and return what each printed."""
    said = []
    try:
        for block in (block for block in BLOCKS if journey in block.journeys):
            said.append(terminal.type(block))
            terminal.learn(said[-1])
        return said
    finally:
        terminal.close()


def test_one_machine_from_up_to_a_merchant_with_money_and_then_from_a_backups_key_to_a_rehearsed_restore(
    folder: Path,
) -> None:
    """The back-up is of the same machine: its service is stopped, and starts again with back-ups."""
    (folder / "backup").mkdir()
    (folder / "etc").mkdir()
    folders = {"/srv/wallet": folder / "srv", "/mnt/backup": folder / "backup", "/etc/wallet": folder / "etc"}
    said = type_in(Terminal(folder, folders, WALLET_PORT="0"), ONE_MACHINE)
    assert len(said) > 5
    assert any("password: " in text for text in said), "the first operator's password is printed"
    assert len(type_in(Terminal(folder, folders, WALLET_PORT="0"), BACKUP)) > 3


def test_services_on_a_postgresql_of_ones_own_from_roles_to_a_merchant_with_money(
    folder: Path, cluster: Cluster
) -> None:
    """The database is reached by its socket. Ports are free ones, folders are the test's."""
    web, worker = "/var/lib/merchant-wallet-checkpoints", "/var/lib/merchant-wallet-worker"
    texts: dict[str, Path | str] = {
        "@db.internal/wallet?": f"@/wallet?host={cluster.sockets}&",
        "-h db.internal": f"-h {cluster.sockets}",
        "/etc/merchant-wallet": folder / "etc",
        web: folder / "checkpoints",
        worker: folder / "worker",
        **{port: str(find_port()) for port in ("8081", "8082", "9102")},
    }
    path = f"{cluster.programs.path}{os.pathsep}{os.environ['PATH']}"
    said = type_in(Terminal(folder, texts, path=path), SERVICES)
    assert sum("ready: " in text for text in said) == 3, "two serve and one work are ready"
    assert any("password" in text for text in said), "the first operator's password is printed"
    assert any("1000" in text and "Shop" in text for text in said), "the merchant has its money"


def test_every_marked_block_belongs_to_a_journey_that_is_tried() -> None:
    named = {journey for block in BLOCKS if block.how for journey in block.journeys}
    assert named == {ONE_MACHINE, BACKUP, SERVICES}


def test_what_is_said_not_to_be_run_is_not_marked_to_be_run() -> None:
    assert [block.text for block in BLOCKS if block.how and block.text.startswith(NOT_RUN)] == []


def test_every_block_of_commands_is_run_or_says_that_it_is_not() -> None:
    silent = [block.text for block in BLOCKS if not block.how and not block.text.startswith(NOT_RUN)]
    assert [text for text in silent if any(COMMAND.match(line) for line in text.splitlines())] == []
