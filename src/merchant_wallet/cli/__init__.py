"""The command line: one thin module per group of commands, `program` joins them.

Rules: a command reads its arguments, asks the module whose rule it is, and prints; no rule lives here. What
is heavy is imported inside the command, so that `--help` stays quick. Answers go to standard output (with
`--json` exactly one document, of a refusal too), everything else to standard error. Exit status 0: done; 1:
refused, or something is wrong; 2: the command can't be run as typed or configured, or there is nothing to
talk to.
"""


def main() -> None:
    """Run the command that the process's arguments name, then end the process with its status."""
    from merchant_wallet.processes.core_dumps import forbid_core_dumps

    # Nearly every command reads a key or the database's password.
    forbid_core_dumps()
    from merchant_wallet.cli.program import app

    app(prog_name="merchant-wallet")
