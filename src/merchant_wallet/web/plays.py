"""What a page of the sandbox asks test mode to play. A live service has no `Plays`."""

from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol

from psycopg import AsyncConnection

from merchant_wallet.audit.records import Author
from merchant_wallet.merchants.records import Merchant

HELD_DEPOSIT: Final = "held-deposit"
RELEASE: Final = "release-deposit"
WAITING_DEPOSIT: Final = "unconfirmed-deposit"
REORGANISE: Final = "reorganise-deposit"
CONFIRM: Final = "confirm-deposit"
FROZEN_ORDER: Final = "frozen-order"
RESUME: Final = "resume-order"


class WaitingDeposit(NamedTuple):
    """A deposit in a block that is not final. `is_gone`: its block has left the chain."""

    chain: str
    tx_hash: str
    amount_units: int
    at_ms: int
    is_gone: bool


class Plays(Protocol):
    """Test mode, as a page uses it."""

    async def play(self, merchant: Merchant, name: str, fields: Mapping[str, str], author: Author) -> None:
        """Play one of the names above for a merchant, with the fields of the control actions.

        Raises Refused, Unavailable.
        """

    async def list_waiting(self, home: AsyncConnection, merchant_id: int) -> list[WaitingDeposit]:
        """The merchant's deposits that wait until somebody confirms them, oldest first."""
