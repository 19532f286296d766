"""One number from the answers of several nodes. No single node of three can change it. Pure.

Rules:
- With two nodes nobody knows which one is wrong, so the caller takes the harmless side.
- With three or more nodes one outlier on that side is ignored.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from merchant_wallet.chains.protocol import ChainAway, ChainDisagrees

_ENOUGH: Final = 3


def cautious_low(said: Sequence[int]) -> int:
    """The lowest answer, or the second lowest of three or more. Raises ValueError without answers."""
    return sorted(said)[_place(said)]


def cautious_high(said: Sequence[int]) -> int:
    """The highest answer, or the second highest of three or more. Raises ValueError without answers."""
    return sorted(said, reverse=True)[_place(said)]


def agree_on_block(numbers: Sequence[int], quorum: int, what: str) -> int | None:
    """The block that enough nodes name. None if too few name one.

    `numbers` are of the nodes that know the thing. Raises ChainDisagrees if they name different blocks.
    """
    if not numbers:
        return None
    [(number, votes)] = Counter(numbers).most_common(1)
    if votes >= quorum:
        return number
    if len(set(numbers)) > 1:
        raise ChainDisagrees(f"nodes show {what} in different blocks: {', '.join(map(str, sorted(numbers)))}")
    return None


def is_known(said: Sequence[bool], quorum: int, what: str) -> bool:
    """Whether any node knows something. That none does needs enough nodes. Raises ChainAway."""
    if not any(said) and len(said) < quorum:
        raise ChainAway(f"only one node says that it does not know {what}")
    return any(said)


def _place(said: Sequence[int]) -> int:
    if not said:
        raise ValueError("nobody answered")
    return 1 if len(said) >= _ENOUGH else 0
