"""Books against chain, compared and explained. Pure.

Rules: one comparison is of one chain, between what all books say at one moment and what the chain says at
one final block that is no older. They differ by what is on the chain and in no book yet: each such thing is a
line with its effect in units (positive: the chain has more), and what no line explains is unexplained. Some
lines explain a difference that must not be, so that they call for an operator all the same.

What the platform owes in USDT are the balances of merchants and sub-users, holds and fees, all chains
together. KFB is owed by the exchange desk, whose own position stands behind it: neither KFB nor the desk's
position in USDT counts.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Final

import msgspec

from merchant_wallet.base.money import MAX_BALANCE_UNITS
from merchant_wallet.chains.protocol import TokenTransfer

DEPOSIT_PENDING: Final = "deposit pending"
DEPOSIT_DUST: Final = "deposit dust"
DEPOSIT_UNREAD: Final = "deposit unread"
DEPOSIT_MISSED: Final = "deposit missed"
DEPOSIT_HELD: Final = "deposit held"
PAYOUT_UNSETTLED: Final = "payout unsettled"
PAYOUT_WRONG: Final = "payout wrong"
UNKNOWN_IN: Final = "unknown in"
UNKNOWN_OUT: Final = "unknown out"
REMAINDER: Final = "remainder"

KINDS: Final = {
    DEPOSIT_PENDING: "final deposits that are about to be credited, or wait for a rate",
    DEPOSIT_DUST: "final deposits below the minimum",
    DEPOSIT_UNREAD: "deposits in blocks that the watcher has not read yet",
    DEPOSIT_MISSED: "transfers to our deposit addresses that the watcher has read past and does not have",
    DEPOSIT_HELD: "final deposits that wait for a person, see `deposits list --status held`",
    PAYOUT_UNSETTLED: "final payouts that their books have not settled yet",
    PAYOUT_WRONG: "final transfers signed for an order that is not being paid, or is of another amount",
    UNKNOWN_IN: "transfers to a hot wallet that nobody has recorded",
    UNKNOWN_OUT: "transfers from an address of ours that are no payout and that nobody has recorded",
    REMAINDER: "parts of a unit that were rounded down and add up to whole units at their address",
}
"""Every kind of line, and what it means."""

ALARMING: Final = frozenset({DEPOSIT_MISSED, DEPOSIT_HELD, PAYOUT_WRONG, UNKNOWN_OUT})
"""Lines that explain a difference that must not be."""

UNBOOKED: Final = frozenset({DEPOSIT_PENDING, DEPOSIT_DUST, DEPOSIT_UNREAD, DEPOSIT_MISSED, PAYOUT_UNSETTLED})
"""Lines that change what customers are owed once the books have them."""

SHOWN_MOVEMENTS: Final = 20
PROCESSING: Final = 1
"""The status of an order that is being paid."""


class Movement(msgspec.Struct, frozen=True, gc=False):
    """One end of a transfer that is ours: with `is_out` the sender's, else the recipient's."""

    tx_hash: str
    log_index: int
    is_out: bool
    block_number: int
    sender: bytes
    recipient: bytes
    amount_units: int
    block_log_index: int | None = None

    @property
    def effect_units(self) -> int:
        """What it does to custody."""
        return -self.amount_units if self.is_out else self.amount_units


class JudgedMovement(msgspec.Struct, frozen=True, gc=False):
    """A movement, whether the books contain it, and the status of the order that it was signed for, if any.

    `at_hot`: our end is a hot wallet. `is_held`: it is a deposit that waits for a person.
    """

    movement: Movement
    at_hot: bool
    is_booked: bool
    order_status: int | None = None
    is_held: bool = False


class Waiting(msgspec.Struct, frozen=True):
    """So many things of one kind, and what they come to."""

    count: int = 0
    units: int = 0


class Books(msgspec.Struct, frozen=True):
    """What the books say of one chain.

    `outside_units`: what came in from it and has not gone out. `treasury_units`: what operators recorded.
    `own_units`: what the chain's purse is taken to have had from the beginning (the sandbox's). `pending` and
    `dust` are final deposits that are in no book yet, `held` those that wait for a person; up to
    `watched_block` the watcher has read the chain.
    """

    outside_units: int
    treasury_units: int
    pending: Waiting
    dust: Waiting
    watched_block: int
    own_units: int = 0
    held: Waiting = Waiting()

    @property
    def total_units(self) -> int:
        """What should be in custody."""
        return self.outside_units + self.treasury_units + self.own_units


class Line(msgspec.Struct, frozen=True):
    """One kind of thing that is on the chain and in no book; `movements` are the first few."""

    kind: str
    count: int
    units: int
    movements: tuple[Movement, ...] = ()

    @property
    def is_alarming(self) -> bool:
        """Whether an operator must look."""
        return self.kind in ALARMING


class Comparison(msgspec.Struct, frozen=True):
    """One chain's books against its final block `block_number`."""

    chain: str
    block_number: int
    books: Books
    hot_units: int
    deposit_units: int
    lines: tuple[Line, ...]

    @property
    def chain_units(self) -> int:
        """What all addresses of ours hold."""
        return self.hot_units + self.deposit_units

    @property
    def difference_units(self) -> int:
        """How much more the chain has than the books say."""
        return self.chain_units - self.books.total_units

    @property
    def explained_units(self) -> int:
        """What the lines say of that."""
        return sum(line.units for line in self.lines)

    @property
    def unexplained_units(self) -> int:
        """What they don't."""
        return self.difference_units - self.explained_units

    @property
    def is_sound(self) -> bool:
        """Whether no operator need look."""
        is_explained = self.unexplained_units == 0 and not any(line.is_alarming for line in self.lines)
        return is_explained and self.books.held.count == 0

    @property
    def unbooked_units(self) -> int:
        """How much more is owed at the block than in the books: deposits to come, less payouts made."""
        return sum(line.units for line in self.lines if line.kind in UNBOOKED)


class Custody(msgspec.Struct, frozen=True):
    """What all chains hold together, and what is owed in USDT, as of the same blocks."""

    held_units: int
    owed_units: int

    @property
    def shortage_units(self) -> int:
        """What is missing to pay everybody; 0 when nothing is."""
        return max(0, self.owed_units - self.held_units)


def compare(
    chain: str,
    block_number: int,
    books: Books,
    held: tuple[int, int],
    judged: Iterable[JudgedMovement],
    rests: Mapping[bytes, int],
) -> Comparison:
    """Hold one chain's books against what its hot wallets and deposit addresses hold (`held`, in units).

    `rests` are the whole units that remainders make at each address (see `add_remainders`).
    """
    found: dict[str, list[Movement]] = {}
    for each in judged:
        if not each.is_booked:
            found.setdefault(_kind_of(each, books.watched_block), []).append(each.movement)
    lines = [
        Line(kind, waiting.count, waiting.units)
        for kind, waiting in ((DEPOSIT_PENDING, books.pending), (DEPOSIT_DUST, books.dust))
        if waiting.count
    ]
    for kind in KINDS:
        if movements := found.get(kind):
            units = sum(movement.effect_units for movement in movements)
            lines.append(Line(kind, len(movements), units, tuple(movements[:SHOWN_MOVEMENTS])))
    if units := sum(rests.values()):
        lines.append(Line(REMAINDER, len(rests), units))
    hot_units, deposit_units = held
    return Comparison(chain, block_number, books, hot_units, deposit_units, tuple(lines))


def _kind_of(judged: JudgedMovement, watched_block: int) -> str:
    movement = judged.movement
    if movement.is_out:
        if judged.order_status is None:
            return UNKNOWN_OUT
        return PAYOUT_UNSETTLED if judged.order_status == PROCESSING else PAYOUT_WRONG
    if judged.at_hot:
        return UNKNOWN_IN
    if judged.is_held:
        return DEPOSIT_HELD
    return DEPOSIT_MISSED if movement.block_number <= watched_block else DEPOSIT_UNREAD


def weigh_custody(liability_units: int, comparisons: Sequence[Comparison]) -> Custody:
    """Held against owed, once every chain has been compared with the same books."""
    unbooked_units = sum(comparison.unbooked_units for comparison in comparisons)
    held_units = sum(comparison.chain_units for comparison in comparisons)
    return Custody(held_units, liability_units + unbooked_units)


def find_movements(
    transfers: Iterable[TokenTransfer], hot: Set[bytes], deposits: Set[bytes]
) -> list[Movement]:
    """The ends of transfers that are ours, those between us left out that concern no book.

    What any address of ours sends to a hot wallet stays in custody and in the same chain's account. A
    transfer of nothing is made by strangers in anybody's name, so it says nothing.
    """
    movements = []
    for transfer in transfers:
        is_ours = transfer.sender in hot or transfer.sender in deposits
        if not 0 < transfer.amount_units <= MAX_BALANCE_UNITS or (is_ours and transfer.recipient in hot):
            continue
        if is_ours:
            movements.append(_end_of(transfer, is_out=True))
        if transfer.recipient in hot or transfer.recipient in deposits:
            movements.append(_end_of(transfer, is_out=False))
    return movements


def add_remainders(
    stored: Mapping[bytes, int], later: Iterable[TokenTransfer], addresses: Set[bytes], base_units: int
) -> dict[bytes, int]:
    """The whole units that remainders make at each of our addresses, where they make any.

    What arrives is rounded down to whole units, a transfer at a time; an address's balance is rounded down
    once. The difference is what the remainders of its transfers add up to.
    """
    sums = dict(stored)
    for transfer in later:
        if transfer.recipient in addresses:
            sums[transfer.recipient] = sums.get(transfer.recipient, 0) + transfer.remainder
    return {address: total // base_units for address, total in sums.items() if total >= base_units}


def _end_of(transfer: TokenTransfer, *, is_out: bool) -> Movement:
    return Movement(
        transfer.tx_hash,
        transfer.log_index,
        is_out,
        transfer.block_number,
        transfer.sender,
        transfer.recipient,
        transfer.amount_units,
        transfer.block_log_index,
    )


def balance_before(balance_units: int, address: bytes, later: Iterable[TokenTransfer]) -> int:
    """What an address held before these transfers, if it holds so much after them."""
    for transfer in later:
        balance_units += transfer.amount_units if transfer.sender == address else 0
        balance_units -= transfer.amount_units if transfer.recipient == address else 0
    return balance_units


LIABLE: Final = ("merchant", "subuser", "hold", "fees")
"""The kinds of accounts whose balances are owed to somebody, the platform's earned fees among them."""


def sum_liabilities(balances: Mapping[tuple[str, str], int], currency: str) -> int:
    """What is owed in a currency, by the sums of all books' accounts of each kind and currency."""
    return sum(balances.get((kind, currency), 0) for kind in LIABLE)


def find_imbalance(balances: Mapping[tuple[str, str], int], currency: str) -> int:
    """What all accounts of a currency add up to, which is nothing unless somebody has changed a balance."""
    return sum(units for (_, of), units in balances.items() if of == currency)
