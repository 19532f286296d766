"""The command blocks of the operators' page: which there are, and how a test runs them.

Rules:
- `<!-- run: NAME -->` before a block: a test runs its lines as one of NAME's steps, in the page's order.
  `<!-- run: NAME, OTHER -->`: as a step of both.
- `<!-- start: NAME -->`: the same for a program that stays in the foreground. The test waits until it is
  ready.
- A block that begins with `# not run by a test` is shown with that line, so readers know.
- Folders, ports and the database's host become those of the test. Nothing else of a command is changed.
- `merchant-wallet` runs in forked processes (`forked_program`): the page has 70 commands.
"""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from tests.forked_program import write_program
from tests.waits import TIMEOUT_S

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "operating.md"
NOT_RUN: Final = "# not run by a test"
MARKER: Final = re.compile(r" *<!-- (run|start): ([a-z, -]+) -->")
COMMAND: Final = re.compile(
    r"(?:[A-Z_]+=\S+ )*(?:merchant-wallet|systemctl|psql|pgbackrest|make|podman|docker) "
)
GENERATED: Final = re.compile(r"<!-- begin: .*?<!-- end: [^>]+ -->", re.DOTALL)
PRINTED: Final = {
    "MERCHANT_WALLET_URL=https://wallet.example.com": r"ready: (http://\S+)",
    "MERCHANT_WALLET_APP_KEY=mk_test_...": r"appKey\W+(mk_test_\w+)",
    "MERCHANT_WALLET_SECRET=...": r"appSecret\W+(\w{32})",
}
"""What the page shows in place of what only a run knows, and where a command prints it."""


class Block(NamedTuple):
    """A block of commands. `how` is `run` or `start`, or empty without a marker."""

    how: str
    journeys: tuple[str, ...]
    text: str


def list_blocks(page: str) -> Iterator[Block]:
    """Every indented or fenced block of the page that is not generated, in order."""
    lines = GENERATED.sub("", page).splitlines()
    how = ""
    journeys: tuple[str, ...] = ()
    number = 0
    while number < len(lines):
        line = lines[number]
        if marked := MARKER.fullmatch(line):
            how, journeys = marked[1], tuple(marked[2].split(", "))
        elif line.strip().startswith("```"):
            end = next(n for n in range(number + 1, len(lines)) if lines[n].strip() == "```")
            yield Block(how, journeys, _dedent(lines[number + 1 : end]))
            number, how, journeys = end, "", ()
        elif line.startswith("    ") and not lines[number - 1].strip():
            end = number
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            yield Block(how, journeys, _dedent(lines[number:end]))
            number, how, journeys = end - 1, "", ()
        number += 1


def _dedent(lines: list[str]) -> str:
    margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(line[margin:] for line in lines).strip()


class Terminal:
    """A shell in which a journey's blocks are typed, and the programs that it started."""

    def __init__(self, root: Path, texts: Mapping[str, Path | str], path: str = "", **variables: str) -> None:
        self._root = root
        self._texts = dict(texts)
        kept = {name: text for name, text in os.environ.items() if not name.startswith(("WALLET_", "PG"))}
        (root / "bin").mkdir(exist_ok=True)
        forked, self._fork_server = write_program(root / "bin")
        programs = os.pathsep.join(
            [str(root / "bin"), str(Path(sys.executable).parent), path or kept["PATH"]]
        )
        self._environment = {**kept, **forked, "PATH": programs, **variables}
        self._started: list[subprocess.Popen[str]] = []

    def type(self, block: Block) -> str:
        """Run a block's lines and return what they print, or start its program and wait until it is ready."""
        if block.how == "start":
            return self._start(self._translate(block.text))
        # Variables that a block exports are there for the next ones.
        text = (
            f"{self._translate(block.text)}\nexport -p | grep -E ' (WALLET_|PG)' > {self._variables} || true"
        )
        typed = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", self._resume + text],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
            pass_fds=[self._fork_server],
        )
        assert typed.returncode == 0, f"{block.text}\n{typed.stdout}\n{typed.stderr}"
        return typed.stdout

    def learn(self, said: str) -> None:
        """Take the service's address and a merchant's key from what was printed, as a person does."""
        for shown, pattern in PRINTED.items():
            if found := re.search(pattern, said):
                self._texts[shown] = shown.partition("=")[0] + "=" + found[1]

    @property
    def _variables(self) -> Path:
        return self._root / "variables"

    @property
    def _resume(self) -> str:
        return f". {self._variables}\n" if self._variables.exists() else ""

    def _translate(self, text: str) -> str:
        for shown, real in self._texts.items():
            text = text.replace(shown, str(real))
        return text

    def _start(self, text: str) -> str:
        with (self._root / "log").open("a") as log:
            program = subprocess.Popen(
                ["bash", "-euc", f"{self._resume}exec {text}"],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                pass_fds=[self._fork_server],
            )
        self._started.append(program)
        watchdog = threading.Timer(TIMEOUT_S, program.kill)
        watchdog.start()
        assert program.stdout is not None
        said = ""
        for line in program.stdout:
            said += line
            if line.startswith("ready"):
                break
        watchdog.cancel()
        assert "ready" in said, f"{text}\n{said}\n{(self._root / 'log').read_text()}"
        return said

    def close(self) -> None:
        """Stop what was started, in reverse order, as an operator would."""
        for program in reversed(self._started):
            program.send_signal(signal.SIGTERM)
            status = program.wait(TIMEOUT_S)
            assert program.stdout is not None
            program.stdout.close()
            assert status == 0
