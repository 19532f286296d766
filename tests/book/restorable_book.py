"""One book for all tampering tests of a file. After each test it is restored.

All rows are restored from a copy, in all tables, whether a test changed them or not. Constraints that a test
dropped stay dropped: the next test would drop them again.
"""

from dataclasses import dataclass, field

from tests.book.fake_writer import FakeWriter

COLUMNS = (
    "select c.relname, string_agg(quote_ident(a.attname), ', ' order by a.attnum)"
    " from pg_class c join pg_attribute a on a.attrelid = c.oid"
    " where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and not c.relispartition"
    " and a.attnum > 0 and not a.attisdropped and a.attgenerated = '' group by 1 order by 1"
)
"""Every table with its columns, without computed columns."""


@dataclass
class RestorableBook:
    """A book, the ids of its entries by name, and a copy of every row."""

    fake_writer: FakeWriter
    named: dict[str, int]
    columns: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.columns = dict(self.fake_writer.run(COLUMNS).fetchall())
        self.fake_writer.run("create schema copy")
        for table in self.columns:
            self.fake_writer.run(f"create table copy.{table} as table {table}")

    def restore(self) -> None:
        """Restore the rows if a test changed any."""
        if not self.fake_writer.tampered:
            return
        copies = (
            f"delete from {table};"
            f"insert into {table} ({columns}) overriding system value "
            f"select {columns} from copy.{table};"
            for table, columns in self.columns.items()
        )
        # One message, so it is one transaction.
        self.fake_writer.run("".join(copies))
