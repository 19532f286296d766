"""What operators do about sub-users: change their controls, and remove a PIN.

Rules: a change and its entry in the audit log are one transaction, or around it if the cell is apart. What
sub-users change themselves is in `controls` and `pins`.
"""

from merchant_wallet.audit.cell_changes import change_cell
from merchant_wallet.audit.records import Author
from merchant_wallet.sub_users import controls, pins
from merchant_wallet.sub_users.audit_log import RESET_PIN, SET, format_subject
from merchant_wallet.sub_users.controls import Connection, SubUserLine


class LoosensNow(Exception):
    """The sub-user was paused or limited since the change was judged, so that it needs two people now."""

    def __init__(self) -> None:
        super().__init__(
            "Nothing was changed: its limits or pause were changed meanwhile. Look at the sub-user again."
        )


async def change_controls(
    home: Connection,
    cell: Connection,
    author: Author,
    merchant_id: int,
    ext_user_id: str,
    *,
    may_loosen: bool,
    **changes: bool | int | None,
) -> SubUserLine:
    """Change a sub-user's controls. Nothing is recorded if they are what they were.

    `may_loosen`: one person is enough to let the merchant debit more. Raises LoosensNow, SubUserUnknown, and
    ValueError for a limit that is not an amount.
    """
    async with change_cell(author, home, cell, SET, format_subject(ext_user_id), merchant_id) as told:
        await controls.lock_book(cell, merchant_id)
        before = await controls.read_by_ext_user_id(cell, merchant_id, ext_user_id)
        after = await controls.set_controls(cell, merchant_id, ext_user_id, **changes)
        if controls.loosens(before, after) and not may_loosen:
            raise LoosensNow
        controls.note_change(told, before, after)
    return after


async def reset_pin(
    home: Connection, cell: Connection, author: Author, merchant_id: int, ext_user_id: str
) -> bool:
    """Remove a sub-user's PIN. Returns whether one was set. Raises SubUserUnknown."""
    async with change_cell(author, home, cell, RESET_PIN, format_subject(ext_user_id), merchant_id) as told:
        was_set = await pins.reset(cell, merchant_id, ext_user_id, author.clock)
        told.before = {"hadPin": was_set}
    return was_set
