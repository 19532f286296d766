"""`call`, `listen`, `trigger`, `verify` and `explain`: the commands of the Python client, if it is installed.

Rules: the client is a package of its own, and the service does not need it. Without it these commands say how
to get it.
"""

from typing import Final

import typer

from merchant_wallet.cli.command_table import ROWS
from merchant_wallet.cli.failures import CANNOT_RUN, Failure

CLIENT: Final = "merchant_wallet_client"
MISSING: Final = (
    "This command belongs to the Python client, which is not installed here. Install the release's wheel "
    "beside this program: pip install ./merchant_wallet_client-*.whl. "
    "From a clone `make install` installs both"
)


app = typer.Typer()


def add_stubs(program: typer.Typer) -> None:
    """Add the same commands, each of which says what to install."""
    for row in ROWS:
        if row.module == "integrators":
            _add_stub(program, row.name, row.summary)


def _add_stub(program: typer.Typer, name: str, summary: str) -> None:
    anything = {"ignore_unknown_options": True, "allow_extra_args": True}

    @program.command(name, help=f"{summary}\n\n{MISSING}", context_settings=anything)
    def refuse() -> None:
        raise Failure(MISSING, CANNOT_RUN)


try:
    from merchant_wallet_client.cli.program import add_commands
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != CLIENT:
        raise
    add_stubs(app)
else:
    add_commands(app, "merchant-wallet")
