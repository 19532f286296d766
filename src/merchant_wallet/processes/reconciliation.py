"""Reconciliation: compares the books with the chains, on a schedule or when an operator asks.

Rules:
- All books of a cell are read in one snapshot, and home in one. Each chain's final block is read during the
  snapshots, so the chain has everything that the books contain. The rest is explained line by line.
- While a cell is away nothing is compared, and the results say so. It waits while a book moves.
- A difference without an explanation is compared again before it is reported: a node may be behind.
- Nothing here moves money. If custody holds less than is owed, payouts stop on every chain. Outside the
  sandbox two people must resume them, in the sandbox one person.
- Any number of reconciliations may run at once.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from decimal import Decimal
from functools import partial
from typing import Final

import msgspec
import structlog
from psycopg import AsyncConnection

from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.cells import Cells, Databases
from merchant_wallet.base.chains import CHAINS
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.currencies import USDT
from merchant_wallet.base.money import format_units
from merchant_wallet.base.workers import Connect, describe_error, limit_time, repeat
from merchant_wallet.chains.jsonrpc import CallReverted
from merchant_wallet.chains.protocol import Block, ChainAway, ChainDisagrees, TokenTransfer
from merchant_wallet.chains.transport import NodeFailed, NodeRefused
from merchant_wallet.custody import records, still_snapshots
from merchant_wallet.custody.balances import BalanceMoved, CustodyReader, read_balances, read_block_ranges
from merchant_wallet.custody.cold.counting import count_new_wallets, write_balances
from merchant_wallet.custody.comparison import (
    Comparison,
    Custody,
    add_remainders,
    compare,
    list_remainders,
)
from merchant_wallet.custody.earlier_payouts import find_earlier_payouts
from merchant_wallet.custody.records import Balances
from merchant_wallet.custody.report import (
    Document,
    ReportContext,
    describe_comparison,
    describe_custody,
    describe_failure,
    read_coin,
)
from merchant_wallet.deposits import chain_store
from merchant_wallet.hot_wallet.stops import stop_payouts
from merchant_wallet.hot_wallet.store import find_address
from merchant_wallet.processes.cell_connections import CellAway, CellConnections
from merchant_wallet.processes.chain_views import ChainView, ChainViews
from merchant_wallet.processes.strays import find_strays

ACTOR: Final = "reconciliation"
MAX_COMPARISONS: Final = 3
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
"""Errors of a chain after which the comparison is made another time."""

CustodyReaders = Mapping[str, CustodyReader]
OpenCustodyReaders = Callable[[AsyncConnection], CustodyReaders]

log = structlog.get_logger(__name__)


class Reconciler:
    """Compares all chains. `open_custody_readers` opens readers on the connection to home.

    Without `cells` there is the default cell alone.
    """

    def __init__(
        self,
        connect: Connect,
        open_custody_readers: OpenCustodyReaders,
        *,
        cells: Cells | None = None,
        clock: Callable[[], int] = now_ms,
        wait_s: float = still_snapshots.WAIT_S,
    ) -> None:
        self._connections = CellConnections(connect, cells)
        self._open_custody_readers = open_custody_readers
        self._clock = clock
        self._wait_s = wait_s

    async def run(self, stop: asyncio.Event, *, interval_s: float) -> None:
        """Compare every `interval_s` until `stop` is set, then close the connection."""
        try:
            await repeat("reconciliation", self.reconcile, stop=stop, interval_s=interval_s)
        finally:
            await self.close()

    async def close(self) -> None:
        """Close the connection."""
        await self._connections.close()

    async def reconcile(self, only: str | None = None, *, surveys_all: bool = False) -> Document:
        """Compare all chains, or one. Returns the whole document. Raises LookupError for an unknown chain.

        With `surveys_all` the balances of all addresses are read, not only of the next few.
        """
        home = await self._connections.get_home()
        custody_readers = self._open_custody_readers(home)
        if only is not None:
            if only not in custody_readers:
                raise LookupError(f"{only} is not set up here")
            custody_readers = {only: custody_readers[only]}
        try:
            databases = await self._connections.get()
        except CellAway as away:
            chain_views = ChainViews({}, {}, dict.fromkeys(custody_readers, str(away)))
        else:
            chain_views = await self._compare(databases, custody_readers, surveys_all=surveys_all)
        return await self._conclude(home, chain_views, is_whole=only is None)

    async def _compare(
        self, databases: Databases, custody_readers: CustodyReaders, *, surveys_all: bool
    ) -> ChainViews:
        failures = await self._catch_up(databases, custody_readers, surveys_all=surveys_all)
        reachable = {name: each for name, each in custody_readers.items() if name not in failures}
        for _ in range(MAX_COMPARISONS):
            look = partial(self._compare_chains, databases, reachable, failures)
            found = await still_snapshots.repeat_while_moving(look, self._wait_s)
            chain_views = found or ChainViews({}, {}, dict.fromkeys(custody_readers, still_snapshots.MOVING))
            await self._store_views(databases.home, chain_views)
            if chain_views.is_explained:
                break
        return chain_views

    async def _catch_up(
        self, databases: Databases, custody_readers: CustodyReaders, *, surveys_all: bool
    ) -> dict[str, str]:
        """Search every chain up to its final block. Returns the causes for chains where that failed."""
        failures = {}
        for name, custody_reader in custody_readers.items():
            try:
                final = await self._search(databases, name, custody_reader)
                await self._survey(databases.home, name, custody_reader, final, is_whole=surveys_all)
            except FAILURES as error:
                failures[name] = describe_error(error)
        return failures

    async def _search(self, databases: Databases, name: str, custody_reader: CustodyReader) -> Block:
        """Find transfers of our addresses since the last search. Returns the newest final block."""
        home = databases.home
        now = self._clock()
        wallets = (custody_reader.wallet, await find_address(home, name))
        await records.add_addresses(home, name, records.HOT, {each for each in wallets if each}, now)
        final = await custody_reader.reader.final()
        scanned = await records.read_scanned(home, name)
        since_ms = 0 if scanned is None else scanned.moved_ms
        reached = await records.find_deposit_addresses(databases.cells, name, since_ms)
        await records.add_addresses(home, name, records.DEPOSIT, reached, now)
        if scanned is None:
            first = await records.find_first_block(home, name)
            after = final.number if first is None else min(first, final.number)
        else:
            after = scanned.block_number
        await count_new_wallets(home, name, custody_reader, after, final, now)
        async for last, transfers in read_block_ranges(custody_reader, after, final.number):
            await self._store_transfers(databases, name, transfers, last)
            if last < final.number:
                log.info("searching", chain=name, block=last, blocks_left=final.number - last)
        if after >= final.number and scanned is None:
            await self._store_transfers(databases, name, [], final.number)
        earlier = await find_earlier_payouts(databases, name)
        async with home.transaction():
            await records.write_movements(home, name, earlier, after, now)
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
        """Read balances of the next addresses without a known deposit, or of all of them.

        If no node reported a transfer, only the balance shows it.
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
        """Read balances of one page of addresses. Returns the last address, or None after the last page."""
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
                    amount_units=held[address],
                )
            await records.add_addresses(connection, name, records.DEPOSIT, found, self._clock())
        return None if len(addresses) < limit else addresses[-1]

    async def _store_transfers(
        self, databases: Databases, name: str, transfers: Sequence[TokenTransfer], last: int
    ) -> None:
        home = databases.home
        owned = {seen.transfer.recipient for seen in await chain_store.find_received(home, transfers)}
        known = await records.read_addresses(home, name)
        movements = await records.find_movements(home, transfers, known.wallets, known.deposits | owned)
        judged = await records.judge_movements(databases, name, movements, known.wallets)
        # What the books contain now is in every later snapshot, too. But a record may be corrected.
        found = [each for each in judged if not each.is_booked or each.is_recorded]
        now = self._clock()
        ours = known.wallets | known.deposits | owned
        async with home.transaction():
            await records.add_addresses(home, name, records.DEPOSIT, owned - known.deposits, now)
            await records.write_remainders(home, name, list_remainders(transfers, ours))
            await records.write_movements(home, name, found, last, now)

    async def _compare_chains(
        self, databases: Databases, custody_readers: CustodyReaders, failures: Mapping[str, str]
    ) -> ChainViews:
        views: dict[str, ChainView] = {}
        causes = dict(failures)
        moves = await still_snapshots.read_moves(databases.home)
        async with AsyncExitStack() as transactions:
            for connection in {databases.home, *databases.cells}:
                await transactions.enter_async_context(connection.transaction())
            balances = await still_snapshots.begin_still_snapshot(databases, moves)
            for name, custody_reader in custody_readers.items():
                try:
                    async with limit_time(CHAIN_TIMEOUT_S, "the comparison was not done"):
                        views[name] = await self._compare_chain(databases, name, custody_reader, balances)
                except FAILURES as error:
                    causes[name] = describe_error(error)
        return ChainViews(balances, views, causes)

    async def _compare_chain(
        self, databases: Databases, name: str, custody_reader: CustodyReader, balances: Balances
    ) -> ChainView:
        """Compare one chain with the snapshot, at a block that became final after the snapshot began."""
        home = databases.home
        reader = custody_reader.reader
        books = await records.read_books(databases, name, balances, custody_reader.own_units)
        scanned = await records.read_scanned(home, name)
        block = await reader.final()
        if scanned is None or block.number < scanned.block_number:
            raise BalanceMoved("the nodes have gone back behind what they called final before")
        later = []
        if block.number > scanned.block_number:
            later = await reader.transfers(scanned.block_number + 1, block.number)
        owned = {seen.transfer.recipient for seen in await chain_store.find_received(home, later)}
        known = await records.read_addresses(home, name)
        deposits = known.deposits | owned
        movements = await records.read_open_movements(home, name)
        # The sandbox's block ranges overlap.
        new = await records.find_movements(home, later, known.wallets, deposits)
        movements += [each for each in new if each not in movements]
        judged = await records.judge_movements(databases, name, movements, known.wallets)
        held = await read_balances(custody_reader, known.wallets | deposits, block)
        hot_units = sum(held[address] for address in known.hot)
        cold = {address: held[address] for address in known.cold}
        cold_units = sum(cold.values())
        deposit_units = sum(held.values()) - hot_units - cold_units
        # Remainders of the blocks up to `scanned` are stored, later ones are stored with this view.
        stored = await records.read_remainders(home, name)
        rests = add_remainders(stored, later, known.wallets | deposits, CHAINS[name].base_units)
        units = (hot_units, deposit_units, cold_units)
        comparison = compare(name, block.number, books, units, judged, rests)
        context = await self._read_report_context(databases, name, custody_reader, known.hot, len(deposits))
        if comparison.unexplained_units:
            strays = await find_strays(databases, name, held, judged, rests)
            context = msgspec.structs.replace(context, strays=strays)
        remainders = tuple(list_remainders(later, known.wallets | deposits))
        new_deposits = frozenset(owned - known.deposits)
        return ChainView(comparison, tuple(judged), new_deposits, context, remainders, cold)

    async def _read_report_context(
        self,
        databases: Databases,
        name: str,
        custody_reader: CustodyReader,
        hot: frozenset[bytes],
        deposit_count: int,
    ) -> ReportContext:
        home = databases.home
        seen, under_way = await records.read_surroundings(databases, name)
        before = read_coin(await records.read_last_explanation(home, name))
        coin = {
            format_address(name, address): await custody_reader.reader.coin_balance(address)
            for address in sorted(hot)
        }
        surveyed_ms = await records.read_survey(home, name)
        successor = await custody_reader.read_successor()
        return ReportContext(
            seen, under_way, deposit_count, coin, before, surveyed_ms=surveyed_ms, successor=successor
        )

    async def _store_views(self, connection: AsyncConnection, chain_views: ChainViews) -> None:
        now = self._clock()
        for name, view in chain_views.views.items():
            async with connection.transaction():
                await records.add_addresses(connection, name, records.DEPOSIT, view.new_deposits, now)
                await records.write_remainders(connection, name, view.remainders)
                block = view.comparison.block_number
                await records.write_movements(connection, name, view.judged, block, now)
                await write_balances(connection, name, view.cold, block, now)

    async def _conclude(
        self, connection: AsyncConnection, chain_views: ChainViews, *, is_whole: bool
    ) -> Document:
        """Store the results, log them as critical if an operator must look, stop payouts on a shortage."""
        now, custody = self._clock(), chain_views.weigh() if is_whole else None
        chains = []
        for name, view in chain_views.views.items():
            comparison = view.comparison
            # A deprecated token shows no new deposits, however well the balances fit.
            is_current = view.context.successor is None
            is_sound = comparison.is_sound and is_current and not chain_views.imbalances
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
            self._log_result(name, comparison, view.context.successor, is_sound=is_sound)
            chains.append(document)
        for name, cause in chain_views.failures.items():
            document = describe_failure(name, cause)
            await records.write_result(
                connection, name, None, document, is_sound=False, cause=cause, now_ms=now
            )
            log.warning("reconciliation could not be made", chain=name, cause=cause)
            chains.append(document)
        is_short = custody is not None and custody.shortage_units > 0
        if is_short and custody is not None:
            await self._stop(connection, chain_views, custody, now)
        return {
            "sound": all(document["sound"] for document in chains) and not is_short,
            "chains": chains,
            "custody": describe_custody(custody, chain_views.balances),
            "imbalance": {
                currency: format_units(units) for currency, units in chain_views.imbalances.items()
            },
        }

    def _log_result(
        self, name: str, comparison: Comparison, successor: str | None, *, is_sound: bool
    ) -> None:
        fields = {
            "chain": name,
            "block": comparison.block_number,
            "difference_units": comparison.difference_units,
            "unexplained_units": comparison.unexplained_units,
            "alarming": [line.kind for line in comparison.lines if line.is_alarming],
            **({} if successor is None else {"successor": successor}),
        }
        if is_sound:
            log.info("reconciled", **fields)
        else:
            log.critical("books and chain differ, an operator must look", **fields)

    async def _stop(
        self, connection: AsyncConnection, chain_views: ChainViews, custody: Custody, now: int
    ) -> None:
        held, owed = (Decimal(format_units(units)) for units in (custody.held_units, custody.owed_units))
        cause = f"custody holds {held:,} {USDT}, and {owed:,} {USDT} are owed"
        for name in chain_views.views:
            if await stop_payouts(connection, name, ACTOR, cause, now):
                log.critical("payouts stopped, an operator must look", chain=name, cause=cause)
