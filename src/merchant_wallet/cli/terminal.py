"""What a command prints: answers for people and for programs, notes, progress.

Rules:
- Both kinds of answer use the same names, but for units. A document has money as decimal strings, ids as
  numbers, times as milliseconds under names that end in `Ms`, and percentages under names that end in
  `Percent`. People see times as UTC, ages as seconds, short times as milliseconds, and percentages with their
  sign. Times have no unit in their titles: `createdMs` is printed as `created`.
- Text from outside is never read as markup, and never reaches the terminal as a control character.
"""

import json
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final

import typer

from merchant_wallet.base.invisible_text import show_invisible
from merchant_wallet.base.moments import format_moment

Document = Mapping[str, Any]

GAP: Final = "  "
LEAST_SENTENCE: Final = 20
"""A column of sentences is at least as wide, in cells: narrower ones are hard to read."""
SHORT_TIMES: Final = ("LagMs", "TookMs", "Millis")
"""Names of times that are no moments."""
TIME_UNITS: Final = ("Ms", "Millis")
"""Units at the end of names. People see the value with its unit, so its title leaves it out."""
SHARES: Final = ("transferFeeRate", "withdrawFeeRate")
"""Shares of one, which programs have always had. People see the percentages beside them."""
COMMAND: Final = "command"
"""The name of the columns with commands to type next."""
PROGRESS_INTERVAL_S: Final = 1.0


def note(text: str) -> None:
    """Print a note beside the answer, on standard error."""
    typer.echo(show_invisible(text, keep="\n"), err=True)


def note_repeated(document: Mapping[str, Any], done: str) -> None:
    """Say on standard error, if a command was `repeated`, what had been done before it."""
    if document["repeated"]:
        note(f"{done} before: nothing was changed this time.")


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
    shown = {
        name: show_value(name, value)
        for name, value in document.items()
        if not _is_table(value) and name not in SHARES
    }
    for line in _format_fields(shown):
        typer.echo(line)


class Table:
    """The columns of a list, in the order in which they are shown.

    `spare` names columns that a narrow terminal leaves out, the first one first.
    """

    def __init__(self, *columns: str, spare: Sequence[str] = ()) -> None:
        self.columns = columns
        self.spare = spare


def print_list(
    document: Document,
    name: str,
    table: Table,
    as_json: bool,
    *,
    show: Callable[[Document], Document] = dict,
    hidden: str = "",
) -> None:
    """Print a document as JSON, or its list `name` as a table. `show` makes a row of an item.

    `hidden` is a note beside an empty table: what the filter leaves out, and how it is shown.
    """
    if as_json:
        print_document(document)
        return
    print_table(table, [show(item) for item in document[name]])
    if hidden and not document[name]:
        note(hidden)


def note_more(how: str) -> None:
    """Say beside a list that it is cut, and how to see the rest."""
    note(f"There are more: {how}")


def print_table(table: Table, rows: Sequence[Document], *, follows: bool = False) -> None:
    """Print rows for a terminal of its width, or as wide as needed if the output is piped.

    `follows`: below other output, so an empty line stands between.
    """
    if follows:
        typer.echo()
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    lines, left_out = lay_out(table, rows, width)
    for line in lines:
        typer.echo(line)
    if left_out:
        titles = name_titles(table.columns)
        named = ", ".join(titles[name] for name in left_out)
        note(f"Left out, the terminal is too narrow: {named}. A wider one and --json have them.")


def lay_out(table: Table, rows: Sequence[Document], width: int | None) -> tuple[Sequence[str], Sequence[str]]:
    """The lines of a table, and the columns that it leaves out to be no wider than `width` cells.

    If it is too wide without its spare columns, each row is printed as a record: one line a column. Only
    sentences are wrapped, and only at spaces: an amount, an id, a hash or an address is in one piece.
    """
    if not rows:
        return ["none"], ()
    texts = {name: [show_value(name, row[name]) for row in rows] for name in table.columns}
    titles = name_titles(table.columns)
    least = {
        name: max(_count_cells(titles[name]), _measure_least(name, texts[name], rows))
        for name in table.columns
    }
    for count in range(len(table.spare) + 1):
        left_out = table.spare[:count]
        shown = {name: titles[name] for name in table.columns if name not in left_out}
        room = None if width is None else width - len(GAP) * (len(shown) - 1)
        if room is None or sum(least[name] for name in shown) <= room:
            return _format_columns(shown, texts, least, room), left_out
    return _format_records([{name: texts[name][at] for name in texts} for at in range(len(rows))]), ()


def print_records(table: Table, rows: Sequence[Document]) -> None:
    """Print rows whose texts have any length: each as its fields, one line each, without those that are none.

    The form is the same whatever the rows hold and however wide the terminal is.
    """
    texts = [
        {name: show_value(name, row[name]) for name in table.columns if row[name] is not None} for row in rows
    ]
    for line in _format_records(texts) if rows else ["none"]:
        typer.echo(line)


def _format_records(records: Sequence[Mapping[str, str]]) -> list[str]:
    """Each record as its fields, with an empty line between two."""
    return [line for record in records for line in (*_format_fields(record), "")][:-1]


def name_titles(names: Iterable[str]) -> dict[str, str]:
    """The title of each name: without the unit of a time. The moment of what has a column itself is "…At"."""
    kept = tuple(names)
    titles = {}
    for name in kept:
        short = next((name.removesuffix(unit) for unit in TIME_UNITS if name.endswith(unit)), name)
        titles[name] = f"{short}At" if short != name and short in kept else short
    return titles


def _measure_least(name: str, texts: Sequence[str], rows: Sequence[Document]) -> int:
    """The least width of a column's values: nothing but a sentence is wrapped."""
    pieces: list[str] = []
    for text, row in zip(texts, rows, strict=True):
        # A command is copied.
        is_wrapped = " " in text and isinstance(row[name], str | list) and name != COMMAND
        pieces += text.split(" ") if is_wrapped else [text]
    longest = max(map(_count_cells, texts))
    return max(max(map(_count_cells, pieces)), min(longest, LEAST_SENTENCE))


def _format_columns(
    titles: Mapping[str, str], texts: Mapping[str, Sequence[str]], least: Mapping[str, int], room: int | None
) -> list[str]:
    """The lines of a table of the columns that have titles here."""
    widths = {
        name: max(_count_cells(text) for text in (title, *texts[name])) for name, title in titles.items()
    }
    while room is not None and sum(widths.values()) > room:
        # The widest column that can still give way.
        widths[max(titles, key=lambda name: (widths[name] > least[name], widths[name]))] -= 1
    lines = [_join([*titles.values()], widths), _join(["─" * width for width in widths.values()], widths)]
    for at in range(len(texts[next(iter(titles))])):
        cells = [_wrap(texts[name][at], widths[name]) for name in titles]
        lines += [_join(line, widths) for line in zip_longest(*cells, fillvalue="")]
    return lines


def _join(cells: Sequence[str], widths: Mapping[str, int]) -> str:
    padded = [
        text + " " * (width - _count_cells(text)) for text, width in zip(cells, widths.values(), strict=True)
    ]
    return GAP.join(padded).rstrip()


def _wrap(text: str, width: int) -> list[str]:
    """A text in lines of at most `width` cells, broken at spaces."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if _count_cells(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def _count_cells(text: str) -> int:
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _format_fields(shown: Mapping[str, str]) -> list[str]:
    """Titles and values, one line each."""
    titles = name_titles(shown)
    width = max(map(len, titles.values()), default=0)
    return [f"{titles[name]:<{width}}  {text}" for name, text in shown.items()]


def show_value(name: str, value: object) -> str:
    """One value for people."""
    if value is None or value in ([], {}):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name.endswith("Percent"):
        return f"{value}%"
    if isinstance(value, int) and name.endswith("AgeMs"):
        return f"{value // 1000} s"
    if isinstance(value, int) and name.endswith(SHORT_TIMES):
        return f"{value} ms"
    if isinstance(value, int) and name.endswith("Ms"):
        return format_moment(value)
    if isinstance(value, list):
        return " ".join(show_invisible(str(item)) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{show_invisible(str(key))} {show_value('', of)}" for key, of in value.items())
    return show_invisible(str(value))


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


def show_duration(document: Document, name: str) -> Document:
    """The document for people, whose `name` is a short time although others have a moment of this name."""
    value = document.get(name)
    return document if value is None else {**document, name: f"{value} ms"}


def _is_table(value: object) -> bool:
    return isinstance(value, list) and any(isinstance(item, dict) for item in value)
