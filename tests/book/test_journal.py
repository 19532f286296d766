"""Entries, ids and the hash chain: what a hash covers, and which ids are possible."""

import hashlib

import pytest
from hypothesis import given as draw
from hypothesis import strategies as st
from tests.book.accounting import given, registration, units
from tests.book.ledger import START_MS, Ledger, check_chain, submit
from tests.rows import each_row

from merchant_wallet.base import ids
from merchant_wallet.base.currencies import KFB, USDT
from merchant_wallet.base.money import MAX_BALANCE_UNITS
from merchant_wallet.book.chart import ACCOUNT_ID, BELOW_ZERO_IDS, FIXED
from merchant_wallet.book.journal import (
    FIRST_HASH,
    RangeExhausted,
    can_give,
    can_receive,
    compute_chain_hash,
    encode_canonical,
    next_id,
    post,
    record,
)
from merchant_wallet.book.read_set import ReadSet
from merchant_wallet.book.state import Draft, Posting

MERCHANT_KFB, ADJUSTMENT_KFB = ACCOUNT_ID["merchant", KFB], ACCOUNT_ID["adjustment", KFB]
Content = tuple[int, int, str, str | None, int, int, str, tuple[Posting, ...]]

CONTENT: Content = (1001, 5, "adjust", None, 7, 0, "", (Posting(11, 2, KFB, 3, -3, 3),))


def draft_of(ledger: Ledger) -> Draft:
    """A draft with every fixed account."""
    return ledger.open(ReadSet(accounts={account.account_id for account in FIXED}), START_MS)


def test_the_canonical_form_is_what_other_programs_can_write_too() -> None:
    content: Content = (
        1001,
        60129542145,
        "user_to_merchant",
        "Größe",
        1728000000000,
        10**6,
        "",
        (Posting(60129542146, 2, KFB, 99, 1, 99), Posting(60129542146, 5, KFB, 1, 0, 1)),
    )
    form = (
        "1;1001;60129542145;1728000000000;1000000;2;"
        "60129542146;2;KFB;99;1;99;60129542146;5;KFB;1;0;1;"
        "16:user_to_merchant5:Größe0:"
    )
    assert encode_canonical(*content) == form.encode()
    assert (
        compute_chain_hash(FIRST_HASH, encode_canonical(*content))
        == hashlib.sha256(bytes(32) + form.encode()).digest()
    )


texts = st.text("0123456789:;aé", max_size=6)
numbers = st.integers(0, 12)
postings = st.lists(
    st.builds(Posting, numbers, numbers, st.sampled_from([USDT, KFB]), numbers, numbers, numbers), max_size=2
)
contents = st.tuples(
    numbers, numbers, texts, st.none() | texts.filter(bool), numbers, numbers, texts, postings.map(tuple)
)


@draw(contents, contents)
def test_two_entries_never_share_one_form(one: Content, other: Content) -> None:
    assert (encode_canonical(*one) == encode_canonical(*other)) == (one == other)


@each_row("place", range(len(CONTENT)))
def test_each_part_of_an_entry_changes_its_hash(place: int) -> None:
    others: Content = (1002, 6, "adjust ", "", 8, 1, " ", (Posting(11, 2, KFB, 3, -3, 4),))
    changed = list(CONTENT)
    changed[place] = others[place] if place != 3 else "a"
    assert encode_canonical(*changed) != encode_canonical(*CONTENT)  # type: ignore[arg-type]  # one part of another content


def test_entries_are_chained_in_order() -> None:
    draft = draft_of(Ledger())
    first = record(draft, "adjust", (post(draft, ADJUSTMENT_KFB, MERCHANT_KFB, KFB, 5),), facts="why")
    second = record(draft, "adjust", (post(draft, MERCHANT_KFB, ADJUSTMENT_KFB, KFB, 2),))
    assert first.hash == compute_chain_hash(
        FIRST_HASH, encode_canonical(1001, first.entry_id, "adjust", None, START_MS, 0, "why", first.postings)
    )
    assert draft.head_hash == second.hash
    assert second.hash == compute_chain_hash(
        first.hash, encode_canonical(1001, second.entry_id, "adjust", None, START_MS, 0, "", second.postings)
    )
    assert (draft.entry_count, draft.changes.entries) == (2, [first, second])
    assert draft.changes.touched == {MERCHANT_KFB, ADJUSTMENT_KFB}


def test_a_posting_keeps_both_balances_after_it() -> None:
    draft = draft_of(given("merchant:KFB 10"))
    posting = post(draft, MERCHANT_KFB, ADJUSTMENT_KFB, KFB, units("4"))
    assert posting == Posting(MERCHANT_KFB, ADJUSTMENT_KFB, KFB, units("4"), units("6"), -units("6"))
    assert draft.balances[MERCHANT_KFB] == units("6")


@each_row(
    ("source", "target", "amount"),
    [
        (MERCHANT_KFB, ADJUSTMENT_KFB, 0),
        (MERCHANT_KFB, ADJUSTMENT_KFB, -1),
        (MERCHANT_KFB, MERCHANT_KFB, 1),
        (MERCHANT_KFB, ADJUSTMENT_KFB, 11),
        (ADJUSTMENT_KFB, MERCHANT_KFB, MAX_BALANCE_UNITS),
    ],
    ids=["nothing", "less than nothing", "to itself", "below the floor", "above the limit"],
)
def test_a_posting_that_must_never_be_changes_no_balance(source: int, target: int, amount: int) -> None:
    ledger = Ledger()
    ledger.balances[MERCHANT_KFB] = 10
    draft = draft_of(ledger)
    with pytest.raises(AssertionError):
        post(draft, source, target, KFB, amount)
    assert draft.balances == ledger.balances


@each_row("account", FIXED, ids=lambda account: account.name)
def test_an_account_pays_what_it_has_unless_it_may_go_below_zero(account: object) -> None:
    (account_id,) = (a.account_id for a in FIXED if a is account)
    draft = draft_of(Ledger())
    draft.balances[account_id] = 5
    assert can_give(draft, account_id, 5)
    assert can_give(draft, account_id, 6) is (account_id in BELOW_ZERO_IDS)


def test_a_balance_takes_up_to_the_limit_in_either_direction() -> None:
    draft = draft_of(Ledger())
    draft.balances[MERCHANT_KFB] = 5
    assert can_receive(draft, MERCHANT_KFB, MAX_BALANCE_UNITS - 5)
    assert not can_receive(draft, MERCHANT_KFB, MAX_BALANCE_UNITS - 4)
    assert can_receive(draft, MERCHANT_KFB, -MAX_BALANCE_UNITS - 5)
    assert not can_receive(draft, MERCHANT_KFB, -MAX_BALANCE_UNITS - 6)


def test_ids_go_over_to_the_next_range_without_a_gap() -> None:
    draft = draft_of(Ledger(range_no=7, next_range=9, counter=ids.MAX_COUNTER - 1))
    taken = [next_id(draft) for _ in range(3)]
    assert taken == [ids.compose(7, ids.MAX_COUNTER), ids.compose(9, 1), ids.compose(9, 2)]
    assert (draft.range_no, draft.counter, draft.next_range) == (9, 2, None)


def test_a_book_without_a_further_range_gives_out_no_id() -> None:
    draft = draft_of(Ledger(counter=ids.MAX_COUNTER))
    with pytest.raises(RangeExhausted):
        next_id(draft)
    assert (draft.range_no, draft.counter, draft.changes.entries) == (7, ids.MAX_COUNTER, [])


def test_a_batch_that_runs_out_of_ids_leaves_the_book_as_it_was() -> None:
    ledger = Ledger(counter=ids.MAX_COUNTER - 1)
    with pytest.raises(RangeExhausted):
        ledger.run(submit(registration("anna", 0), registration("bert", 1)))
    assert (ledger.entries, ledger.counter) == ([], ids.MAX_COUNTER - 1)


def test_the_books_clock_never_goes_back() -> None:
    ledger = Ledger()
    ledger.ask(registration("anna", 0), START_MS + 10)
    ledger.ask(registration("bert", 1), START_MS)
    assert [entry.at_ms - START_MS for entry in ledger.entries] == [10, 10]
    check_chain(ledger)
