"""One book for all the tests of a file that tamper: whatever one of them did, the next finds it as it was.

Rules: the rows are put back by copy, all tables of them, whether a test changed them or not. Constraints that
a tampering took away are not put back: the next would take them away again.
"""

from dataclasses import dataclass, field

from tests.book.scribe import Scribe

COLUMNS = (
    "select c.relname, string_agg(quote_ident(a.attname), ', ' order by a.attnum)"
    " from pg_class c join pg_attribute a on a.attrelid = c.oid"
    " where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and not c.relispartition"
    " and a.attnum > 0 and not a.attisdropped and a.attgenerated = '' group by 1 order by 1"
)
"""Every table with its columns, but for those that the database computes."""


@dataclass
class KeptBook:
    """A book, the ids of its entries by name, and a copy of every row that is in the database now."""

    scribe: Scribe
    named: dict[str, int]
    columns: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.columns = dict(self.scribe.run(COLUMNS).fetchall())
        self.scribe.run("create schema kept")
        for table in self.columns:
            self.scribe.run(f"create table kept.{table} as table {table}")

    def restore(self) -> None:
        """Undo what was tampered with."""
        if not self.scribe.tampered:
            return
        copies = (
            f"delete from {table};"
            f"insert into {table} ({columns}) overriding system value select {columns} from kept.{table};"
            for table, columns in self.columns.items()
        )
        # All in one message, which is one transaction.
        self.scribe.run("".join(copies))
