"""`reconcile`: the sandbox's books against its chains, and what an operator records."""

import asyncio
from functools import partial

import pytest
from tests.cli.conftest import Wallet

from merchant_wallet.base.config import load_settings
from merchant_wallet.base.db import connect
from merchant_wallet.base.workers import WorkerConnection
from merchant_wallet.book.writer import Writer
from merchant_wallet.deposits.crediting import CreditingWorker
from merchant_wallet.processes import worker
from merchant_wallet.processes.base import make_base
from merchant_wallet.processes.payout_workers import open_payout_workers
from merchant_wallet.processes.worker import make_watchers

HASH = "0x" + "ab" * 32


def work(wallet: Wallet) -> None:
    """Run the money workers until nothing is left to do."""

    async def run() -> None:
        base = make_base(load_settings(wallet.variables), wallet.url)
        open_connection = partial(connect, wallet.url)
        worker_connection = WorkerConnection(open_connection)
        writer = Writer(wallet.url, connections=1)
        await writer.open()
        crediting_worker = CreditingWorker(open_connection, open_connection, writer)
        for watcher in make_watchers(base, open_connection, worker_connection).values():
            while await watcher.follow():
                pass
            await watcher.close()
        await crediting_worker.credit_due()
        paying = await open_payout_workers(base, open_connection, writer, worker_connection)
        while await paying.payer.start_due():
            await paying.payer.finish()
        await paying.close()
        await crediting_worker.close()
        await writer.close()
        await worker_connection.close()

    asyncio.run(run())


@pytest.fixture
def shop(wallet: Wallet) -> Wallet:
    """A shop with 1000 USDT credited by an operator, in a sandbox that confirms at once."""
    wallet.variables["WALLET_SANDBOX_CONFIRM_MS"] = "0"
    wallet.open_merchant("Shop", "--currency-mode", "USDT")
    wallet.credit("Shop", "USDT", "1000")
    return wallet


def last_block(wallet: Wallet) -> dict[str, object]:
    """The last stored result for ERC20."""
    ((explanation,),) = wallet.read(
        "select explanation from reconciliation where chain = 'ERC20' order by reconciliation_no desc limit 1"
    )
    assert isinstance(explanation, dict)
    return explanation


def test_a_sandbox_that_was_used_is_sound(shop: Wallet) -> None:
    address = shop.ask("merchant", "show", "Shop")["depositAddress"]
    shop.run("deposits", "simulate", address, "25.5")
    work(shop)
    order = shop.order(1001, "10", approval_limit="100")
    work(shop)
    assert shop.ask("withdrawals", "show", order)["txnStatus"] == "2"
    document = shop.ask("reconcile")
    (ethereum, tron) = document["chains"]
    assert (document["sound"], ethereum["sound"], tron["sound"]) == (True, True, True)
    # 25.5 came in and 9 went out, after a fee of 1.
    assert (ethereum["fromOutside"], ethereum["unswept"], ethereum["lines"]) == ("16.5", "25.5", [])
    assert (document["custody"]["owed"], document["custody"]["shortage"]) == ("1016.5", "0")
    assert last_block(shop) == ethereum


def test_what_is_on_the_chain_and_in_no_book_is_explained(shop: Wallet) -> None:
    address = shop.ask("merchant", "show", "Shop")["depositAddress"]
    shop.run("reconcile")
    made = shop.ask("deposits", "simulate", address, "25.5")
    result = shop.run("reconcile")
    assert "deposit unread" in result.stdout
    assert made["txHash"] in result.stdout
    assert result.stderr.endswith("Sound.\n")


def test_a_transfer_that_the_sandbox_lost_is_unexplained(shop: Wallet) -> None:
    order = shop.order(1001, "10", approval_limit="100")
    work(shop)
    assert shop.ask("withdrawals", "show", order)["txnStatus"] == "2"
    shop.tamper("delete from sandbox_transfer")
    document = shop.ask("reconcile", status=1)
    assert (document["sound"], document["chains"][0]["unexplained"]) == (False, "9")
    assert "An operator must look" in shop.run("reconcile", status=1).stderr


def test_one_chain_can_be_compared_alone(shop: Wallet) -> None:
    document = shop.ask("reconcile", "--chain", "TRC20")
    assert [each["chainType"] for each in document["chains"]] == ["TRC20"]


def test_what_an_operator_moved_is_recorded_once_and_listed(shop: Wallet) -> None:
    recorded = shop.ask(
        "reconcile",
        "record",
        "IN",
        "ERC20",
        "50",
        "--tx",
        HASH.upper().replace("0X", "0x"),
        "--reason",
        "float",
    )
    assert (recorded["txHash"], recorded["amount"]) == (HASH, "50")
    again = ("reconcile", "record", "IN", "ERC20", "50", "--tx", HASH, "--reason", "float")
    assert "recorded already" in shop.refuse(*again)
    shop.run("reconcile", "record", "OUT", "TRC20", "7.5", "--tx", HASH, "--reason", "to cold storage")
    newest, first = shop.ask("reconcile", "treasury")["treasury"]
    assert (newest["direction"], newest["txHash"]) == ("OUT", HASH.removeprefix("0x"))
    assert (first["direction"], first["reason"]) == ("IN", "float")
    # The chain has no such money.
    assert shop.ask("reconcile", status=1)["chains"][0]["unexplained"] == "-50"
    assert "cold storage" in shop.run("reconcile", "treasury").stdout


def test_a_correction_names_the_record_that_it_takes_back(shop: Wallet) -> None:
    of = ("ERC20", "50", "--tx", HASH, "--reason", "float")
    wrong = shop.ask("reconcile", "record", "OUT", *of)["no"]
    assert f"Give --corrects {wrong}, or --corrects none." in shop.refuse("reconcile", "record", "IN", *of)
    assert "or none" in shop.refuse("reconcile", "record", "IN", *of, "--corrects", "it")
    other = ("ERC20", "49", "--tx", HASH, "--reason", "float", "--corrects", str(wrong))
    assert f"Record {wrong} says OUT 50 USDT" in shop.refuse("reconcile", "record", "IN", *other)
    taken_back = shop.ask("reconcile", "record", "IN", *of, "--corrects", str(wrong))
    assert taken_back["corrects"] == wrong
    assert "corrected already" in shop.refuse("reconcile", "record", "IN", *of, "--corrects", str(wrong))
    right = shop.ask("reconcile", "record", "OUT", *of)
    listed = shop.ask("reconcile", "treasury")["treasury"]
    assert [(one["no"], one["corrects"], one["correctedBy"]) for one in listed] == [
        (right["no"], None, None),
        (taken_back["no"], wrong, None),
        (wrong, None, taken_back["no"]),
    ]
    entries = [
        (entry["action"], entry["after"].get("corrects"))
        for entry in shop.ask("audit", "list")["entries"]
        if entry["action"].startswith("treasury.")
    ]
    made = ("treasury.record", None)
    assert entries == [made, ("treasury.correct", wrong), made]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("IN", "ERC20", "0", "--tx", HASH, "--reason", "x"), "more than 0"),
        (("IN", "ERC20", "5", "--tx", "0x12", "--reason", "x"), "64 hexadecimal digits"),
        (("IN", "ERC20", "5", "--tx", HASH, "--reason", " "), "why"),
        (("IN", "ERC20", "-5", "--tx", HASH, "--reason", "x"), ""),
        (("IN", "BTC", "5", "--tx", HASH, "--reason", "x"), ""),
        (("IN", "BEP20", "5", "--tx", HASH, "--reason", "x"), "BEP20 is off"),
    ],
)
def test_what_makes_no_record_is_refused(shop: Wallet, arguments: tuple[str, ...], word: str) -> None:
    result = shop.run("reconcile", "record", *arguments, status=2 if not word else 1)
    assert word in result.stderr
    assert shop.read("select count(*) from treasury_movement") == [(0,)]


def test_the_worker_side_compares_by_itself(shop: Wallet) -> None:
    async def run() -> None:
        base = make_base(load_settings(shop.variables), shop.url)
        stop = asyncio.Event()
        working = asyncio.create_task(worker.work(base, lambda: None, stop))
        async with await connect(shop.url) as connection:
            while not await (await connection.execute("select 1 from reconciliation")).fetchone():
                assert not working.done()
                await asyncio.sleep(0.02)
        stop.set()
        await working

    asyncio.run(run())
    assert shop.read("select distinct is_sound from reconciliation") == [(True,)]
