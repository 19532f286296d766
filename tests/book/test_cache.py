"""What is cached of books, what a batch still has to read, and what is evicted."""

import asyncio
import itertools
from collections.abc import Iterator

import pytest
from tests.rows import each_row

from merchant_wallet.base import ids
from merchant_wallet.base.currencies import KFB, USDT
from merchant_wallet.book import commands as c
from merchant_wallet.book.batch import Batch, Mode, PendingCommand
from merchant_wallet.book.cache import MAX_WARY, BookCache
from merchant_wallet.book.chart import MERCHANT_KFB_ID, MERCHANT_USDT_ID
from merchant_wallet.book.commands import Command, Submission
from merchant_wallet.book.outcomes import Transferred
from merchant_wallet.book.read_set import ReadSet
from merchant_wallet.book.rules import apply_batch
from merchant_wallet.book.state import Draft
from merchant_wallet.book.sub_user import SubUser

BOOK = 1001
NOW_MS = 1_700_000_000_000
SETTINGS = 3
VERSION = 40
NONCES = itertools.count()


@pytest.fixture(autouse=True)
def _loop() -> Iterator[None]:
    """A loop for the futures of the commands."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


def _person(number: int) -> SubUser:
    return SubUser(
        user_id=100 + number,
        ext_user_id=f"u{number}",
        username=f"u{number}",
        currency=KFB,
        evm_address=bytes([1]) * 19 + bytes([number]),
        tron_address=bytes([2]) * 19 + bytes([number]),
    )


def _draft(*people: int, book: int = BOOK, version: int = VERSION, counter: int = 50) -> Draft:
    """A book as a batch reads it: both balances of the merchant, and these sub-users."""
    draft = Draft(book, NOW_MS, 7, counter, None, 5, bytes(32), SETTINGS, 0, 0, str(version))
    draft.balances = {MERCHANT_USDT_ID: 10, MERCHANT_KFB_ID: 1000}
    for number in people:
        draft.add_sub_user(_person(number), 1000 + number)
    return draft


def _debit(order: str, number: int) -> c.UserToMerchant:
    return c.UserToMerchant(order, f"u{number}", KFB, 1, 0, False)


def _batch_of(*submissions: Submission, book: int = BOOK) -> Batch:
    loop = asyncio.get_event_loop_policy().get_event_loop()
    return Batch(book, [PendingCommand(each, loop.create_future()) for each in submissions])


def _batch(*commands: Command, settings: int | None = SETTINGS, book: int = BOOK) -> Batch:
    """Each command has a nonce that no other has."""
    return _batch_of(*[Submission(command, f"n{next(NONCES)}", settings) for command in commands], book=book)


def _store(
    cache: BookCache,
    *people: int,
    book: int = BOOK,
    version: int = VERSION,
    counter: int = 50,
    mode: Mode = Mode.READ,
    batch: Batch | None = None,
) -> None:
    """A batch that wrote no entry was read at this version and committed with the next one."""
    batch = batch or _batch(book=book)
    batch.mode, batch.draft = mode, _draft(*people, book=book, version=version, counter=counter)
    cache.store(batch, str(version + 1))


def _prepare(cache: BookCache, batch: Batch) -> Batch:
    cache.prepare(batch, NOW_MS)
    return batch


def _needs_no_read(cache: BookCache, batch: Batch) -> bool:
    return _prepare(cache, batch).missing is None


def test_a_book_is_cached_once_a_batch_of_it_was_committed() -> None:
    cache = BookCache()
    asked = _debit("d1", 1), c.ReadBalances(), c.ReadSubUser("u2")
    first = _prepare(cache, _batch(*asked))
    assert (first.mode, first.missing, first.draft) == (Mode.READ, first.read_set, None)
    _store(cache, 1, 2)
    again = _prepare(cache, _batch(*asked))
    assert (again.mode, again.missing, again.names_read) == (Mode.CACHED, None, False)
    # The claim of the batch before has moved the version by one.
    assert again.judged.version == str(VERSION + 1)
    assert not _needs_no_read(cache, _batch(*asked, book=BOOK + 1))


KEY = c.DepositKey("TRC20", "a1", 0)
LACKED = [
    (_debit("d1", 9), ReadSet(ext_user_ids={"u9"})),
    (c.ReadSubUser("u9"), ReadSet(ext_user_ids={"u9"})),
    (c.MerchantToUser("c1", bytes(20), KFB, 1), ReadSet(addresses={bytes(20)})),
    (c.UserToMerchant("d2", "u1", KFB, 100, 10**6, False), ReadSet(accounts={5})),
    (c.Exchange("x1", KFB, USDT, 1, None, None), ReadSet(accounts={6, 7}, rates=True)),
    (
        c.CreateWithdrawal("w1", 1, "ERC20", "", "", 0, 0, 0, None, True, 1),
        ReadSet(accounts={3}),
    ),
    (c.ReadWithdrawal(1, "w1"), ReadSet(withdrawal_ids={1})),
    (c.TakeUp(1), ReadSet(withdrawal_ids={1}, stoppable_ids={1})),
    (c.Register("u9", KFB, 9, bytes(20), bytes(20)), ReadSet(ext_user_ids={"u9"})),
    (
        c.CreditDeposit(KEY, _person(1).tron_address, 1, False),
        ReadSet(deposits={KEY}, accounts={6, 7, 9}, rates=True),
    ),
    (c.WithdrawFees(KFB, None, "monthly", "ann"), ReadSet(accounts={5, 11})),
]


@each_row(("command", "lacked"), LACKED, ids=lambda value: type(value).__name__)
def test_only_what_the_cache_lacks_is_read(command: Command, lacked: ReadSet) -> None:
    """Rates, orders, stops and deposits are never cached: other transactions change them."""
    cache = BookCache()
    _store(cache, 1)
    batch = _prepare(cache, _batch(_debit("d0", 1), command))
    assert (batch.mode, batch.missing) == (Mode.CACHED, lacked)
    # The rest comes from the cache, with the version that the claim compares.
    assert (batch.judged.sub_users[101], batch.judged.balances[101]) == (_person(1), 1001)
    assert batch.judged.version == str(VERSION + 1)
    assert _needs_no_read(cache, _batch(_debit("d0", 1)))


def test_a_quote_reads_nothing_of_the_book() -> None:
    cache = BookCache()
    _store(cache)
    assert _needs_no_read(cache, _batch(c.QuoteWithdrawal(1, 0, 0)))


def test_a_batch_made_under_other_settings_is_read() -> None:
    cache = BookCache()
    _store(cache, 1)
    for settings, mode in ((SETTINGS + 1, Mode.READ), (SETTINGS - 1, Mode.READ), (None, Mode.CACHED)):
        batch = _prepare(cache, _batch(_debit("d1", 1), settings=settings))
        assert (batch.mode, batch.draft is None) == (mode, mode is Mode.READ)


def test_a_batch_that_might_use_up_the_range_of_ids_is_read() -> None:
    cache = BookCache()
    _store(cache, 1, counter=ids.MAX_COUNTER - 2)
    two = _debit("d1", 1), _debit("d2", 1)
    assert _needs_no_read(cache, _batch(*two))
    assert _prepare(cache, _batch(*two, c.ReadBalances())).mode is Mode.READ


def test_a_draft_holds_what_the_batch_names_and_is_judged_apart_from_the_cache() -> None:
    cache = BookCache()
    _store(cache, 1, 2)
    batch = _prepare(cache, _batch(_debit("d1", 1)))
    draft = batch.judged
    assert draft.balances == {MERCHANT_KFB_ID: 1000, 101: 1001}
    assert list(draft.sub_users) == [101]
    (outcome,) = apply_batch(draft, batch.submissions)
    assert isinstance(outcome, Transferred)
    assert draft.balances == {MERCHANT_KFB_ID: 1001, 101: 1000}
    before = _prepare(cache, _batch(_debit("d1", 1))).judged
    assert (before.balances, before.entry_count) == ({MERCHANT_KFB_ID: 1000, 101: 1001}, 5)
    assert before.sub_users[101] == _person(1)

    cache.store(batch, str(VERSION + 2))
    after = _prepare(cache, _batch(_debit("d2", 1), _debit("d2", 2))).judged
    assert after.balances == {MERCHANT_KFB_ID: 1001, 101: 1000, 102: 1002}
    assert after.head == draft.head._replace(version=str(VERSION + 2))
    assert after.sub_users[101].day_debited == 1


def test_the_clock_of_a_cached_book_never_goes_back() -> None:
    cache = BookCache()
    _store(cache, 1)
    moments = []
    for at_ms in (NOW_MS - 9, NOW_MS, NOW_MS + 9):
        batch = _batch(_debit("d1", 1))
        cache.prepare(batch, at_ms)
        moments.append(batch.judged.now_ms)
    assert moments == [NOW_MS, NOW_MS, NOW_MS + 9]


def test_a_version_that_somebody_else_moved_makes_everything_older_forgotten() -> None:
    cache = BookCache()
    _store(cache, 1)
    _store(cache, 2, version=VERSION + 1)
    assert _needs_no_read(cache, _batch(_debit("d1", 1), _debit("d2", 2)))
    _store(cache, 3, version=VERSION + 3)
    assert not _needs_no_read(cache, _batch(_debit("d1", 1)))
    assert _needs_no_read(cache, _batch(_debit("d1", 3)))


def test_a_nonce_or_an_order_id_that_came_before_is_read() -> None:
    cache = BookCache(keys_limit=3)
    first = Submission(_debit("d1", 1), "n1", SETTINGS)

    def reads_names(*submissions: Submission, book: int = BOOK) -> bool:
        batch = _prepare(cache, _batch_of(*submissions, book=book))
        return batch.names_read

    _store(cache, 1, batch=_batch_of(first))
    for repeated in (
        Submission(_debit("d2", 1), "n1", SETTINGS),
        Submission(_debit("d1", 1), "n2", SETTINGS),
    ):
        batch = _prepare(cache, _batch_of(repeated))
        assert batch.names_read
        assert batch.missing == ReadSet(nonces=batch.read_set.nonces, order_names=batch.read_set.order_names)
        assert batch.mode is Mode.CACHED
    # An order id is no nonce, another kind has its own order ids, and each book has its own names.
    assert not reads_names(Submission(_debit("n1", 1), "d1", SETTINGS))
    assert not reads_names(Submission(c.MerchantToUser("d1", _person(1).evm_address, KFB, 1), "n2", SETTINGS))
    _store(cache, 1, book=BOOK + 1)
    assert not reads_names(first, book=BOOK + 1)
    # Only the latest are cached. The claim looks all others up.
    for number in range(4):
        version = VERSION + 1 + number
        _store(cache, 1, version=version, batch=_batch_of(Submission(_debit(f"y{number}", 1), f"x{number}")))
    assert not reads_names(first)


def test_a_withdrawal_that_came_before_is_read() -> None:
    cache = BookCache()
    asked = c.CreateWithdrawal("w1", 1, "ERC20", "", "", 0, 0, 0, None, True, 1)
    _store(cache, 1, batch=_batch(asked))
    batch = _prepare(cache, _batch(asked))
    assert batch.names_read
    assert batch.missing is not None
    assert batch.missing.withdrawal_names == {"w1"}


def _count_until_cached(cache: BookCache) -> list[Mode]:
    """The modes of the next batches until one is judged on the cache."""
    modes: list[Mode] = []
    for number in range(MAX_WARY + 2):
        batch = _prepare(cache, _batch(_debit("d1", 1)))
        if batch.mode is Mode.CACHED:
            return modes
        modes.append(batch.mode)
        _store(cache, 1, version=VERSION + number, mode=batch.mode)
    raise AssertionError("read for ever")


def test_a_book_with_conflicts_is_read_for_a_while_and_longer_each_time() -> None:
    cache = BookCache()
    assert _count_until_cached(cache) == [Mode.READ]
    waits = []
    for _ in range(12):
        cache.note_conflict(_prepare(cache, _batch(_debit("d1", 1))))
        modes = _count_until_cached(cache)
        assert set(modes) == {Mode.READ}
        waits.append(len(modes))
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1024]

    # One success on the cache ends the series.
    batch = _prepare(cache, _batch(_debit("d1", 1)))
    assert batch.mode is Mode.CACHED
    cache.store(batch, batch.judged.version + "+1")
    cache.note_conflict(_prepare(cache, _batch(_debit("d1", 1))))
    assert _count_until_cached(cache) == [Mode.READ]


def test_a_batch_that_conflicts_again_after_its_read_locks_the_book() -> None:
    cache = BookCache()
    _store(cache, 1)
    batch = _prepare(cache, _batch(_debit("d1", 1)))
    modes = [batch.mode]
    for _ in range(3):
        cache.note_conflict(batch)
        modes.append(_prepare(cache, batch).mode)
        assert batch.missing == batch.read_set
        assert (batch.draft, batch.outcomes) == (None, [])
    assert modes == [Mode.CACHED, Mode.READ, Mode.LOCKED, Mode.LOCKED]
    # Other books are not concerned.
    _store(cache, 1, book=BOOK + 1)
    assert _needs_no_read(cache, _batch(_debit("d1", 1), book=BOOK + 1))


def test_what_is_not_known_any_more_is_read() -> None:
    cache = BookCache()
    _store(cache, 1)
    cache.evict(BOOK)
    cache.evict(BOOK)
    assert not _needs_no_read(cache, _batch(_debit("d1", 1)))


def test_of_too_many_the_book_that_was_quiet_longest_is_forgotten() -> None:
    cache = BookCache(limit=6)

    def cached(*books: int) -> list[bool]:
        return [_needs_no_read(cache, _batch(_debit("d1", 1), book=book)) for book in books]

    for book in (1, 2, 3):
        _store(cache, 1, book=book)
    cache.store(_prepare(cache, _batch(_debit("d0", 1), book=1)), str(VERSION + 2))
    _store(cache, 1, book=4)
    assert cached(1, 2, 3, 4) == [True, False, True, True]
    # A book of more than half the limit is not cached, and evicts no other.
    _store(cache, *range(1, 9), book=5)
    assert cached(1, 3, 4, 5) == [True, True, True, False]
