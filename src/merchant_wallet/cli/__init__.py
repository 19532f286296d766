"""The command line: one thin module per group of commands. `program` joins them.

Rules:
- A command reads its arguments, calls the module that has the rule, and prints. No rule lives here.
- A module is imported when its command is used (`command_table`), and heavy modules inside the command. So
  `--help` and completion stay fast.
- Answers go to standard output. With `--json` that is exactly one document, also for a refusal. Everything
  else goes to standard error.
- Exit status 0: done. 1: refused, or something is wrong. 2: the command can't run with these arguments or
  settings, or it can't reach what it needs.
"""


def main() -> None:
    """Run the command that the process's arguments name, then exit with its status."""
    from merchant_wallet.processes.core_dumps import forbid_core_dumps

    # Nearly every command reads a key or the database's password.
    forbid_core_dumps()
    from merchant_wallet.cli.program import app

    app(prog_name="merchant-wallet")
