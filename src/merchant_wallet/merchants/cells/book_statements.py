"""SQL over one table of a book after the other. Pure.

A row has changed since a snapshot if its `xmin` is not older than the oldest transaction that the snapshot
did not see as ended. That is a superset: a part of what was copied before is copied again. The names of
tables and columns come from the catalogue, so these statements are in no `.sql` file.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from psycopg import sql

from merchant_wallet.merchants.cells.book_tables import BOOK, NONCE, SEALED_BY, BookTable

CREDITED: Final = ("chain", "tx_hash", "block_hash")
"""The columns of `credited_transaction`. It has rows of all books."""


class Rows(NamedTuple):
    """Which rows of a book are meant: those that are not sealed, and have changed since a snapshot.

    `entry_id` and `day` are the last sealed entry and the first day that is not sealed. Without `oldest_xid`
    all rows have changed.
    """

    merchant_id: int
    entry_id: int = -1
    day: int = -1
    oldest_xid: str | None = None

    @property
    def live(self) -> "Rows":
        """The same without the condition that they have changed."""
        return self._replace(oldest_xid=None)


def _names(columns: Sequence[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, columns))


def where(table: str, rows: Rows, alias: str = "t") -> sql.Composed:
    """The condition for a table's rows."""
    parts = [sql.SQL("{}.merchant_id = {}").format(sql.SQL(alias), rows.merchant_id)]
    if table in SEALED_BY:
        is_day = SEALED_BY[table] == "day"
        text = sql.SQL("{}.day >= {}") if is_day else sql.SQL("{}.entry_id > {}")
        parts.append(text.format(sql.SQL(alias), rows.day if is_day else rows.entry_id))
    if rows.oldest_xid is not None:
        parts.append(_changed(rows.oldest_xid, alias))
    return sql.SQL(" and ").join(parts)


def _changed(oldest_xid: str, alias: str) -> sql.Composed:
    text = sql.SQL("age({}.xmin) <= age({}::xid)")
    return text.format(sql.SQL(alias), sql.Literal(oldest_xid))


def survey(tables: Sequence[BookTable], rows: Rows) -> sql.Composed:
    """For each table its name, the changed rows, all rows, and the sum of their hashes."""
    return sql.SQL(" union all ").join([_survey_one(table, rows) for table in tables])


def _survey_one(table: BookTable, rows: Rows) -> sql.Composed:
    changed = sql.SQL("true") if rows.oldest_xid is None else _changed(rows.oldest_xid, "t")
    text = (
        "select {}, count(*) filter (where {}), count(*),"
        " coalesce(sum(hash_record_extended(row({}), 0)), 0)::text from {} t where {}"
    )
    return sql.SQL(text).format(
        sql.Literal(table.name),
        changed,
        _names(table.columns),
        sql.Identifier(table.name),
        where(table.name, rows.live),
    )


def read_rows(table: BookTable, rows: Rows) -> sql.Composed:
    """Give the rows of a table out."""
    text = sql.SQL("copy (select {} from {} t where {}) to stdout (format binary)")
    return text.format(_names(table.columns), sql.Identifier(table.name), where(table.name, rows))


def read_page(table: BookTable, merchant_id: int, after: int, upto: int) -> sql.Composed:
    """Give a page of the journal out."""
    text = (
        "copy (select {} from {} where merchant_id = {} and entry_id > {} and entry_id <= {})"
        " to stdout (format binary)"
    )
    named = (_names(table.columns), sql.Identifier(table.name))
    return sql.SQL(text).format(*named, merchant_id, after, upto)


def read_nonce_day(table: BookTable, merchant_id: int, day: int) -> sql.Composed:
    """Give the nonces of one day out."""
    text = sql.SQL(
        "copy (select {} from nonce where merchant_id = {} and day = {}) to stdout (format binary)"
    )
    return text.format(_names(table.columns), merchant_id, day)


def read_credited(rows: Rows) -> sql.Composed:
    """Give out from which block the transactions of the book's deposits were credited."""
    text = (
        "copy (select distinct c.chain, c.tx_hash, c.block_hash from deposit d"
        " join credited_transaction c on c.chain = d.chain and c.tx_hash = d.tx_hash where {})"
        " to stdout (format binary)"
    )
    return sql.SQL(text).format(where("deposit", rows, "d"))


def read_keys(table: BookTable, rows: Rows) -> sql.Composed:
    """Give the keys of a table out."""
    text = sql.SQL("copy (select {} from {} t where {}) to stdout (format binary)")
    return text.format(_names(table.key), sql.Identifier(table.name), where(table.name, rows.live))


def make_stage(table: str, columns: Sequence[str], stage: str) -> sql.Composed:
    """A table of the session for rows on their way."""
    text = sql.SQL(
        "create temp table if not exists {} on commit delete rows as select {} from {} with no data"
    )
    return text.format(sql.Identifier(stage), _names(columns), sql.Identifier(table))


def write(table: str, columns: Sequence[str]) -> sql.Composed:
    """Take rows in."""
    text = sql.SQL("copy {} ({}) from stdin (format binary)")
    return text.format(sql.Identifier(table), _names(columns))


def merge(table: BookTable, stage: str) -> sql.Composed:
    """Insert the rows on their way, or change those that are there."""
    changed = [name for name in table.columns if name not in table.key]
    pairs = [sql.SQL("{0} = excluded.{0}").format(sql.Identifier(name)) for name in changed]
    update = sql.SQL("update set {}").format(sql.SQL(", ").join(pairs)) if pairs else sql.SQL("nothing")
    text = "insert into {} ({}) select {} from {} on conflict ({}) do {}"
    columns = _names(table.columns)
    named = (sql.Identifier(table.name), columns, columns, sql.Identifier(stage), _names(table.key), update)
    return sql.SQL(text).format(*named)


def merge_credited(stage: str) -> sql.Composed:
    """The same for credited transactions. One that is there stays."""
    text = sql.SQL("insert into credited_transaction ({}) select {} from {} on conflict do nothing")
    return text.format(_names(CREDITED), _names(CREDITED), sql.Identifier(stage))


def make_book(table: BookTable, stage: str, move_version: int) -> sql.Composed:
    """Insert the copy of the book's row, closed."""
    text = (
        "insert into {} ({}, is_open, move_version) select {}, false, {} from {}"
        " on conflict (merchant_id) do nothing"
    )
    columns = _names(table.columns)
    return sql.SQL(text).format(
        sql.Identifier(BOOK), columns, columns, sql.Literal(move_version), sql.Identifier(stage)
    )


def delete_missing(table: BookTable, rows: Rows, stage: str) -> sql.Composed:
    """Delete the rows whose keys the other side has no more."""
    same = [sql.SQL("k.{0} = t.{0}").format(sql.Identifier(name)) for name in table.key]
    text = sql.SQL("delete from {} t where {} and not exists (select from {} k where {})")
    return text.format(
        sql.Identifier(table.name),
        where(table.name, rows.live),
        sql.Identifier(stage),
        sql.SQL(" and ").join(same),
    )


def delete_all(table: str, merchant_id: int) -> sql.Composed:
    """Delete all rows that a merchant has in a table."""
    return sql.SQL("delete from {} where merchant_id = {}").format(sql.Identifier(table), merchant_id)


def delete_nonce_day(merchant_id: int, day: int) -> sql.Composed:
    """Delete the nonces of one day, before they are copied again."""
    return delete_all(NONCE, merchant_id) + sql.SQL(" and day = {}").format(day)
