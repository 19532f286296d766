"""`cold`: limits, cold wallet and transfers at the terminal; what is signed elsewhere goes out and comes
back.
"""

import json
from pathlib import Path

from tests.cli.conftest import Wallet
from tests.cold.cold_scene import COLD, COLD_KEY

from merchant_wallet.base.addresses import format_address
from merchant_wallet.chains.evm import transactions as evm
from merchant_wallet.chains.evm.transactions import EvmTransaction

ADDRESS = format_address("ERC20", COLD)
HOT = b"H" * 20
WHY = ("--reason", "a week of payouts stays")
LIMITS = ("--most", "500", "--target", "300", "--refill-below", "100")
INSERT_HOT = (
    "insert into hot_wallet (chain, address, funds, funds_ended_payouts, checked_ms)"
    " values ('ERC20', %(hot)s, 1000000000, 0, 5)"
)
INSERT_WAITING = (
    "insert into cold_transfer (chain, direction, way, hot, cold, amount, approved_by, opened_ms, step,"
    " unsigned, unsigned_at_block, unsigned_until_ms) values ('ERC20', 'to_hot', 'elsewhere', %(hot)s,"
    " %(cold)s, 200000000, 'operator:ann', 1, 'unsigned', %(unsigned)s, 5, 2000000000000)"
)


def test_in_the_sandbox_one_person_registers_sets_limits_and_moves_money(wallet: Wallet) -> None:
    assert "no address of this chain" in wallet.refuse("cold", "wallet", "ERC20", "0x12")
    assert wallet.ask("cold", "wallet", "ERC20", ADDRESS)["coldWallet"] == ADDRESS
    assert "in this order" in wallet.refuse(
        *("cold", "limits", "ERC20", "--most", "1", "--target", "2", "--refill-below", "0")
    )
    assert wallet.ask("cold", "limits", "ERC20", *LIMITS)["mostHot"] == "500"
    assert "No hot wallet" in wallet.refuse("cold", "move", "to-cold", "ERC20", "700")
    wallet.tamper(INSERT_HOT, hot=HOT)
    [found] = [one for one in wallet.ask("cold", "show")["chains"] if one["chainType"] == "ERC20"]
    assert (found["coldWallet"], found["hot"], found["suggestion"]) == (ADDRESS, "1000", "to_cold 700")
    assert "In the sandbox" in wallet.refuse("cold", "move", "to-hot", "ERC20", "7", "--elsewhere")
    wallet.ask("cold", "move", "to-cold", "ERC20", "700")
    assert "under way" in wallet.refuse("cold", "move", "to-cold", "ERC20", "700")
    [one] = wallet.ask("cold", "list")["transfers"]
    assert (one["direction"], one["way"], one["amount"], one["step"]) == ("to_cold", "signer", "700", "open")
    number = str(one["transferId"])
    wallet.ask("cold", "drop", number)
    assert "can't be given up" in wallet.refuse("cold", "drop", number)
    actions = [entry["action"] for entry in wallet.ask("audit", "list")["entries"]]
    assert {"cold.address", "cold.limits", "cold.transfer", "cold.drop"} <= set(actions)


def test_outside_the_sandbox_nobody_moves_money_alone(wallet: Wallet) -> None:
    wallet.variables |= {"WALLET_SANDBOX": "false", "WALLET_ERC20_RPC": "http://127.0.0.1:9"}
    wallet.tamper(INSERT_HOT, hot=HOT)
    wallet.ask("cold", "wallet", "ERC20", ADDRESS, *WHY)
    assert "make another operator" in wallet.refuse("cold", "move", "to-cold", "ERC20", "700", *WHY)
    assert wallet.ask("cold", "list") == {"transfers": []}


def test_what_is_signed_elsewhere_goes_out_as_a_document_and_comes_back(
    wallet: Wallet, tmp_path: Path
) -> None:
    wallet.ask("cold", "wallet", "ERC20", ADDRESS)
    call = evm.encode_transfer_call(HOT, 200_000_000)
    unsigned = evm.encode_unsigned(EvmTransaction(1, 7, 1, 2, 100_000, b"T" * 20, 0, call))
    wallet.tamper(INSERT_WAITING, hot=HOT, cold=COLD, unsigned=unsigned)
    document = json.loads(wallet.run("cold", "unsigned", "1", "--json").stdout)
    assert "to-sign" not in wallet.run("cold", "unsigned", "1").stdout
    assert (document["unsigned"], document["amount"]) == ("0x" + unsigned.hex(), "200")
    signature = COLD_KEY.sign_recoverable(evm.compute_signing_hash(unsigned), hasher=None)
    answer = tmp_path / "signed.txt"
    answer.write_text(evm.join(unsigned, b"\1" * 64 + b"\0").hex())
    assert "signed by the key of" in wallet.refuse("cold", "signed", "1", "--file", str(answer))
    answer.write_text("0x" + evm.join(unsigned, signature).hex() + "\n")
    assert wallet.ask("cold", "signed", "1", "--file", str(answer))["step"] == "signed"
    assert "does not wait" in wallet.refuse("cold", "unsigned", "1")
