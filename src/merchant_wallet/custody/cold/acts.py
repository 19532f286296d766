"""What one person does about a cold transfer: hand in its signature, or give it up.

Rules: a change and its entry in the audit log are one transaction, whichever door it comes from. What two
people decide is in `two_person_changes`.
"""

from typing import Final

from merchant_wallet.audit.records import Author
from merchant_wallet.chains.protocol import SignedTransfer
from merchant_wallet.custody.cold import store
from merchant_wallet.custody.cold.store import ColdTransfer, Connection
from merchant_wallet.custody.cold.two_person_changes import format_subject

SIGN: Final = "cold.sign"
DROP: Final = "cold.drop"


async def take_signature(conn: Connection, author: Author, one: ColdTransfer, signed: SignedTransfer) -> bool:
    """Take a signature that was made elsewhere. False if the transfer does not wait for one.

    Raises Blocked.
    """
    async with conn.transaction():
        if not await store.take_signature(conn, one, signed, author.at_ms):
            return False
        facts = {"transferId": one.transfer_id, "txHash": signed.tx_hash}
        await author.record(conn, SIGN, format_subject(one.chain), after=facts)
    return True


async def drop(conn: Connection, author: Author, one: ColdTransfer) -> bool:
    """Give a transfer up. False if something of it can have left the hot wallet."""
    async with conn.transaction():
        if not await store.ask_drop(conn, one, author.actor):
            return False
        await author.record(conn, DROP, format_subject(one.chain), after={"transferId": one.transfer_id})
    return True
