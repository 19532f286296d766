"""What a command prints, and how it ends.

Rules: text from outside never reaches the terminal as a control character. `NO_COLOR` is respected.
"""

import functools
import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, ParamSpec

import typer

from merchant_wallet_client.codes import CODES
from merchant_wallet_client.errors import (
    BadArgumentError,
    NoAnswerError,
    RefusedError,
    WalletError,
)

REFUSED: Final = 1
CANNOT_RUN: Final = 2
P = ParamSpec("P")

JsonOption = Annotated[
    bool | None,
    typer.Option("--json/--text", help="JSON, or text for people. Default: JSON if it is no terminal."),
]
ProfileOption = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="NAME",
        envvar="MERCHANT_WALLET_PROFILE",
        help="A profile of ~/.config/merchant-wallet/profiles.toml. Default: the variables"
        " MERCHANT_WALLET_URL, _APP_KEY, _SECRET, _CALLBACK_SECRET and _SIGN_METHOD, else the profile"
        " `default`.",
        show_default=False,
    ),
]


class Failure(Exception):
    """Ends a command with a sentence and an exit status."""

    def __init__(self, text: str, status: int = CANNOT_RUN) -> None:
        super().__init__(text)
        self.status = status


def ending_well(command: Callable[P, None]) -> Callable[P, None]:
    """A command whose expected errors are sentences on standard error, without a traceback."""

    @functools.wraps(command)
    def run(*values: P.args, **named: P.kwargs) -> None:
        try:
            command(*values, **named)
        except (Failure, WalletError) as error:
            note(str(error), "red")
            raise typer.Exit(_status_of(error)) from error
        except KeyboardInterrupt:
            raise typer.Exit(130) from None

    return run


def _status_of(error: Exception) -> int:
    if isinstance(error, Failure):
        return error.status
    if isinstance(error, NoAnswerError | BadArgumentError):
        return CANNOT_RUN
    return REFUSED


def wants_json(asked: bool | None) -> bool:
    """Whether to print JSON."""
    return not sys.stdout.isatty() if asked is None else asked


def paint(text: str, colour: str = "", *, bold: bool = False) -> str:
    """The text in a colour. click takes colours out of what goes into a pipe."""
    if os.environ.get("NO_COLOR"):
        return make_printable(text)
    return typer.style(make_printable(text), fg=colour or None, bold=bold)


def note(text: str, colour: str = "") -> None:
    """A note beside the answer, on standard error."""
    typer.echo("\n".join(paint(line, colour) for line in text.splitlines()), err=True)


def print_json(document: Mapping[str, Any]) -> None:
    """One JSON document and a line feed."""
    print_line(json.dumps(document, ensure_ascii=False))


def print_line(text: str) -> None:
    """A line in UTF-8, at once: another program may wait for it."""
    output = typer.get_binary_stream("stdout")
    output.write(text.encode("utf-8", "replace") + b"\n")
    output.flush()


def print_fields(fields: Mapping[str, Any], colour: str = "") -> None:
    """Fields for people, one on each line."""
    width = max(map(len, fields), default=0)
    for name, value in fields.items():
        shown = "none" if value is None else str(value)
        typer.echo(f"{paint(name.ljust(width), 'bright_black')}  {paint(shown, colour)}")


def print_refusal(refusal: RefusedError) -> None:
    """A refusal for people: what it means, and what to do next."""
    known = CODES.get(refusal.code)
    typer.echo(f"{paint(str(refusal.code), 'red', bold=True)}  {paint(refusal.msg)}")
    if known is not None:
        print_fields({"means": known.meaning, "again": known.retry.value, "do": known.advice})
    if refusal.request_id:
        print_fields({"request": refusal.request_id})
    if "stringToSign" in refusal.data:
        typer.echo("The service signed this text:")
        for line in str(refusal.data["stringToSign"]).split("\n"):
            typer.echo(f"  {paint(line, 'yellow')}")


def make_printable(text: str) -> str:
    """The text without control characters."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "�" for c in text)
