"""Commands about a chain that is off here: the emergency stop works, and the others say what is missing."""

import subprocess
import sys

import pytest
from tests.cli.conftest import Wallet
from typer.testing import CliRunner

from merchant_wallet.base.chains import CODES
from merchant_wallet.cli.program import app

ADDRESS = "0x742d35cc6634c0532925a3b844bc454e4438f44e"
HASH = "0x" + "ab" * 32
RECORD = ("reconcile", "record", "IN", "BEP20", "5", "--tx", HASH, "--reason", "float")
LIVE = {"WALLET_SANDBOX": "false", "WALLET_ERC20_RPC": "http://127.0.0.1:9"}


def test_payouts_are_stopped_where_only_the_service_knows_the_chains_node(wallet: Wallet) -> None:
    # The service has WALLET_BEP20_RPC, the operator's shell has not.
    frozen = wallet.ask("wallets", "stop", "BEP20", "--reason", "odd balances")
    assert [(stop["chainType"], stop["cause"]) for stop in frozen["stops"]] == [("BEP20", "odd balances")]
    assert wallet.ask("wallets", "resume", "BEP20")["stops"] == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("deposits", "rescan", "BEP20", "5"), "BEP20 has no node in the settings"),
        (("deposits", "simulate", ADDRESS, "5", "--chain", "BEP20"), "The sandbox has no BEP20"),
        (("reconcile", "--chain", "BEP20"), "BEP20 is not set up here"),
        (RECORD, "BEP20 is off"),
    ],
)
def test_a_command_that_needs_a_chain_that_is_off_says_so(
    wallet: Wallet, arguments: tuple[str, ...], sentence: str
) -> None:
    assert sentence in wallet.refuse(*arguments)


@pytest.mark.parametrize("command", ["plan", "run"])
def test_a_sweep_of_a_chain_that_is_off_names_the_missing_setting(wallet: Wallet, command: str) -> None:
    wallet.variables |= LIVE
    wallet.tamper("insert into hot_wallet (chain, address) values ('BEP20', %(wallet)s)", wallet=b"w" * 20)
    refused = wallet.run("sweep", command, "--chain", "BEP20", status=1)
    assert "BEP20 has no node in the settings: set WALLET_BEP20_RPC." in refused.stderr


def test_a_movement_is_recorded_on_a_chain_whose_hot_wallet_is_known(wallet: Wallet) -> None:
    wallet.tamper("insert into hot_wallet (chain, address) values ('BEP20', %(wallet)s)", wallet=b"w" * 20)
    assert wallet.ask(*RECORD)["chainType"] == "BEP20"


def test_an_unknown_chain_is_refused_with_the_known_ones(wallet: Wallet) -> None:
    refused = wallet.refuse("wallets", "stop", "BTC", "--reason", "x", status=2)
    assert all(code in refused for code in ("BTC", *CODES))


def test_the_help_lists_every_known_chain() -> None:
    # The Literal's values and the help text are the same, whatever the environment says.
    told = CliRunner().invoke(app, ["wallets", "stop", "--help"]).stdout
    assert all(code in told for code in CODES)


def test_no_setting_is_read_before_a_command_runs() -> None:
    look = "import sys, merchant_wallet.cli.options; print('merchant_wallet.base.config' in sys.modules)"
    seen = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert seen.stdout.strip() == "False"
