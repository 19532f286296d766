"""Commands and outcomes on their way between processes are the same on the other side."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from merchant_wallet.base.codes import Refusal
from merchant_wallet.book import commands, messages
from merchant_wallet.book.commands import Command, Submission
from merchant_wallet.book.errors import BookClosed, CommandFailed, CommitUnknown, Unavailable
from merchant_wallet.book.outcomes import OrderRefusal, Outcome

COMMANDS = [each for each in vars(commands).values() if isinstance(each, type) and issubclass(each, Command)]
OUTCOMES = [each for each in get_args(Outcome) if each is not Refusal]
NUMBERS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(max_size=5)
st.register_type_strategy(int, NUMBERS)
st.register_type_strategy(str, TEXTS)
SUBMISSIONS = st.builds(
    Submission,
    st.sampled_from(COMMANDS).flatmap(st.builds),
    st.none() | TEXTS,
    st.none() | NUMBERS,
    TEXTS,
    TEXTS,
)
REFUSALS = st.builds(
    Refusal,
    NUMBERS,
    TEXTS,
    st.none() | st.dictionaries(TEXTS, TEXTS | NUMBERS | st.none()),
    st.none() | NUMBERS,
    st.none() | st.sampled_from(OrderRefusal),
)


@given(number=NUMBERS, merchant_id=NUMBERS, submission=SUBMISSIONS)
def test_a_submission_is_the_same_on_the_other_side(
    number: int, merchant_id: int, submission: Submission
) -> None:
    (asked,) = messages.decode_asked(messages.encode([messages.ask(number, merchant_id, submission)]))
    assert (asked.number, asked.merchant_id) == (number, merchant_id)
    assert messages.read_submission(asked) == submission


@given(number=NUMBERS, outcome=st.sampled_from(OUTCOMES).flatmap(st.builds) | REFUSALS)
def test_an_outcome_is_the_same_on_the_other_side(number: int, outcome: Outcome) -> None:
    (answered,) = messages.decode_answered(messages.encode([messages.answer(number, outcome)]))
    assert answered.number == number
    assert messages.read_answer(answered) == outcome


@each_row(
    "error, expected, text",
    [
        (Unavailable("queue full"), Unavailable, "queue full"),
        (CommitUnknown("the database went away"), CommitUnknown, "the database went away"),
        (BookClosed("it has moved"), BookClosed, "it has moved"),
        (CommandFailed("r1"), CommandFailed, "r1"),
        (messages.HandedBack(), messages.HandedBack, ""),
        (ZeroDivisionError("by zero"), CommitUnknown, "ZeroDivisionError('by zero')"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_is_raised_on_the_other_side(error: Exception, expected: type[Exception], text: str) -> None:
    (answered,) = messages.decode_answered(messages.encode([messages.fail(1, error)]))
    with pytest.raises(expected) as raised:
        messages.read_answer(answered)
    assert type(raised.value) is expected
    assert str(raised.value) == text
