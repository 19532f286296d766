"""`deposits`: simulated deposits, as an operator sees them."""

import asyncio
import json

import pytest
from tests.cli.conftest import Wallet

from merchant_wallet.base.config import load_settings
from merchant_wallet.base.db import connect, connect_sync
from merchant_wallet.base.workers import WorkerConnection
from merchant_wallet.book.writer import Writer
from merchant_wallet.cli.deposit_fields import show_currencies
from merchant_wallet.cli.deposits import LIST_COLUMNS
from merchant_wallet.cli.terminal import lay_out
from merchant_wallet.deposits.crediting import CreditingWorker
from merchant_wallet.processes.base import make_base
from merchant_wallet.processes.worker import make_watchers


def work(wallet: Wallet) -> None:
    """Run the deposit workers until nothing is left to do."""

    async def run() -> None:
        base = make_base(load_settings(wallet.variables), wallet.url)
        line = WorkerConnection(lambda: connect(wallet.url))
        writer = Writer(wallet.url, connections=1)
        await writer.open()
        crediting_worker = CreditingWorker(lambda: connect(wallet.url), lambda: connect(wallet.url), writer)
        for watcher in make_watchers(base, lambda: connect(wallet.url), line).values():
            while await watcher.follow():
                pass
            await watcher.close()
        await crediting_worker.credit_due()
        await crediting_worker.close()
        await writer.close()
        await line.close()

    asyncio.run(run())


def watch_only(wallet: Wallet) -> None:
    """Run only the watchers. Nothing is credited."""

    async def run() -> None:
        base = make_base(load_settings(wallet.variables), wallet.url)
        line = WorkerConnection(lambda: connect(wallet.url))
        for watcher in make_watchers(base, lambda: connect(wallet.url), line).values():
            while await watcher.follow():
                pass
            await watcher.close()
        await line.close()

    asyncio.run(run())


def open_shop(wallet: Wallet, confirm_ms: int = 0) -> int:
    wallet.variables["WALLET_SANDBOX_CONFIRM_MS"] = str(confirm_ms)
    merchant_id = wallet.open_merchant("Shop", "--currency-mode", "USDT")
    # The partition of today's nonces exists after the first command.
    wallet.credit("Shop", "USDT", "1")
    return merchant_id


@pytest.mark.parametrize("name", ["depositAddress", "depositTronAddress"])
def test_what_arrives_at_a_merchants_own_address_is_its_balance(wallet: Wallet, name: str) -> None:
    open_shop(wallet)
    address = wallet.ask("merchant", "show", "Shop")[name]
    made = wallet.ask("deposits", "simulate", address, "25.5")
    work(wallet)
    (shown,) = wallet.ask("deposits", "show", made["txHash"])["deposits"]
    assert (shown["status"], shown["amount"], shown["credited"]) == ("credited", "25.5", "25.5")
    assert (shown["address"], shown["extUserId"], shown["chainType"]) == (address, None, made["chainType"])
    assert wallet.balance("Shop", "merchant:USDT") == "26.5"
    wallet.run("book", "verify")
    printed = wallet.run("deposits", "show", made["txHash"]).stdout
    assert "amount         25.5 USDT\n" in printed
    assert "credited       25.5 USDT\n" in printed


def test_a_simulated_deposit_to_nobodys_address_is_said_to_be_lost(wallet: Wallet) -> None:
    open_shop(wallet)
    address = wallet.ask("merchant", "show", "Shop")["depositAddress"]
    assert wallet.run("deposits", "simulate", address, "1").stderr == ""
    lost = wallet.run("deposits", "simulate", "0x52908400098527886E0F7030069857D2E4169EE7", "1")
    assert lost.stderr == "It is no address of a sub-user or a merchant: nothing is credited.\n"


def test_what_arrives_at_a_wallet_is_shown_before_it_is_final(wallet: Wallet) -> None:
    merchant_id = open_shop(wallet, confirm_ms=3_600_000)
    user = wallet.register(merchant_id, "alice")
    address = "0x" + user.evm_address.hex()
    wallet.run("deposits", "simulate", address, "25")
    assert wallet.ask("deposits", "list")["deposits"] == []
    work(wallet)
    (shown,) = wallet.ask("deposits", "list", "--merchant", "Shop", "--user", "alice")["deposits"]
    assert (shown["status"], shown["confirmations"], shown["credited"]) == ("seen", 1, None)
    for word in ("seen", "confirming"):
        assert wallet.ask("deposits", "list", "--status", word)["deposits"] == [shown]
    assert wallet.ask("deposits", "list", "--status", "dust")["deposits"] == []
    wallet.variables["WALLET_SANDBOX_CONFIRM_MS"] = "0"
    work(wallet)
    (shown,) = wallet.ask("deposits", "list", "--merchant", "Shop")["deposits"]
    assert (shown["status"], shown["extUserId"]) == ("credited", "alice")
    assert wallet.ask("sub-users", "show", "Shop", "alice")["balance"] == "25"


def test_dust_waits_and_is_listed(wallet: Wallet) -> None:
    open_shop(wallet)
    wallet.variables["WALLET_DEPOSIT_MINIMUM"] = "10"
    address = wallet.ask("merchant", "show", "Shop")["depositAddress"]
    wallet.run("deposits", "simulate", address, "9.999999")
    work(wallet)
    (shown,) = wallet.ask("deposits", "list")["deposits"]
    assert shown["status"] == "dust"
    wallet.run("deposits", "simulate", address, "0.000001")
    work(wallet)
    assert wallet.balance("Shop", "merchant:USDT") == "11"


def test_a_deposit_that_was_exchanged_is_shown_in_both_currencies_with_its_rate() -> None:
    credited = {"credited": "177.5", "creditedCurrency": "KFB", "rate": "7.1"}
    shown = show_currencies({"amount": "25", "currency": "USDT", **credited})
    assert shown == {"amount": "25 USDT", "credited": "177.5 KFB", "rate": "7.1"}
    lines, _ = lay_out(LIST_COLUMNS, [dict.fromkeys(LIST_COLUMNS.columns) | shown], None)
    assert lines[0].split()[4:] == ["amount", "status", "cause", "confirmations", "credited", "rate", "seen"]


def test_a_list_says_when_it_is_cut_short(wallet: Wallet) -> None:
    open_shop(wallet)
    address = wallet.ask("merchant", "show", "Shop")["depositAddress"]
    for _ in range(2):
        wallet.run("deposits", "simulate", address, "5")
    work(wallet)
    result = wallet.run("deposits", "list", "--merchant", "Shop", "--limit", "1")
    assert "There are more" in result.stderr
    assert result.stdout.count("credited") == 2


def test_how_far_the_chains_were_read_is_shown_and_can_be_set_back(wallet: Wallet) -> None:
    open_shop(wallet)
    assert wallet.ask("deposits", "chains")["chains"] == []
    assert "was not read" in wallet.refuse("deposits", "rescan", "ERC20", "1")
    address = wallet.ask("merchant", "show", "Shop")["depositAddress"]
    for _ in range(3):
        wallet.run("deposits", "simulate", address, "5")
    work(wallet)
    blocks = {line["chainType"]: line["finalBlock"] for line in wallet.ask("deposits", "chains")["chains"]}
    assert blocks == {"ERC20": 3, "TRC20": 0}
    assert wallet.ask("deposits", "rescan", "ERC20", "2") == {"chainType": "ERC20", "firstBlock": 2}
    assert wallet.ask("deposits", "chains")["chains"][0]["finalBlock"] == 1
    wallet.run("deposits", "simulate", address, "5")
    assert "was not read" in wallet.refuse("deposits", "rescan", "ERC20", "4")
    assert "no block 8" in wallet.refuse("deposits", "rescan", "ERC20", "9")
    work(wallet)
    assert wallet.balance("Shop", "merchant:USDT") == "21"


def test_a_chain_that_was_never_read_is_shown_with_what_its_nodes_say(wallet: Wallet) -> None:
    wallet.tamper(
        "insert into worker_report values ('node', 'TRC20 1', %(report)s, 'w', 1)",
        report=json.dumps(
            {"chain": "TRC20", "failure": "n.example: /wallet/getblock: HTTP 403: unknown key"}
        ),
    )
    wallet.variables |= {"WALLET_SANDBOX": "false", "WALLET_TRC20_RPC": "https://n.example"}
    assert wallet.ask("deposits", "chains")["chains"] == [
        {
            "chainType": "TRC20",
            "finalBlock": None,
            "headBlock": None,
            "movedMs": None,
            "alert": "not read yet; n.example: /wallet/getblock: HTTP 403: unknown key",
        }
    ]


def test_a_range_of_blocks_is_read_again_beside_the_service(wallet: Wallet) -> None:
    open_shop(wallet)
    address = wallet.ask("merchant", "show", "Shop")["depositAddress"]
    for _ in range(3):
        wallet.run("deposits", "simulate", address, "5")
    work(wallet)
    rescan = ("deposits", "rescan", "ERC20", "2", "--last-block")
    told = {"chainType": "ERC20", "firstBlock": 2, "lastBlock": 3, "changed": 0, "transfers": 2}
    assert wallet.ask(*rescan, "3") == told
    assert wallet.ask("deposits", "chains")["chains"][0]["finalBlock"] == 3, "the cursor stays"
    assert "was not read up to block 4" in wallet.refuse(*rescan, "4")
    assert "--last-block must be from 2 to 1000001" in wallet.refuse(*rescan, "1")
    assert "--last-block must be from 2 to 1000001" in wallet.refuse(*rescan, "1000002")
    last = wallet.ask("audit", "list")["entries"][0]
    assert last["action"] == "deposits.rescan"
    assert last["after"] == {"firstBlock": 2, "lastBlock": 3, "changed": 0, "transfers": 2}
    work(wallet)
    assert wallet.balance("Shop", "merchant:USDT") == "16"


REFUSED = [
    (("simulate", "0x12", "5"), "ADDRESS", 1),
    (("simulate", "0x742d35cc6634c0532925a3b844bc454e4438f44e", "0"), "AMOUNT", 1),
    (("simulate", "0x742d35cc6634c0532925a3b844bc454e4438f44e", "five"), "AMOUNT", 1),
    (("list", "--from", "yesterday"), "--from and --to are days", 2),
    (("list", "--address", "0x12"), "--address", 2),
    (("list", "--user", "alice"), "--merchant", 2),
    (("list", "--status", "paid"), 'dust ("Too little")', 2),
]


@pytest.mark.parametrize(("arguments", "text", "status"), REFUSED)
def test_what_can_not_be_done_is_said(
    wallet: Wallet, arguments: tuple[str, ...], text: str, status: int
) -> None:
    assert text in wallet.refuse("deposits", *arguments, status=status)


def test_an_unknown_transaction_is_named(wallet: Wallet) -> None:
    assert "0xno" in wallet.refuse("deposits", "show", "0xno")


def test_a_stranger_may_be_sent_something_too_and_nobody_is_credited(wallet: Wallet) -> None:
    open_shop(wallet)
    made = wallet.ask("deposits", "simulate", "0x742d35cc6634c0532925a3b844bc454e4438f44e", "5")
    work(wallet)
    wallet.refuse("deposits", "show", made["txHash"])


def test_where_a_merchant_is_told_of_deposits_is_a_setting(wallet: Wallet) -> None:
    open_shop(wallet)
    assert wallet.ask("merchant", "show", "Shop")["depositNotifyUrl"] is None
    url = "http://shop.example/deposits?a=1"
    assert wallet.ask("merchant", "set", "Shop", "--deposit-notify-url", url)["depositNotifyUrl"] == url
    address = wallet.ask("merchant", "show", "Shop")["depositAddress"]
    wallet.run("deposits", "simulate", address, "5")
    work(wallet)
    ((event_type,),) = wallet.read("select event_type from callback")
    assert event_type == "deposit"
    closed = wallet.run("merchant", "set", "Shop", "--deposit-notify-url", "http://10.0.0.1/deposits")
    assert "Callbacks to 10.0.0.1 will fail: it is no public address." in closed.stderr
    assert wallet.ask("merchant", "set", "Shop", "--deposit-notify-url", "none")["depositNotifyUrl"] is None


@pytest.mark.parametrize(
    "url", ["ftp://shop.example", "https://", "https://a:b@shop.example", "x" * 101, "shop"]
)
def test_a_url_that_can_not_be_called_is_no_setting(wallet: Wallet, url: str) -> None:
    wallet.open_merchant()
    assert "deposit-notify-url must be" in wallet.refuse(
        "merchant", "set", "Shop", "--deposit-notify-url", url
    )


def test_a_merchant_from_before_has_addresses_as_soon_as_they_are_asked_for(wallet: Wallet) -> None:
    wallet.open_merchant()
    first = wallet.ask("merchant", "show", "Shop")
    for table in ("merchant_address", "issued_address"):
        wallet.tamper(f"delete from {table}")
    again = wallet.ask("merchant", "show", "Shop")
    assert again == first
    assert wallet.read("select count(*) from issued_address") == [(2,)]


def hold(wallet: Wallet, *tx_hashes: str) -> None:
    """Mark deposits as the watcher does when their blocks have left the chain."""
    with connect_sync(wallet.url) as connection:
        connection.execute(
            "update deposit set status = 'held', cause = 'its block 1 has left the chain'"
            " where tx_hash = any(%s)",
            (list(tx_hashes),),
        )


def test_a_held_deposit_is_released_or_dropped_by_a_person_and_the_audit_log_says_so(wallet: Wallet) -> None:
    open_shop(wallet)
    address = wallet.ask("merchant", "show", "Shop")["depositAddress"]
    one, two = (wallet.ask("deposits", "simulate", address, amount)["txHash"] for amount in ("25", "40"))
    # Final, not credited yet.
    watch_only(wallet)
    hold(wallet, one, two)
    held = wallet.ask("deposits", "list", "--status", "held")["deposits"]
    assert {each["txHash"]: each["cause"] for each in held} == dict.fromkeys(
        (one, two), "its block 1 has left the chain"
    )
    released = wallet.ask("deposits", "release", one, "--reason", "seen in block 7")
    assert released == {"chainType": "ERC20", "txHash": one, "logIndex": 0, "status": "pending"}
    assert wallet.ask("deposits", "drop", two, "--reason", "gone", "--log-index", "0")["status"] == "dropped"
    work(wallet)
    assert wallet.balance("Shop", "merchant:USDT") == "26"
    assert wallet.ask("deposits", "show", two)["deposits"][0]["status"] == "dropped"
    wallet.run("book", "verify")
    told = [each for each in wallet.ask("audit", "list")["entries"] if each["action"].startswith("deposits.")]
    assert {each["action"] for each in told} >= {"deposits.release", "deposits.drop"}
    refused = wallet.run("deposits", "release", one, "--reason", "again", status=1)
    assert "No such deposit" in refused.stderr
