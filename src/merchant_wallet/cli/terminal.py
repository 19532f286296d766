"""What a command prints: answers for people and for programs, notes, progress.

Rules:
- Both kinds of answer use the same names. A document has money as decimal strings, ids as numbers, and times
  as milliseconds under names that end in `Ms`. People see times as UTC, ages as seconds, and short times as
  milliseconds.
- Text from outside is never read as markup, and never reaches the terminal as a control character.
"""

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import typer

Document = Mapping[str, Any]

PIPE_WIDTH: Final = 10_000
"""Wide enough for every table: output that another program reads is never wrapped."""
SHORT_TIMES: Final = ("LagMs", "closedMs", "TookMs")
"""Names of times that are no moments."""
PROGRESS_INTERVAL_S: Final = 1.0


def note(text: str) -> None:
    """Print a note beside the answer, on standard error."""
    typer.echo(_printable(text, keep="\n"), err=True)


def print_document(document: Document) -> None:
    """Print one JSON document in UTF-8 (RFC 8259) and a line feed."""
    output = typer.get_binary_stream("stdout")
    output.write(json.dumps(document, ensure_ascii=False).encode() + b"\n")
    output.flush()


def print_answer(document: Document, as_json: bool) -> None:
    """Print a document as JSON, or its fields line by line. The caller prints fields that are tables."""
    if as_json:
        print_document(document)
        return
    shown = {name: show_value(name, value) for name, value in document.items() if not _is_table(value)}
    width = max(map(len, shown), default=0)
    for name, text in shown.items():
        typer.echo(f"{name:<{width}}  {text}")


def print_list(
    document: Document,
    name: str,
    columns: Sequence[str],
    as_json: bool,
    *,
    show: Callable[[Document], Document] = dict,
) -> None:
    """Print a document as JSON, or its list `name` as a table. `show` makes a row of an item."""
    if as_json:
        print_document(document)
    else:
        print_table(columns, [show(item) for item in document[name]])


def note_more(how: str) -> None:
    """Say beside a list that it is cut, and how to see the rest."""
    note(f"There are more: {how}")


def print_table(columns: Sequence[str], rows: Sequence[Document]) -> None:
    """Print rows as a table: as wide as the terminal, or as wide as needed if the output is piped."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if not rows:
        typer.echo("none")
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(Text(column), overflow="fold")
    for row in rows:
        table.add_row(*[Text(show_value(column, row[column])) for column in columns])
    Console(width=None if sys.stdout.isatty() else PIPE_WIDTH, highlight=False).print(table)


def show_value(name: str, value: object) -> str:
    """One value for people."""
    if value is None or value == []:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and name.endswith("AgeMs"):
        return f"{value // 1000} s"
    if isinstance(value, int) and name.endswith(SHORT_TIMES):
        return f"{value} ms"
    if isinstance(value, int) and name.endswith("Ms"):
        return show_moment(value)
    if isinstance(value, list):
        return " ".join(_printable(str(item)) for item in value)
    return _printable(str(value))


def show_moment(at_ms: int) -> str:
    """A moment as people read it, in UTC."""
    return datetime.fromtimestamp(at_ms // 1000, UTC).strftime("%Y-%m-%d %H:%M:%S") + f".{at_ms % 1000:03}Z"


class Progress:
    """Shows the progress of long work on standard error: one line that is rewritten, or a new line now and
    then.
    """

    def __init__(self) -> None:
        self._renews = sys.stderr.isatty()
        self._shown_s = time.monotonic()

    def show(self, text: str) -> None:
        """Show the text, unless another one was shown a moment ago."""
        now_s = time.monotonic()
        if now_s - self._shown_s < PROGRESS_INTERVAL_S:
            return
        self._shown_s = now_s
        typer.echo(f"\r\x1b[2K{text}" if self._renews else text, nl=not self._renews, err=True)

    def end(self) -> None:
        """Clear the line."""
        if self._renews:
            typer.echo("\r\x1b[2K", nl=False, err=True)


def _is_table(value: object) -> bool:
    return isinstance(value, list) and any(isinstance(item, dict) for item in value)


def _printable(text: str, keep: str = "") -> str:
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else "�" for c in text)
