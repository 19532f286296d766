"""A shop and a stall that trade in October and November 2024, and the two people who close a month."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from tests.reporting.conftest import COIN, ReportingScene

from merchant_wallet.approvals import changes
from merchant_wallet.approvals.decisions import Person
from merchant_wallet.audit.checkpointing.signing import CheckpointSigner
from merchant_wallet.base.cells import Databases
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.archive.files import ArchiveFolder
from merchant_wallet.book.checkpoint_keys import FormerKey
from merchant_wallet.book.commands import Exchange
from merchant_wallet.book.nonce_partitions import ensure_nonce_partitions
from merchant_wallet.exchange.rates import KFB_TO_USDT, USDT_TO_KFB, set_rate
from merchant_wallet.reporting import rollup
from merchant_wallet.reporting.finance import closing, months, signing, verification
from merchant_wallet.reporting.finance.invoices import Issuer
from merchant_wallet.reporting.finance.months import MonthReport
from merchant_wallet.reporting.finance.periods import Period, parse_month

OCTOBER: Final = parse_month("2024-10")
NOVEMBER: Final = parse_month("2024-11")
ANN: Final = Person("operator:ann", "192.0.2.1")
BEN: Final = Person("operator:ben", "192.0.2.2")
ROLES: Final = ("owner", "operator")
ISSUER: Final = Issuer("Wallet Ltd; 1 Harbour Road", "HK 1234567", 14)
AFTER_MS: Final = months.READY_AFTER_MS
WHY: Final = "entries of a machine whose clock had gone back"
LASTS_MS: Final = 60 * DAY_MS


@dataclass
class Finance:
    """The scene with what closing a month needs."""

    scene: ReportingScene
    signer: CheckpointSigner
    archive: ArchiveFolder

    @property
    def databases(self) -> Databases:
        """Home with its own cell alone."""
        return Databases(self.scene.conn)

    async def add_up(self) -> None:
        """As the worker does."""
        await rollup.advance_all(self.scene.conn, self.scene.clock(), pause_s=0)

    async def prepare(self, month: Period) -> MonthReport:
        """Prepare a month soon after its end."""
        await self.add_up()
        return await months.prepare(self.databases, month, month.until_ms + AFTER_MS)

    async def propose(self, report: MonthReport, person: Person = ANN) -> int:
        """Propose to close a month. Returns the proposal's number."""
        subject = closing.format_subject(report.month)
        before, after = closing.describe_open(report), closing.describe_closed(report)
        made = await changes.propose(
            self.scene.conn,
            closing.CLOSE,
            subject,
            before,
            after,
            "the month's end",
            person=person,
            at_ms=report.prepared_ms,
            lasts_ms=LASTS_MS,
        )
        return made.proposal_no

    async def accept(self, number: int, at_ms: int, person: Person = BEN) -> changes.ProposedChange:
        """Accept the proposal."""
        kind = closing.make_kinds()[closing.CLOSE]
        decided = await changes.accept(self.scene.conn, kind, number, person=person, at_ms=at_ms, roles=ROLES)
        return decided.change

    async def sign(self, at_ms: int) -> list[str]:
        """What the worker does with accepted months."""
        return await signing.close_accepted(self.databases, self.signer.sign_text, ISSUER, at_ms)

    async def close(self, month: Period) -> MonthReport:
        """Prepare, propose, accept and sign a month."""
        report = await self.prepare(month)
        await self.accept(await self.propose(report), report.prepared_ms + 1)
        assert await self.sign(report.prepared_ms + 2) == [month.name]
        return await self.read(month)

    async def restate(self, month: Period, at_ms: int) -> changes.ProposedChange:
        """Two people decide that a closed month is restated."""
        subject, kind = closing.format_subject(month.name), closing.make_kinds()[closing.RESTATE]
        conn = self.scene.conn
        facts = await closing.read_restatement(conn, month.name)
        made = await changes.propose(
            conn, kind.name, subject, *facts, WHY, person=ANN, at_ms=at_ms, lasts_ms=LASTS_MS
        )
        accepted = await changes.accept(
            conn, kind, made.proposal_no, person=BEN, at_ms=at_ms + 1, roles=ROLES
        )
        return accepted.change

    async def read(self, month: Period) -> MonthReport:
        """The month as it is kept."""
        found = await months.read_month(self.scene.conn, month.name)
        assert found is not None
        return found

    async def verify(self, month: Period, *former: FormerKey) -> list[str]:
        """What is wrong with a month's signed versions."""
        report = await self.read(month)
        keys = verification.MonthKeys(self.signer.keys, former)
        signed = [report] if report.closed_ms is not None else []
        faults = [
            fault
            for one in [*signed, *await months.list_superseded(self.scene.conn, month.name)]
            for fault in await verification.verify_month(self.databases, keys, self.archive, one)
        ]
        return [fault.text for fault in faults]

    async def go_to(self, month: Period) -> None:
        """Move the clock to the beginning of a month."""
        self.scene.clock.now_ms = month.since_ms + 1000
        await ensure_nonce_partitions(self.scene.conn, month.since_day)


@pytest.fixture
def finance(scene: ReportingScene, tmp_path: Path) -> Finance:
    return Finance(scene, CheckpointSigner(bytes(range(32))), ArchiveFolder(tmp_path / "archive"))


async def trade(scene: ReportingScene, shop: int, name: str = "alice") -> None:
    """Transfers with a fee, exchanges both ways, a paid, a refunded and a cancelled order."""
    user = await scene.register(shop, name)
    await scene.pay_out(shop, user, 100 * COIN)
    await scene.charge(shop, user, 50 * COIN, fee_rate_e8=10_000_000)
    await set_rate(scene.conn, USDT_TO_KFB, 7_00000000, at_ms=scene.clock())
    await set_rate(scene.conn, KFB_TO_USDT, 14000000, at_ms=scene.clock())
    await scene.ask(shop, Exchange(None, "USDT", "KFB", 10 * COIN, None, None))
    await scene.ask(shop, Exchange(None, "KFB", "USDT", 50 * COIN, None, None))
    paid, void, dropped = await scene.order(shop), await scene.order(shop), await scene.order(shop)
    await scene.settle(shop, paid, f"hash of {shop} {name}")
    await scene.refund(shop, void)
    await scene.cancel(shop, dropped)
