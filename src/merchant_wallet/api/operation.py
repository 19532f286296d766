"""One operation of the interface: its path, how its fields become a command, and how its outcome is answered.

Rules:
- `prepare` is pure. It checks the fields in the interface's order, each field completely before the next.
- `answer` is pure. It lists the fields of `data` in the interface's order.
- `OperationContext` has the few things that an operation needs from outside.
"""

from collections.abc import Awaitable, Callable, Container
from typing import Any, NamedTuple, Protocol

from merchant_wallet.api.wire import DataItem, Fields
from merchant_wallet.base.chains import DEFAULT_CODES
from merchant_wallet.book.commands import Command
from merchant_wallet.book.outcomes import Outcome
from merchant_wallet.merchants.issued_addresses import IssuedAddress
from merchant_wallet.merchants.records import Merchant


class OperationContext(NamedTuple):
    """The platform's settings that operations use. Times in milliseconds, the limit in units.

    Nothing is sent to `forbidden_addresses`: the zero address and the tokens' contracts. `own_wallets` grow.
    """

    sandbox: bool
    approval_deadline_ms: int
    position_limit_units: int | None
    forbidden_addresses: frozenset[bytes]
    own_wallets: Container[bytes]
    make_link: Callable[[int, int], str]
    chains: tuple[str, ...] = DEFAULT_CODES


class FollowUpDependencies(Protocol):
    """What a follow-up may use: a new address, and the book."""

    async def issue_address(self, merchant: Merchant) -> IssuedAddress: ...

    async def ask(self, merchant: Merchant, command: Command) -> Outcome: ...


class Operation(NamedTuple):
    """One operation. `follow_up`, if any, may act on a refusal, for example register an unknown sub-user.

    `only_reads` is True if the operation moves no money: the scheduler has a queue for these.
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
