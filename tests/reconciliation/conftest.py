"""A scene for reconciliation: the books of merchants, fake chains, and orders as the payer leaves them."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.deposits.conftest import COIN, START_MS, DepositScene, address, in_scene
from tests.deposits.conftest import InScene as InScene

from merchant_wallet.audit.records import Author
from merchant_wallet.book.commands import Adjust, CreateWithdrawal, Settle, Submission, TakeUp
from merchant_wallet.book.outcomes import Withdrawal
from merchant_wallet.chains.protocol import Block, ChainAway, TokenTransfer
from merchant_wallet.custody.balances import SURVEY_SIZE, CustodyReader
from merchant_wallet.custody.two_person_changes import Corrects, NewRecord, record
from merchant_wallet.hot_wallet.store import open_wallet
from merchant_wallet.processes.reconciliation import Reconciler

__all__ = ["COIN", "START_MS", "DepositScene", "address", "in_scene"]

HOT = b"H" * 20
STRANGER = b"X" * 20
SHOP = 1001
RECIPIENT = "0x742d35cc6634c0532925a3b844bc454e4438f44e"
PAID_TO = bytes.fromhex(RECIPIENT[2:])


@dataclass
class Ledger:
    """A chain of final blocks with transfers, which answers as a test sets.

    `lag`: this many of the next balances are those of the block before. `grows`: transfers that are mined one
    by one, each time the newest final block is read. Without `keeps_past` a balance is always the newest.
    """

    name: str = "ERC20"
    blocks: list[list[TokenTransfer]] = field(default_factory=lambda: [[]])
    keeps_past: bool = True
    is_away: bool = False
    lag: int = 0
    most_blocks: int | None = None
    grows: list[tuple[bytes, bytes, int]] = field(default_factory=list)
    asked: list[bytes] = field(default_factory=list)
    running: int = 0
    max_running: int = 0

    def put(self, *sent: tuple[bytes, bytes, int], tx_hash: str | None = None) -> str:
        """Mine a final block with these transfers (sender, recipient, units). Returns the transaction
        hash.
        """
        number = len(self.blocks)
        name = tx_hash or f"0xt{number}.{self.name}"
        self.blocks.append(
            [
                TokenTransfer(self.name, name, index, number, f"0xb{number}", *each)
                for index, each in enumerate(sent)
            ]
        )
        return name

    async def head(self) -> Block:
        return await self.final()

    async def final(self) -> Block:
        if self.is_away:
            raise ChainAway("no node answers")
        if self.grows:
            self.put(self.grows.pop(0))
        number = len(self.blocks) - 1
        return Block(number, f"0xb{number}", f"0xb{number - 1}", START_MS)

    async def block(self, number: int) -> Block | None:
        return Block(number, f"0xb{number}", f"0xb{number - 1}", START_MS)

    async def transfers(self, first: int, last: int) -> list[TokenTransfer]:
        if self.most_blocks is not None and last - first >= self.most_blocks:
            raise ChainAway("too many blocks at once")
        return [transfer for block in self.blocks[first : last + 1] for transfer in block]

    async def balance(self, address: bytes, block: Block | None = None) -> int:
        self.asked.append(address)
        self.running += 1
        self.max_running = max(self.max_running, self.running)
        await asyncio.sleep(0)
        self.running -= 1
        last = len(self.blocks) if block is None or not self.keeps_past else block.number + 1
        if self.lag:
            self.lag -= 1
            last -= 1
        moved = [transfer for each in self.blocks[:last] for transfer in each]
        received = sum(transfer.amount_units for transfer in moved if transfer.recipient == address)
        return received - sum(transfer.amount_units for transfer in moved if transfer.sender == address)

    async def coin_balance(self, address: bytes) -> int:
        return 7 * 10**18

    async def close(self) -> None:
        pass


@dataclass
class ReconciliationScene:
    """The books of a deposit scene, both chains, and a reconciler for them."""

    deposits: DepositScene
    chains: dict[str, Ledger]
    orders: int = 0
    survey_size: int = SURVEY_SIZE

    @property
    def chain(self) -> Ledger:
        return self.chains["ERC20"]

    def reconciler(self) -> Reconciler:
        custody_readers = {
            name: CustodyReader(chain, chain.keeps_past, survey_size=self.survey_size)
            for name, chain in self.chains.items()
        }
        reconciler = Reconciler(self.deposits.connect, lambda _: custody_readers, clock=self.deposits.clock)
        self.deposits.closing.push_async_callback(reconciler.close)
        return reconciler

    async def reconcile(self, only: str | None = None) -> dict[str, Any]:
        return await self.reconciler().reconcile(only)

    async def compare(self, name: str = "ERC20") -> dict[str, Any]:
        """One chain's part of a whole reconciliation."""
        document = await self.reconcile()
        (found,) = [each for each in document["chains"] if each["chainType"] == name]
        return dict(found)

    async def lines(self, name: str = "ERC20") -> dict[str, str]:
        """The effect of each kind of line. Nothing else may be unexplained."""
        compared = await self.compare(name)
        assert compared["unexplained"] == "0"
        return {line["kind"]: line["effect"] for line in compared["lines"]}

    async def credit(self, units: int) -> None:
        """An operator credits money."""
        await self.deposits.book.submit(SHOP, Submission(Adjust("USDT", units, "opening", "op", None)))

    async def record(
        self, direction: str, units: int, tx_hash: str, chain: str = "ERC20", *, corrects: Corrects = None
    ) -> int:
        """What two people have recorded. Returns its number. Raises RecordRefused."""
        new = NewRecord(chain, direction, units, tx_hash, corrects)
        author = Author("op", "test", self.deposits.clock())
        return await record(self.deposits.connection, author, new, "float")

    async def fund(self, units: int) -> str:
        """An operator fills the hot wallet and records it. The shop is credited with the same amount."""
        tx_hash = self.chain.put((STRANGER, HOT, units))
        await self.record("IN", units, tx_hash)
        await self.credit(units)
        return tx_hash

    async def sign(self, units: int) -> tuple[int, str]:
        """An order as the payer leaves it after signing. Returns its id and the transfer's hash."""
        self.orders += 1
        command = CreateWithdrawal(
            mc_order_id=str(self.orders),
            amount_units=units,
            chain="ERC20",
            address=RECIPIENT,
            notify_url="https://example.com/n",
            fee_rate_e8=0,
            fee_minimum_units=0,
            approval_limit_units=10**12,
            daily_limit_units=None,
            allowed=True,
            deadline_after_ms=3_600_000,
        )
        made = await self.deposits.book.submit(SHOP, Submission(command))
        assert isinstance(made, Withdrawal)
        await self.deposits.book.submit(SHOP, Submission(TakeUp(made.order_id)))
        key, tx_hash = (SHOP, made.order_id), f"0xp{made.order_id}"
        await self.deposits.rows(
            "insert into payout (merchant_id, order_id, chain, fence, claimed_by, claimed_until_ms,"
            " signed_no) values (%s, %s, 'TRC20', 1, 'p', 0, 1)",
            *key,
        )
        await self.deposits.rows(
            "insert into payout_reservation (merchant_id, order_id, chain, wallet, amount, reserved_ms,"
            " recipient) values (%s, %s, 'ERC20', %s, %s, 0, repeat('r', 20)::bytea)",
            *key,
            HOT,
            units,
        )
        await self.deposits.rows(
            "insert into payout_signed"
            " (merchant_id, order_id, attempt_no, raw, tx_hash, built_at_block, signed_ms)"
            " values (%s, %s, 1, 'raw', %s, %s, 0)",
            *key,
            tx_hash,
            len(self.chain.blocks) - 1,
        )
        return made.order_id, tx_hash

    async def settle(self, order_id: int, tx_hash: str) -> None:
        outcome = await self.deposits.book.submit(SHOP, Submission(Settle(order_id, tx_hash)))
        assert isinstance(outcome, Withdrawal)

    async def watch(self) -> None:
        """Run the watcher and the crediting worker until nothing is left to do."""
        for chain in self.chains.values():
            watcher = self.deposits.watcher(chain)  # type: ignore[arg-type] # Two chains that read alike.
            await self.deposits.catch_up(watcher)
        await self.deposits.crediting_worker().credit_due()


InReconciliation = Callable[[Callable[[ReconciliationScene], Awaitable[None]]], None]


@pytest.fixture
def in_reconciliation(in_scene: InScene) -> InReconciliation:
    """Runs a scenario in a fresh scene, with known hot wallets and one sound reconciliation done."""

    def run(scenario: Callable[[ReconciliationScene], Awaitable[None]]) -> None:
        async def begin(deposits: DepositScene) -> None:
            chains = {name: Ledger(name) for name in ("ERC20", "TRC20")}
            scene = ReconciliationScene(deposits, chains)
            for chain in chains:
                await open_wallet(deposits.connection, chain, HOT, 1)
            await scene.watch()
            assert (await scene.reconcile())["sound"]
            await scenario(scene)

        in_scene(begin)

    return run
