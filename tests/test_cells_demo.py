"""`make cells-demo`: what it claims is so, and nothing is left of it."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.test_demo import END_TIMEOUT_S, ROOT, assert_nothing_is_left, end_users, environment, read_until

pytestmark = pytest.mark.timeout(3 * END_TIMEOUT_S)

SHOPS = ("Lantern Tea", "Paper Moon", "Harbour Books")
STORY = ("-m", "demo.cells", "--short")
STORY_OF_ONE_CELL = """
import sys
from demo.cells import __main__, story

story.SHOPS = {"main": "Lantern Tea"}
story.CellsStory._add_cells = lambda self, server: None
sys.exit(__main__.main(["--short"]))
"""
"""As far as its load: the same servers, service and clients, with fewer commands before."""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """The folder for the demo's temporary folders; its name has a space."""
    path = tmp_path / "a place"
    path.mkdir()
    yield path
    end_users(path)


@contextmanager
def performance(folder: Path, program: Sequence[str] = STORY) -> Iterator["subprocess.Popen[str]"]:
    """The short form, running."""
    demo = subprocess.Popen(
        [sys.executable, *program],
        cwd=ROOT,
        env={**environment(folder), "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield demo
    finally:
        demo.terminate()
        demo.communicate(timeout=END_TIMEOUT_S)


def test_the_story_of_three_cells_is_told_to_its_end(folder: Path) -> None:
    with performance(folder) as demo:
        said, _ = demo.communicate(timeout=END_TIMEOUT_S)
    assert demo.returncode == 0, said
    for command in (
        "merchant-wallet up",
        "merchant-wallet cell add east",
        r"merchant-wallet cell add west postgresql://127\.0\.0\.1:\d+/wallet",
        r"merchant-wallet cell move west postgresql://127\.0\.0\.1:\d+/wallet",
        "merchant-wallet cell move west --drop-old",
        "merchant-wallet cell list",
        "kill -QUIT",
        "merchant-wallet book verify",
    ):
        assert re.search(rf"\$ .*{command}", said), f"{command}:\n{said}"
    for claim in (
        "the shops of the other cells were never refused",
        "the shops of west are refused with 50300",
        "the shops of east and main are refused with 50300",
        "the others are not refused once",
        "west are served again",
        "east and main are served again",
        "no transfer is refused any more",
    ):
        assert f"✓ {claim}" in said or claim in said, f"{claim}:\n{said}"
    assert re.search(r"✓ the longest refusal at the switch: \d+\.\d\d s", said)
    for shop in SHOPS:
        assert f"✓ {shop}: the journal is whole" in said
        answered = re.search(rf"✓ {shop}: (\d+) answered transfers, each once", said)
        assert answered is not None
        assert int(answered[1]) > 0
    # No password is shown.
    assert "wallet:" not in said.replace("merchant-wallet: ", "")
    assert_nothing_is_left(folder)


def test_a_story_that_is_interrupted_under_load_leaves_nothing_behind(folder: Path) -> None:
    with performance(folder, ("-c", STORY_OF_ONE_CELL)) as demo:
        read_until(demo, "5. A steady load")
        demo.send_signal(signal.SIGINT)
        assert demo.wait(END_TIMEOUT_S) == 130
    assert_nothing_is_left(folder)
