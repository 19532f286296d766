"""`sweep`: its output if there is nothing to do, and a whole sweep on a real EVM node."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from devnet.evm_node import CHAIN_ID, COIN, EvmDevnet, Token
from tests.chains.evm_scene import USDT
from tests.cli.conftest import Wallet
from tests.evm_nodes import use_node

from merchant_wallet.base import chains
from merchant_wallet.base.addresses import parse_evm, to_eip55
from merchant_wallet.chains.evm.transactions import parse_signed, recover_sender
from merchant_wallet.chains.keys.keystore import FOLDER, NAMES, create_key
from merchant_wallet.cli import sweep as sweep_commands
from merchant_wallet.cli.session import find_actor

PASSPHRASE = "correct horse battery staple"
DEPOSIT = (
    "insert into deposit (merchant_id, chain, tx_hash, log_index, block_number, block_hash, sender,"
    " address, amount, status, seen_ms, final_ms) select merchant_id, 'ERC20', '0x1', 0, 1, '0xb',"
    " address, address, 70000000, 'credited', 1, 1 from merchant_address where chain = 'ERC20'"
)
LATER = (
    "insert into sweep (chain, address, merchant_id, account_no, branch, address_index, wallet, amount,"
    " coin_price, top_up, top_up_fee_limit, token_fee_limit, budget, actor, opened_ms, step, cause, ended_ms)"
    " select 'TRC20', wallet, merchant_id, 0, 0, 0, wallet, 1, 1, 0, 0, 1, 1, 'tests', 1, 'dropped', 'old', 1"
    " from sweep"
)
NOTHING = "There is nothing to sweep"


@pytest.mark.parametrize("command", ["plan", "run"])
def test_in_the_sandbox_there_is_nothing_to_sweep_and_that_is_said(wallet: Wallet, command: str) -> None:
    assert wallet.run("sweep", command).stdout.startswith(NOTHING)
    assert wallet.ask("sweep", command)["note"].startswith(NOTHING)
    assert wallet.ask("sweep", "list") == {"sweeps": []}


def test_without_a_wallet_or_a_signer_it_says_what_is_missing(wallet: Wallet) -> None:
    wallet.variables |= {"WALLET_SANDBOX": "false", "WALLET_ERC20_RPC": "http://127.0.0.1:9"}
    assert "No hot wallet is known" in wallet.refuse("sweep", "plan")
    assert "WALLET_KEYSTORE_PASSPHRASE_FILE" in wallet.refuse("sweep", "run", status=2)


def test_a_node_that_is_away_is_told_in_a_sentence(wallet: Wallet) -> None:
    wallet.open_merchant("Shop")
    wallet.variables |= {"WALLET_SANDBOX": "false", "WALLET_ERC20_RPC": "http://127.0.0.1:9"}
    wallet.tamper("insert into hot_wallet (chain, address) values ('ERC20', %(wallet)s)", wallet=b"w" * 20)
    wallet.tamper('insert into xpub_pool select 1, \'{"ERC20": "", "TRC20": ""}\', merchant_id from merchant')
    assert wallet.ask("sweep", "plan") == {"addresses": []}
    wallet.tamper(DEPOSIT)
    assert "127.0.0.1:9" in wallet.refuse("sweep", "plan", status=2)


@contextmanager
def mining(node: EvmDevnet) -> Iterator[None]:
    """Mines many blocks a second while the command runs."""
    stop = threading.Event()

    def mine() -> None:
        while not stop.wait(0.05):
            node.mine()

    thread = threading.Thread(target=mine)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def open_shop(wallet: Wallet, node: EvmDevnet, token: Token, folder: Path) -> bytes:
    """A merchant with an address from the pool, and a hot wallet with coin. Returns the hot wallet."""
    file = folder / "passphrase"
    file.write_text(PASSPHRASE)
    file.chmod(0o600)
    wallet.variables |= {
        "WALLET_SANDBOX": "false",
        "WALLET_ERC20_RPC": node.url,
        "WALLET_ERC20_TOKEN": to_eip55(token.address),
        "WALLET_ERC20_CHAIN_ID": str(CHAIN_ID),
        "WALLET_ERC20_COIN_PRICE": "3000",
        "WALLET_SWEEP_SHARE": "0.1",
        "WALLET_KEYSTORE_PASSPHRASE_FILE": str(file),
    }
    # The command would seal them at the full cost, which takes seconds at each opening.
    for name in NAMES:
        create_key(wallet.folder / FOLDER, name, PASSPHRASE, cost=2**10)
    wallet.run("keys", "derive", "--count", "2")
    hot = wallet.ask("keys", "show-addresses")["ERC20"]
    node.fund(parse_evm(hot), COIN)
    wallet.open_merchant("Shop")
    return parse_evm(hot)


def test_a_deposit_is_planned_swept_and_shown(
    wallet: Wallet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with use_node() as node:
        token = node.deploy()
        hot = open_shop(wallet, node, token, tmp_path)
        # No payer has started here: the first run makes the hot wallet known, as a payer does.
        assert wallet.ask("sweep", "run") == {"sweeps": []}
        taken = (
            "select c.address, a.subject from custody_address c, audit_entry a where action = 'wallet.take'"
        )
        assert wallet.read(taken) == [(hot, "chain ERC20")]
        address = wallet.ask("merchant", "show", "Shop")["depositAddress"]
        token.give(parse_evm(address), 70 * USDT)
        node.mine(3)
        wallet.tamper(DEPOSIT)
        [planned] = wallet.ask("sweep", "plan")["addresses"]
        assert (planned["address"], planned["balance"], planned["verdict"]) == (address, "70", "sweep")
        assert 0 < float(planned["share"]) <= 0.1
        assert address in wallet.run("sweep", "plan").stdout
        begun = wallet.ask("sweep", "run", "--once")["sweeps"]
        assert [(sweep["step"], sweep["amount"]) for sweep in begun] == [("fuel", "70")]
        refused = wallet.refuse("sweep", "end", str(begun[0]["sweepId"]), "--reason", "too slow")
        assert "is signed and may still count" in refused
        monkeypatch.setattr(sweep_commands, "INTERVAL_S", 0.1)
        # Blocks come quicker here than on any chain, so answers of the node are old sooner.
        monkeypatch.setattr(chains, "MAX_RECENT_S", 0.1)
        # Of all sweeps it reads only the newest. It waits for older ones too.
        wallet.tamper(LATER)
        monkeypatch.setattr(sweep_commands, "MAX_SHOWN", 1)
        with mining(node):
            assert wallet.ask("sweep", "run") == {"sweeps": []}
        wallet.tamper("delete from sweep where step = 'dropped'")
        [sweep] = wallet.ask("sweep", "list")["sweeps"]
        assert (sweep["step"], sweep["address"], sweep["why"]) == ("done", address, None)
        assert token.balance(hot) == 70 * USDT
        assert float(sweep["fuelFee"]) > 0
        assert wallet.ask("sweep", "plan")["addresses"] == []
        assert wallet.ask("sweep", "run") == {"sweeps": []}
        assert wallet.ask("sweep", "list")["sweeps"] == [sweep]
        assert "done" in wallet.run("sweep", "list").stdout
        [(raw,)] = wallet.read("select raw from sweep_signed where kind = 'token'")
        assert recover_sender(bytes(raw)) == parse_evm(address)
        logged = wallet.read(
            "select action, after from audit_entry where starts_with(action, 'sweep') order by audit_no"
        )
        assert logged == [
            ("sweep.run.asked", {"chain": "ERC20", "again": False}),
            ("sweep.run", {"sweepIds": [sweep["sweepId"]], "again": False}),
        ]
        assert parse_signed(bytes(raw))[0].nonce == 0


def test_an_operator_ends_a_sweep_that_cannot_go_on_and_the_log_says_why(wallet: Wallet) -> None:
    wallet.open_merchant("Shop")
    wallet.tamper(
        "insert into sweep (chain, address, merchant_id, account_no, branch, address_index, wallet, amount,"
        " coin_price, top_up, top_up_fee_limit, token_fee_limit, budget, actor, opened_ms, step)"
        " select 'TRC20', %(address)s, min(merchant_id), 0, 0, 0, %(hot)s, 70000000, 1, 0, 0, 1, 1, 'tests',"
        " 1, 'token' from merchant",
        address=b"D" * 20,
        hot=b"H" * 20,
    )
    [sweep] = wallet.ask("sweep", "list", "--open")["sweeps"]
    number, why = str(sweep["sweepId"]), "the issuer has blocked it"
    [ended] = wallet.ask("sweep", "end", number, "--reason", why)["sweeps"]
    assert (ended["step"], ended["why"]) == ("failed", f"{find_actor()} ended it: {why}")
    assert wallet.ask("sweep", "list", "--open") == {"sweeps": []}
    facts = {"chain": "TRC20", "address": sweep["address"], "reason": why}
    logged = "select subject, after from audit_entry where action = 'sweep.end'"
    assert wallet.read(logged) == [(f"sweep {number}", facts)]
    assert "has ended before" in wallet.refuse("sweep", "end", number, "--reason", why)
    assert "there is no sweep 999" in wallet.refuse("sweep", "end", "999", "--reason", why)


def test_without_a_price_or_on_another_chain_than_the_settings_say_nothing_is_swept(
    wallet: Wallet, tmp_path: Path
) -> None:
    with use_node() as node:
        open_shop(wallet, node, node.deploy(), tmp_path)
        del wallet.variables["WALLET_ERC20_COIN_PRICE"]
        node.mine(3)
        result = wallet.run("sweep", "run")
        assert "WALLET_ERC20_COIN_PRICE" in result.stderr
        assert result.stdout == "none\n"
        wallet.variables["WALLET_ERC20_CHAIN_ID"] = "1"
        assert "chain id" in wallet.refuse("sweep", "run")
