"""The model of withdrawal orders after their creation: which statuses follow, which callbacks are owed. Pure.

Rules:
- A recipient of the sandbox decides the path of an order. An ordinary one leads to 2.
- An order above the approval limit waits in 0 for a person, who approves or cancels it. It is not paid before
  that.
- A status never goes back. Each of 2, 3, 4, 5 and 6 that is reached is told by a callback at least once.
"""

from dataclasses import dataclass, field
from typing import Final

from simulator.failure import Contradiction

Path = tuple[str, ...]
PAID: Final[Path] = ("0", "1", "2")
REFUNDED: Final[Path] = ("0", "1", "3", "6")
CANCELLED: Final[Path] = ("0", "4")
EXPIRED: Final[Path] = ("0", "5")
RETURNING: Final = (REFUNDED, CANCELLED, EXPIRED)
"""Paths at whose end the amount is back."""
TOLD: Final = frozenset("23456")
PAYING: Final = frozenset("1236")
"""What only an approved order comes to."""
RECIPIENTS: Final[dict[str, tuple[str, Path]]] = {
    "0x0000000000000000000000000000000000057A72": ("ERC20", PAID),
    "T9yD14Nj9j7xAB4dbGeiX9h8uznh8SEpW1": ("TRC20", PAID),
    "0x0000000000000000000000000000000000057a76": ("ERC20", REFUNDED),
    "T9yD14Nj9j7xAB4dbGeiX9h8uznhcqShnw": ("TRC20", REFUNDED),
    "0x0000000000000000000000000000000000057a74": ("ERC20", CANCELLED),
    "T9yD14Nj9j7xAB4dbGeiX9h8uznhWfMTv9": ("TRC20", EXPIRED),
    "T9yD14Nj9j7xAB4dbGeiX9h8yHdp5u5DJm": ("TRC20", REFUNDED),
}
"""The sandbox's recipients that the world uses: the chain, and the path."""


@dataclass
class Payout:
    """One order, as far as it was seen."""

    order_id: str
    mc_order_id: str
    amount: int
    arrival: int
    paths: tuple[Path, ...]
    status: str = "0"
    may_wait: bool = False
    """Whether it is above an approval limit that may have counted."""
    must_wait: bool = False
    """Whether it is above every approval limit that may have counted."""
    may_be_approved: bool = False
    """Whether a person has begun to approve it."""
    is_approved: bool = False
    """Whether a person's approval was acknowledged."""
    told: set[str] = field(default_factory=set)

    @property
    def is_final(self) -> bool:
        """Whether nothing follows the status that was seen last."""
        return any(path[-1] == self.status for path in self.paths)

    @property
    def owed(self) -> set[str]:
        """Statuses that were reached, and that no callback has told yet."""
        reached = {status for path in self.paths for status in path[: path.index(self.status) + 1]}
        return (reached & TOLD) - self.told

    @property
    def is_back(self) -> bool:
        """Whether the amount is back in the merchant's balance."""
        return self.status in ("4", "5", "6")

    def see(self, status: str) -> None:
        """An answer has this status. Raises Contradiction."""
        left = self._keep(status)
        self._require_approval(status)
        if any(path.index(status) < path.index(self.status) for path in left if self.status in path):
            raise Contradiction(f"order {self.order_id} went back from {self.status} to {status}")
        self.paths, self.status = left, status

    def hear(self, status: str, amount: int, arrival: int) -> None:
        """A callback tells of this status. The order may be further by now. Raises Contradiction."""
        if status not in TOLD:
            raise Contradiction(f"a callback of order {self.order_id} tells of status {status}")
        if (amount, arrival) != (self.amount, self.arrival):
            raise Contradiction(f"a callback of order {self.order_id} has other amounts: {amount}, {arrival}")
        self.paths = self._keep(status)
        self._require_approval(status)
        self.told.add(status)
        if all(path.index(status) > path.index(self.status) for path in self.paths):
            self.status = status

    def _require_approval(self, status: str) -> None:
        if self.must_wait and not self.may_be_approved and status in PAYING:
            raise Contradiction(f"order {self.order_id} is in {status}, and nobody has approved it")

    def _keep(self, status: str) -> tuple[Path, ...]:
        left = tuple(path for path in self.paths if status in path and self.status in path)
        if not left:
            raise Contradiction(
                f"order {self.order_id} ({self.mc_order_id}) has status {status} after {self.status}; "
                f"its path is {' or '.join('-'.join(path) for path in self.paths)}"
            )
        return left
