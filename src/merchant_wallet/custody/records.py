"""The SQL of reconciliation: what it reads from the books and what it stores.

Rules:
- Nothing here decides anything.
- Reads run in the caller's snapshot, writes after it. Every write may be repeated.
- Deposits, orders and accounts are read from all cells, everything else from home. The default cell's
  connection is home's own.
- Statements are in `records.sql`. All functions raise `psycopg.Error`.
- Times are milliseconds, amounts are units of 10^-6.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from psycopg import AsyncConnection
from psycopg.types.json import Jsonb

from merchant_wallet.base.cells import Databases
from merchant_wallet.base.chains import CHAINS
from merchant_wallet.base.currencies import USDT
from merchant_wallet.base.db import Queries
from merchant_wallet.base.units import HOUR_MS, MAX_BIGINT
from merchant_wallet.chains.protocol import TokenTransfer
from merchant_wallet.custody import comparison
from merchant_wallet.custody.comparison import Books, JudgedMovement, Movement, Remainder, Waiting

QUERIES: Final = Queries(Path(__file__).with_name("records.sql"))
_TEXTS: Final = {name: query.text.encode() for name, query in QUERIES.items()}

HOT: Final = "hot"
COLD: Final = "cold"
DEPOSIT: Final = "deposit"
BOOKED: Final = frozenset({"pending", "dust", "dropped", "credited"})
"""The states of a final deposit that the books know. A held one waits for a person."""
HELD: Final = "held"
MARGIN_MS: Final = HOUR_MS
"""Deposits are searched from this long before the last search: clocks differ, and commits are late."""

Balances = Mapping[tuple[str, str], int]
"""The sum over all books, by kind of account and currency."""


class Scanned(msgspec.Struct, frozen=True):
    """The block up to which a chain was searched, and when."""

    block_number: int
    moved_ms: int


class ResultShown(msgspec.Struct, frozen=True):
    """One comparison: its number, its time and its document. `cause` says why it failed."""

    result_no: int
    at_ms: int
    is_sound: bool
    cause: str | None
    explanation: dict[str, Any]


class Addresses(msgspec.Struct, frozen=True):
    """Our addresses of one chain that may hold something."""

    hot: frozenset[bytes]
    deposits: frozenset[bytes]
    cold: frozenset[bytes] = frozenset()

    @property
    def wallets(self) -> frozenset[bytes]:
        """Hot and cold wallets. What moves between them, and from deposit addresses to them, stays ours."""
        return self.hot | self.cold


async def begin_snapshot(databases: Databases) -> Balances:
    """Fix the snapshots of these transactions, each at one moment. Returns the balances of all books.

    Home's comes last: it has signed whatever a cell has settled.
    """
    balances: Counter[tuple[str, str]] = Counter()
    for connection in databases.cells:
        await connection.execute(_TEXTS["begin_snapshot"])
        await connection.execute(_TEXTS["be_patient"])
    for cell in reversed(databases.cells):
        balances.update({(kind, code): int(units) for kind, code, units in await _rows(cell, "sum_accounts")})
    return balances


async def read_books(databases: Databases, chain: str, balances: Balances, own_units: int) -> Books:
    """What the books say about one chain."""
    home, cells = databases.home, databases.cells
    waiting = await _read_waiting(cells, chain)
    [(treasury_units,)] = await _rows(home, "sum_treasury", chain=chain)
    [(opening_units,)] = await _rows(home, "sum_opening", chain=chain)
    watched = [await _rows(cell, "read_watched", chain=chain) for cell in cells]
    return Books(
        outside_units=-balances.get((CHAINS[chain].account_kind, USDT), 0),
        treasury_units=treasury_units,
        pending=waiting["pending"],
        dust=waiting["dust"],
        watched_block=min([rows[0][0] if rows else -1 for rows in watched]),
        own_units=own_units,
        held=waiting["held"],
        opening_units=opening_units,
    )


async def read_surroundings(databases: Databases, chain: str) -> tuple[Waiting, Waiting]:
    """Deposits that are not final yet, and signed payouts that are not known to be final."""
    home, cells = databases.home, databases.cells
    waiting = await _read_waiting(cells, chain)
    [under_way] = await _rows(home, "sum_under_way", chain=chain)
    return waiting["seen"], Waiting(*under_way)


async def _read_waiting(cells: Sequence[AsyncConnection], chain: str) -> dict[str, Waiting]:
    counts: Counter[str] = Counter()
    units: Counter[str] = Counter()
    for cell in cells:
        for status, count, amount in await _rows(cell, "sum_waiting", chain=chain):
            counts[status] += count
            units[status] += amount
    return {status: Waiting(count, units[status]) for status, count in counts.items()}


async def read_scanned(connection: AsyncConnection, chain: str) -> Scanned | None:
    """How far the chain was searched. None before the first search."""
    rows = await _rows(connection, "read_cursor", chain=chain)
    return Scanned(*rows[0]) if rows else None


async def find_first_block(connection: AsyncConnection, chain: str) -> int | None:
    """The block before everything that may be on the chain and in no book. None if there is nothing."""
    has_remainders = CHAINS[chain].base_units > 1
    [(number,)] = await _rows(connection, "find_first_block", chain=chain, has_remainders=has_remainders)
    return None if number is None else int(number)


async def find_deposit_addresses(cells: Sequence[AsyncConnection], chain: str, since_ms: int) -> set[bytes]:
    """Addresses with a final deposit since a moment."""
    since = {"chain": chain, "since_ms": since_ms - MARGIN_MS}
    found = [await _rows(cell, "find_deposit_addresses", **since) for cell in cells]
    return {bytes(address) for rows in found for (address,) in rows}


async def read_addresses(connection: AsyncConnection, chain: str) -> Addresses:
    """All addresses that may hold something."""
    rows = await _rows(connection, "list_addresses", chain=chain)
    of = {
        purpose: frozenset(bytes(address) for address, is_for in rows if is_for == purpose)
        for purpose in (HOT, DEPOSIT, COLD)
    }
    return Addresses(of[HOT], of[DEPOSIT], of[COLD])


async def page_unsurveyed(connection: AsyncConnection, chain: str, after: bytes, limit: int) -> list[bytes]:
    """The next addresses after `after` that were issued and are not known to hold anything."""
    rows = await _rows(connection, "page_unsurveyed", chain=chain, after=after, limit=limit)
    return [bytes(address) for (address,) in rows]


async def read_survey_place(connection: AsyncConnection, chain: str) -> bytes:
    """The address after which the worker's survey continues. Empty at the start of a round."""
    rows = await _rows(connection, "read_survey_place", chain=chain)
    return bytes(rows[0][0]) if rows else b""


async def move_survey(connection: AsyncConnection, chain: str, after: bytes | None, now_ms: int) -> None:
    """Continue after this address the next time. None ends the round."""
    await connection.execute(_TEXTS["move_survey"], {"chain": chain, "after": after, "now_ms": now_ms})


async def read_survey(connection: AsyncConnection, chain: str) -> int | None:
    """When the last round over all addresses ended. None before the first."""
    rows = await _rows(connection, "read_survey", chain=chain)
    return rows[0][0] if rows else None


async def read_expected(databases: Databases, chain: str) -> dict[bytes, tuple[int, int]]:
    """What each deposit address should hold by its deposits and sweeps, in units, and how much of that an
    open sweep may have moved.
    """
    home, cells = databases.home, databases.cells
    swept = await _rows(home, "list_swept", chain=chain)
    came: Counter[bytes] = Counter()
    for cell in cells:
        came.update(
            {bytes(address): units for address, units in await _rows(cell, "sum_deposits", chain=chain)}
        )
    return {bytes(address): (came[bytes(address)] - units, moving) for address, units, moving in swept}


async def add_addresses(
    connection: AsyncConnection, chain: str, purpose: str, addresses: Iterable[bytes], now_ms: int
) -> None:
    """Store addresses that may hold something from now on."""
    listed = sorted(addresses)
    if listed:
        values = {"chain": chain, "purpose": purpose, "addresses": listed, "now_ms": now_ms}
        await connection.execute(_TEXTS["insert_addresses"], values)


async def read_open_movements(connection: AsyncConnection, chain: str) -> list[Movement]:
    """Movements on the chain that are in no book yet, and those whose record an operator has corrected."""
    rows = await _rows(connection, "list_open_movements", chain=chain)
    return [
        Movement(tx_hash, log_index, is_out, block, bytes(sender), bytes(recipient), units)
        for tx_hash, log_index, is_out, block, sender, recipient, units in rows
    ]


async def find_movements(
    home: AsyncConnection,
    transfers: Sequence[TokenTransfer],
    wallets: frozenset[bytes],
    deposits: frozenset[bytes],
) -> list[Movement]:
    """The ends of transfers that are ours (see `comparison.find_movements`)."""
    inner = comparison.find_inner_hashes(transfers, wallets, deposits)
    payouts = await _rows(home, "find_payouts", tx_hashes=inner) if inner else []
    return comparison.find_movements(transfers, wallets, deposits, {tx_hash for (tx_hash,) in payouts})


async def judge_movements(
    databases: Databases, chain: str, movements: Sequence[Movement], hot: frozenset[bytes]
) -> list[JudgedMovement]:
    """Which of these movements the books contain.

    An order's transfer counts if it settled the order. A deposit counts from the moment when its cell has it,
    unless it is held.
    """
    home, cells = databases.home, databases.cells
    if not movements:
        return []
    names = _names(chain, movements)
    signed = await _rows(home, "find_signed", **names)
    keys = {
        "merchant_ids": [merchant_id for merchant_id, _, _ in signed],
        "order_ids": [order_id for _, order_id, _ in signed],
        "amounts": _amounts(movements),
    }
    found = [await _rows(cell, "judge_movements", **names, **keys) for cell in cells]
    judged = []
    for each, (*key, is_recorded), rows in zip(movements, signed, zip(*found, strict=True), strict=True):
        order_status, is_settled, deposit = _merge(rows)
        at_hot = (each.sender if each.is_out else each.recipient) in hot
        in_book = is_settled if each.is_out else not at_hot and deposit in BOOKED
        by_operator = is_recorded and (at_hot or each.is_out)
        is_booked = in_book or by_operator
        order = None if order_status is None else (key[0], key[1])
        named = msgspec.structs.replace(each, order=order)
        judged.append(
            JudgedMovement(named, at_hot, is_booked, order_status, deposit == HELD, by_operator, is_settled)
        )
    return judged


def _merge(rows: Sequence[tuple[int | None, bool, str | None]]) -> tuple[int | None, bool, str | None]:
    """What the one cell that has the order, or the deposit, says of a movement."""
    order = next(
        ((status, is_settled) for status, is_settled, _ in rows if status is not None), (None, False)
    )
    return *order, next((deposit for _, _, deposit in rows if deposit is not None), None)


async def write_movements(
    connection: AsyncConnection, chain: str, judged: Sequence[JudgedMovement], upto: int, now_ms: int
) -> None:
    """Store new movements, mark those that the books contain now, and move the cursor to a block.

    What an operator has recorded is stored too: a correction brings it back. Must run in one transaction.
    """
    found = [each.movement for each in judged if not each.is_booked or each.is_recorded]
    booked = [each.movement for each in judged if each.is_booked]
    if found:
        values = {
            "block_numbers": [each.block_number for each in found],
            "senders": [each.sender for each in found],
            "recipients": [each.recipient for each in found],
            "amounts": _amounts(found),
            "now_ms": now_ms,
        }
        await connection.execute(_TEXTS["insert_movements"], _names(chain, found) | values)
    if booked:
        await connection.execute(_TEXTS["explain_movements"], _names(chain, booked) | {"now_ms": now_ms})
    values = {"chain": chain, "block_number": upto, "now_ms": now_ms}
    await connection.execute(_TEXTS["move_cursor"], values)


async def write_remainders(connection: AsyncConnection, chain: str, found: Sequence[Remainder]) -> None:
    """Store remainders at our addresses."""
    if not found:
        return
    values = {
        "chain": chain,
        "tx_hashes": [each.tx_hash for each in found],
        "log_indexes": [each.log_index for each in found],
        "addresses": [each.address for each in found],
        "remainders": [each.remainder for each in found],
    }
    await connection.execute(_TEXTS["insert_remainders"], values)


async def read_remainders(connection: AsyncConnection, chain: str) -> dict[bytes, int]:
    """The sum of remainders at each address, in the token's smallest units."""
    rows = await _rows(connection, "list_remainders", chain=chain)
    return {bytes(address): int(remainder) for address, remainder in rows}


async def write_result(
    connection: AsyncConnection,
    chain: str,
    numbers: tuple[int, int, int, int] | None,
    explanation: Mapping[str, Any],
    *,
    is_sound: bool,
    cause: str | None,
    now_ms: int,
) -> None:
    """Store a comparison: block, books, chain, unexplained. Without numbers it stores the cause of the
    failure.
    """
    block_number, books_units, chain_units, unexplained_units = numbers or (None,) * 4
    values = {
        "chain": chain,
        "at_ms": now_ms,
        "block_number": block_number,
        "books_units": books_units,
        "chain_units": chain_units,
        "unexplained_units": unexplained_units,
        "is_sound": is_sound,
        "explanation": Jsonb(explanation),
        "cause": cause,
    }
    await connection.execute(_TEXTS["insert_result"], values)


async def read_last_explanation(connection: AsyncConnection, chain: str) -> dict[str, Any] | None:
    """The document of the last comparison that succeeded."""
    rows = await _rows(connection, "read_last_explanation", chain=chain)
    return rows[0][0] if rows else None


async def list_results(
    connection: AsyncConnection, chain: str, limit: int
) -> list[tuple[int, dict[str, Any]]]:
    """The last comparisons of a chain, newest first: time and document."""
    rows = await _rows(connection, "list_results", chain=chain, limit=limit)
    return [(at_ms, explanation) for _, at_ms, _, explanation in rows]


async def page_results(
    connection: AsyncConnection, chain: str, *, before_no: int | None = None, limit: int
) -> list[ResultShown]:
    """A chain's comparisons before a number, newest first."""
    before = MAX_BIGINT if before_no is None else before_no
    rows = await _rows(connection, "page_results", chain=chain, before_no=before, limit=limit)
    return [ResultShown(*row) for row in rows]


def _names(chain: str, movements: Sequence[Movement]) -> dict[str, Any]:
    return {
        "chain": chain,
        "tx_hashes": [each.tx_hash for each in movements],
        "log_indexes": [each.log_index for each in movements],
        "is_outs": [each.is_out for each in movements],
    }


def _amounts(movements: Sequence[Movement]) -> list[int]:
    return [each.amount_units for each in movements]


async def _rows(connection: AsyncConnection, name: str, **values: object) -> list[tuple[Any, ...]]:
    return await (await connection.execute(_TEXTS[name], values)).fetchall()
