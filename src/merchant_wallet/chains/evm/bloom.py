"""The bloom filter over a block's logs, which every Ethereum header has (Yellow Paper, section 4.3.1). Pure.

Rules:
- Each log adds its address and its topics. An item sets three of 2048 bits.
- A filter never misses an item that was added. It may seem to contain one that was not.
- Equal logs give equal filters, so a node's logs of a block can be checked against the header.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from merchant_wallet.base.addresses import keccak256

BLOOM_BYTES: Final = 256
_KNOWN_ITEMS: Final = 16_384


@lru_cache(maxsize=_KNOWN_ITEMS)
def bits_of(item: bytes) -> int:
    """The three bits of an address or a topic, as a number of 2048 bits."""
    digest = keccak256(item)
    bits = 0
    for start in (0, 2, 4):
        bits |= 1 << (int.from_bytes(digest[start : start + 2], "big") % (BLOOM_BYTES * 8))
    return bits


def bloom_of(items: Iterable[bytes]) -> int:
    """The filter that contains exactly these items."""
    bloom = 0
    for item in items:
        bloom |= bits_of(item)
    return bloom


def may_contain(bloom: int, *items: bytes) -> bool:
    """Whether all items may have been added. False is certain."""
    wanted = bloom_of(items)
    return bloom & wanted == wanted
