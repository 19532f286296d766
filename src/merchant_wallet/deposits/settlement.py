"""What happens to the transfers in final blocks. Pure.

Rules:
- A transfer that is known from the same block is not changed, however often the block is read.
- A transaction that was settled in another block is held. So is a settled transfer whose block has left the
  chain. A person decides about both.
- A credited deposit stays credited. If its transaction is in another block now with the same amount and
  address, only the block changes. If they differ, the deposit says so and the books are not changed.
- Everything else is credited next, or is dust.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.currencies import USDT
from merchant_wallet.base.money import format_units
from merchant_wallet.chains.protocol import TokenTransfer
from merchant_wallet.deposits.deposit_states import OPEN, SETTLED, STEPS, Event, State, step


class Owned(msgspec.Struct, frozen=True, gc=False):
    """A transfer to an address of ours. Without a user the address is the merchant's own."""

    merchant_id: int
    user_id: int | None
    transfer: TokenTransfer


class Known(msgspec.Struct, frozen=True, gc=False):
    """A known deposit of one of the transactions or blocks that are being settled.

    `credited_hash` is the block that its transaction was credited from, wherever it is now.
    """

    merchant_id: int
    tx_hash: str
    log_index: int
    block_log_index: int | None
    block_number: int
    block_hash: str
    address: bytes
    amount_units: int
    status: State
    cause: str | None
    credited_hash: str | None = None

    @property
    def key(self) -> tuple[str, int]:
        """Its identity on its chain."""
        return self.tx_hash, self.log_index

    def is_log_of(self, transfer: TokenTransfer) -> bool:
        """Whether it is exactly this log of this block."""
        if (self.tx_hash, self.block_hash) != (transfer.tx_hash, transfer.block_hash):
            return False
        if self.block_log_index is None or transfer.block_log_index is None:
            return self.log_index == transfer.log_index
        return self.block_log_index == transfer.block_log_index

    def brought_the_same(self, owned: Owned) -> bool:
        """Whether it brought the same amount to the same address."""
        transfer = owned.transfer
        return (self.merchant_id, self.address, self.amount_units) == (
            owned.merchant_id,
            transfer.recipient,
            transfer.amount_units,
        )


class Write(msgspec.Struct, frozen=True):
    """A deposit to write. It replaces a row with the same key as far as `deposit_states` allows."""

    owned: Owned
    status: State
    cause: str | None = None


class Move(msgspec.Struct, frozen=True):
    """A credited or dropped deposit that is in another block now."""

    known: Known
    transfer: TokenTransfer


class Note(msgspec.Struct, frozen=True):
    """How the chain differs from a deposit, which is not changed."""

    known: Known
    cause: str


class Hold(msgspec.Struct, frozen=True):
    """A settled deposit that is not credited and whose block has left the chain. It may be held already."""

    known: Known
    cause: str


Change = Write | Move | Note | Hold


def settle_transfers(
    owned: Sequence[Owned], known: Sequence[Known], blocks: range, minimum_units: int
) -> list[Change]:
    """What to do about these transfers. They are all that the blocks hold for us."""
    of_transaction: dict[str, list[Known]] = {}
    for row in known:
        of_transaction.setdefault(row.tx_hash, []).append(row)
    new = [each for each in owned if not _is_known(each, of_transaction.get(each.transfer.tx_hash, ()))]
    seen_in: dict[str, str] = {}
    changes: list[Change] = []
    for each in new:
        transfer = each.transfer
        rows = of_transaction.get(transfer.tx_hash, [])
        first_seen = seen_in.setdefault(transfer.tx_hash, transfer.block_hash)
        others = {first_seen, *(row.block_hash for row in rows if row.status in SETTLED)}
        others |= {row.credited_hash for row in rows if row.credited_hash is not None}
        is_elsewhere = bool(others - {transfer.block_hash})
        at = next((row for row in rows if row.log_index == transfer.log_index), None)
        changes.append(_place(each, at, is_elsewhere=is_elsewhere, minimum_units=minimum_units))
    decided = {_key_of(change) for change in changes}
    gone = [row for row in _find_gone(owned, known, blocks) if row.key not in decided]
    return changes + [change for row in gone for change in _take_note(row)]


def _is_known(each: Owned, rows: Iterable[Known]) -> bool:
    return any(row.status in SETTLED and row.is_log_of(each.transfer) for row in rows)


def _key_of(change: Change) -> tuple[str, int]:
    if isinstance(change, Write):
        return change.owned.transfer.tx_hash, change.owned.transfer.log_index
    return change.known.key


def _place(each: Owned, at: Known | None, *, is_elsewhere: bool, minimum_units: int) -> Change:
    """What to do about a new transfer. `at` is the known deposit with its key."""
    transfer = each.transfer
    if at is None or at.status not in SETTLED:
        before = None if at is None else at.status
        if is_elsewhere:
            text = f"the transaction was settled in another block than {transfer.block_number}"
            return Write(each, step(before, Event.MINED_AGAIN), text)
        event = Event.FINAL if transfer.amount_units >= minimum_units else Event.FINAL_SMALL
        return Write(each, step(before, event))
    if at.block_hash != transfer.block_hash:
        if at.status in OPEN:
            text = f"it was settled in block {at.block_number}, and is in block {transfer.block_number} now"
            return Write(each, step(at.status, Event.MINED_AGAIN), text)
        if at.brought_the_same(each):
            return Move(at, transfer)
    to = format_address(transfer.chain, transfer.recipient)
    shown = f"{format_units(transfer.amount_units)} {USDT} to {to}"
    return Note(at, f"block {transfer.block_number} has {shown} at this position, which no book contains")


def _find_gone(owned: Iterable[Owned], known: Iterable[Known], blocks: range) -> Iterator[Known]:
    """Deposits that were settled in these blocks and are not there any more."""
    held: dict[str, list[TokenTransfer]] = {}
    for each in owned:
        held.setdefault(each.transfer.tx_hash, []).append(each.transfer)
    for row in known:
        is_settled_here = row.status is State.CREDITED or Event.ORPHANED in STEPS[row.status]
        if (
            row.block_number in blocks
            and is_settled_here
            and not any(row.is_log_of(one) for one in held.get(row.tx_hash, ()))
        ):
            yield row


def _take_note(gone: Known) -> list[Change]:
    text = f"its block {gone.block_number} has left the chain"
    if gone.cause == text:
        return []
    return [Note(gone, text)] if gone.status is State.CREDITED else [Hold(gone, text)]
