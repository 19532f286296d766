"""A reader who has only the site: types what its pages print, in an empty folder."""

import html
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.tools import search_path

TIMEOUT_S: Final = 250
NEEDS: Final = {
    "python": ("venv",),
    "typescript": ("npm", "curl"),
    "php": ("php", "composer", "curl"),
    "go": ("go", "curl"),
    "java": ("javac", "curl"),
}
"""The tools that a language's page asks for."""
MAVEN_REPOSITORY: Final = Path(__file__).parents[2] / "build" / "maven"
"""Kept from run to run: Maven loads dozens of its own plugins."""
OURS: Final = ("MERCHANT_", "WALLET_", "PYTHON", "VIRTUAL_ENV")
"""Variables of this test run, which a reader does not have."""
_BLOCK: Final = re.compile(r'<div class="language-(\w+) highlight">.*?<code[^>]*>(.*?)</code>', re.S)


def read_blocks(site: Path, path: str, language: str = "sh") -> list[str]:
    """The code blocks in a language that a page of the built site shows, in order."""
    page = (site / path / "index.html").read_text(encoding="utf-8")
    found = [(name, html.unescape(re.sub(r"<[^>]+>", "", code))) for name, code in _BLOCK.findall(page)]
    return [code for name, code in found if name == language]


@dataclass
class Reader:
    """A person at a terminal: the folder, and what was exported in it."""

    folder: Path
    exported: Mapping[str, str]
    typed: list[str] = field(default_factory=list)

    def environment(self) -> dict[str, str]:
        """What the reader's programs see. Packages that were loaded once are not loaded again."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
        # The path without this run's own environment of Python.
        places = [place for place in search_path().split(":") if not place.endswith("/.venv/bin")]
        # MAVEN_OPTS takes no path with a space.
        repository = self.folder.parent / "maven"
        if not repository.is_symlink():
            MAVEN_REPOSITORY.mkdir(parents=True, exist_ok=True)
            repository.symlink_to(MAVEN_REPOSITORY)
        own = {
            "PATH": ":".join(places),
            "COMPOSER_ALLOW_SUPERUSER": "1",
            "COMPOSER_HOME": str(self.folder.parent / "composer"),
            "MAVEN_OPTS": f"-Dmaven.repo.local={repository}",
            # Programs that run for a second or two take half the processor time with these.
            "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "PIP_NO_COMPILE": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "GOFLAGS": "-mod=mod",
            "GOPROXY": "off",
        }
        return {**kept, **own, **self.exported}

    def type(self, commands: str) -> str:
        """Type commands, and return what they print. A command that fails ends the test."""
        done = self.run(commands)
        assert done.returncode == 0, f"{commands}\n{done.stdout}\n{done.stderr}"
        self.typed.append(commands)
        return done.stdout

    def run(self, commands: str) -> "subprocess.CompletedProcess[str]":
        """Type commands that may fail."""
        return subprocess.run(
            ["sh", "-eu", "-c", commands],
            cwd=self.folder,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
