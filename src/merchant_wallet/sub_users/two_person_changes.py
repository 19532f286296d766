"""Loosening a sub-user's controls for its operator: one person proposes, another accepts, a worker does it.

Rules:
- A pause and limits protect the sub-user from debits. To resume debits, and to raise or remove a limit,
  takes two people of the platform. To pause and to lower takes one. On the wallet page the sub-user decides
  alone.
- Accepting asks for the act, in the same transaction. The sub-user is in its merchant's cell. There a worker
  changes it, if its controls are still those that two people saw.
"""

from collections.abc import Mapping
from typing import Any, Final

from merchant_wallet.approvals.acts import asked
from merchant_wallet.approvals.changes import (
    Applied,
    ChangeRefused,
    Connection,
    Facts,
    Kind,
    ProposedChange,
)
from merchant_wallet.audit.records import Author
from merchant_wallet.base.money import parse_units
from merchant_wallet.book.sub_user import LIMITS, Controls
from merchant_wallet.sub_users import controls
from merchant_wallet.sub_users.audit_log import SET, read_ext_user_id
from merchant_wallet.sub_users.controls import SHOWN_AS, describe_controls

UNDER_WAY: Final = "A worker was asked to change this sub-user already. Look at what came of that."


def read_controls(facts: Facts) -> dict[str, Any]:
    """The controls that facts describe, by the names of their fields. Pure."""
    found = {name: facts[shown] for name, shown in SHOWN_AS.items()}
    return {
        name: parse_units(value) if name in LIMITS and value is not None else value
        for name, value in found.items()
    }


def with_changes(before: Controls, changes: Mapping[str, Any]) -> Controls:
    """The controls after changes. Pure."""
    return Controls(**{**{name: getattr(before, name) for name in SHOWN_AS}, **changes})


def describe(before: Controls, after: Controls) -> tuple[Facts, Facts]:
    """The proposal to change a sub-user's controls. Pure."""
    return describe_controls(before), describe_controls(after)


def make_kinds() -> dict[str, Kind]:
    """The kind of proposals about sub-users' controls."""
    return {SET: Kind(SET, _read, _apply)}


async def _read(conn: Connection, change: ProposedChange) -> Facts:
    # Its cell may be away. The worker compares it there.
    return change.before


async def _apply(conn: Connection, change: ProposedChange, author: Author) -> Applied:
    assert change.merchant_id is not None
    arguments = {
        "extUserId": read_ext_user_id(change.subject),
        "before": change.before,
        "after": change.after,
        asked.PROPOSAL_NO: change.proposal_no,
    }
    subject = asked.format_own_subject(change.merchant_id, change.subject)
    found = await asked.ask(conn, SET, subject, arguments, author=author, merchant_id=change.merchant_id)
    if not found.is_new:
        raise ChangeRefused(UNDER_WAY)
    return Applied()


async def carry_out(cell: Connection, merchant_id: int, arguments: Facts) -> bool:
    """Change a sub-user's controls as two people decided. False if they are no longer those that they saw.

    It may be called again. Raises SubUserUnknown.
    """
    ext_user_id = arguments["extUserId"]
    async with cell.transaction():
        await controls.lock_book(cell, merchant_id)
        present = describe_controls(await controls.read_by_ext_user_id(cell, merchant_id, ext_user_id))
        if present == arguments["after"]:
            return True
        if present != arguments["before"]:
            return False
        wanted = read_controls(arguments["after"])
        await controls.set_controls(cell, merchant_id, ext_user_id, **wanted)
    return True
