"""Which PINs may be chosen: six digits, but not the ones that a thief tries first. Pure.

Rules: each refusal is one constant sentence, and the page looks up its translation. It never holds a PIN.
"""

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Final

DIGITS: Final = 6

NOT_A_PIN: Final = "A PIN is six digits, 0 to 9."
ALL_EQUAL: Final = "This PIN is too easy to guess: all six digits are the same."
A_RUN: Final = "This PIN is too easy to guess: its digits run up or down."
A_REPEAT: Final = "This PIN is too easy to guess: it repeats the same two or three digits."
GROUPS: Final = "This PIN is too easy to guess: it is made of pairs or triples of the same digit."


def is_pin(text: str) -> bool:
    """Whether the text has the form of a PIN, easy to guess or not."""
    return re.fullmatch(rf"[0-9]{{{DIGITS}}}", text) is not None


def find_flaw(text: str) -> str | None:
    """The sentence that says why this PIN may not be chosen, or None if it may."""
    if not is_pin(text):
        return NOT_A_PIN
    return next((sentence for sentence, applies in _FLAWS if applies(text)), None)


def _is_all_equal(pin: str) -> bool:
    return len(set(pin)) == 1


def _is_run(pin: str) -> bool:
    """Each digit is one above the digit before, or each is one below. 0 follows 9, as on a dial."""
    steps = {(int(right) - int(left)) % 10 for left, right in pairwise(pin)}
    return steps in ({1}, {9})


def _is_repeat(pin: str) -> bool:
    return pin in (pin[:2] * 3, pin[:3] * 2)


def _is_groups(pin: str) -> bool:
    return re.fullmatch(r"(.)\1(.)\2(.)\3|(.)\4\4(.)\5\5", pin) is not None


_FLAWS: Final[tuple[tuple[str, Callable[[str], bool]], ...]] = (
    (ALL_EQUAL, _is_all_equal),
    (A_RUN, _is_run),
    (A_REPEAT, _is_repeat),
    (GROUPS, _is_groups),
)
