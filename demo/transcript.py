"""The layout of the story: chapters, commands, requests and answers, in 80 columns if piped.

Rules: nothing printed is invented or shortened. Long JSON is wrapped only between fields, so it stays JSON.
"""

import re
import sys
from collections.abc import Iterable

from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from demo.callback_receiver import Received
from merchant_wallet_client import Answer, SignedRequest

WIDEST_COLUMNS = 100
LABEL_COLUMNS = 10
INDENT = 2
CONTINUES = " \\"
"""How a line of a command ends that the next one continues."""
_word = re.compile(r"(?:'[^']*'|[^\s'])+\s*")
_between_fields = re.compile(r'(?<=,) ?(?=["{])')


class Transcript:
    """Prints the story."""

    def __init__(self) -> None:
        if hasattr(sys.stdout, "reconfigure"):
            # In a terminal with another encoding, print a question mark instead of failing.
            sys.stdout.reconfigure(errors="replace")
        self._console = Console(highlight=False, emoji=False)
        self._console.width = min(self._console.width, WIDEST_COLUMNS)

    def chapter(self, title: str, aside: str = "") -> None:
        """A heading. `aside` is its operation."""
        text = Text.assemble((title, "bold"), f" · {aside}" if aside else "")
        self._console.print()
        self._console.print(Rule(text, align="left", characters="─", style="dim"))

    def say(self, text: str, style: str = "") -> None:
        """A paragraph."""
        self._print_block("", Text(text, style))

    def blank_line(self) -> None:
        """An empty line."""
        self._console.print()

    def note(self, text: str) -> None:
        """A line about what happens now."""
        self.say(f"· {text}", "dim")

    def command(self, spelled: str, said: str) -> None:
        """A command and its output."""
        self._console.print()
        self.say(self._fold_command(f"$ {spelled}"), "cyan")
        rows = (self._fold(said) if said.startswith("{") else said).splitlines()
        # A command's tables are laid out already, so they are not wrapped again.
        self.lines(row.rstrip() for row in rows if row.strip())

    def request(self, request: SignedRequest, base_url: str, *, signed: bool = True) -> None:
        """A request: the string to sign and the body."""
        if signed:
            self._print_block("to sign", Text(request.string_to_sign, "yellow"), LABEL_COLUMNS)
        sent = Text(f"POST {base_url}{request.path}\n").append(self._fold(request.body), "cyan")
        self._print_block("request", sent, LABEL_COLUMNS)

    def answer(self, answer: Answer) -> None:
        """An answer, as it came."""
        colour = "green" if answer.code == 200 else "magenta"
        self._print_block("answer", Text(self._fold(answer.body), colour), LABEL_COLUMNS)

    def callback(self, callback: Received) -> None:
        """A callback, as it came."""
        self._print_block("callback", Text(self._fold(callback.body), "cyan"), LABEL_COLUMNS)

    def document(self, text: str) -> None:
        """JSON, wrapped."""
        self._print_block("", Text(self._fold(text), "cyan"))

    def passed(self, text: str) -> None:
        """A check that passed."""
        self._print_block("", Text(f"✓ {text}", "bold green"), LABEL_COLUMNS)

    def failure(self, text: str) -> None:
        """The failure, at the end."""
        self._console.print()
        self._console.print(Text(f"The demo ends here: {text}", "bold red"), soft_wrap=True)

    def lines(self, lines: Iterable[str]) -> None:
        """Lines as they are, not wrapped."""
        for line in lines:
            self._console.print(Text(" " * INDENT + line), soft_wrap=True)

    def _print_block(self, label: str, text: Text, label_columns: int = 0) -> None:
        """A text beside its label. Wrapped here, so that no line is padded with blanks."""
        room = self._console.width - INDENT - label_columns
        for line in text.wrap(self._console, room, overflow="fold"):
            line.rstrip()
            head = " " * INDENT + label.ljust(label_columns)
            self._console.print(Text.assemble((head, "dim"), line), soft_wrap=True)
            label = ""

    def _fold(self, body: str) -> str:
        """JSON on lines that fit, broken between fields."""
        room = self._console.width - INDENT - LABEL_COLUMNS
        lines = [""]
        for part in _between_fields.sub("\n", body).split("\n"):
            if lines[-1] and len(lines[-1]) + len(part) > room:
                lines.append(" ")
            lines[-1] += part
        return "\n".join(lines)

    def _fold_command(self, spelled: str) -> str:
        """A command on lines that fit, which a shell reads as one: broken between words, never in quotes."""
        room = self._console.width - INDENT - len(CONTINUES)
        lines = [""]
        for word in _word.findall(spelled):
            if lines[-1] and len(lines[-1]) + len(word) > room:
                lines[-1] = lines[-1].rstrip() + CONTINUES
                lines.append("  ")
            lines[-1] += word
        return "\n".join(lines)
