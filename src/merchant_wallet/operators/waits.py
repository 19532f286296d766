"""When an operator's approvals do not count.

Rules:
- After an account is created, reset, enabled, given more rights or given its second factor, it waits for a
  time.
- Meanwhile its approvals and proposals are refused. So an attacker can't use a second account at once.
- Waits are only inserted.
- The first operator of a platform does not wait.

Who applies the wait:
- `book.rules.approvals` refuses the approval of a withdrawal.
- `approvals.decisions` refuses a proposal and its acceptance.
- `withdrawals.attempt` freezes an order with an approval that did not count (`book.early_approvals`).
- `book.verification.verify` reports such an approval.
- The database checks it too: `withdrawal_first_counts`, `withdrawal_approved_counts`,
  `proposal_proposer_counts` and `proposal_decider_counts`.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from merchant_wallet.base.settings import Settings
from merchant_wallet.book.actors import person_of
from merchant_wallet.operators.records import QUERIES, Connection
from merchant_wallet.operators.roles import Right, list_roles

CREATED: Final = "created"
RESET: Final = "reset"
ENABLED: Final = "enabled"
ROLE: Final = "role"
ENROLLED: Final = "enrolled"


class Delays(NamedTuple):
    """For how long approvals do not count: an operator's after it got access, and those of who gave access to
    a merchant.
    """

    operator_ms: int
    giver_ms: int


def read_delays(settings: Settings) -> Delays:
    """The delays of a platform."""
    return Delays(settings.operator_wait_ms, settings.secret_wait_ms)


async def begin_wait(conn: Connection, operator_id: int, cause: str, *, at_ms: int, wait_ms: int) -> None:
    """Start a wait for an operator, in the transaction that causes it."""
    values = {"operator_id": operator_id, "cause": cause, "at_ms": at_ms, "wait_ms": wait_ms}
    await conn.execute(QUERIES["begin_wait"].text, values)


async def read_eligible_ms(conn: Connection, actor: str) -> int:
    """The time from which the approvals of the person behind an actor count; 0 if always."""
    row = await (await conn.execute(QUERIES["read_eligible_ms"].text, {"actor": actor})).fetchone()
    return 0 if row is None else int(row[0])


async def count_deciders(conn: Connection, right: Right, actors: Sequence[str], *, at_ms: int) -> int:
    """How many operators with this right could decide now, without the persons behind `actors`."""
    values = {"roles": list_roles(right), "others": [person_of(actor) for actor in actors], "at_ms": at_ms}
    row = await (await conn.execute(QUERIES["count_deciders"].text, values)).fetchone()
    return 0 if row is None else int(row[0])
