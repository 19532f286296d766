"""Programs that run in forked processes."""

import os
import sys

import pytest
from tests.fork_server import fork_program, fork_server


def main(name: str) -> None:
    """Print a variable."""
    print(os.environ[name])


def test_a_program_has_the_environment_of_the_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    fork_server()
    monkeypatch.setenv("SAID_LATE", "after the server's start")
    reading, writing = os.pipe()
    with open(reading, encoding="utf-8") as told:
        child = fork_program("tests.test_fork_server", "SAID_LATE", output=(writing, sys.stderr.fileno()))
        os.close(writing)
        assert (told.read(), child.wait_for_state()) == ("after the server's start\n", 0)
    child.end()
