"""A fake writer: the real rules, one command per transaction, plain inserts, and a clock set by hand.

`write_history` makes a book in which everything has happened once. `rechain` forges: it gives every entry the
hash that fits its content, as somebody could who can rewrite the whole database.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

import msgspec
import psycopg
from psycopg import AsyncConnection
from tests.book.ledger import OWN

from merchant_wallet.base import ids
from merchant_wallet.base.currencies import KFB, USDT
from merchant_wallet.base.db import connect, connect_sync
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book import commands
from merchant_wallet.book.chart import FIXED, MERCHANT_USDT_ID
from merchant_wallet.book.commands import Command, CreditDeposit, DepositKey, Submission
from merchant_wallet.book.journal import FIRST_HASH, compute_chain_hash, encode_canonical
from merchant_wallet.book.outcomes import (
    Adjusted,
    Credited,
    Exchanged,
    Outcome,
    SubUserFound,
    Transferred,
    Withdrawal,
)
from merchant_wallet.book.rules import apply_one
from merchant_wallet.book.state import Changes, Deposit, Draft, Entry, Posting, Rate
from merchant_wallet.book.sub_user import SubUser

MERCHANT_ID = 1001
RANGE_NO = 7
START_MS = 20_000 * DAY_MS
COIN = 10**6
EVM_ADDRESS = "0x52908400098527886E0F7030069857D2E4169EE7"

Result = TypeVar("Result")


def on(url: str, ask: Callable[[AsyncConnection], Coroutine[Any, Any, Result]]) -> Result:
    """Run a function with a connection of its own, in an event loop of its own."""

    async def run() -> Result:
        async with await connect(url) as conn:
            return await ask(conn)

    return asyncio.run(run())


class FakeWriter:
    """One book, in memory and in the database at the same time."""

    def __init__(self, url: str, merchant_id: int = MERCHANT_ID, range_no: int = RANGE_NO) -> None:
        self.url = url
        self.merchant_id = merchant_id
        self.conn = connect_sync(url)
        # Nothing here must survive a crash, and waiting for the disk would take most of a test's time.
        self.conn.execute("set synchronous_commit = off")
        self.draft = Draft(merchant_id, START_MS, range_no, 0, None, 0, FIRST_HASH, 1, 0, 0)
        self.draft.balances = {account.account_id: 0 for account in FIXED}
        for pair, rate_e8 in (((USDT, KFB), 7 * 10**8), ((KFB, USDT), 14 * 10**6)):
            self.draft.rates[pair] = Rate(rate_e8, False, START_MS, None)
        self.wallets = 0
        self.tampered = False
        self._open(range_no)

    def _open(self, range_no: int) -> None:
        me = self.merchant_id
        self.run(
            "insert into merchant (merchant_id, name, app_key, currency_mode, created_ms)"
            " overriding system value values (%s, %s, %s, 'KFB', %s)",
            (me, f"Merchant {me}", f"mk_{me}", START_MS),
        )
        self.insert("id_range", range_no=range_no)
        self.insert("book", id_range=range_no, head_hash=FIRST_HASH, last_ms=START_MS)
        for account_id, kind, currency in FIXED:
            self.insert("account", account_id=account_id, kind=kind, currency=currency)

    def close(self) -> None:
        """Close the connection."""
        self.conn.close()

    def run(self, statement: str, values: Iterable[Any] = ()) -> psycopg.Cursor[Any]:
        """Run one statement."""
        return self.conn.execute(statement.encode(), list(values) or None)

    def tamper(self, statement: str, values: Iterable[Any] = ()) -> None:
        """Run a statement that must change something. All constraints except keys are off."""
        if not self.tampered:
            found = self.run(
                "select case when contypid = 0 then 'table ' || conrelid::regclass"
                " else 'domain ' || contypid::regtype end, conname from pg_constraint"
                " where connamespace = 'public'::regnamespace and contype in ('f', 'c') and conparentid = 0"
            )
            for owner, constraint in found.fetchall():
                self.run(f"alter {owner} drop constraint {constraint}")
            self.tampered = True
        assert self.run(statement, values).rowcount > 0

    def insert(self, table: str, **row: Any) -> None:
        """Insert one row of this book."""
        row["merchant_id"] = self.merchant_id
        marks = ", ".join(["%s"] * len(row))
        self.run(f"insert into {table} ({', '.join(row)}) values ({marks})", row.values())

    def update(self, table: str, key: str | None, **row: Any) -> None:
        """Set columns of one row of this book. `key` is the column that identifies the row."""
        values = {name: value for name, value in row.items() if name != key}
        changes = ", ".join([f"{name} = %s" for name in values])
        where = f"merchant_id = %s and {key} = %s" if key else "merchant_id = %s"
        keys = [self.merchant_id, row[key]] if key else [self.merchant_id]
        self.run(f"update {table} set {changes} where {where}", [*values.values(), *keys])

    def ask(self, command: Command) -> Outcome:
        """Judge a command, one second after the last one, and write its changes."""
        self.draft.now_ms += 1000
        self.draft.changes = Changes()
        outcome = apply_one(self.draft, Submission(command))
        with self.conn.transaction():
            self._write(self.draft.changes)
        return outcome

    def _write(self, changes: Changes) -> None:
        draft = self.draft
        for entry in changes.entries:
            self._write_entry(entry)
        for user_id, index in zip(changes.registered, changes.address_indexes, strict=True):
            self._write_sub_user(draft.sub_users[user_id], index)
        self._write_orders(changes)
        for key in changes.credited:
            self._write_credit(key)
        for account_id in changes.touched:
            self.update("account", "account_id", account_id=account_id, balance=draft.balances[account_id])
        for user_id in changes.debited:
            debited = draft.sub_users[user_id]
            day, units = debited.day, debited.day_debited
            self.update("account", "account_id", account_id=user_id, day=day, day_debited=units)
        self.update(
            "book",
            None,
            id_range=draft.range_no,
            id_counter=draft.counter,
            next_range=draft.next_range,
            entry_count=draft.entry_count,
            head_hash=draft.head_hash,
            last_ms=draft.now_ms,
            withdrawn_day=draft.withdrawn_day,
            withdrawn_units=draft.withdrawn_units,
        )

    def _write_entry(self, entry: Entry) -> None:
        self.insert(
            "entry",
            entry_id=entry.entry_id,
            kind=entry.kind,
            mc_order_id=entry.mc_order_id,
            at_ms=entry.at_ms,
            rate_e8=entry.rate_e8,
            facts=entry.facts,
            hash=entry.hash,
        )
        for number, posting in enumerate(entry.postings, 1):
            row = msgspec.structs.asdict(posting)
            row["amount"] = row.pop("amount_units")
            self.insert("posting", entry_id=entry.entry_id, posting_no=number, **row)

    def _write_sub_user(self, sub_user: SubUser, index: int) -> None:
        user_id, evm, tron = sub_user.user_id, sub_user.evm_address, sub_user.tron_address
        self.insert("account", account_id=user_id, kind="subuser", currency=sub_user.currency)
        self.insert(
            "sub_user",
            user_id=user_id,
            ext_user_id=sub_user.ext_user_id,
            username=sub_user.username,
            address_index=index,
            evm_address=evm,
            tron_address=tron,
            created_ms=self.draft.now_ms,
        )
        for address in (evm, tron):
            self.insert("wallet_address", address=address, user_id=user_id)
            self.insert("issued_address", address=address)

    def _write_orders(self, changes: Changes) -> None:
        orders = self.draft.withdrawals
        for step in changes.steps:
            self.insert("withdrawal_step", **msgspec.structs.asdict(step))
        for order_id in changes.created:
            self.insert("withdrawal", **_order_row(orders[order_id]))
        for order_id in changes.moved:
            self.update("withdrawal", "order_id", **_order_row(orders[order_id]))
        for callback in changes.callbacks:
            self.insert("callback", **msgspec.structs.asdict(callback))

    def _write_credit(self, key: DepositKey) -> None:
        credited = self.draft.deposits[key].credited
        assert credited is not None
        row = msgspec.structs.asdict(credited)
        row["amount"] = row.pop("arrival_units")
        del row["amount_units"]
        self.run(
            "insert into credited_transaction values (%s, %s, '0xb1') on conflict do nothing",
            (key.chain, key.tx_hash),
        )
        self.insert("deposit_credit", **msgspec.structs.asdict(key), **row, block_hash="0xb1")
        self.run("update deposit set status = 'credited' where tx_hash = %s", (key.tx_hash,))

    def own(self, address: bytes, chain: str = "TRC20") -> None:
        """Give the merchant a deposit address of its own."""
        self.insert("merchant_address", chain=chain, address=address)
        self.insert("issued_address", address=address)

    def arrive(self, deposit: Deposit, user_id: int | None = None) -> None:
        """Insert a deposit, as the watcher does."""
        self.draft.deposits[deposit.key] = deposit
        self.insert(
            "deposit",
            **msgspec.structs.asdict(deposit.key),
            block_number=1,
            block_hash="0xb1",
            sender=bytes(20),
            address=deposit.address,
            user_id=user_id,
            amount=deposit.amount_units,
            status="pending" if deposit.is_due else "dust",
            seen_ms=START_MS,
            final_ms=START_MS,
        )

    def deposit(self, sub_user: SubUserFound | None, amount_units: int, *, told: bool = False) -> int:
        """Credit a deposit to a wallet, or to the merchant's own address. Returns the entry's id."""
        address = sub_user.tron_address if sub_user else OWN
        key = DepositKey("TRC20", f"a{self.draft.counter}", 3)
        arrived = Deposit(key, address, amount_units, sub_user is None, True)
        self.arrive(arrived, sub_user.user_id if sub_user else None)
        outcome = self.ask(CreditDeposit(key, address, amount_units, told))
        assert isinstance(outcome, Credited)
        return outcome.entry_id

    def fund(self, amount_units: int, currency: str = USDT) -> Adjusted:
        """Credit the merchant's balance."""
        outcome = self.ask(commands.Adjust(currency, amount_units, "funding", "ann", None))
        assert isinstance(outcome, Adjusted)
        return outcome

    def register(self, ext_user_id: str, currency: str = KFB) -> SubUserFound:
        """Open a wallet with addresses of its own."""
        self.wallets += 1
        evm, tron = (kind + self.merchant_id.to_bytes(9) + self.wallets.to_bytes(10) for kind in (b"E", b"T"))
        outcome = self.ask(commands.Register(ext_user_id, currency, self.wallets - 1, evm, tron))
        assert isinstance(outcome, SubUserFound)
        return outcome

    def credit(self, sub_user: SubUserFound, mc_order_id: str, amount_units: int) -> Transferred:
        """Move the merchant's money to a wallet."""
        command = commands.MerchantToUser(mc_order_id, sub_user.evm_address, sub_user.currency, amount_units)
        outcome = self.ask(command)
        assert isinstance(outcome, Transferred)
        return outcome

    def debit(self, sub_user: SubUserFound, mc_order_id: str, amount_units: int, rate_e8: int) -> Transferred:
        """Move a wallet's money to the merchant."""
        command = commands.UserToMerchant(
            mc_order_id, sub_user.ext_user_id, sub_user.currency, amount_units, rate_e8, False
        )
        outcome = self.ask(command)
        assert isinstance(outcome, Transferred)
        return outcome

    def exchange(self, mc_order_id: str | None, send: str, receive: str, amount_units: int) -> Exchanged:
        """Exchange one currency for the other."""
        outcome = self.ask(commands.Exchange(mc_order_id, send, receive, amount_units, None, None))
        assert isinstance(outcome, Exchanged)
        return outcome

    def withdraw(
        self,
        mc_order_id: str,
        amount_units: int,
        approval_limit_units: int = 10**12,
        second_limit_units: int = commands.SECOND_LIMIT_UNITS,
    ) -> int:
        """Create an order and return its id."""
        outcome = self.ask(
            commands.CreateWithdrawal(
                mc_order_id,
                amount_units,
                "ERC20",
                EVM_ADDRESS,
                "https://shop.example/n",
                10**6,
                COIN,
                approval_limit_units,
                None,
                True,
                DAY_MS,
                second_limit_units,
            )
        )
        assert isinstance(outcome, Withdrawal)
        return outcome.order_id

    def withdraw_next(self) -> int:
        """Create a small order under a new mcOrderId, and return its id."""
        return self.withdraw(f"n{self.draft.counter}", 2 * COIN)

    def move(self, *steps: Command) -> None:
        """Move an order through statuses, each by a legal step."""
        for step in steps:
            assert isinstance(self.ask(step), Withdrawal)

    def entry_ids(self) -> list[int]:
        """The ids of the journal, in order."""
        rows = self.run("select entry_id from entry where merchant_id = %s order by 1", (self.merchant_id,))
        return [row[0] for row in rows]

    def rechain(self) -> None:
        """Forge: give every entry the hash of its current content, and the book the last one."""
        head, me = FIRST_HASH, self.merchant_id
        for entry in self._read_entries():
            form = encode_canonical(me, *entry_values(entry), entry.postings)
            head = compute_chain_hash(head, form)
            self.tamper("update entry set hash = %s where entry_id = %s", (head, entry.entry_id))
        self.tamper("update book set head_hash = %s where merchant_id = %s", (head, me))

    def _read_entries(self) -> list[Entry]:
        rows = self.run(
            "select entry_id, kind, mc_order_id, at_ms, rate_e8, facts, hash from entry"
            " where merchant_id = %s order by 1",
            (self.merchant_id,),
        ).fetchall()
        postings = (
            "select source_id, target_id, currency, amount, source_balance, target_balance from posting"
        )
        entries = []
        for entry_id, kind, mc_order_id, at_ms, rate_e8, facts, entry_hash in rows:
            moved = self.run(f"{postings} where entry_id = %s order by posting_no", (entry_id,))
            postings_of = tuple(Posting(*row) for row in moved)
            entries.append(Entry(entry_id, kind, mc_order_id, at_ms, rate_e8, facts, postings_of, entry_hash))
        return entries


def entry_values(entry: Entry) -> tuple[int, str, str | None, int, int, str]:
    """The parts of an entry's canonical form besides its postings."""
    return entry.entry_id, entry.kind, entry.mc_order_id, entry.at_ms, entry.rate_e8, entry.facts


def _order_row(order: Withdrawal) -> dict[str, Any]:
    row = msgspec.structs.asdict(order)
    row["amount"], row["fee"] = row.pop("amount_units"), row.pop("fee_units")
    return row


def write_history(fake_writer: FakeWriter) -> dict[str, int]:
    """Let everything happen to a book once, over two days. Returns the entries' ids by name."""
    named = {"fund": fake_writer.fund(10_000 * COIN).entry_id}
    anna, bert = fake_writer.register("anna"), fake_writer.register("bert")
    named |= {"anna": anna.user_id, "bert": bert.user_id}
    named["exchange"] = fake_writer.exchange("x1", USDT, KFB, 1_000 * COIN).entry_id
    named["credit"] = fake_writer.credit(anna, "c1", 500 * COIN).entry_id
    named["debit"] = fake_writer.debit(anna, "d1", 100 * COIN, 10**6).entry_id
    named["free debit"] = fake_writer.debit(anna, "d2", 50 * COIN, 0).entry_id
    named["back"] = fake_writer.exchange(None, KFB, USDT, 99 * COIN).entry_id
    named["paid"] = fake_writer.withdraw("w1", 200 * COIN)
    named["cancelled"] = fake_writer.withdraw("w2", 300 * COIN)
    named["failed"] = fake_writer.withdraw("w3", 400 * COIN)
    named["expired"] = fake_writer.withdraw("w4", 50 * COIN, approval_limit_units=0)
    named["running"] = fake_writer.withdraw("w5", 60 * COIN, second_limit_units=59 * COIN)
    fake_writer.move(*(commands.Approve(named["running"], actor) for actor in ("cli:ann", "operator:bob")))
    fake_writer.move(commands.TakeUp(named["paid"]), commands.Settle(named["paid"], "0xfeed"))
    named["settle"] = fake_writer.entry_ids()[-1]
    fake_writer.move(commands.Cancel(named["cancelled"], "ann"))
    named["cancel"] = fake_writer.entry_ids()[-1]
    fake_writer.draft.now_ms += DAY_MS
    fake_writer.move(commands.TakeUp(named["failed"]), commands.Fail(named["failed"], "reverted"))
    fake_writer.move(commands.Refund(named["failed"]))
    named["refund"] = fake_writer.entry_ids()[-1]
    fake_writer.move(commands.Expire(named["expired"]))
    named["expire"] = fake_writer.entry_ids()[-1]
    fake_writer.move(commands.TakeUp(named["running"]))
    named["debit later"] = fake_writer.debit(anna, "d3", 30 * COIN, 10**6).entry_id
    named["waiting"] = fake_writer.withdraw("w6", 70 * COIN, approval_limit_units=0)
    fake_writer.own(OWN)
    named["own deposit"] = fake_writer.deposit(None, 40 * COIN, told=True)
    named["deposit"] = fake_writer.deposit(anna, 3 * COIN)
    adjusted = fake_writer.ask(
        commands.Adjust(KFB, -5 * COIN, "a correction", "ann", "anna", "proposal-1", "bob")
    )
    assert isinstance(adjusted, Adjusted)
    named["adjust"] = adjusted.entry_id
    taken = fake_writer.ask(commands.WithdrawFees(KFB, None, "monthly", "ann"))
    assert isinstance(taken, Adjusted)
    named["fees"] = taken.entry_id
    assert fake_writer.draft.balances[MERCHANT_USDT_ID] > 0
    assert ids.range_of(named["fees"]) == fake_writer.draft.range_no
    return named
