"""The clients in `clients/`: what their tests need and how they are run."""

from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
JUNIT = "/usr/share/java/junit-platform-console-standalone.jar"


class Language(NamedTuple):
    """A client. Commands run in its folder; `{build}` is an empty folder for what they make.

    `needs` are programs in the path, or files. The first command that fails ends the test.
    """

    name: str
    needs: tuple[str, ...]
    tests: tuple[tuple[str, ...], ...]
    quickstart: tuple[tuple[str, ...], ...]

    @property
    def folder(self) -> Path:
        """The client's folder."""
        return ROOT / "clients" / self.name


LANGUAGES = (Language("php", ("php", "phpunit"), (("phpunit",),), (("php", "examples/quickstart.php"),)),)
