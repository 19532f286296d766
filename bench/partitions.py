"""What a journal in partitions would cost a group of transfers: `python -m bench.partitions`.

Rules: only the statements on the journal are run, by one connection with the writer's plans. The ways are
measured in turns, so a busy machine slows all of them. Every way has the same entries. The decision about the
archive quotes these figures.
"""

import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import psycopg
import typer

from bench.database import open_database
from merchant_wallet.base.db import Queries, connect_sync
from merchant_wallet.base.units import DAY_MS

QUERIES: Final = Queries(Path(__file__).with_name("partitions.sql"))
MONTHS: Final = 24
MONTH_MS: Final = 30 * DAY_MS
RANGE: Final = 1 << 33
TRANSFERS: Final = 64
"""The transfers of a group."""
WAYS: Final = ("one_table", "archived", "key_table", "each_month")
WRITES: Final = ("find", "find", "insert_entries", "insert_postings")
READS: Final = ("read_postings",)


def main(
    entries: Annotated[int, typer.Option(help="How many entries there are before.")] = 500_000,
    turns: Annotated[int, typer.Option(help="How often each way is measured.")] = 30,
    groups: Annotated[int, typer.Option(help="The groups of a turn.")] = 40,
) -> None:
    """Print the milliseconds and the WAL that a group's statements on the journal take in each way."""
    with (
        tempfile.TemporaryDirectory() as folder,
        open_database(Path(folder)) as url,
        connect_sync(url) as connection,
    ):
        _fill(connection, entries)
        seen: dict[str, list[tuple[float, float, float]]] = {way: [] for way in WAYS}
        number = entries
        for turn in range(turns):
            for way in WAYS[:: -1 if turn % 2 else 1]:
                seen[way].append(_measure(connection, way, number, groups))
                number += groups * TRANSFERS
        _print(seen)


def _fill(connection: psycopg.Connection, entries: int) -> None:
    connection.execute(QUERIES["make_tables"].text.encode())
    for month in range(MONTHS + 2):
        for table in ("m_entry", "m_posting", "k_entry", "k_posting"):
            bounds = f"from ({month * MONTH_MS}) to ({(month + 1) * MONTH_MS})"
            text = f"create table {table}_{month} partition of {table} for values {bounds}"
            connection.execute(text.encode())
    values = {"entries": entries, "step_ms": MONTHS * MONTH_MS // entries, "base": RANGE}
    for name in ("fill_entries", "fill_postings", "copy_one", "copy_archived", "copy_keys", "copy_months"):
        psycopg.ClientCursor(connection).execute(QUERIES[name].text.encode(), values)
    connection.execute(b"vacuum analyze")
    # A commit that does not wait for the disk: what is measured is the work, not the machine's disk.
    for setting in (
        "plan_cache_mode = force_generic_plan",
        "enable_seqscan = off",
        "enable_hashjoin = off",
        "enable_mergejoin = off",
        "synchronous_commit = off",
    ):
        connection.execute(f"set {setting}".encode())


def _measure(
    connection: psycopg.Connection, way: str, number: int, groups: int
) -> tuple[float, float, float]:
    """The median times of a group's writes and of reading its postings, in ms, and its WAL in bytes."""
    written, read = [], []
    before = _read_wal(connection)
    for group in range(groups):
        values = _make_group(number + group * TRANSFERS)
        written.append(_run(connection, way, WRITES, values))
    wal = (_read_wal(connection) - before) / groups
    for group in range(groups):
        values = _make_group(number + group * TRANSFERS)
        read.append(_run(connection, way, READS, values))
    return statistics.median(written), statistics.median(read), wal


def _read_wal(connection: psycopg.Connection) -> int:
    row = connection.execute(QUERIES["read_wal"].text.encode()).fetchone()
    assert row is not None
    return int(row[0])


def _run(connection: psycopg.Connection, way: str, kinds: Sequence[str], values: dict[str, Any]) -> float:
    began = time.perf_counter()
    with connection.transaction():
        for kind in kinds:
            connection.execute(QUERIES[f"{way}_{kind}"].text.encode(), values, prepare=True)
    return (time.perf_counter() - began) * 1000


def _make_group(first: int) -> dict[str, Any]:
    numbers = range(first, first + TRANSFERS)
    return {
        "merchants": [1] * TRANSFERS,
        "ids": [RANGE + number for number in numbers],
        "names": [f"order-{number:012}" for number in numbers],
        "kinds": ["user_to_merchant"] * TRANSFERS,
        "moments": [MONTHS * MONTH_MS + number for number in numbers],
        "hashes": [bytes(32)] * TRANSFERS,
        "sources": [RANGE + number % 1000 for number in numbers],
    }


def _print(seen: dict[str, list[tuple[float, float, float]]]) -> None:
    for way in WAYS:
        parts = []
        for place, what in enumerate(("write ms", "read by id ms", "WAL bytes")):
            mine = [one[place] for one in seen[way]]
            ratio = statistics.median(
                [one[place] / other[place] for one, other in zip(seen[way], seen[WAYS[0]], strict=True)]
            )
            parts.append(f"{what} {statistics.median(mine):9.2f} ({ratio:5.2f})")
        typer.echo(f"{way:11} {', '.join(parts)}")


if __name__ == "__main__":
    typer.run(main)
