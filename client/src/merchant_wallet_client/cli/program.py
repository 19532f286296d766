"""All commands. `merchant-wallet` of the service has the same ones if this package is installed beside it."""

import inspect
from typing import Annotated, Final

import typer

from merchant_wallet_client.cli import calling, checking, explaining, listening, triggering

NAME: Final = "merchant-wallet-client"


def _print_version(wanted: bool) -> None:
    if wanted:
        from merchant_wallet_client.sending import DISTRIBUTION, read_version

        typer.echo(f"{DISTRIBUTION} {read_version()}")
        raise typer.Exit


app = typer.Typer(
    help="""Call the merchant-wallet interface, receive callbacks on a laptop, and find out what is wrong.

    \b
    Start with a profile in ~/.config/merchant-wallet/profiles.toml (mode 600):
      [default]
      base_url = "https://wallet.example"
      app_key = "mk_test_..."
      secret = "..."
      callback_secret = "..."
    """,
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


def add_commands(program: typer.Typer, name: str = NAME) -> None:
    """Add all commands to a program of this name. The service's own program adds them too."""
    for command in (
        calling.call,
        listening.listen,
        triggering.trigger,
        checking.sign,
        checking.verify,
        explaining.explain,
    ):
        examples = inspect.cleandoc(command.__doc__ or "")
        needs_words = command in (calling.call, triggering.trigger, explaining.explain)
        program.command(help=examples.replace(f"{NAME} ", f"{name} "), no_args_is_help=needs_words)(command)


add_commands(app)
