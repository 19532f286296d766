"""The steps of the runbook, one set for each alert, from `runbook.toml`."""

import tomllib
from pathlib import Path
from typing import Final, NamedTuple

STEPS_FILE: Final = Path(__file__).with_name("runbook.toml")


class Steps(NamedTuple):
    """The runbook of one alert: the first command, what to do, how the end shows, and whom to wake."""

    look: str
    act: str
    over: str
    wake: str = ""


def read_steps() -> dict[str, Steps]:
    """The steps by the name of their alert. Raises TypeError for an unknown or missing key."""
    tables = tomllib.loads(STEPS_FILE.read_text(encoding="utf-8"))
    return {
        name: Steps(**{key: " ".join(text.split()) for key, text in table.items()})
        for name, table in tables.items()
    }
