"""What one person does about a rescue: end one that has no sweep. One with a sweep is ended with that.

Rules: a change and its entry in the audit log are one transaction, whichever door it comes from. What two
people decide is in `two_person_changes`.
"""

from typing import Final

from merchant_wallet.audit.records import Author
from merchant_wallet.custody.rescues import store
from merchant_wallet.custody.rescues.store import Connection, RescueShown
from merchant_wallet.custody.rescues.two_person_changes import format_subject

END: Final = "rescue.end"


async def end(conn: Connection, author: Author, one: RescueShown, reason: str) -> bool:
    """End a rescue that waits, or that failed before it began: it was looked at, and waits in no inbox.

    False if it has a sweep by now, if a person has ended it, or if the database was rolled back. What lies at
    its address stays there.
    """
    actor = author.actor
    cause = f"{actor} ended it: {reason}"
    async with conn.transaction():
        if not await store.fail_unopened(conn, one.rescue_no, cause, author.at_ms, ended_by=actor):
            return False
        facts = {"rescueNo": one.rescue_no}
        await author.record(conn, END, format_subject(one.chain, one.address), after=facts)
    return True
