"""Reconciliation: the books held against the chains, on a schedule or when an operator asks.

Rules: all books are read in one snapshot, and each chain's final block is asked for while it lasts, so that
whatever the books contain is on the chain by then; the rest is explained line by line (`reconciliation`). A
difference without an explanation is looked at again before it is told, since a node may be behind itself.
Nothing here moves money. When less is held than is owed, payouts stop on every chain until an operator lifts
that. Any number may run at once.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec
import structlog
from psycopg import AsyncConnection

from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.chains import CHAINS, TABLE
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.currencies import CURRENCIES, USDT
from merchant_wallet.base.money import format_units
from merchant_wallet.base.workers import Connect, WorkerConnection, repeat
from merchant_wallet.chains.jsonrpc import CallReverted
from merchant_wallet.chains.protocol import Block, ChainAway, ChainDisagrees, TokenTransfer
from merchant_wallet.chains.transport import NodeFailed, NodeRefused
from merchant_wallet.custody import records
from merchant_wallet.custody.balances import BalanceMoved, CustodyReader, read_balances, read_block_ranges
from merchant_wallet.custody.comparison import (
    Comparison,
    Custody,
    JudgedMovement,
    add_remainders,
    compare,
    find_imbalance,
    find_movements,
    sum_liabilities,
    weigh_custody,
)
from merchant_wallet.custody.records import Balances
from merchant_wallet.custody.report import (
    Document,
    ReportContext,
    describe_comparison,
    describe_custody,
    describe_failure,
    read_coin,
)
from merchant_wallet.deposits import deposit_store
from merchant_wallet.withdrawals.stops import stop_payouts

ACTOR: Final = "reconciliation"
SHOWN_STRAYS: Final = 20
LOOKS: Final = 3
CHAIN_TIMEOUT_S: Final = 600.0
FAILURES: Final = (
    ChainAway,
    ChainDisagrees,
    NodeFailed,
    NodeRefused,
    CallReverted,
    BalanceMoved,
    TimeoutError,
)
"""What a chain may say instead of an answer; the comparison is made another time."""

CustodyReaders = Mapping[str, CustodyReader]
OpenCustodyReaders = Callable[[AsyncConnection], CustodyReaders]

log = structlog.get_logger(__name__)


class View(msgspec.Struct, frozen=True):
    """One chain seen beside its books, and what is to be remembered of it.

    `received` are the transfers to our addresses in blocks that no search has kept yet.
    """

    comparison: Comparison
    judged: tuple[JudgedMovement, ...]
    new_deposits: frozenset[bytes]
    context: ReportContext
    received: tuple[TokenTransfer, ...] = ()


class Look(msgspec.Struct, frozen=True):
    """All chains seen beside one moment of all books; those that gave no answer with the cause."""

    balances: Balances
    views: dict[str, View]
    failures: dict[str, str]

    @property
    def imbalances(self) -> dict[str, int]:
        """What the accounts of a currency add up to, where that is not nothing."""
        sums = {currency: find_imbalance(self.balances, currency) for currency in CURRENCIES}
        return {currency: units for currency, units in sums.items() if units}

    @property
    def is_explained(self) -> bool:
        """Whether no chain has a difference that no line explains."""
        return all(view.comparison.unexplained_units == 0 for view in self.views.values())

    def weigh(self) -> Custody | None:
        """Held against owed; None unless every chain was seen, with the wallet that pays on it.

        A hot wallet becomes known when a worker that can pay has begun to.
        """
        used = {kind for (kind, _), units in self.balances.items() if units}
        unseen = {chain.code for chain in TABLE if chain.account_kind in used} - self.views.keys()
        without_wallet = [name for name, view in self.views.items() if not view.context.coin]
        if self.failures or unseen or without_wallet or not self.views:
            return None
        comparisons = [view.comparison for view in self.views.values()]
        return weigh_custody(sum_liabilities(self.balances, USDT), comparisons)


class Reconciler:
    """Compares all chains. `open_custody_readers` opens readers on the connection that reads the books."""

    def __init__(
        self, connect: Connect, open_custody_readers: OpenCustodyReaders, *, clock: Callable[[], int] = now_ms
    ) -> None:
        self._worker_connection = WorkerConnection(connect)
        self._open_custody_readers = open_custody_readers
        self._clock = clock

    async def run(self, stop: asyncio.Event, *, interval_s: float) -> None:
        """Compare every so often until told to stop, then close the connection."""
        try:
            await repeat("reconciliation", self.reconcile, stop=stop, interval_s=interval_s)
        finally:
            await self.close()

    async def close(self) -> None:
        """Close the connection."""
        await self._worker_connection.close()

    async def reconcile(self, only: str | None = None, *, surveys_all: bool = False) -> Document:
        """Compare all chains, or one; gives the whole document. Raises LookupError for an unknown chain.

        With `surveys_all` the balance of every address that was given out is looked at, not of the next few.
        """
        connection = await self._worker_connection.get()
        custody_readers = self._open_custody_readers(connection)
        if only is not None:
            if only not in custody_readers:
                raise LookupError(f"{only} is not set up here")
            custody_readers = {only: custody_readers[only]}
        failures = await self._catch_up(connection, custody_readers, surveys_all=surveys_all)
        reachable = {name: each for name, each in custody_readers.items() if name not in failures}
        for _ in range(LOOKS):
            look = await self._look(connection, reachable, failures)
            await self._remember(connection, look)
            if look.is_explained:
                break
        return await self._conclude(connection, look, is_whole=only is None)

    async def _catch_up(
        self, connection: AsyncConnection, custody_readers: CustodyReaders, *, surveys_all: bool
    ) -> dict[str, str]:
        """Search every chain up to its final block; gives why where that was not possible."""
        failures = {}
        for name, custody_reader in custody_readers.items():
            try:
                final = await self._search(connection, name, custody_reader)
                await self._survey(connection, name, custody_reader, final, is_whole=surveys_all)
            except FAILURES as error:
                failures[name] = str(error) or type(error).__name__
        return failures

    async def _search(self, connection: AsyncConnection, name: str, custody_reader: CustodyReader) -> Block:
        """Find what moved at our addresses since the last search; gives the newest final block, its end."""
        now = self._clock()
        wallets = (custody_reader.wallet, await records.read_hot_wallet(connection, name))
        await records.add_addresses(connection, name, records.HOT, {each for each in wallets if each}, now)
        final = await custody_reader.reader.final()
        scanned = await records.read_scanned(connection, name)
        since_ms = 0 if scanned is None else scanned.moved_ms
        reached = await records.find_deposit_addresses(connection, name, since_ms)
        await records.add_addresses(connection, name, records.DEPOSIT, reached, now)
        if scanned is None:
            first = await records.find_first_block(connection, name)
            after = final.number if first is None else min(first, final.number)
        else:
            after = scanned.block_number
        async for last, transfers in read_block_ranges(custody_reader, after, final.number):
            await self._keep(connection, name, transfers, last)
            if last < final.number:
                log.info("searching", chain=name, block=last, blocks_left=final.number - last)
        if after >= final.number and scanned is None:
            await self._keep(connection, name, [], final.number)
        return final

    async def _survey(
        self,
        connection: AsyncConnection,
        name: str,
        custody_reader: CustodyReader,
        final: Block,
        *,
        is_whole: bool,
    ) -> None:
        """Look at the next addresses that are not known to hold anything, or at all from the first on.

        What a transfer brought that no node showed is seen by its balance alone.
        """
        if is_whole:
            last: bytes | None = b""
            while last is not None:
                last = await self._survey_page(connection, name, custody_reader, final, last)
        else:
            last = await records.read_survey_place(connection, name)
            last = await self._survey_page(connection, name, custody_reader, final, last)
        await records.move_survey(connection, name, last, self._clock())

    async def _survey_page(
        self,
        connection: AsyncConnection,
        name: str,
        custody_reader: CustodyReader,
        final: Block,
        after: bytes,
    ) -> bytes | None:
        """Look at some addresses after one; gives the last of them, None when no more follow."""
        limit = custody_reader.survey_size
        addresses = await records.page_unsurveyed(connection, name, after, limit)
        if addresses:
            held = await read_balances(custody_reader, addresses, final)
            found = {address for address, units in held.items() if units > 0}
            for address in sorted(found):
                log.info(
                    "found an address by its balance",
                    chain=name,
                    address=format_address(name, address),
                    units=held[address],
                )
            await records.add_addresses(connection, name, records.DEPOSIT, found, self._clock())
        return None if len(addresses) < limit else addresses[-1]

    async def _keep(
        self, connection: AsyncConnection, name: str, transfers: Sequence[TokenTransfer], last: int
    ) -> None:
        owned = {seen.transfer.recipient for seen in await deposit_store.find_owned(connection, transfers)}
        known = await records.read_addresses(connection, name)
        movements = find_movements(transfers, known.hot, known.deposits | owned)
        judged = await records.judge_movements(connection, name, movements, known.hot)
        # What the books contain already will be in every later snapshot of them.
        found = [each for each in judged if not each.is_booked]
        now = self._clock()
        ours = known.hot | known.deposits | owned
        async with connection.transaction():
            await records.add_addresses(connection, name, records.DEPOSIT, owned - known.deposits, now)
            await records.write_remainders(connection, name, _to(ours, transfers))
            await records.write_movements(connection, name, found, last, now)

    async def _look(
        self, connection: AsyncConnection, custody_readers: CustodyReaders, failures: Mapping[str, str]
    ) -> Look:
        views: dict[str, View] = {}
        causes = dict(failures)
        async with connection.transaction():
            balances = await records.begin_snapshot(connection)
            for name, custody_reader in custody_readers.items():
                try:
                    async with asyncio.timeout(CHAIN_TIMEOUT_S):
                        views[name] = await self._view(connection, name, custody_reader, balances)
                except FAILURES as error:
                    causes[name] = str(error) or type(error).__name__
        return Look(balances, views, causes)

    async def _view(
        self, connection: AsyncConnection, name: str, custody_reader: CustodyReader, balances: Balances
    ) -> View:
        """One chain beside the books of the snapshot, at a block that became final no earlier."""
        reader = custody_reader.reader
        books = await records.read_books(connection, name, balances, custody_reader.own_units)
        scanned = await records.read_scanned(connection, name)
        block = await reader.final()
        if scanned is None or block.number < scanned.block_number:
            raise BalanceMoved("the nodes have gone back behind what they called final before")
        later = []
        if block.number > scanned.block_number:
            later = await reader.transfers(scanned.block_number + 1, block.number)
        owned = {seen.transfer.recipient for seen in await deposit_store.find_owned(connection, later)}
        known = await records.read_addresses(connection, name)
        deposits = known.deposits | owned
        movements = await records.read_open_movements(connection, name)
        # The sandbox's stretches overlap.
        movements += [each for each in find_movements(later, known.hot, deposits) if each not in movements]
        judged = await records.judge_movements(connection, name, movements, known.hot)
        held = await read_balances(custody_reader, known.hot | deposits, block)
        hot_units = sum(held[address] for address in known.hot)
        deposit_units = sum(held.values()) - hot_units
        # Remainders of the blocks up to `scanned` are stored, later ones are stored with this view.
        stored = await records.read_remainders(connection, name)
        rests = add_remainders(stored, later, known.hot | deposits, CHAINS[name].base_units)
        comparison = compare(name, block.number, books, (hot_units, deposit_units), judged, rests)
        context = await self._look_around(connection, name, custody_reader, known.hot, len(deposits))
        if comparison.unexplained_units:
            strays = await self._find_strays(connection, name, held, judged, rests)
            context = msgspec.structs.replace(context, strays=strays)
        received = tuple(_to(known.hot | deposits, later))
        return View(comparison, tuple(judged), frozenset(owned - known.deposits), context, received)

    async def _find_strays(
        self,
        connection: AsyncConnection,
        name: str,
        held: Mapping[bytes, int],
        judged: Sequence[JudgedMovement],
        rests: Mapping[bytes, int],
    ) -> dict[str, tuple[int, int]]:
        """Deposit addresses that hold something else than deposits, sweeps and open movements say."""
        expected = await records.read_expected(connection, name)
        expected = {address: units + rests.get(address, 0) for address, units in expected.items()}
        for each in judged:
            movement = each.movement
            address = movement.sender if movement.is_out else movement.recipient
            # A held deposit is expected already.
            if address in expected and not each.is_booked and not each.is_held:
                expected[address] += movement.effect_units
        strays = {
            format_address(name, address): (held[address], units)
            for address, units in expected.items()
            if address in held and held[address] != units
        }
        return dict(sorted(strays.items())[:SHOWN_STRAYS])

    async def _look_around(
        self,
        connection: AsyncConnection,
        name: str,
        custody_reader: CustodyReader,
        hot: frozenset[bytes],
        deposit_count: int,
    ) -> ReportContext:
        seen, under_way = await records.read_surroundings(connection, name)
        before = read_coin(await records.read_last_explanation(connection, name))
        coin = {
            format_address(name, address): await custody_reader.reader.coin_balance(address)
            for address in sorted(hot)
        }
        surveyed_ms = await records.read_survey(connection, name)
        return ReportContext(seen, under_way, deposit_count, coin, before, surveyed_ms=surveyed_ms)

    async def _remember(self, connection: AsyncConnection, look: Look) -> None:
        now = self._clock()
        for name, view in look.views.items():
            async with connection.transaction():
                await records.add_addresses(connection, name, records.DEPOSIT, view.new_deposits, now)
                await records.write_remainders(connection, name, view.received)
                block = view.comparison.block_number
                await records.write_movements(connection, name, view.judged, block, now)

    async def _conclude(self, connection: AsyncConnection, look: Look, *, is_whole: bool) -> Document:
        """Keep what was found, say it aloud where an operator must look, stop payouts on a shortage."""
        now, custody = self._clock(), look.weigh() if is_whole else None
        chains = []
        for name, view in look.views.items():
            comparison = view.comparison
            is_sound = comparison.is_sound and not look.imbalances
            document = describe_comparison(comparison, view.context, is_sound=is_sound)
            numbers = (
                comparison.block_number,
                comparison.books.total_units,
                comparison.chain_units,
                comparison.unexplained_units,
            )
            await records.write_result(
                connection, name, numbers, document, is_sound=is_sound, cause=None, now_ms=now
            )
            self._tell(name, comparison, is_sound=is_sound)
            chains.append(document)
        for name, cause in look.failures.items():
            document = describe_failure(name, cause)
            await records.write_result(
                connection, name, None, document, is_sound=False, cause=cause, now_ms=now
            )
            log.warning("reconciliation could not be made", chain=name, cause=cause)
            chains.append(document)
        is_short = custody is not None and custody.shortage_units > 0
        if is_short and custody is not None:
            await self._stop(connection, look, custody, now)
        return {
            "sound": all(document["sound"] for document in chains) and not is_short,
            "chains": chains,
            "custody": describe_custody(custody, look.balances),
            "imbalance": {currency: format_units(units) for currency, units in look.imbalances.items()},
        }

    def _tell(self, name: str, comparison: Comparison, *, is_sound: bool) -> None:
        told = {
            "chain": name,
            "block": comparison.block_number,
            "difference_units": comparison.difference_units,
            "unexplained_units": comparison.unexplained_units,
            "alarming": [line.kind for line in comparison.lines if line.is_alarming],
        }
        if is_sound:
            log.info("reconciled", **told)
        else:
            log.critical("books and chain differ, an operator must look", **told)

    async def _stop(self, connection: AsyncConnection, look: Look, custody: Custody, now: int) -> None:
        held, owed = format_units(custody.held_units), format_units(custody.owed_units)
        cause = f"custody holds {held} {USDT}, and {owed} are owed"
        for name in look.views:
            if await stop_payouts(connection, name, ACTOR, cause, now):
                log.critical("payouts stopped, an operator must look", chain=name, cause=cause)


def _to(addresses: frozenset[bytes], transfers: Sequence[TokenTransfer]) -> list[TokenTransfer]:
    """The transfers to these addresses."""
    return [transfer for transfer in transfers if transfer.recipient in addresses]
