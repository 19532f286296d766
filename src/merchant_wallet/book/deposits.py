"""SQL parameters and results for the deposits of a batch. `store` runs the statements.

Rules:
- A batch without deposits runs no additional statement.
- A credit is inserted, and the table's key allows one credit for each deposit. The deposit must be `pending`
  and becomes `credited`.
- A credit names the block that it is from, or the person who released it.
"""

from collections.abc import Iterable, Iterator

from psycopg.pq.abc import PGresult

from merchant_wallet.book import arrays
from merchant_wallet.book.columns import BookStatement
from merchant_wallet.book.commands import DepositKey
from merchant_wallet.book.outcomes import Credited
from merchant_wallet.book.state import Deposit, Draft


def encode_keys(keys: Iterable[DepositKey]) -> tuple[bytes, bytes, bytes]:
    """The parameters that identify deposits."""
    named = list(keys)
    return (
        arrays.of_texts([key.chain for key in named]),
        arrays.of_texts([key.tx_hash for key in named]),
        arrays.of_ints([key.log_index for key in named]),
    )


def read(draft: Draft, result: PGresult) -> None:
    """Add the rows of `read_deposits` to the draft."""
    for row in arrays.read_rows(result):
        key = DepositKey(row[0].decode(), row[1].decode(), int(row[2]))
        amount_units, entry_id = int(row[4]), arrays.read_optional_int(row[10])
        credited = None
        if entry_id is not None:
            credited = Credited(entry_id, row[11].decode(), amount_units, int(row[12]), int(row[13]))
        released_by, settled_hash = arrays.read_optional_text(row[8]), arrays.read_optional_text(row[9])
        if settled_hash is not None:
            draft.settled_hashes[key.chain, key.tx_hash] = settled_hash
        is_merchants, is_due = row[5] == b"t", row[6] == b"t"
        address = arrays.read_bytes(row[3])
        draft.deposits[key] = Deposit(
            key, address, amount_units, is_merchants, is_due, credited, row[7].decode(), released_by
        )


def write(draft: Draft) -> Iterator[BookStatement]:
    """The statements that write the credits of a batch."""
    keys = draft.changes.credited
    if not keys:
        return
    rows = [draft.deposits[key] for key in keys]
    given = [credited for row in rows if (credited := row.credited)]
    named = encode_keys(keys)
    money = (
        arrays.of_ints([credited.entry_id for credited in given]),
        arrays.of_texts([credited.currency for credited in given]),
        arrays.of_ints([credited.arrival_units for credited in given]),
        arrays.of_ints([credited.rate_e8 for credited in given]),
        arrays.of_texts([row.block_hash if row.released_by is None else None for row in rows]),
        arrays.of_texts([row.released_by for row in rows]),
    )
    yield b"insert_credits", (*named, *money)
    yield b"update_deposits", (*named, b"pending", b"%d" % len(keys))
