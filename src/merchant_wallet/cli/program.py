"""The whole program: all groups of commands, and the one place that turns errors into sentences.

Rules: an error that the user can act on is one sentence without a traceback. Any other error is a fault of
ours and keeps its traceback, but without the values of variables, which may be secrets. With `--json` a
refusal is the one document on standard output.
"""

import re
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from merchant_wallet.cli.command_table import ROWS, LazyCommand
from merchant_wallet.cli.failures import explain
from merchant_wallet.cli.terminal import note, print_document

_ASSIGNED: Final = re.compile(r"^Got unexpected extra argument\S* \(([a-z][a-z-]*)=(\S+)\)$")
"""A merchant's setting as an argument: the library's words."""
TYPED_JSON: Final = f"{__name__}:typed_json"


class Program(TyperGroup):
    """The top of the command tree."""

    # `Any` here and below: the classes of the library's commands and contexts are not public.
    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {row.name: LazyCommand(row) for row in ROWS}

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Read the program's own options, and whether `--json` follows: a usage error may come before it."""
        ctx.meta[TYPED_JSON] = "--json" in args
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command. An expected error ends it with a sentence and a status."""
        try:
            return super().invoke(ctx)
        except typer.Exit:
            # The end of a command, also of its help. To explain an error takes imports.
            raise
        except Exception as error:
            from merchant_wallet.cli.options import wants_json

            explain_usage(error)
            explain_minus(error)
            suggest_options(error)
            explain_setting(error)
            failure = explain(error)
            if failure is None:
                said = find_usage_message(error)
                if said is not None and (wants_json(ctx) or ctx.meta[TYPED_JSON]):
                    print_document({"ok": False, "code": None, "msg": said})
                raise
            note(failure.text)
            if wants_json(ctx):
                print_document({"ok": False, "code": failure.code, "msg": failure.text})
            raise typer.Exit(failure.status) from error


def find_usage_message(error: Any) -> str | None:
    """What the library refuses in what was typed. Its class is not public; its message is."""
    return error.format_message() if hasattr(error, "format_message") else None


def explain_usage(error: Any) -> None:
    """Leave words of the library out of a usage error, and name the commands of a group that lacks one."""
    message, group = (
        getattr(error, "message", None) or "",
        getattr(getattr(error, "ctx", None), "command", None),
    )
    if message.startswith(("Value error, ", "Input should be ")):
        said, _, _ = message.removeprefix("Value error, ").partition(", unable to parse")
        error.message = said.replace("Input should be a valid integer", "It must be a whole number").replace(
            "Input should be", "It must be"
        )
    elif message.startswith("No such command") and message.endswith("'.") and not isinstance(group, Program):
        known = ", ".join(getattr(group, "commands", ()))
        error.message = f"{message} {getattr(group, 'name', '')} has {known}."


def suggest_options(error: Any) -> None:
    """Suggest options that are nearly the unknown one, or have one of its words, and --merchant for a name.

    The library suggests what shares a few letters: --json for --reason.
    """
    params = getattr(getattr(getattr(error, "ctx", None), "command", None), "params", ())
    known = sorted(
        {name for each in params for name in (*each.opts, *each.secondary_opts) if name[:2] == "--"}
    )
    if hasattr(error, "possibilities"):
        # Only a command that is refused needs it.
        from difflib import get_close_matches

        option = error.option_name
        words = {word for word in option.split("-") if len(word) > 2}
        near = get_close_matches(option, known, cutoff=0.75)
        error.possibilities = near or [name for name in known if words & set(name.split("-"))]
    elif (getattr(error, "message", None) or "").startswith("Got unexpected") and "--merchant" in known:
        error.message += ". A merchant follows after --merchant"


def explain_minus(error: Exception) -> None:
    """Say in a usage error that a number with a minus sign was read as an option.

    The classes of the library's errors are not public; only this one has the name of an option.
    """
    option = getattr(error, "option_name", "")
    if isinstance(option, str) and option[:1] == "-" and option[1:2].isdigit():
        error.message = (  # type: ignore[attr-defined]
            f"{option}… begins with a minus sign, so it was read as an option. An amount or a rate is"
            " above 0. What takes money away is a command of its own, such as `book debit`. Any other text"
            " that begins with a minus sign follows after `--`"
        )


def explain_setting(error: Exception) -> None:
    """Say in a usage error how a merchant's setting is typed, or which command has it."""
    option = getattr(error, "option_name", "")
    if isinstance(option, str) and option.startswith(("--payout-", "--first-payout-")):
        # "[attr-defined]": as above.
        error.message = f"No such option: {option}. `merchant payout-rules` changes it"  # type: ignore[attr-defined]
        error.possibilities = []  # type: ignore[attr-defined]
    elif found := _ASSIGNED.search(getattr(error, "message", None) or ""):
        # "[attr-defined]": as above.
        error.message = (  # type: ignore[attr-defined]
            f"{found[1]}={found[2]} is no argument. An option is typed as --{found[1]} {found[2]}"
        )


def _print_version(wanted: bool) -> None:
    if wanted:
        from merchant_wallet.base.version import read_version

        typer.echo(f"merchant-wallet {read_version()}")
        raise typer.Exit


app = typer.Typer(
    cls=Program,
    help="""Merchant balances, sub-user wallets, withdrawals and exchange behind one signed interface.

    \b
    Start with:
      merchant-wallet up --data ./wallet-data
      merchant-wallet merchant create Shop --data ./wallet-data
    """,
    epilog="Commands talk to the `up` that runs in the same data folder, or to WALLET_DATABASE_URL.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback()
def start(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """The options of the program itself."""


def load_all_commands() -> Any:
    """The whole tree with every module imported, for documents and tests."""
    tree: Any = typer.main.get_command(app)
    tree.commands = {name: command.load() for name, command in tree.commands.items()}
    return tree
