"""`rescue`: what was sent is said, and two people move it. On a real EVM node."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from devnet.evm_node import COIN
from tests.cli.conftest import Wallet
from tests.cli.test_proposals import Terminal
from tests.cli.test_sweep import open_shop
from tests.evm_nodes import use_node

from merchant_wallet.base.addresses import parse_evm, to_eip55

MONTH = f"{datetime.now(UTC):%Y-%m}"
SAFE = to_eip55(b"the owner's own place"[:20])
WHY = ("--reason", "the customer sent another token")


def test_what_was_sent_is_found_and_moved_by_two_people(
    wallet: Wallet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with use_node() as node:
        token, other = node.deploy(), node.deploy()
        open_shop(wallet, node, token, tmp_path)
        wallet.variables["WALLET_ERC20_RESCUE_ADDRESSES"] = SAFE
        assert wallet.ask("sweep", "run") == {"sweeps": []}
        address = wallet.ask("merchant", "show", "Shop")["depositAddress"]
        sent = other.give(parse_evm(address), 12_500_000)["transactionHash"]
        node.fund(parse_evm(address), COIN // 5)
        node.mine(3)
        contract = to_eip55(other.address)
        # The transaction, and the address.
        seen = wallet.run("rescue", "look", sent).stdout
        assert f"12.5 of token {contract}, which is not the one of the settings" in seen
        assert "its contract calls itself 'USDT'" in seen
        assert "deposit address of merchant" in seen
        [held] = wallet.ask("rescue", "look", address)["chains"][0]["moved"]
        assert (held["amount"], held["token"], held["isCoin"]) == ("0.2", "ETH", True)
        nowhere = wallet.run("rescue", "look", "0x" + "ab" * 32)
        assert "same on every EVM chain" in nowhere.stderr
        assert "neither the hash" in wallet.refuse("rescue", "look", "player-7")
        # Nobody alone, and not everywhere.
        terms = (address, contract, "--to", SAFE, *WHY)
        assert "make another operator" in wallet.refuse("rescue", "propose", "ERC20", *terms)
        terminal = Terminal(wallet, monkeypatch)
        terminal.of("root").run("operator", "create", "ann", "--role", "owner", *WHY)
        wallet.tamper(
            "update operator set totp_sealed = 'x', totp_confirmed_ms = 1, totp_last_step = 1"
            " where name = 'ann'"
        )
        refusals = {
            (address, to_eip55(token.address), SAFE): "the token of the settings",
            (address, contract, address): "Nothing can be sent there",
            (address, contract, contract): "Nothing can be sent there",
            (SAFE, contract, SAFE): "no deposit address of ours",
            (address, "USDC", SAFE): "A token is named by its contract's address",
        }
        for (place, what, to), cause in refusals.items():
            assert cause in wallet.refuse("rescue", "propose", "ERC20", place, what, "--to", to, *WHY)
        assert "whole number" in wallet.refuse("rescue", "propose", "ERC20", *terms, "--amount", "1.5")
        made = wallet.ask("rescue", "propose", "ERC20", *terms)
        assert "your own" in wallet.refuse("proposals", "accept", made["proposalNo"])
        assert wallet.ask("rescue", "list") == {"rescues": []}
        accepted = terminal.of("ann").ask("proposals", "accept", made["proposalNo"])
        assert accepted["state"] == "accepted"
        assert "Something is being moved" in wallet.refuse("rescue", "propose", "ERC20", *terms)
        wallet.run("sweep", "run")
        assert "may still count" in wallet.refuse("rescue", "end", "1", *WHY)
        node.mine(3)
        wallet.run("sweep", "run")
        [done] = wallet.ask("rescue", "list")["rescues"]
        assert (done["step"], done["arrived"], done["token"]) == ("done", "12500000", contract)
        assert wallet.ask("rescue", "show", str(done["rescueNo"])) == done
        assert (other.balance(parse_evm(SAFE)), token.balance(parse_evm(SAFE))) == (12_500_000, 0)
        # It is nobody's balance, and known to finance and to the audit log.
        [funds] = wallet.ask("finance", "report", MONTH)["foreignFunds"]
        assert (funds["txHash"], float(funds["fee"]) > 0) == (done["txHash"], True)
        entries = wallet.ask("audit", "show", "--limit", "50")["entries"]
        [moved] = [entry for entry in entries if entry["action"] == "rescue.transfer"]
        assert (moved["after"]["to"], moved["after"]["rescueNo"]) == (SAFE, done["rescueNo"])
        assert moved["after"]["proposedBy"] == "cli:root"
        assert wallet.ask("sweep", "list") == {"sweeps": []}
        # One that has not begun is ended by a person.
        made = terminal.of("root").ask("rescue", "propose", "ERC20", *terms)
        terminal.of("ann").ask("proposals", "accept", made["proposalNo"])
        ended = terminal.of("root").ask("rescue", "end", "2", *WHY)
        assert (ended["step"], ended["endedBy"]) == ("failed", "cli:root")
        assert ended["why"] == f"cli:root ended it: {WHY[1]}"
        assert "was not ended" in wallet.refuse("rescue", "end", "2", *WHY)


def test_in_the_sandbox_there_is_nothing_to_rescue(wallet: Wallet) -> None:
    assert "nothing to rescue" in wallet.refuse("rescue", "look", "0x" + "ab" * 32)
    assert "nothing to rescue" in wallet.refuse("rescue", "propose", "ERC20", SAFE, "ETH", "--to", SAFE, *WHY)
