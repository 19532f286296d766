"""What a transaction moved, whatever token it was: for people who look for money that came in the wrong form.

Rules:
- Only read, and only when somebody asks. Nothing is decided from it.
- What a contract says of itself is not trusted: its symbol and its decimals are only shown. Its text is cut
  to what can be printed.
- Coin that a contract moved inside a transaction leaves no log, so it is not found.
"""

from typing import Final

import msgspec

from merchant_wallet.base.addresses import keccak256
from merchant_wallet.chains.node_texts import show_text

MAX_SYMBOL: Final = 20
MAX_DECIMALS: Final = 36
SYMBOL: Final = keccak256(b"symbol()")[:4]
DECIMALS: Final = keccak256(b"decimals()")[:4]
_WORD: Final = 32


class Moved(msgspec.Struct, frozen=True, gc=False):
    """One transfer: `amount` smallest units of the token of `contract`, or of the coin without one."""

    contract: bytes | None
    sender: bytes
    recipient: bytes
    amount: int


class SeenTransaction(msgspec.Struct, frozen=True, gc=False):
    """A transaction that a node shows. `number` is its block's; `other` names what is not understood."""

    number: int
    is_success: bool
    moved: tuple[Moved, ...]
    other: str | None = None


class TokenWords(msgspec.Struct, frozen=True, gc=False):
    """What a contract says of itself. None where it says nothing that can be shown."""

    symbol: str | None
    decimals: int | None


def read_words(symbol: bytes | None, decimals: bytes | None) -> TokenWords:
    """What the answers to `symbol()` and `decimals()` say. Pure."""
    number = int.from_bytes(decimals, "big") if decimals is not None and len(decimals) == _WORD else None
    if number is not None and number > MAX_DECIMALS:
        number = None
    return TokenWords(_read_symbol(symbol or b"") or None, number)


def _read_symbol(answer: bytes) -> str:
    """A text as Solidity encodes it, or the 32 bytes that old tokens give."""
    if len(answer) >= 2 * _WORD and int.from_bytes(answer[:_WORD], "big") == _WORD:
        size = min(int.from_bytes(answer[_WORD : 2 * _WORD], "big"), 4 * MAX_SYMBOL)
        answer = answer[2 * _WORD : 2 * _WORD + size]
    return show_text(answer.rstrip(b"\0").decode(errors="replace"))[:MAX_SYMBOL]
