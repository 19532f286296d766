"""Deposits in SQL: the keys that are read, the rows that come back, the credits that are written. Pure.

Rules:
- A credit is inserted, and the table's key allows one credit for each deposit. The deposit must be `pending`
  and becomes `credited`.
- A credit names the block that it is from, or the person who released it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from merchant_wallet.book import arrays
from merchant_wallet.book.arrays import of_ints, of_texts
from merchant_wallet.book.commands import DepositKey
from merchant_wallet.book.outcomes import Credited
from merchant_wallet.book.read_set import ReadSet
from merchant_wallet.book.state import Deposit, Draft

KEY: Final = (of_texts, of_texts, of_ints)
"""The encoders of a deposit's key."""


def list_keys(read_set: ReadSet) -> Iterable[tuple[str, str, int]]:
    """The keys of the deposits that a read set names."""
    return [_fields(key) for key in read_set.deposits]


def _fields(key: DepositKey) -> tuple[str, str, int]:
    return key.chain, key.tx_hash, key.log_index


def add_rows(drafts: Mapping[int, Draft], rows: Iterable[Sequence[Any]]) -> None:
    """Add the rows of `read_deposits` to the drafts."""
    for merchant_id, *row in rows:
        draft = drafts[int(merchant_id)]
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


def list_credited(draft: Draft) -> Iterable[tuple[Any, ...]]:
    """The keys of the deposits that a batch credited."""
    return [_fields(key) for key in draft.changes.credited]


def list_blocks(draft: Draft) -> Iterable[tuple[Any, ...]]:
    """The blocks that the credited transactions are from."""
    return [(key.chain, key.tx_hash, _block_of(draft.deposits[key])) for key in draft.changes.credited]


def list_credits(draft: Draft) -> Iterable[tuple[Any, ...]]:
    """The credits of a batch."""
    for key in draft.changes.credited:
        deposit = draft.deposits[key]
        given = deposit.credited
        assert given is not None, "a credited deposit has its credit"
        money = given.entry_id, given.currency, given.arrival_units, given.rate_e8
        yield *_fields(key), *money, _block_of(deposit), deposit.released_by


def _block_of(deposit: Deposit) -> str | None:
    """The block that the credit is from. None if a person released it."""
    return deposit.block_hash if deposit.released_by is None else None
