"""The whole program: all groups of commands, and the one place that turns errors into sentences.

Rules: an error that the user can act on is one sentence without a traceback. Any other error is a fault of
ours and keeps its traceback, but without the values of variables, which may be secrets. With `--json` a
refusal is the one document on standard output.
"""

from typing import Any

import typer
from typer.core import TyperGroup

from merchant_wallet.cli import (
    audit,
    books,
    callbacks,
    cells,
    deposits,
    doctor,
    fees,
    journals,
    keys,
    lifecycle,
    merchants,
    operators,
    proposals,
    rates,
    reconcile,
    rollbacks,
    signature,
    signer,
    subusers,
    sweep,
    wallets,
    withdrawals,
)
from merchant_wallet.cli.failures import REFUSED, explain
from merchant_wallet.cli.options import wants_json
from merchant_wallet.cli.terminal import note, print_document


class Program(TyperGroup):
    """The top of the command tree."""

    # `Any`: the class that the library passes here is not public.
    def invoke(self, ctx: Any) -> Any:
        """Run the command. An expected error ends it with a sentence and a status."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            failure = explain(error)
            if failure is None:
                raise
            note(failure.text)
            if failure.status == REFUSED and wants_json(ctx):
                print_document({"ok": False, "code": failure.code, "msg": failure.text})
            raise typer.Exit(failure.status) from error


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
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

for commands in (lifecycle.app, signer.app, signature.app, doctor.app):
    app.add_typer(commands)
for name, group in (
    ("merchant", merchants.app),
    ("cell", cells.app),
    ("keys", keys.app),
    ("sub-users", subusers.app),
    ("rates", rates.app),
    ("book", books.app),
    ("fees", fees.app),
    ("withdrawals", withdrawals.app),
    ("wallets", wallets.app),
    ("deposits", deposits.app),
    ("sweep", sweep.app),
    ("callbacks", callbacks.app),
    ("reconcile", reconcile.app),
    ("operator", operators.app),
    ("proposals", proposals.app),
    ("audit", audit.app),
):
    app.add_typer(group, name=name)
books.app.add_typer(journals.app)
books.app.add_typer(rollbacks.app)
