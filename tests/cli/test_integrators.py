"""The commands of the Python client, in the service's own program: with the client beside it, and without."""

import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from merchant_wallet.cli.command_table import ROWS
from merchant_wallet.cli.integrators import add_stubs
from merchant_wallet.cli.program import app
from merchant_wallet_client.cli.program import app as clients_app

NAMES = ("call", "listen", "trigger", "verify", "explain")
HIDDEN = """
import sys
sys.modules["merchant_wallet_client"] = None
from merchant_wallet.cli import main
sys.argv = ["merchant-wallet", *sys.argv[1:]]
main()
"""


def test_both_programs_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    for words in (["explain", "42200"], ["explain", "nothing"], ["call", "nothing"]):
        ours, theirs = CliRunner().invoke(app, words), CliRunner().invoke(clients_app, words)
        assert (ours.exit_code, ours.output) == (theirs.exit_code, theirs.output)


def test_examples_name_the_program_that_is_asked() -> None:
    for program, name in ((app, "merchant-wallet"), (clients_app, "merchant-wallet-client")):
        said = CliRunner().invoke(program, ["call", "--help"]).output
        assert f"  {name} call getMerchantBalance\n" in said


def test_without_the_client_each_command_says_how_to_get_it() -> None:
    for words in (["explain", "42200"], ["call", "getMerchantBalance", "--profile", "shop", "--json"]):
        done = subprocess.run(
            [sys.executable, "-c", HIDDEN, *words], capture_output=True, text=True, timeout=60, check=False
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("This command belongs to the Python client")
        assert "pip install ./merchant_wallet_client-*.whl" in done.stderr


def test_without_the_client_the_help_is_the_same_in_short() -> None:
    program = typer.Typer()
    add_stubs(program)
    stubs = typer.main.get_group(program).commands
    assert tuple(stubs) == tuple(row.name for row in ROWS if row.module == "integrators") == NAMES
    for row in ROWS:
        if row.name in stubs:
            assert stubs[row.name].get_short_help_str(1000) == row.summary
