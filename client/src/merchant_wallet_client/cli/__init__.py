"""The command line for integrators: `merchant-wallet-client`. It needs the extra `cli`.

Rules:
- Answers go to standard output: for people with colours, into a pipe as JSON. `--json` and `--text` choose.
  Everything else goes to standard error.
- Exit status 0: done. 1: refused, or a signature is wrong. 2: the command can't run with these arguments or
  settings, or got no answer.
- Secrets come from a profile or the environment, never from arguments: other users can see those.
"""

import sys


def main() -> None:
    """Run the command that the arguments name."""
    try:
        import typer  # noqa: F401  (only whether it is there)
    except ModuleNotFoundError:
        sys.exit("The command line needs one more package: pip install typer (the extra `cli` of this one)")
    from merchant_wallet_client.cli.program import app

    app(prog_name="merchant-wallet-client")
