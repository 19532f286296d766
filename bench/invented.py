"""Sub-users that are computed instead of listed: names and addresses follow from merchant and number. Pure.

Rules: the addresses are hashes, so there is no key for them. Nothing is paid in or out there.
"""

import hashlib
from typing import NamedTuple

ADDRESS_BYTES = 20


class Addresses(NamedTuple):
    """The two addresses of a sub-user."""

    evm: bytes
    tron: bytes


def name_sub_user(number: int) -> str:
    """The merchant's own id of its sub-user with this number."""
    return f"u{number}"


def invent_addresses(merchant_id: int, number: int) -> Addresses:
    """The addresses of a merchant's sub-user with this number."""
    digest = hashlib.sha512(f"bench {merchant_id} {number}".encode()).digest()
    return Addresses(digest[:ADDRESS_BYTES], digest[ADDRESS_BYTES : 2 * ADDRESS_BYTES])
