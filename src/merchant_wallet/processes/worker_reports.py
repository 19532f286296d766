"""Worker that writes down what only the worker side sees, for the console's page Safety.

Rules:
- It reports nodes, signer, hot wallets, whether chains fit the settings, checkpoints, its mail server and the
  pages' certificate. See `acts.reports`.
- It has a connection of its own, asks a few cheap questions, and changes nothing. A node that is away is a
  report, too.
- Each topic is reported by itself, so one that fails hides no other.
"""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import structlog

from merchant_wallet.approvals.acts import reports
from merchant_wallet.audit.checkpointing.task import CheckpointTask
from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.units import HOUR_MS
from merchant_wallet.base.workers import Connect, WorkerConnection, limit_time, log_failure, repeat
from merchant_wallet.chains.node_status import NodeStatus
from merchant_wallet.chains.protocol import ChainAway, ChainDisagrees
from merchant_wallet.chains.signer import SignerAway
from merchant_wallet.chains.transport import NodeFailed, NodeRefused
from merchant_wallet.hot_wallet.store import list_wallets
from merchant_wallet.notifications.mail import MailServer
from merchant_wallet.processes.nodes import ChainReaders
from merchant_wallet.processes.payout_workers import PayoutWorkers

INTERVAL_S: Final = 45.0
"""Each report asks a node four times. The page calls a report old after a minute."""
TIMEOUT_S: Final = 30.0
CERTIFICATE_MS: Final = HOUR_MS
"""The certificate of the pages is read so seldom."""

log = structlog.get_logger(__name__)

Reports = Mapping[str, Mapping[str, Any] | None]
"""Reports of a topic by their things. None: nobody could say, so the last report stays."""


class WorkerReporter:
    """Reports of one worker process. Several may run: each thing has the newest report."""

    def __init__(
        self,
        connect: Connect,
        payouts: PayoutWorkers,
        checkpoints: CheckpointTask | None,
        readers: ChainReaders,
        mail_server: MailServer | None = None,
        read_certificate: Callable[[], Awaitable[int | None]] | None = None,
        clock: Callable[[], int] = now_ms,
    ) -> None:
        self._connection = WorkerConnection(connect)
        self._payouts = payouts
        self._checkpoints = checkpoints
        self._clock = clock
        self._readers = readers
        self._mail_server = mail_server
        self._read_certificate = read_certificate
        self._certificate_ms = 0
        self._name = f"{socket.gethostname()} {os.getpid()}"
        self._topics: Mapping[str, Callable[[], Awaitable[Reports]]] = {
            reports.NODE: self._look_at_nodes,
            reports.SIGNER: self._look_at_signer,
            reports.HOT_WALLET: self._look_at_wallets,
            reports.CHAIN_SETUP: self._look_at_setup,
            reports.CHECKPOINTS: self._look_at_checkpoints,
            reports.MAIL: self._look_at_mail,
            reports.CERTIFICATE: self._look_at_certificate,
        }

    async def run(self, stop: asyncio.Event, *, interval_s: float = INTERVAL_S) -> None:
        """Report until told to stop."""
        try:
            await repeat("reports", self.report, stop=stop, interval_s=interval_s)
        finally:
            await self.close()

    async def close(self) -> None:
        """Close the connection to the database."""
        await self._connection.close()

    async def report(self) -> None:
        """Report every topic."""
        # Without the database nothing can be kept: that is one fault of the turn, not one of a topic.
        await self._connection.get()
        found = await asyncio.gather(*[self._look(topic, look) for topic, look in self._topics.items()])
        connection = await self._connection.get()
        for topic, of_topic in zip(self._topics, found, strict=True):
            if of_topic is not None:
                await reports.store_reports(connection, topic, of_topic, self._name, self._clock())

    async def _look(self, topic: str, look: Callable[[], Awaitable[Reports]]) -> Reports | None:
        try:
            async with limit_time(TIMEOUT_S, "no answer"):
                return await look()
        except Exception as error:
            # The last report stays, with its age.
            log_failure(log, "a topic could not be reported", error, topic=topic)
            return None

    async def _look_at_nodes(self) -> Reports:
        looked = await asyncio.gather(*[reader.look_at_nodes() for reader in self._readers.values()])
        return {
            f"{chain} {place}": describe_node(chain, status)
            for chain, statuses in zip(self._readers, looked, strict=True)
            for place, status in enumerate(statuses, 1)
        }

    async def _look_at_signer(self) -> Reports:
        signer = self._payouts.signer
        if signer is None:
            return {}
        try:
            wallets = await signer.wallets()
        except SignerAway as away:
            return {"signer": {"answers": False, "failure": str(away), "refusals": signer.refusals}}
        shown = {chain: format_address(chain, address) for chain, address in wallets.items()}
        return {"signer": {"answers": True, "wallets": shown, "refusals": signer.refusals}}

    async def _look_at_wallets(self) -> Reports:
        wallets = await list_wallets(await self._connection.get())
        known = [wallet for wallet in wallets if wallet.chain in self._readers]
        found = await asyncio.gather(*[self._look_at_wallet(one.chain, one.address) for one in known])
        return {wallet.chain: report for wallet, report in zip(known, found, strict=True)}

    async def _look_at_wallet(self, chain: str, address: bytes) -> Mapping[str, Any] | None:
        """What a hot wallet holds; None if no node says it."""
        reader = self._readers[chain]
        try:
            funds, coin = await asyncio.gather(reader.balance(address), reader.coin_balance(address))
        except (ChainAway, ChainDisagrees, NodeFailed, NodeRefused):
            return None
        return {"address": format_address(chain, address), "fundsUnits": funds, "coin": str(coin)}

    async def _look_at_setup(self) -> Reports:
        return {"all": {"fits": self._payouts.checked.is_set(), "wrong": list(self._payouts.wrong)}}

    async def _look_at_checkpoints(self) -> Reports:
        if self._checkpoints is None:
            return {}
        return {"all": {"writtenMs": self._checkpoints.written_ms, "evidence": self._checkpoints.found_count}}

    async def _look_at_mail(self) -> Reports:
        server = self._mail_server
        return {} if server is None else {"server": {"address": f"{server.host}:{server.port}"}}

    async def _look_at_certificate(self) -> Reports:
        if self._read_certificate is None:
            return {}
        if self._clock() - self._certificate_ms < CERTIFICATE_MS:
            return {"pages": None}
        ends_ms = await self._read_certificate()
        self._certificate_ms = 0 if ends_ms is None else self._clock()
        return {"pages": None if ends_ms is None else {"endsMs": ends_ms}}


def describe_node(chain: str, status: NodeStatus) -> Mapping[str, Any]:
    """A node's status as a report."""
    return {
        "chain": chain,
        "name": status.name,
        "head": None if status.head is None else status.head.number,
        "headMs": None if status.head is None else status.head.time_ms,
        "final": None if status.final is None else status.final.number,
        "tookMs": status.took_ms,
        "failure": status.failure,
        "callsPerSecond": status.use.per_s,
        "callsPerDay": status.use.per_day,
        "callsToday": status.use.used_today,
        "restsUntilMs": status.use.rests_until_ms,
    }
