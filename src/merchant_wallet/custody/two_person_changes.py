"""Recording USDT that somebody moved into custody or out of it: one person proposes it, another accepts.

Rules:
- Such a record explains a difference of reconciliation away, so it needs two people on the console. No book
  changes.
- The same movement is recorded once, unless the record of it was corrected.
- A correction names its record. What could be a correction and names none is refused, until somebody says
  that it is none.
- A proposal to correct a record has a kind of its own.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Final, Literal

import msgspec

from merchant_wallet.approvals.changes import Applied, ChangeRefused, Connection, Facts, Kind, ProposedChange
from merchant_wallet.audit.records import Author
from merchant_wallet.base.money import format_units, parse_units
from merchant_wallet.base.user_input import parse_digits
from merchant_wallet.custody import treasury
from merchant_wallet.custody.treasury import TreasuryShown

RECORD: Final = "treasury.record"
CORRECT: Final = "treasury.correct"
UNRECORDED: Final[Facts] = {"recorded": False}
NONE: Final = "none"
"""Said in place of a record's number: it corrects nothing."""

Corrects = int | Literal["none"] | None


class RecordRefusal(Enum):
    """Why a record is refused. The value is the sentence."""

    REPEATED = "The same movement is recorded already."
    NO_RECORD = "There is no record {no} of this transaction."
    NOT_OPPOSITE = (
        "Record {no} says {direction} {amount} USDT. Its correction has the same transaction and amount,"
        " and the other direction."
    )
    CORRECTION = "Record {no} is a correction itself. Record the movement anew."
    CORRECTED = "Record {no} is corrected already, by record {by}."
    UNNAMED = (
        "Record {no} says {direction} {amount} USDT of the same transaction. If this corrects it, name it."
        " If this is another movement, say that it corrects none."
    )


class RecordRefused(ValueError):
    """A record that can't be made. `refusal` is the rule, `facts` are what its sentence names."""

    def __init__(self, refusal: RecordRefusal, **facts: object) -> None:
        super().__init__(refusal.value.format(**facts))
        self.refusal = refusal
        self.facts = facts


class NewRecord(msgspec.Struct, frozen=True):
    """A record as somebody asks for it. `corrects`: the number of the record that it takes back, or NONE."""

    chain: str
    direction: str
    amount_units: int
    tx_hash: str
    corrects: Corrects = None

    @property
    def corrected_no(self) -> int | None:
        """The record that it takes back."""
        return None if self.corrects == NONE else self.corrects

    @property
    def kind(self) -> str:
        """The kind of its proposal, and the audit log's action."""
        return RECORD if self.corrected_no is None else CORRECT


def parse_corrects(text: str) -> Corrects:
    """A record's number, NONE, or None for an empty text. Raises ValueError."""
    text = text.strip()
    if text in ("", NONE):
        return NONE if text else None
    if not (number := parse_digits(text)):
        raise ValueError("a record's number is a whole number from 1 on")
    return number


def describe_record(new: NewRecord) -> Facts:
    """The proposal's `after`. Pure."""
    return {
        "recorded": True,
        "chain": new.chain,
        "direction": new.direction,
        "amount": format_units(new.amount_units),
        "txHash": new.tx_hash,
        **({} if new.corrects is None else {"corrects": new.corrects}),
    }


def find_replaced(new: NewRecord, known: Sequence[TreasuryShown]) -> int | None:
    """The corrected record that this one repeats, if it repeats one. `known` are its transaction's records.

    Raises RecordRefused. Pure.
    """
    if new.corrected_no is not None:
        _check_correction(new, new.corrected_no, known)
        return None
    alike = [each for each in known if each.corrects is None and each.amount_units == new.amount_units]
    same = [each for each in alike if each.direction == new.direction]
    if any(each.corrected_by is None for each in same):
        raise RecordRefused(RecordRefusal.REPEATED)
    for each in alike:
        if new.corrects is None and each.direction != new.direction and each.corrected_by is None:
            raise RecordRefused(RecordRefusal.UNNAMED, **_describe(each))
    return same[-1].movement_no if same else None


def _check_correction(new: NewRecord, number: int, known: Sequence[TreasuryShown]) -> None:
    corrected = next((each for each in known if each.movement_no == number), None)
    if corrected is None:
        raise RecordRefused(RecordRefusal.NO_RECORD, no=number)
    if corrected.corrects is not None:
        raise RecordRefused(RecordRefusal.CORRECTION, no=number)
    if corrected.corrected_by is not None:
        raise RecordRefused(RecordRefusal.CORRECTED, no=number, by=corrected.corrected_by)
    if corrected.direction == new.direction or corrected.amount_units != new.amount_units:
        raise RecordRefused(RecordRefusal.NOT_OPPOSITE, **_describe(corrected))


def _describe(record: TreasuryShown) -> dict[str, object]:
    amount = format_units(record.amount_units)
    return {"no": record.movement_no, "direction": record.direction, "amount": amount}


def make_kinds() -> dict[str, Kind]:
    """The kinds of proposals to record a movement, and to correct a record."""
    return {name: Kind(name, _read, _apply) for name in (RECORD, CORRECT)}


async def _read(conn: Connection, change: ProposedChange) -> Facts:
    return UNRECORDED


async def _apply(conn: Connection, change: ProposedChange, author: Author) -> Applied:
    after = change.after
    new = NewRecord(
        after["chain"],
        after["direction"],
        parse_units(after["amount"]),
        after["txHash"],
        after.get("corrects"),
    )
    try:
        await record(conn, author, new, change.reason)
    except RecordRefused as refused:
        raise ChangeRefused(str(refused)) from refused
    return Applied()


def format_subject(new: NewRecord) -> str:
    """The name of a movement in proposals and in the audit log."""
    return f"{new.direction} {new.chain} {new.tx_hash}"


async def check(conn: Connection, new: NewRecord) -> int | None:
    """Check that a record could be made now. Returns the one that it repeats. Raises RecordRefused."""
    known = await treasury.list_of_transaction(conn, new.chain, new.tx_hash)
    return find_replaced(new, known)


async def record(conn: Connection, author: Author, new: NewRecord, reason: str) -> int:
    """Store the movement, with its entry in the audit log. Returns its number. Raises RecordRefused."""
    async with conn.transaction():
        replaces = await check(conn, new)
        number = await treasury.record_treasury(
            conn,
            new.chain,
            new.direction,
            new.amount_units,
            tx_hash=new.tx_hash,
            reason=reason,
            actor=author.actor,
            now_ms=author.at_ms,
            corrects=new.corrected_no,
            replaces=replaces,
        )
        if number is None:
            # Somebody else was faster, and is seen now.
            await check(conn, new)
            raise RecordRefused(RecordRefusal.REPEATED)
        facts = {**describe_record(new), "no": number}
        await author.record(conn, new.kind, format_subject(new), before=UNRECORDED, after=facts)
    return number
