"""A group's statements read only the rows that their keys name, whenever they were planned.

Each run of the writer is first executed with EXPLAIN ANALYZE and rolled back, in a session with the writer's
settings. That session made its plans while a table was empty, young or large.
"""

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from psycopg.pq.abc import PGresult
from tests.crash.shop import run
from tests.plans import Plan, explain_prepared, list_nodes

from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.currencies import KFB, USDT
from merchant_wallet.base.db import connect, connect_sync
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book import commands as c
from merchant_wallet.book.arrays import of_ints, of_texts
from merchant_wallet.book.chart import FIXED
from merchant_wallet.book.connection import (
    BEGIN,
    COMMIT,
    ROLLBACK,
    SESSION,
    PipelineConnection,
    StatementCall,
)
from merchant_wallet.book.outcomes import Outcome, Withdrawal
from merchant_wallet.book.store import STATEMENTS
from merchant_wallet.book.writer import Writer
from merchant_wallet.exchange import rates

COIN = 10**6
LARGE, SMALL = 1, (2, 3)
"""A merchant with thousands of rows in each table, and two with few."""
MERCHANTS = (LARGE, *SMALL)
PENDING_DEPOSIT = 112
"""One of the large book's deposits that are not credited yet. So are the next ones."""
MOST_ROWS = 100
"""The keys of a group here name fewer rows. All of a merchant's are thousands."""
FILL = Path(__file__).parents[1].joinpath("large_book.sql").read_text()
OPEN_ROWS = Path(__file__).with_name("open_rows.sql").read_text()
PARTITIONS = re.findall(r"^create table nonce_\d+ .*;$", FILL, re.MULTILINE)


class ExplainingSession:
    """A session like the writer's. `explained` names the statements that it has executed."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        self.explained: set[bytes] = set()
        self._most_rows: dict[str, int] = {}
        connection.execute(SESSION.encode())
        for name, text in STATEMENTS.items():
            connection.execute(b"prepare %s as %s" % (name, text))

    def plan(self) -> None:
        """Plan every statement now. A plan is kept until a table that it reads is analyzed or changed."""
        for name, text in STATEMENTS.items():
            explain_prepared(self._connection, name.decode(), text.decode())

    def explain(self, calls: Sequence[StatementCall]) -> None:
        """Run the statements as one transaction, and roll it back."""
        with self._connection.transaction(force_rollback=True):
            for name, parameters in calls:
                if name not in (BEGIN, COMMIT, ROLLBACK):
                    rows = count_rows(self._analyze(name, parameters))
                    self.explained.add(name)
                    self._most_rows[name.decode()] = max(rows, self._most_rows.get(name.decode(), 0))

    def _analyze(self, name: bytes, parameters: Sequence[bytes | None]) -> Plan:
        values = [sql.Literal(value if value is None else value.decode()) for value in parameters]
        execution = sql.SQL("execute {}").format(sql.Identifier(name.decode()))
        if values:
            execution += sql.SQL(" ({})").format(sql.SQL(", ").join(values))
        return analyze(self._connection, execution)

    def take_faults(self) -> dict[str, int]:
        """The statements that read too many rows since the last call, and how many."""
        faults = {name: rows for name, rows in self._most_rows.items() if rows > MOST_ROWS}
        self._most_rows.clear()
        return faults


def analyze(connection: psycopg.Connection, statement: sql.Composable) -> Plan:
    """Execute a statement. Returns its plan with what each node has read."""
    row = connection.execute(sql.SQL("explain (analyze, timing off, format json) ") + statement).fetchone()
    assert row is not None
    plan: Plan = row[0][0]["Plan"]
    return plan


def count_rows(plan: Plan) -> int:
    """How many rows of tables a plan has read, also those that it read in vain."""
    return round(sum(_count_at_node(node) for node in list_nodes(plan) if "Relation Name" in node))


def _count_at_node(node: Plan) -> float:
    if node["Node Type"] == "ModifyTable":
        return 0
    removed = [value for name, value in node.items() if name.startswith("Rows Removed by")]
    return float((node["Actual Rows"] + sum(removed)) * node["Actual Loops"])


def fill(connection: psycopg.Connection) -> None:
    """Fill the large book, and give every book the accounts of the chart. Statistics are not collected."""
    text = FILL.replace("generate_series(1, 8000)", "generate_series(1, 3000)").removesuffix("analyze;\n")
    assert text != FILL.removesuffix("analyze;\n")
    for partition in PARTITIONS:
        text = text.replace(partition, "")
    connection.execute(text.encode())
    connection.execute(OPEN_ROWS.encode())
    connection.execute("delete from account where kind = 'merchant'")
    connection.execute(
        "insert into account (merchant_id, account_id, kind, currency)"
        " select merchant_id, u.* from book, unnest(%s::bigint[], %s::text[], %s::text[]) u",
        [list(column) for column in zip(*FIXED, strict=True)],
    )


def fill_nonces(connection: psycopg.Connection, day: int) -> None:
    """As many nonces on this day as on the days before together."""
    connection.execute("create temporary table copied as select * from nonce where merchant_id = %s", [LARGE])
    connection.execute("update copied set day = %s, nonce = nonce || ' again'", [day])
    connection.execute("insert into nonce select * from copied")
    connection.execute("drop table copied")


@dataclass
class Visit:
    """The use of several books at once, at a moment of a day. Its number makes all names unique."""

    url: str
    number: int
    day: int

    def explain_rare(self, session: ExplainingSession) -> None:
        """What the writer sends for a book that often changes, and after a COMMIT without an answer."""
        merchants, group_id = of_ints(MERCHANTS), str(uuid4()).encode()
        nonces = of_texts([f"{self.number} open 0"] * len(MERCHANTS))
        session.explain([(b"lock_book", (b"%d" % LARGE,))])
        session.explain(
            [(b"outdate_books", (merchants, group_id)), (b"find_committed", (group_id, merchants, nonces))]
        )

    async def run(self) -> None:
        """Send every kind of command. Nothing is remembered from one step to the next."""
        await self._submit("open", {m: self._open(m) for m in MERCHANTS})
        moved = {m: self._move_money(m) for m in MERCHANTS}
        answers = await self._submit("move", moved)
        assert await self._submit("again", moved) == answers
        orders = {m: orders[-1] for m, orders in answers.items()}
        for step in (_find_order, _take_up, _settle):
            await self._submit(step.__name__, {m: [step(order)] for m, order in orders.items()})
        await self._submit("credit", {LARGE: [self._credit()]})

    def _addresses(self, merchant_id: int) -> tuple[bytes, bytes]:
        text = b"%d.%d" % (merchant_id, self.number)
        return text.rjust(20, b"E"), text.rjust(20, b"T")

    def _open(self, merchant_id: int) -> list[c.Command]:
        """Money, and a new sub-user."""
        return [
            c.Adjust(KFB, 1000 * COIN, "opening balance", "test", None, f"kfb{self.number}"),
            c.Adjust(USDT, 1000 * COIN, "opening balance", "test", None, f"usdt{self.number}"),
            c.Register(f"anna{self.number}", KFB, self.number, *self._addresses(merchant_id)),
        ]

    def _move_money(self, merchant_id: int) -> list[c.Command]:
        """An order of each kind. The last one is a withdrawal."""
        evm, tron = self._addresses(merchant_id)
        payee, notify_url = "0x52908400098527886E0F7030069857D2E4169EE7", "https://shop.example/n"
        return [
            c.MerchantToUser(f"evm{self.number}", evm, KFB, 9 * COIN),
            c.MerchantToUser(f"tron{self.number}", tron, KFB, COIN),
            c.UserToMerchant(f"debit{self.number}", f"anna{self.number}", KFB, COIN, 0, False),
            c.Exchange(f"exchange{self.number}", USDT, KFB, COIN, None, None),
            c.CreateWithdrawal(
                f"order{self.number}", COIN, "ERC20", payee, notify_url, 0, 0, 9 * COIN, None, True, DAY_MS
            ),
        ]

    def _credit(self) -> c.Command:
        with connect_sync(self.url) as connection:
            row = connection.execute(
                "select chain, tx_hash, log_index, address from deposit"
                " where merchant_id = %s and user_id = %s and status = 'pending' limit 1",
                [LARGE, PENDING_DEPOSIT + self.number],
            ).fetchone()
        assert row is not None
        chain, tx_hash, log_index, address = row
        return c.CreditDeposit(c.DepositKey(chain, tx_hash, log_index), bytes(address), 1, True)

    async def _submit(
        self, step: str, commands: Mapping[int, Sequence[c.Command]]
    ) -> dict[int, list[Outcome]]:
        """Submit at the same moment, each with a nonce. No command may be refused."""
        writer = Writer(self.url, clock=lambda: self.day * DAY_MS + self.number)
        futures = {
            m: [
                writer.submit(m, c.Submission(command, f"{self.number} {step} {number}"))
                for number, command in enumerate(asked)
            ]
            for m, asked in commands.items()
        }
        answers = {m: await asyncio.gather(*waiting) for m, waiting in futures.items()}
        await writer.close()
        refused = [each for all_of_m in answers.values() for each in all_of_m if isinstance(each, Refusal)]
        assert refused == [], step
        return answers


def _order_id(order: Outcome) -> int:
    assert isinstance(order, Withdrawal), order
    return order.order_id


def _find_order(order: Outcome) -> c.Command:
    assert isinstance(order, Withdrawal), order
    return c.ReadWithdrawal(order.order_id, order.mc_order_id)


def _take_up(order: Outcome) -> c.Command:
    return c.TakeUp(_order_id(order))


def _settle(order: Outcome) -> c.Command:
    return c.Settle(_order_id(order), f"0x{_order_id(order)}")


async def set_rates(url: str) -> None:
    """The platform's rates, for the exchanges."""
    async with await connect(url) as connection:
        await rates.set_rate(connection, rates.USDT_TO_KFB, 7 * 10**8, at_ms=1)
        await rates.set_rate(connection, rates.KFB_TO_USDT, 14 * 10**6, at_ms=1)


@pytest.fixture
def session(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[ExplainingSession]:
    """A session that explains each run of the writer before it is executed."""
    with connect_sync(database_url) as connection:
        for partition in PARTITIONS:
            connection.execute(partition.encode())
        explaining = ExplainingSession(connection)
        execute = PipelineConnection.run
        in_transaction: set[PipelineConnection] = set()

        async def run_explained(
            writer_connection: PipelineConnection, calls: Sequence[StatementCall]
        ) -> list[PGresult]:
            names = [name for name, _ in calls]
            # A transaction that has begun holds locks, and its further statements would wait for them.
            if writer_connection not in in_transaction:
                explaining.explain(calls)
            if BEGIN in names:
                in_transaction.add(writer_connection)
            if COMMIT in names or ROLLBACK in names:
                in_transaction.discard(writer_connection)
            return await execute(writer_connection, calls)

        monkeypatch.setattr(PipelineConnection, "run", run_explained)
        yield explaining


def test_a_group_reads_only_its_own_rows_while_partitions_are_young_old_and_empty(
    database_url: str, session: ExplainingSession
) -> None:
    faults: dict[str, object] = {}

    def visit(number: int, day: int, state: str) -> None:
        books = Visit(database_url, number, day)
        run(books.run())
        books.explain_rare(session)
        faults[state] = session.take_faults()

    run(set_rates(database_url))
    with connect_sync(database_url) as connection:
        session.plan()
        fill(connection)
        visit(1, 1, "planned while the tables were empty, never analyzed")
        connection.execute("vacuum analyze")
        visit(2, 1, "large and analyzed")
        connection.execute("create table nonce_2 partition of nonce for values in (2)")
        session.plan()
        visit(3, 2, "after midnight: the partition is empty")
        fill_nonces(connection, day=2)
        visit(4, 2, "a busy morning, planned after midnight")
    assert {state: found for state, found in faults.items() if found} == {}
    assert set(STATEMENTS) - session.explained == set()


def test_rows_that_were_read_in_vain_are_counted(database_url: str) -> None:
    with connect_sync(database_url) as connection:
        connection.execute(
            "insert into merchant (name, app_key, currency_mode, created_ms)"
            " select n, n, 'KFB', 0 from generate_series(1, 200) n"
        )
        plan = analyze(connection, sql.SQL("select 1 from merchant where merchant_id % 100 = 0"))
    assert plan["Actual Rows"] == 2
    assert count_rows(plan) == 200
