"""Compares books and chain, and explains the difference. Pure.

Rules:
- A comparison is about one chain. It takes all books at one moment and one final block that is not older.
- The two differ by what is on the chain and in no book yet. Each such thing is a line with its effect in
  units. Positive means that the chain has more.
- What no line explains is unexplained.
- Some lines explain a difference that must not exist. They call an operator too.

In USDT the platform owes the balances of merchants and sub-users, holds and fees, for all chains together.
The exchange desk owes KFB, and the desk's own position backs it. So neither KFB nor the desk's USDT counts.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Final

import msgspec

from merchant_wallet.base.money import MAX_BALANCE_UNITS
from merchant_wallet.chains.issuer import NOWHERE
from merchant_wallet.chains.protocol import TokenTransfer

DEPOSIT_PENDING: Final = "deposit pending"
DEPOSIT_DUST: Final = "deposit dust"
DEPOSIT_UNREAD: Final = "deposit unread"
DEPOSIT_MISSED: Final = "deposit missed"
DEPOSIT_HELD: Final = "deposit held"
PAYOUT_UNSETTLED: Final = "payout unsettled"
PAYOUT_WRONG: Final = "payout wrong"
PAYOUT_TO_OWN: Final = "payout to own wallet"
DESTROYED: Final = "destroyed by issuer"
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
    PAYOUT_TO_OWN: "payouts of orders to a hot or cold wallet of ours that nobody has recorded",
    DESTROYED: "USDT of ours that the token's issuer destroyed (event DestroyedBlackFunds)",
    UNKNOWN_IN: "transfers to a hot or cold wallet that nobody has recorded",
    UNKNOWN_OUT: "transfers from an address of ours that are no payout and that nobody has recorded",
    REMAINDER: "parts of a unit that were rounded down and add up to whole units at their address",
}
"""Every kind of line, and its meaning."""

ALARMING: Final = frozenset({DEPOSIT_MISSED, DEPOSIT_HELD, PAYOUT_WRONG, DESTROYED, UNKNOWN_OUT})
"""Lines that explain a difference that must not exist."""

UNBOOKED: Final = frozenset({DEPOSIT_PENDING, DEPOSIT_DUST, DEPOSIT_UNREAD, DEPOSIT_MISSED, PAYOUT_UNSETTLED})
"""Lines that will change what customers are owed, once they are in the books."""

SHOWN_MOVEMENTS: Final = 20
PROCESSING: Final = 1
"""The status of an order that is being paid."""


class Movement(msgspec.Struct, frozen=True, gc=False):
    """One end of a transfer that is ours: the sender's with `is_out`, else the recipient's."""

    tx_hash: str
    log_index: int
    is_out: bool
    block_number: int
    sender: bytes
    recipient: bytes
    amount_units: int
    order: tuple[int, int] | None = None
    """The merchant and the order that it was signed for. Known once it is judged."""

    @property
    def effect_units(self) -> int:
        """The effect on custody."""
        return -self.amount_units if self.is_out else self.amount_units


class Remainder(msgspec.Struct, frozen=True, gc=False):
    """The part below a unit of a transfer at one of our addresses, in the token's smallest units.

    It is negative at the sender.
    """

    tx_hash: str
    log_index: int
    address: bytes
    remainder: int


class JudgedMovement(msgspec.Struct, frozen=True, gc=False):
    """A movement, whether the books contain it, and the status of the order that it was signed for, if any.

    `at_hot`: our end is a hot or cold wallet. `is_held`: it is a deposit that waits for a person.
    `is_recorded`: an operator's record explains it, until that is corrected.
    `is_settled`: it is the transfer that settled its order.
    """

    movement: Movement
    at_hot: bool
    is_booked: bool
    order_status: int | None = None
    is_held: bool = False
    is_recorded: bool = False
    is_settled: bool = False


class Waiting(msgspec.Struct, frozen=True):
    """A number of things of one kind, and their sum."""

    count: int = 0
    units: int = 0


class Books(msgspec.Struct, frozen=True):
    """What the books say about one chain.

    `outside_units`: what came in from the chain and has not gone out. `treasury_units`: what operators
    recorded. `own_units`: the assumed initial balance of the sandbox's hot wallet. `pending` and `dust` are
    final deposits that are in no book yet, and `held` are those that wait for a person. The watcher has read
    the chain up to `watched_block`. `opening_units`: what the cold wallets held when they were first counted.
    """

    outside_units: int
    treasury_units: int
    pending: Waiting
    dust: Waiting
    watched_block: int
    own_units: int = 0
    held: Waiting = Waiting()
    opening_units: int = 0

    @property
    def total_units(self) -> int:
        """What should be in custody."""
        return self.outside_units + self.treasury_units + self.own_units + self.opening_units


class Line(msgspec.Struct, frozen=True):
    """One kind of thing that is on the chain and in no book. `movements` has the first few."""

    kind: str
    count: int
    units: int
    movements: tuple[Movement, ...] = ()

    @property
    def is_alarming(self) -> bool:
        """Whether an operator must check it."""
        return self.kind in ALARMING


class Comparison(msgspec.Struct, frozen=True):
    """One chain's books compared with its final block `block_number`."""

    chain: str
    block_number: int
    books: Books
    hot_units: int
    deposit_units: int
    lines: tuple[Line, ...]
    cold_units: int = 0

    @property
    def chain_units(self) -> int:
        """The balance of all our addresses."""
        return self.hot_units + self.deposit_units + self.cold_units

    @property
    def difference_units(self) -> int:
        """How much more the chain has than the books say."""
        return self.chain_units - self.books.total_units

    @property
    def explained_units(self) -> int:
        """The part of the difference that the lines explain."""
        return sum(line.units for line in self.lines)

    @property
    def unexplained_units(self) -> int:
        """The part of the difference that no line explains."""
        return self.difference_units - self.explained_units

    @property
    def is_sound(self) -> bool:
        """Whether no operator needs to check anything."""
        is_explained = self.unexplained_units == 0 and not any(line.is_alarming for line in self.lines)
        return is_explained and self.books.held.count == 0

    @property
    def unbooked_units(self) -> int:
        """How much more is owed at the block than in the books: deposits that will be credited, minus payouts
        made.
        """
        return sum(line.units for line in self.lines if line.kind in UNBOOKED)


class Custody(msgspec.Struct, frozen=True):
    """What all chains hold together, and what is owed in USDT at the same blocks."""

    held_units: int
    owed_units: int

    @property
    def shortage_units(self) -> int:
        """What is missing to pay everybody. 0 if nothing is missing."""
        return max(0, self.owed_units - self.held_units)


def compare(
    chain: str,
    block_number: int,
    books: Books,
    held: tuple[int, int, int],
    judged: Iterable[JudgedMovement],
    rests: Mapping[bytes, int],
) -> Comparison:
    """Compare one chain's books with the balances of its hot wallets, deposit addresses and cold wallets
    (`held`, in units).

    `rests` has the whole units that remainders add up to at each address (see `add_remainders`).
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
    hot_units, deposit_units, cold_units = held
    return Comparison(chain, block_number, books, hot_units, deposit_units, tuple(lines), cold_units)


def _kind_of(judged: JudgedMovement, watched_block: int) -> str:
    movement = judged.movement
    if movement.is_out:
        if judged.order_status is None:
            return DESTROYED if movement.recipient == NOWHERE else UNKNOWN_OUT
        return PAYOUT_UNSETTLED if judged.order_status == PROCESSING else PAYOUT_WRONG
    if judged.at_hot:
        return UNKNOWN_IN if movement.order is None else PAYOUT_TO_OWN
    if judged.is_held:
        return DEPOSIT_HELD
    return DEPOSIT_MISSED if movement.block_number <= watched_block else DEPOSIT_UNREAD


def weigh_custody(liability_units: int, comparisons: Sequence[Comparison]) -> Custody:
    """Held and owed, after every chain was compared with the same books."""
    unbooked_units = sum(comparison.unbooked_units for comparison in comparisons)
    held_units = sum(comparison.chain_units for comparison in comparisons)
    return Custody(held_units, liability_units + unbooked_units)


def find_inner_hashes(
    transfers: Iterable[TokenTransfer], wallets: Set[bytes], deposits: Set[bytes]
) -> list[str]:
    """The transactions that move something from an address of ours to a hot or cold wallet."""
    return [
        each.tx_hash
        for each in transfers
        if each.recipient in wallets and (each.sender in wallets or each.sender in deposits)
    ]


def find_movements(
    transfers: Iterable[TokenTransfer], wallets: Set[bytes], deposits: Set[bytes], payouts: Set[str]
) -> list[Movement]:
    """The ends of transfers that are ours. Transfers between us that concern no book are left out.

    A transfer from our address to a hot or cold wallet stays in custody and in the same chain's account. If
    it is one of `payouts`, which were signed for orders, a book says that it left. So both ends count.
    Anybody can make a transfer of zero in another's name, so those are ignored.
    """
    movements = []
    for transfer in transfers:
        is_ours = transfer.sender in wallets or transfer.sender in deposits
        is_inner = is_ours and transfer.recipient in wallets and transfer.tx_hash not in payouts
        if not 0 < transfer.amount_units <= MAX_BALANCE_UNITS or is_inner:
            continue
        if is_ours:
            movements.append(_end_of(transfer, is_out=True))
        if transfer.recipient in wallets or transfer.recipient in deposits:
            movements.append(_end_of(transfer, is_out=False))
    return movements


def add_remainders(
    stored: Mapping[bytes, int], later: Iterable[TokenTransfer], addresses: Set[bytes], base_units: int
) -> dict[bytes, int]:
    """The whole units that remainders add up to at each of our addresses, if any.

    Each transfer is rounded down to whole units, but an address's balance is rounded down only once. The
    difference is the sum of the remainders that came in, minus those that went out. It may be negative.
    """
    sums = dict(stored)
    for each in list_remainders(later, addresses):
        sums[each.address] = sums.get(each.address, 0) + each.remainder
    whole = {address: total // base_units for address, total in sums.items()}
    return {address: units for address, units in whole.items() if units}


def list_remainders(transfers: Iterable[TokenTransfer], addresses: Set[bytes]) -> list[Remainder]:
    """The remainders of these transfers at our addresses."""
    found = []
    for transfer in transfers:
        if transfer.remainder and transfer.sender != transfer.recipient:
            ends = (transfer.recipient, transfer.remainder), (transfer.sender, -transfer.remainder)
            found += [
                Remainder(transfer.tx_hash, transfer.log_index, address, remainder)
                for address, remainder in ends
                if address in addresses
            ]
    return found


def _end_of(transfer: TokenTransfer, *, is_out: bool) -> Movement:
    return Movement(
        transfer.tx_hash,
        transfer.log_index,
        is_out,
        transfer.block_number,
        transfer.sender,
        transfer.recipient,
        transfer.amount_units,
    )


def compute_balance_before(balance_units: int, address: bytes, later: Iterable[TokenTransfer]) -> int:
    """The balance of an address before these transfers, from its balance after them."""
    for transfer in later:
        balance_units += transfer.amount_units if transfer.sender == address else 0
        balance_units -= transfer.amount_units if transfer.recipient == address else 0
    return balance_units


LIABLE: Final = ("merchant", "subuser", "hold", "fees")
"""The kinds of accounts whose balances are owed to somebody, including the platform's earned fees."""


def sum_liabilities(balances: Mapping[tuple[str, str], int], currency: str) -> int:
    """What is owed in a currency, from the sums of all accounts by kind and currency."""
    return sum(balances.get((kind, currency), 0) for kind in LIABLE)


def find_imbalance(balances: Mapping[tuple[str, str], int], currency: str) -> int:
    """The sum of all accounts of a currency. It is 0 unless somebody has changed a balance."""
    return sum(units for (_, of), units in balances.items() if of == currency)
