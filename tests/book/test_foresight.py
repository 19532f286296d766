"""What is remembered of books, what a batch may be foreseen on, and what is forgotten."""

from collections.abc import Sequence

import pytest

from merchant_wallet.base import ids
from merchant_wallet.base.money import KFB
from merchant_wallet.book import commands as c
from merchant_wallet.book.chart import MERCHANT_KFB_ID, MERCHANT_USDT_ID
from merchant_wallet.book.commands import Command, Submission
from merchant_wallet.book.foresight import MOST_SKIPPED, Foresight
from merchant_wallet.book.needs import Needs, gather
from merchant_wallet.book.outcomes import Transferred
from merchant_wallet.book.rules import apply_batch
from merchant_wallet.book.state import Draft, SubUser

BOOK = 1001
NOW_MS = 1_700_000_000_000
VERSION = 3


def _person(number: int) -> SubUser:
    return SubUser(
        user_id=100 + number,
        ext_user_id=f"u{number}",
        username=f"u{number}",
        currency=KFB,
        evm_address=bytes([1]) * 19 + bytes([number]),
        tron_address=bytes([2]) * 19 + bytes([number]),
        paused=False,
        limit_debit_units=None,
        limit_day_units=None,
        has_pin=False,
        day=0,
        day_debited=0,
    )


def _draft(*people: int, book: int = BOOK, count: int = 5, counter: int = 50) -> Draft:
    """A book as a batch reads it: both balances of the merchant, and these sub-users."""
    draft = Draft(book, NOW_MS, 7, counter, None, count, bytes([count]) * 32, VERSION, 0, 0)
    draft.balances = {MERCHANT_USDT_ID: 10, MERCHANT_KFB_ID: 1000}
    for number in people:
        draft.add_sub_user(_person(number), 1000 + number)
    return draft


def _debit(order: str, number: int) -> c.UserToMerchant:
    return c.UserToMerchant(order, f"u{number}", KFB, 1, 0, False)


def _batch(*commands: Command, version: int | None = VERSION) -> list[Submission]:
    return [
        Submission(command, f"n{number}-{id(command)}", version) for number, command in enumerate(commands)
    ]


def _read(foresight: Foresight, *people: int, book: int = BOOK, count: int = 5, counter: int = 50) -> None:
    """A batch was read, which changed nothing, and committed."""
    draft = _draft(*people, book=book, count=count, counter=counter)
    foresight.learn_read(draft, draft.head, Needs())


def _is_foreseen(foresight: Foresight, batch: Sequence[Submission], book: int = BOOK) -> bool:
    return foresight.recall(book, batch, gather(batch)) is not None


def test_a_book_is_foreseen_once_a_batch_of_it_was_read() -> None:
    foresight = Foresight()
    batch = _batch(_debit("d1", 1), c.ReadBalances(), c.ReadSubUser("u2"))
    assert not _is_foreseen(foresight, batch)
    _read(foresight, 1, 2)
    assert _is_foreseen(foresight, batch)
    assert not _is_foreseen(foresight, batch, book=BOOK + 1)


@pytest.mark.parametrize(
    "command",
    [
        _debit("d1", 9),
        c.ReadSubUser("u9"),
        c.MerchantToUser("c1", bytes(20), KFB, 1),
        c.UserToMerchant("d2", "u1", KFB, 100, 10**6, False),
        c.Exchange("x1", "KFB", "USDT", 1, None, None),
        c.QuoteWithdrawal(1, 0, 0),
        c.ReadWithdrawal(1, "w1"),
        c.Register("u9", KFB, 9, bytes(20), bytes(20)),
        c.CreditDeposit(c.DepositKey("TRC20", "a1", 0), _person(1).tron_address, 1, False),
        c.WithdrawFees(KFB, None, "monthly", "ann"),
    ],
    ids=lambda command: type(command).__name__,
)
def test_a_batch_that_names_anything_else_is_read(command: Command) -> None:
    foresight = Foresight()
    _read(foresight, 1)
    known = _debit("d0", 1)
    # A quote names nothing at all of the book.
    assert _is_foreseen(foresight, _batch(known, command)) == isinstance(command, c.QuoteWithdrawal)
    assert _is_foreseen(foresight, _batch(known))


def test_a_batch_made_under_other_settings_is_read() -> None:
    foresight = Foresight()
    _read(foresight, 1)
    assert not _is_foreseen(foresight, _batch(_debit("d1", 1), version=VERSION + 1))
    assert not _is_foreseen(foresight, _batch(_debit("d1", 1), version=VERSION - 1))
    assert _is_foreseen(foresight, _batch(_debit("d1", 1), version=None))


def test_a_batch_that_might_use_up_the_range_of_ids_is_read() -> None:
    foresight = Foresight()
    _read(foresight, 1, counter=ids.MAX_COUNTER - 2)
    two = _batch(_debit("d1", 1), _debit("d2", 1))
    assert _is_foreseen(foresight, two)
    assert not _is_foreseen(foresight, [*two, *_batch(c.ReadBalances())])


def test_a_draft_holds_what_the_batch_names_and_is_judged_apart_from_the_memory() -> None:
    foresight = Foresight()
    _read(foresight, 1, 2)
    batch = _batch(_debit("d1", 1))
    needs = gather(batch)
    memory = foresight.recall(BOOK, batch, needs)
    assert memory is not None
    draft = memory.draft(BOOK, needs, NOW_MS + 1)
    assert draft.balances == {MERCHANT_KFB_ID: 1000, 101: 1001}
    assert list(draft.sub_users) == [101]
    (outcome,) = apply_batch(draft, batch)
    assert isinstance(outcome, Transferred)
    assert draft.balances == {MERCHANT_KFB_ID: 1001, 101: 1000}
    before = memory.draft(BOOK, needs, NOW_MS)
    assert (before.balances, before.entry_count) == ({MERCHANT_KFB_ID: 1000, 101: 1001}, 5)
    assert before.sub_users[101] == _person(1)

    foresight.learn_foreseen(draft, memory, needs)
    after = memory.draft(BOOK, gather(_batch(_debit("d2", 1), _debit("d2", 2))), NOW_MS)
    assert after.balances == {MERCHANT_KFB_ID: 1001, 101: 1000, 102: 1002}
    assert (after.head, after.sub_users[101].day_debited) == (draft.head, 1)


def test_the_clock_of_a_foreseen_book_never_goes_back() -> None:
    foresight = Foresight()
    _read(foresight, 1)
    batch = _batch(_debit("d1", 1))
    memory = foresight.recall(BOOK, batch, gather(batch))
    assert memory is not None
    moments = [memory.draft(BOOK, gather(batch), at).now_ms for at in (NOW_MS - 9, NOW_MS, NOW_MS + 9)]
    assert moments == [NOW_MS, NOW_MS, NOW_MS + 9]


def test_an_entry_that_somebody_else_wrote_makes_everything_older_forgotten() -> None:
    foresight = Foresight()
    _read(foresight, 1)
    _read(foresight, 2)
    assert _is_foreseen(foresight, _batch(_debit("d1", 1), _debit("d2", 2)))
    _read(foresight, 3, count=6)
    assert not _is_foreseen(foresight, _batch(_debit("d1", 1)))
    assert _is_foreseen(foresight, _batch(_debit("d1", 3)))


def test_a_nonce_or_an_order_id_that_came_before_is_not_guessed_to_be_new() -> None:
    foresight = Foresight(names_limit=3)
    _read(foresight, 1)
    first = [Submission(_debit("d1", 1), "n1", VERSION)]
    draft = _draft(1)
    foresight.learn_read(draft, draft.head, gather(first))
    assert not _is_foreseen(foresight, [Submission(_debit("d2", 1), "n1", VERSION)])
    assert not _is_foreseen(foresight, [Submission(_debit("d1", 1), "n2", VERSION)])
    # An order id is no nonce, and another book's names are its own.
    assert _is_foreseen(foresight, [Submission(_debit("n1", 1), "d1", VERSION)])
    _read(foresight, 1, book=BOOK + 1)
    assert _is_foreseen(foresight, first, book=BOOK + 1)
    # Only the latest are kept; the database knows them all.
    for number in range(6):
        foresight.learn_read(draft, draft.head, Needs(nonces={f"x{number}"}))
    assert _is_foreseen(foresight, first)


def test_a_book_that_surprises_is_read_for_a_while_and_longer_each_time() -> None:
    foresight = Foresight()
    batch = _batch(_debit("d1", 1))

    def readings_until_foreseen() -> int:
        for count in range(MOST_SKIPPED + 2):
            if _is_foreseen(foresight, batch):
                return count
            _read(foresight, 1)
        raise AssertionError("read for ever")

    assert readings_until_foreseen() == 1
    waits = []
    for _ in range(12):
        foresight.note_surprise(BOOK)
        waits.append(readings_until_foreseen())
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1024]

    memory = foresight.recall(BOOK, batch, gather(batch))
    assert memory is not None
    foresight.learn_foreseen(_draft(1), memory, Needs())
    foresight.note_surprise(BOOK)
    assert readings_until_foreseen() == 1


def test_what_is_not_known_any_more_is_read() -> None:
    foresight = Foresight()
    _read(foresight, 1)
    foresight.forget(BOOK)
    foresight.forget(BOOK)
    assert not _is_foreseen(foresight, _batch(_debit("d1", 1)))


def test_of_too_many_the_book_that_was_quiet_longest_is_forgotten() -> None:
    foresight = Foresight(limit=6)
    batch = _batch(_debit("d1", 1))
    for book in (1, 2, 3):
        _read(foresight, 1, book=book)
    memory = foresight.recall(1, batch, gather(batch))
    assert memory is not None
    foresight.learn_foreseen(_draft(1, book=1), memory, Needs())
    _read(foresight, 1, book=4)
    assert [_is_foreseen(foresight, batch, book) for book in (1, 2, 3, 4)] == [True, False, True, True]
    # A book that alone is half of all is not remembered, and pushes out no other.
    _read(foresight, *range(1, 9), book=5)
    assert [_is_foreseen(foresight, batch, book) for book in (1, 3, 4, 5)] == [True, True, True, False]
