"""A command of the archive that tests kill before a step, in their own process or in one of its own.

A step is a statement, a sync of a file, or a new name or the end of one.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.archive_scene import REMOVED_AT_ONCE, SMALL_BLOCKS
from tests.crash_points import OwnProcess, Point, Program, find_program
from typer.testing import CliRunner

from merchant_wallet.book.archive import removal, writing
from merchant_wallet.cli.program import app


def _stepped(name: str, act: Callable[..., Any]) -> Callable[..., Any]:
    def run(*arguments: Any, **options: Any) -> Any:
        program = find_program()
        if program is None:
            return act(*arguments, **options)
        return program.take(name, lambda: act(*arguments, **options))

    return run


@contextmanager
def _files_are_steps() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for owner, name in ((os, "fsync"), (Path, "replace"), (Path, "unlink")):
            patch.setattr(owner, name, _stepped(name, getattr(owner, name)))
        patch.setattr(writing, "BLOCK_ENTRIES", SMALL_BLOCKS)
        patch.setattr(removal, "ROWS_AT_ONCE", REMOVED_AT_ONCE)
        yield


def run_to_death(program: Program, variables: dict[str, str], *arguments: str) -> bool:
    """Run a command until it is killed. False if it came to its end before."""

    def command() -> None:
        result = CliRunner().invoke(app, arguments, env=variables)
        assert result.exit_code == 0, (result.output, result.exception)

    with _files_are_steps():
        return program.run_command(command)


def main(text: str, earlier: str, variables: str, *arguments: str) -> None:
    """What the fork server runs."""
    program = OwnProcess(Point(text, int(earlier)).make_test())
    run_to_death(program, json.loads(variables), *arguments)
