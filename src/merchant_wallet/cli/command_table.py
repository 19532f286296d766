"""The first word of every command line: which module has it, and what the help says of it.

A module is imported when its command is used. The help of the whole program and the shell's completion of the
first word need this table alone.
"""

from functools import cache
from importlib import import_module
from typing import Any, Final, NamedTuple

import typer
from typer.core import TyperCommand


class Row(NamedTuple):
    """A command, or a group of commands. Its module is in this package and has the Typer `app`."""

    name: str
    module: str
    summary: str
    is_group: bool = True


ROWS: Final = (
    Row(
        "up",
        "lifecycle",
        "Run everything: database, web side and workers, until Ctrl-C or SIGTERM.",
        is_group=False,
    ),
    Row("serve", "lifecycle", "Run the web side alone, on an existing database.", is_group=False),
    Row(
        "work",
        "lifecycle",
        "Run the workers alone: payouts, expiry, maintenance, checkpoints.",
        is_group=False,
    ),
    Row(
        "migrate",
        "lifecycle",
        "Migrate the database, and then each cell, to the schema of this version.",
        is_group=False,
    ),
    Row(
        "signer",
        "signer",
        "Hold the keys and sign for workers that have WALLET_SIGNER_SOCKET set, until Ctrl-C or SIGTERM.",
        is_group=False,
    ),
    Row(
        "sign",
        "signature",
        "Print the string to sign and the signature of a request, "
        "whose JSON body is read from standard input.",
        is_group=False,
    ),
    Row(
        "call",
        "integrators",
        "Call an operation: sign it, send it with retries, verify the answer.",
        is_group=False,
    ),
    Row(
        "listen",
        "integrators",
        "Receive the callbacks of a sandbox over a stream: verify them, show them, and send them on.",
        is_group=False,
    ),
    Row(
        "trigger",
        "integrators",
        "Let something happen in the sandbox.",
        is_group=False,
    ),
    Row(
        "verify",
        "integrators",
        "Say whether the signature of an answer or of a callback is right.",
        is_group=False,
    ),
    Row(
        "explain",
        "integrators",
        "Say what a code means, when to ask again, and what to do.",
        is_group=False,
    ),
    Row(
        "doctor",
        "doctor",
        "Check set-up, database, standbys, roles, programs, clock, keys, chains, payouts, disks and cells.",
        is_group=False,
    ),
    Row(
        "settings",
        "settings",
        "Show the settings in effect here and now, and where each is from.",
        is_group=False,
    ),
    Row(
        "find",
        "search",
        "Find whatever a text names, as the console's search box does, with the command that shows it.",
        is_group=False,
    ),
    Row("merchant", "merchants", "Open merchants, change their settings, keys and secrets."),
    Row("cell", "cells", "Spread merchants' books over several databases."),
    Row("keys", "keys", "Create, import and show the keys that pay and that receive."),
    Row("sub-users", "subusers", "Find sub-users, pause or limit debits from them, reset a PIN."),
    Row("rates", "rates", "Set, remove, pause and list exchange rates."),
    Row("book", "books", "Credit and debit, read balances and statements, verify."),
    Row("finance", "finance", "Reports, months, invoices and files for accountants."),
    Row("fees", "fees", "The platform's earned fees."),
    Row("withdrawals", "withdrawals", "Look at withdrawal orders and decide about them."),
    Row("wallets", "wallets", "Look at the hot wallets, stop them and let them go on."),
    Row("deposits", "deposits", "Look at deposits; let one arrive in the sandbox."),
    Row("screening", "screening", "Look at what screening holds, release or refuse it."),
    Row("sweep", "sweep", "Bring deposits to the hot wallet, for less than a set share of them."),
    Row("cold", "cold", "Keep money cold: limits, cold wallets and transfers."),
    Row("rescue", "rescue", "Find other tokens and coins at deposit addresses, and move them to the owner."),
    Row("callbacks", "callbacks", "Look at callbacks to merchants, send them again, pause them."),
    Row(
        "reconcile",
        "reconcile",
        "Compare what should be in custody with what the chains say, and explain every difference.",
    ),
    Row(
        "inbox",
        "inbox",
        "List what waits for a person, the most urgent first: at most a thousand of each kind.",
        is_group=False,
    ),
    Row("notifications", "notifications", "Messages to operators about what waits for them."),
    Row("operator", "operators", "Make operators of the console, reset, disable and list them."),
    Row("proposals", "proposals", "List, accept and refuse what one person proposed to change."),
    Row("backup", "backups", "Back up the own PostgreSQL, and restore it to a moment."),
    Row("postgres", "own_database", "Move the own PostgreSQL to the major version that this program brings."),
    Row("audit", "audit", "Read and verify the log of what was changed by whom."),
    Row("archive", "archive", "Closed months of books in signed files, out of the database."),
)
MAX_SUMMARY: Final = 1000
"""Longer than any first sentence."""


class LazyCommand(TyperCommand):
    """Stands for a command until it is used. A used command is first asked to `make_context`."""

    def __init__(self, row: Row) -> None:
        super().__init__(name=row.name, help=row.summary, short_help=row.summary)
        self._row = row

    # `Any`: the classes of the library's commands and contexts are not public.
    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """The context of the command itself."""
        return self.load().make_context(*args, **kwargs)

    def load(self) -> Any:
        """The command itself."""
        return _load_command(self._row)


# Building a command costs more than most commands do: a process that runs several builds each once.
@cache
def _load_command(row: Row) -> Any:
    """Import the module of a command and build the command."""
    module = import_module(f"{__package__}.{row.module}")
    parent = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    parent.add_typer(module.app, name=row.name if row.is_group else None)
    command = typer.main.get_group(parent).commands[row.name]
    for one in getattr(command, "commands", {}).values():
        # Without it the library cuts a help's first sentence off at the edge of the terminal.
        one.short_help = one.short_help or one.get_short_help_str(MAX_SUMMARY)
    return command
