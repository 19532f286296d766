"""What an operation of the interface is: a path, how its fields become a command, how its outcome is
answered.

Rules: `prepare` is pure and refuses fields in the interface's order, each field whole before the next;
`answer` is pure and lists the fields of `data` in the interface's order. The few things an operation needs
from outside come in `OperationContext`.
"""

from collections.abc import Awaitable, Callable, Container
from typing import Any, NamedTuple, Protocol

from merchant_wallet.api.wire import DataItem, Fields
from merchant_wallet.base.chains import DEFAULT_CODES
from merchant_wallet.book.commands import Command
from merchant_wallet.book.outcomes import Outcome
from merchant_wallet.merchants.records import Merchant


class OperationContext(NamedTuple):
    """What the platform's settings say to operations. Times in milliseconds, the limit in units."""

    sandbox: bool
    approval_deadline_ms: int
    position_limit_units: int | None
    forbidden_addresses: Container[bytes]
    make_link: Callable[[int, int], str]
    chains: tuple[str, ...] = DEFAULT_CODES


class FollowUpDependencies(Protocol):
    """What a follow-up may ask for: a new address index, and the book."""

    async def take_address_index(self, merchant_id: int) -> int: ...

    async def ask(self, merchant: Merchant, command: Command) -> Outcome: ...


class Operation(NamedTuple):
    """One operation. `follow_up`, where there is one, may turn a refusal into a further step.

    `only_reads` says that money is not what it is asked for: see `scheduler`.
    """

    name: str
    prepare: Callable[[Merchant, Fields, OperationContext], Command]
    answer: Callable[[Merchant, Any, OperationContext], list[DataItem]]
    sign_length: int = 32
    follow_up: Callable[[Merchant, Command, Outcome, FollowUpDependencies], Awaitable[Outcome]] | None = None
    only_reads: bool = False

    @property
    def path(self) -> str:
        """The documented path, which the signature covers."""
        return f"/merchant/{self.name}"
