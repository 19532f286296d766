"""The test values: what a request has to contain so that something goes wrong. Pure.

Rules:
- A test value begins with `sbx:`, then a word of the table and a colon, as in `sbx:42203:order-1`. What
  follows the second colon is the merchant's own. An id with another word is an ordinary id.
- `.N` behind a word lets it act N times for the same id: `sbx:50300.2:order-1`. Without it a refusal comes
  every time, and everything else happens once. In the field `sbx` everything happens every time.
- It is read from the `mcOrderId` of an operation that makes an order or a transfer, from the `extUserId` of a
  debit, and from a field `sbx` of any operation: then without the prefix, as in `sbx=42900`.
- The amount 900CCCCC is refused with the code CCCCC. Nobody has that much by chance.
- Callbacks take theirs from the order's `mcOrderId`, those of deposits from the sub-user's `extUserId`.
"""

import re
from enum import Enum
from typing import Final, NamedTuple

from merchant_wallet.base.codes import (
    BODY_TOO_LARGE,
    CODES,
    MEDIA_TYPE_UNSUPPORTED,
    METHOD_NOT_ALLOWED,
    PATH_UNKNOWN,
    SUCCESS,
)

PREFIX: Final = "sbx:"
FIELD: Final = "sbx"
AMOUNT_START: Final = 90_000_000
MAX_TIMES: Final = 9
SLOW_S: Final = (2, 5, 15, 40)

_NOT_OF_OPERATIONS: Final = frozenset(
    {SUCCESS, PATH_UNKNOWN, METHOD_NOT_ALLOWED, BODY_TOO_LARGE, MEDIA_TYPE_UNSUPPORTED}
)
PLAYED_CODES: Final = tuple(code for code in CODES if code not in _NOT_OF_OPERATIONS)
"""The codes that a test value can give. The others say what is wrong with the HTTP request."""

MAKING: Final = frozenset(
    {"transferFromUserToMerchant", "transferFromMerchantToUser", "createMerchantWithdrawOrder", "exchange"}
)
"""The operations whose `mcOrderId` is read: they make what it names."""
DEBIT: Final = "transferFromUserToMerchant"

_match_value = re.compile(r"([a-z]+|[0-9]{5})([0-9]{1,2})?(?:\.([1-9]))?").fullmatch
_match_amount = re.compile(r"900([0-9]{5})(?:\.0+)?").fullmatch


class AnswerPlay(Enum):
    """What happens to the answer of an operation."""

    REFUSED = "refused"
    SLOW = "slow"
    LOST = "lost"
    CUT = "cut"


class CallbackPlay(Enum):
    """What happens to the first attempt at a callback."""

    LATE = "late"
    LOST = "gone"
    REFUSED = "barred"
    TWICE = "twice"
    OUT_OF_ORDER = "disorder"


class Word(NamedTuple):
    """A word of the table: what it does, and whether it acts on answers or on callbacks."""

    text: str
    play: AnswerPlay | CallbackPlay
    effect: str


ANSWER_WORDS: Final = (
    *(
        Word(f"slow{seconds}", AnswerPlay.SLOW, f"carried out at once, answered after {seconds} s")
        for seconds in SLOW_S
    ),
    Word("lost", AnswerPlay.LOST, "carried out, but the connection is closed without an answer"),
    Word("cut", AnswerPlay.CUT, "not carried out, and the connection is closed without an answer"),
)
CALLBACK_WORDS: Final = (
    Word("late", CallbackPlay.LATE, "the first attempt comes 5 s later than usual"),
    Word("gone", CallbackPlay.LOST, "the first attempt is lost on its way; it comes again after 2 s"),
    Word(
        "barred",
        CallbackPlay.REFUSED,
        "we refuse to send the first attempt, as to a host without a public address; it comes after 2 s",
    ),
    Word("twice", CallbackPlay.TWICE, "your `success` is lost: the callback comes again after 2 s"),
    Word(
        "disorder",
        CallbackPlay.OUT_OF_ORDER,
        "with a recipient that fails: 3 is parked, 6 comes, then 3 is sent again",
    ),
)


class Plan(NamedTuple):
    """What is played for a request. `name` counts its uses. It acts `times` times; 0 is always."""

    play: AnswerPlay
    name: str
    times: int
    code: int = 0
    seconds: int = 0


def find_plan(operation: str, fields: dict[str, str]) -> Plan | None:
    """The plan of a request. None if nothing is played."""
    if (own := fields.get(FIELD)) is not None:
        name = f"{operation} {own} {fields.get('mcOrderId', '')}"
        if (plan := _read(own, name, usual_times=0)) is not None:
            return plan
    texts = [fields.get("mcOrderId", "")] if operation in MAKING else []
    if operation == DEBIT:
        texts.append(fields.get("extUserId", ""))
    for text in texts:
        word = _cut(text)
        if word is not None and (plan := _read(word, f"{operation} {text}")) is not None:
            return plan
    amount = _match_amount(fields.get("amount", ""))
    if amount is not None and int(amount[1]) in PLAYED_CODES:
        return Plan(AnswerPlay.REFUSED, f"amount {amount[0]}", 0, code=int(amount[1]))
    return None


def find_callback_play(text: str) -> CallbackPlay | None:
    """What is played for the callbacks of an order or a sub-user with this id."""
    word = _cut(text)
    return next((play for play in CallbackPlay if play.value == word), None)


def _cut(text: str) -> str | None:
    """The word of a test value: what stands between prefix and second colon."""
    if not text.startswith(PREFIX):
        return None
    word, colon, _ = text.removeprefix(PREFIX).partition(":")
    return word if colon else None


def _read(word: str, name: str, usual_times: int = 1) -> Plan | None:
    found = _match_value(word)
    if found is None:
        return None
    text, number, times = found[1], found[2], int(found[3] or 0)
    if text.isdecimal():
        known = number is None and int(text) in PLAYED_CODES
        return Plan(AnswerPlay.REFUSED, name, times, code=int(text)) if known else None
    row = next((row for row in ANSWER_WORDS if row.text == text + (number or "")), None)
    if row is None or not isinstance(row.play, AnswerPlay):
        return None
    return Plan(row.play, name, times or usual_times, seconds=int(number or 0))
