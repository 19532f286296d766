"""Submissions and what became of them as bytes, for another process of the same version.

Rules: nothing of this is stored. Two processes understand each other if they have the same `VERSION`, which
is made of all commands and outcomes. Pure.
"""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Final, get_args, get_type_hints

import msgspec

from merchant_wallet.book import commands
from merchant_wallet.book.commands import Command, DepositKey, Submission
from merchant_wallet.book.errors import BookClosed, CommandFailed, CommitUnknown, Unavailable
from merchant_wallet.book.outcomes import Outcome

_COMMANDS: Final[Sequence[type[Command]]] = [
    each for each in vars(commands).values() if isinstance(each, type) and issubclass(each, Command)
]
_OUTCOMES: Final[Sequence[type[Any]]] = get_args(Outcome)


class HandedBack(Exception):
    """The process that was asked leaves, and has done nothing."""


_ERRORS: Final[Sequence[type[Exception]]] = (
    HandedBack,
    CommitUnknown,
    BookClosed,
    Unavailable,
    CommandFailed,
)
"""A class stands before those that it is derived from."""


class Asked(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A submission for a book. `number` is the asker's. `kind` says which command `body` is."""

    number: int
    merchant_id: int
    kind: int
    body: msgspec.Raw
    nonce: str | None
    settings_version: int | None
    request_id: str
    traceparent: str


class Answered(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What became of the submission with this number.

    `body` is an outcome, or if it `failed` an error's text. `kind` says which.
    """

    number: int
    failed: bool
    kind: int
    body: msgspec.Raw


_Decode = Callable[[msgspec.Raw], Any]


def _make_decoders(kinds: Sequence[type[Any]]) -> list[_Decode]:
    return [msgspec.msgpack.Decoder(kind).decode for kind in kinds]


def _number(kinds: Sequence[type[Any]]) -> dict[type[Any], int]:
    return {each: kind for kind, each in enumerate(kinds)}


encode: Final = msgspec.msgpack.Encoder().encode
"""A list of messages as bytes."""
decode_asked: Final = msgspec.msgpack.Decoder(list[Asked]).decode
decode_answered: Final = msgspec.msgpack.Decoder(list[Answered]).decode
_decode_text: Final = msgspec.msgpack.Decoder(str).decode
_decode_command: Final = _make_decoders(_COMMANDS)
_decode_outcome: Final = _make_decoders(_OUTCOMES)
_command_kinds: Final = _number(_COMMANDS)
_outcome_kinds: Final = _number(_OUTCOMES)


def ask(number: int, merchant_id: int, submission: Submission) -> Asked:
    """A submission as a message."""
    command = submission.command
    return Asked(
        number,
        merchant_id,
        _command_kinds[type(command)],
        msgspec.Raw(encode(command)),
        submission.nonce,
        submission.settings_version,
        submission.request_id,
        submission.traceparent,
    )


def read_submission(asked: Asked) -> Submission:
    """The submission of a message. Raises msgspec.MsgspecError."""
    command = _decode_command[asked.kind](asked.body)
    return Submission(command, asked.nonce, asked.settings_version, asked.request_id, asked.traceparent)


def answer(number: int, outcome: Outcome) -> Answered:
    """An outcome as a message."""
    return Answered(number, False, _outcome_kinds[type(outcome)], msgspec.Raw(encode(outcome)))


def fail(number: int, error: Exception) -> Answered:
    """An error as a message. One that no submission is known to raise leaves open what was done."""
    for kind, known in enumerate(_ERRORS):
        if isinstance(error, known):
            return Answered(number, True, kind, msgspec.Raw(encode(str(error))))
    return fail(number, CommitUnknown(repr(error)))


def read_answer(answered: Answered) -> Outcome:
    """The outcome of a message. Raises the error that it has: Unavailable, CommandFailed or HandedBack."""
    if answered.failed:
        raise _ERRORS[answered.kind](_decode_text(answered.body))
    outcome: Outcome = _decode_outcome[answered.kind](answered.body)
    return outcome


def _describe(kinds: Sequence[type[Any]]) -> list[tuple[str, list[tuple[str, str]]]]:
    described = []
    for kind in kinds:
        fields = [(name, str(hint)) for name, hint in get_type_hints(kind).items()]
        described.append((kind.__qualname__, fields))
    return described


VERSION: Final = hashlib.sha256(
    repr(_describe([Asked, Answered, DepositKey, *_COMMANDS, *_OUTCOMES])).encode()
).hexdigest()[:16]
