"""What is cached of books, which batches can run on the cache, and what is evicted."""

from collections.abc import Sequence

import pytest

from merchant_wallet.base import ids
from merchant_wallet.base.currencies import KFB
from merchant_wallet.book import commands as c
from merchant_wallet.book.cache import MAX_SKIPPED, BookCache
from merchant_wallet.book.chart import MERCHANT_KFB_ID, MERCHANT_USDT_ID
from merchant_wallet.book.commands import Command, Submission
from merchant_wallet.book.outcomes import Transferred
from merchant_wallet.book.read_set import ReadSet, read_set_of
from merchant_wallet.book.rules import apply_batch
from merchant_wallet.book.state import Draft
from merchant_wallet.book.sub_user import SubUser

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


def _read(cache: BookCache, *people: int, book: int = BOOK, count: int = 5, counter: int = 50) -> None:
    """A batch that changed nothing was read and committed."""
    draft = _draft(*people, book=book, count=count, counter=counter)
    cache.store_read(draft, draft.head, ReadSet())


def _hits(cache: BookCache, batch: Sequence[Submission], book: int = BOOK) -> bool:
    return cache.get(book, batch, read_set_of(batch)) is not None


def test_a_book_is_cached_once_a_batch_of_it_was_read() -> None:
    cache = BookCache()
    batch = _batch(_debit("d1", 1), c.ReadBalances(), c.ReadSubUser("u2"))
    assert not _hits(cache, batch)
    _read(cache, 1, 2)
    assert _hits(cache, batch)
    assert not _hits(cache, batch, book=BOOK + 1)


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
    cache = BookCache()
    _read(cache, 1)
    known = _debit("d0", 1)
    # A quote reads nothing of the book.
    assert _hits(cache, _batch(known, command)) == isinstance(command, c.QuoteWithdrawal)
    assert _hits(cache, _batch(known))


def test_a_batch_made_under_other_settings_is_read() -> None:
    cache = BookCache()
    _read(cache, 1)
    assert not _hits(cache, _batch(_debit("d1", 1), version=VERSION + 1))
    assert not _hits(cache, _batch(_debit("d1", 1), version=VERSION - 1))
    assert _hits(cache, _batch(_debit("d1", 1), version=None))


def test_a_batch_that_might_use_up_the_range_of_ids_is_read() -> None:
    cache = BookCache()
    _read(cache, 1, counter=ids.MAX_COUNTER - 2)
    two = _batch(_debit("d1", 1), _debit("d2", 1))
    assert _hits(cache, two)
    assert not _hits(cache, [*two, *_batch(c.ReadBalances())])


def test_a_draft_holds_what_the_batch_names_and_is_judged_apart_from_the_memory() -> None:
    cache = BookCache()
    _read(cache, 1, 2)
    batch = _batch(_debit("d1", 1))
    read_set = read_set_of(batch)
    cached = cache.get(BOOK, batch, read_set)
    assert cached is not None
    draft = cached.draft(BOOK, read_set, NOW_MS + 1)
    assert draft.balances == {MERCHANT_KFB_ID: 1000, 101: 1001}
    assert list(draft.sub_users) == [101]
    (outcome,) = apply_batch(draft, batch)
    assert isinstance(outcome, Transferred)
    assert draft.balances == {MERCHANT_KFB_ID: 1001, 101: 1000}
    before = cached.draft(BOOK, read_set, NOW_MS)
    assert (before.balances, before.entry_count) == ({MERCHANT_KFB_ID: 1000, 101: 1001}, 5)
    assert before.sub_users[101] == _person(1)

    cache.store_optimistic(draft, cached, read_set)
    after = cached.draft(BOOK, read_set_of(_batch(_debit("d2", 1), _debit("d2", 2))), NOW_MS)
    assert after.balances == {MERCHANT_KFB_ID: 1001, 101: 1000, 102: 1002}
    assert (after.head, after.sub_users[101].day_debited) == (draft.head, 1)


def test_the_clock_of_a_cached_book_never_goes_back() -> None:
    cache = BookCache()
    _read(cache, 1)
    batch = _batch(_debit("d1", 1))
    cached = cache.get(BOOK, batch, read_set_of(batch))
    assert cached is not None
    moments = [cached.draft(BOOK, read_set_of(batch), at).now_ms for at in (NOW_MS - 9, NOW_MS, NOW_MS + 9)]
    assert moments == [NOW_MS, NOW_MS, NOW_MS + 9]


def test_an_entry_that_somebody_else_wrote_makes_everything_older_forgotten() -> None:
    cache = BookCache()
    _read(cache, 1)
    _read(cache, 2)
    assert _hits(cache, _batch(_debit("d1", 1), _debit("d2", 2)))
    _read(cache, 3, count=6)
    assert not _hits(cache, _batch(_debit("d1", 1)))
    assert _hits(cache, _batch(_debit("d1", 3)))


def test_a_nonce_or_an_order_id_that_came_before_is_not_guessed_to_be_new() -> None:
    cache = BookCache(keys_limit=3)
    _read(cache, 1)
    first = [Submission(_debit("d1", 1), "n1", VERSION)]
    draft = _draft(1)
    cache.store_read(draft, draft.head, read_set_of(first))
    assert not _hits(cache, [Submission(_debit("d2", 1), "n1", VERSION)])
    assert not _hits(cache, [Submission(_debit("d1", 1), "n2", VERSION)])
    # An order id is no nonce, and each book has its own.
    assert _hits(cache, [Submission(_debit("n1", 1), "d1", VERSION)])
    _read(cache, 1, book=BOOK + 1)
    assert _hits(cache, first, book=BOOK + 1)
    # Only the latest are cached. The database knows them all.
    for number in range(6):
        cache.store_read(draft, draft.head, ReadSet(nonces={f"x{number}"}))
    assert _hits(cache, first)


def test_a_book_with_conflicts_is_read_first_for_a_while_and_longer_each_time() -> None:
    cache = BookCache()
    batch = _batch(_debit("d1", 1))

    def reads_until_hit() -> int:
        for count in range(MAX_SKIPPED + 2):
            if _hits(cache, batch):
                return count
            _read(cache, 1)
        raise AssertionError("read for ever")

    assert reads_until_hit() == 1
    waits = []
    for _ in range(12):
        cache.note_conflict(BOOK)
        waits.append(reads_until_hit())
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1024]

    cached = cache.get(BOOK, batch, read_set_of(batch))
    assert cached is not None
    cache.store_optimistic(_draft(1), cached, ReadSet())
    cache.note_conflict(BOOK)
    assert reads_until_hit() == 1


def test_what_is_not_known_any_more_is_read() -> None:
    cache = BookCache()
    _read(cache, 1)
    cache.evict(BOOK)
    cache.evict(BOOK)
    assert not _hits(cache, _batch(_debit("d1", 1)))


def test_of_too_many_the_book_that_was_quiet_longest_is_forgotten() -> None:
    cache = BookCache(limit=6)
    batch = _batch(_debit("d1", 1))
    for book in (1, 2, 3):
        _read(cache, 1, book=book)
    cached = cache.get(1, batch, read_set_of(batch))
    assert cached is not None
    cache.store_optimistic(_draft(1, book=1), cached, ReadSet())
    _read(cache, 1, book=4)
    assert [_hits(cache, batch, book) for book in (1, 2, 3, 4)] == [True, False, True, True]
    # A book of half the limit is not cached, and evicts no other.
    _read(cache, *range(1, 9), book=5)
    assert [_hits(cache, batch, book) for book in (1, 3, 4, 5)] == [True, True, True, False]
