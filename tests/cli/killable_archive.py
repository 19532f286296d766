"""A command of the archive that kills itself before its nth step. Tests start it.

A step is a statement, a sync of a file, or a new name of one.
"""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.archive_scene import REMOVED_AT_ONCE, SMALL_BLOCKS
from typer.testing import CliRunner

from merchant_wallet.base import db
from merchant_wallet.book.archive import removal, writing
from merchant_wallet.cli.program import app


def kill_before(step: int, text: str) -> None:
    """Have this process kill itself before a step. With a text, only statements with it are counted."""
    left = step

    def count(asked: object) -> None:
        nonlocal left
        left -= text in str(asked)
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def counted(act: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **options: Any) -> Any:
            count(arguments)
            return act(*arguments, **options)

        return run

    # In the killed process alone.
    db.Cursor.execute = counted(db.Cursor.execute)  # type: ignore[method-assign]
    os.fsync = counted(os.fsync)
    Path.replace = counted(Path.replace)  # type: ignore[method-assign]


def main(step: str, text: str, variables: str, *arguments: str) -> None:
    """What the fork server runs."""
    for module, name, value in (
        (writing, "BLOCK_ENTRIES", SMALL_BLOCKS),
        (removal, "ROWS_AT_ONCE", REMOVED_AT_ONCE),
    ):
        setattr(module, name, value)
    kill_before(int(step), text)
    result = CliRunner().invoke(app, arguments, env=json.loads(variables))
    assert result.exit_code == 0, (result.output, result.exception)
