"""An operator's terminal: a database, a data folder, and the program."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import structlog
from tests.archive_scene import REMOVED_AT_ONCE, SMALL_BLOCKS, prepare
from tests.book.fake_writer import FakeWriter
from tests.cells.layout import open_near_layout
from tests.forked_commands import ForkedCommand
from typer.testing import CliRunner, Result

from merchant_wallet.base.config import load_or_create_master_key, load_settings
from merchant_wallet.base.db import connect, connect_sync
from merchant_wallet.base.money import parse_units
from merchant_wallet.base.units import HOUR_MS
from merchant_wallet.book.archive import removal, writing
from merchant_wallet.book.commands import (
    Command,
    CreateWithdrawal,
    MerchantToUser,
    Register,
    Submission,
    UserToMerchant,
)
from merchant_wallet.book.outcomes import Outcome, SubUserFound, Transferred, Withdrawal
from merchant_wallet.cli.program import app
from merchant_wallet.merchants import store
from merchant_wallet.merchants.issued_addresses import IssuedAddress, issue_address
from merchant_wallet.merchants.records import Merchant
from merchant_wallet.processes.base import make_base, make_writer

COMMAND = Path(sys.executable).with_name("merchant-wallet")
ADDRESS = "0x742d35cc6634c0532925a3b844bc454e4438f44e"
ONE_CELL = "one"
APART = "apart"


@dataclass
class Wallet:
    """A database with its data folder. `run` calls the program in this process, `start` and `begin` in a
    process of its own (`forked_commands`). With an apart cell, `both_url` sees its tables and those that only
    home has.
    """

    url: str
    folder: Path
    variables: dict[str, str] = field(default_factory=dict)
    orders: int = 0
    both_url: str = ""

    def __post_init__(self) -> None:
        self.variables = {
            "WALLET_DATABASE_URL": self.url,
            "WALLET_SANDBOX": "true",
            "WALLET_DATA": str(self.folder),
            **self.variables,
        }
        self.both_url = self.both_url or self.url

    def run(self, *arguments: object, status: int = 0, stdin: str | None = None) -> Result:
        """Run a command, expecting this exit status."""
        result = CliRunner().invoke(app, list(map(str, arguments)), env=self.variables, input=stdin)
        assert result.exit_code == status, f"{arguments}: {result.output}"
        return result

    def ask(self, *arguments: object, status: int = 0) -> dict[str, Any]:
        """Run a command with `--json` and return its document."""
        document = json.loads(self.run(*arguments, "--json", status=status).stdout)
        assert isinstance(document, dict)
        return document

    def look(self, *arguments: object) -> dict[str, Any]:
        """Run a command with `--json` and return its document, whatever its exit status is."""
        command = [*map(str, arguments), "--json"]
        document = json.loads(CliRunner().invoke(app, command, env=self.variables).stdout)
        assert isinstance(document, dict)
        return document

    def refuse_document(self, *arguments: object) -> dict[str, Any]:
        """Run a command with `--json` that must be refused, and return its document."""
        result = self.run(*arguments, "--json", status=1)
        document = json.loads(result.stdout)
        assert result.stderr.strip() == document["msg"]
        assert isinstance(document, dict)
        return document

    def refuse(self, *arguments: object, status: int = 1) -> str:
        """Run a command that must print nothing, and return the sentence on standard error."""
        result = self.run(*arguments, status=status)
        assert result.stdout == ""
        return result.stderr.strip()

    def begin(self, *arguments: object, **variables: str) -> ForkedCommand:
        """Begin a command in its own process, with these variables beside the usual ones."""
        return ForkedCommand(*arguments, environment={**clean_environment(), **self.variables, **variables})

    def start(self, *arguments: object) -> "subprocess.CompletedProcess[str]":
        """Run a command in its own process until it ends."""
        with self.begin(*arguments) as running:
            return subprocess.CompletedProcess(list(map(str, arguments)), *running.finish())

    def open_merchant(self, name: str = "Shop", *options: object) -> int:
        """Create a merchant with the command. Returns its id."""
        merchant_id = self.ask("merchant", "create", name, *options)["merchantId"]
        assert isinstance(merchant_id, int)
        return merchant_id

    def credit(self, merchant: object, currency: str, amount: str, *options: object) -> dict[str, Any]:
        """Credit an amount."""
        return self.ask("book", "credit", merchant, currency, amount, "--reason", "opening", *options)

    def balance(self, merchant: object, account: str) -> str:
        """The balance of an account, as `book show` prints it."""
        accounts = self.ask("book", "show", merchant)["accounts"]
        balances: dict[str, str] = {line["account"]: line["balance"] for line in accounts}
        return balances[account]

    def submit(self, merchant_id: int, command: Command, settings_version: int | None = None) -> Outcome:
        """Submit a command to the book, as a merchant's request would."""
        return asyncio.run(self._submit(merchant_id, command, settings_version))

    async def _submit(self, merchant_id: int, command: Command, settings_version: int | None) -> Outcome:
        writer = make_writer(make_base(load_settings(self.variables), self.url), connections=1)
        await writer.open()
        try:
            submission = Submission(command, settings_version=settings_version)
            return await writer.submit(merchant_id, submission)
        finally:
            await writer.close()

    def register(self, merchant_id: int, ext_user_id: str) -> SubUserFound:
        """A sub-user with a wallet."""
        merchant, issued = asyncio.run(self._issue(merchant_id))
        command = Register(ext_user_id, merchant.wallet_currency, *issued)
        found = self.submit(merchant_id, command)
        assert isinstance(found, SubUserFound)
        return found

    async def _issue(self, merchant_id: int) -> tuple[Merchant, IssuedAddress]:
        keyring = make_base(load_settings(self.variables), self.url).keyring
        async with await connect(self.url) as conn:
            merchant = await store.load(conn, keyring, merchant_id)
            assert merchant is not None
            return merchant, await issue_address(conn, merchant_id, merchant.account_xpubs)

    def pay_user(self, merchant_id: int, user: SubUserFound, amount: str) -> None:
        """A transfer from the merchant to a sub-user."""
        command = MerchantToUser(self._order_id(), user.evm_address, "KFB", parse_units(amount))
        assert isinstance(self.submit(merchant_id, command), Transferred)

    def collect(self, merchant_id: int, ext_user_id: str, amount: str, fee_rate_e8: int = 0) -> Outcome:
        """A transfer from a sub-user to the merchant."""
        units = parse_units(amount)
        command = UserToMerchant(self._order_id(), ext_user_id, "KFB", units, fee_rate_e8, False)
        return self.submit(merchant_id, command)

    def order(
        self,
        merchant_id: int,
        amount: str,
        approval_limit: str = "0",
        second_limit: str = "100000",
        *,
        mc_order_id: str | None = None,
        address: str = ADDRESS,
    ) -> int:
        """A withdrawal order. By default it waits for approval. Returns its orderId."""
        command = CreateWithdrawal(
            mc_order_id=mc_order_id or self._order_id(),
            amount_units=parse_units(amount),
            chain="ERC20",
            address=address,
            notify_url="https://example.com/n",
            fee_rate_e8=0,
            fee_minimum_units=parse_units("1"),
            approval_limit_units=parse_units(approval_limit),
            daily_limit_units=None,
            allowed=True,
            deadline_after_ms=HOUR_MS,
            second_limit_units=parse_units(second_limit),
        )
        made = self.submit(merchant_id, command)
        assert isinstance(made, Withdrawal)
        return made.order_id

    def _order_id(self) -> str:
        self.orders += 1
        return str(self.orders)

    def tamper(self, statement: str, **values: object) -> None:
        """Change the database directly, without the program."""
        with connect_sync(self.both_url) as connection:
            connection.execute(statement.encode(), values)

    def read(self, question: str, **values: object) -> list[tuple[Any, ...]]:
        """Query the database directly."""
        with connect_sync(self.both_url) as connection:
            return connection.execute(question.encode(), values).fetchall()


def clean_environment() -> Mapping[str, str]:
    """This process's environment without settings of the service."""
    return {name: text for name, text in os.environ.items() if not name.startswith("WALLET_")}


in_one_cell = pytest.mark.parametrize("layout", [ONE_CELL], indirect=True)
"""Of a module that says `IN_BOTH_LAYOUTS`: a test for which it does not matter where the book is."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a module that says `IN_BOTH_LAYOUTS` twice: all books in an apart cell, and in the default one. The
    latter is extended, since the other modules of this folder are there.
    """
    is_chosen = in_one_cell.mark in metafunc.definition.iter_markers("parametrize")
    if (
        "layout" in metafunc.fixturenames
        and getattr(metafunc.module, "IN_BOTH_LAYOUTS", False)
        and not is_chosen
    ):
        one_cell = pytest.param(ONE_CELL, marks=pytest.mark.extended)
        metafunc.parametrize("layout", [one_cell, APART], indirect=True)


@pytest.fixture
def layout(request: pytest.FixtureRequest) -> str:
    """Where new merchants go: to the only cell, or to an apart one (`IN_BOTH_LAYOUTS`)."""
    return str(getattr(request, "param", ONE_CELL))


@pytest.fixture
def wallet(
    request: pytest.FixtureRequest, layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Wallet]:
    """A migrated database and an empty data folder. Settings of the tester's environment are removed."""
    for name in set(os.environ) - set(clean_environment()):
        monkeypatch.delenv(name)
    if layout == ONE_CELL:
        made = Wallet(request.getfixturevalue("database_url"), tmp_path / "wallet data")
    else:
        there = open_near_layout(request.getfixturevalue("url_with_cell"))
        made = Wallet(there.url, tmp_path / "wallet data", both_url=there.both_url)
        with connect_sync(there.url) as connection:
            connection.execute(b"update cell set state = 'draining' where cell_id = 0")
    # The service's first start does this. No command creates a master key.
    load_or_create_master_key(made.folder)
    yield made
    # A command logs to the standard error of its own run, which is closed by now.
    structlog.reset_defaults()


@pytest.fixture
def old_book(wallet: Wallet, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeWriter]:
    """A book from September to December, in blocks of four entries and steps of three."""
    monkeypatch.setattr(writing, "BLOCK_ENTRIES", SMALL_BLOCKS)
    monkeypatch.setattr(removal, "ROWS_AT_ONCE", REMOVED_AT_ONCE)
    made = FakeWriter(wallet.url)
    yield made
    made.close()


@pytest.fixture
def named(wallet: Wallet, old_book: FakeWriter) -> dict[str, int]:
    """The ids of its entries."""
    return prepare(old_book, wallet.variables)
