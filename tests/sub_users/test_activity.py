"""What a sub-user sees of its wallet, in a book with every kind of entry."""

import re
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

import psycopg
import pytest
from tests.book.fake_writer import COIN, MERCHANT_ID, START_MS, FakeWriter, on, write_history
from tests.book.ledger import OWN
from tests.conftest import BARE_TEMPLATE

from merchant_wallet.base.addresses import to_tron
from merchant_wallet.base.currencies import KFB, USDT
from merchant_wallet.base.db import connect_sync
from merchant_wallet.base.ids import MAX_ID
from merchant_wallet.book.commands import Adjust
from merchant_wallet.book.outcomes import SubUserFound
from merchant_wallet.sub_users.activity import (
    QUERIES,
    ActivityLine,
    Connection,
    WalletShown,
    list_activity,
    read_balances,
    read_wallet,
    show_entry,
)

Result = TypeVar("Result")
Ask = Callable[[Connection], Coroutine[Any, Any, Result]]

OTHER = 1002


@pytest.fixture
def fake_writer(database_url: str) -> Iterator[FakeWriter]:
    """An empty book and a writer for it."""
    made = FakeWriter(database_url)
    yield made
    made.close()


def listed(fake_writer: FakeWriter, user_id: int, **page: Any) -> list[ActivityLine]:
    return on(fake_writer.url, lambda conn: list_activity(conn, fake_writer.merchant_id, user_id, **page))


def shown(fake_writer: FakeWriter, user_id: int) -> WalletShown | None:
    return on(fake_writer.url, lambda conn: read_wallet(conn, fake_writer.merchant_id, user_id))


def balances(fake_writer: FakeWriter, *pairs: tuple[int, int]) -> dict[tuple[int, int], tuple[int, int]]:
    return on(fake_writer.url, lambda conn: read_balances(conn, pairs))


def test_a_wallets_story_is_told_from_its_end(fake_writer: FakeWriter) -> None:
    named = write_history(fake_writer)
    lines = listed(fake_writer, named["anna"])
    assert [(line.entry_id, line.signed_units // COIN, line.balance_units // COIN) for line in lines] == [
        (named["adjust"], -5, 336),
        (named["deposit"], 21, 341),
        (named["debit later"], -30, 320),
        (named["free debit"], -50, 350),
        (named["debit"], -100, 400),
        (named["credit"], 500, 500),
    ]
    assert [line.kind for line in lines] == [
        "adjust",
        "deposit",
        "user_to_merchant",
        "user_to_merchant",
        "user_to_merchant",
        "merchant_to_user",
    ]
    assert [line.mc_order_id for line in lines] == [None, None, "d3", "d2", "d1", "c1"]
    assert {line.currency for line in lines} == {KFB}
    assert lines[0].balance_units == fake_writer.draft.balances[named["anna"]]
    assert START_MS < lines[-1].at_ms < lines[0].at_ms == fake_writer.draft.now_ms - 1000
    assert {line.status for line in lines} == {"completed"}
    assert listed(fake_writer, named["bert"]) == []


def test_each_line_names_whoever_was_on_the_other_side(fake_writer: FakeWriter) -> None:
    named = write_history(fake_writer)
    adjusted, deposited, debited, *_ = listed(fake_writer, named["anna"])
    assert (adjusted.partner, adjusted.reason) == (None, "a correction")
    assert (deposited.partner, deposited.chain) == (to_tron(bytes(20)), "TRC20")
    assert (deposited.sent_units, deposited.rate_e8, deposited.amount_units) == (
        3 * COIN,
        7 * 10**8,
        21 * COIN,
    )
    assert deposited.tx_hash
    # The fee's rate and the merchant's share stay between merchant and platform.
    assert (debited.partner, debited.rate_e8, debited.amount_units) == ("Merchant 1001", None, 30 * COIN)
    assert (debited.reason, debited.chain, debited.tx_hash, debited.sent_units) == (None, None, None, None)


def test_a_deposit_that_nobody_exchanged_has_no_rate(fake_writer: FakeWriter) -> None:
    carl = fake_writer.register("carl", USDT)
    fake_writer.own(OWN)
    fake_writer.deposit(carl, 3 * COIN)
    (line,) = listed(fake_writer, carl.user_id)
    assert (line.currency, line.amount_units, line.sent_units, line.rate_e8) == (
        USDT,
        3 * COIN,
        3 * COIN,
        None,
    )


def test_an_operators_credit_comes_in_without_the_operators_name(fake_writer: FakeWriter) -> None:
    fake_writer.register("dora")
    fake_writer.ask(Adjust(KFB, 8 * COIN, "goodwill", "operator:ann", "dora"))
    user_id = fake_writer.draft.user_id_by_ext["dora"]
    (line,) = listed(fake_writer, user_id)
    assert (line.signed_units, line.reason, line.partner) == (8 * COIN, "goodwill", None)
    assert "ann" not in repr(line)


def story_of_many(fake_writer: FakeWriter) -> SubUserFound:
    """Twelve credits and twelve debits in turn, most with a fee, and another wallet's credits between
    them.
    """
    fake_writer.fund(1000 * COIN, KFB)
    eva, fred = fake_writer.register("eva"), fake_writer.register("fred")
    for number in range(12):
        fake_writer.credit(eva, f"c{number}", (number + 2) * COIN)
        fake_writer.credit(fred, f"f{number}", COIN)
        fake_writer.debit(eva, f"d{number}", COIN, 10**6 if number % 3 else 0)
    return eva


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 23, 24, 100])
def test_pages_join_without_a_gap_whatever_their_length(fake_writer: FakeWriter, limit: int) -> None:
    eva = story_of_many(fake_writer)
    pages, before = [], None
    while lines := listed(fake_writer, eva.user_id, before_id=before, limit=limit):
        assert len(lines) <= limit
        pages += lines
        before = lines[-1].entry_id
    expected = [f"{kind}{number}" for number in reversed(range(12)) for kind in "dc"]
    assert [line.mc_order_id for line in pages] == expected
    running = fake_writer.draft.balances[eva.user_id]
    for line in pages:
        assert line.balance_units == running
        running -= line.signed_units
    assert running == 0


def test_what_came_in_and_what_went_out_can_be_seen_alone(fake_writer: FakeWriter) -> None:
    eva = story_of_many(fake_writer)
    for direction, letter in (("in", "c"), ("out", "d")):
        lines = listed(fake_writer, eva.user_id, direction=direction, limit=5)
        assert [line.mc_order_id for line in lines] == [f"{letter}{number}" for number in (11, 10, 9, 8, 7)]
        assert {line.direction for line in lines} == {direction}
        rest = listed(fake_writer, eva.user_id, direction=direction, before_id=lines[-1].entry_id)
        assert len(rest) == 7


@pytest.mark.parametrize("limit", [0, 101])
def test_a_page_is_bounded(fake_writer: FakeWriter, limit: int) -> None:
    with pytest.raises(ValueError, match="1 to 100"):
        listed(fake_writer, 1, limit=limit)


def test_an_entry_is_shown_to_those_alone_whose_wallet_it_moves(fake_writer: FakeWriter) -> None:
    named = write_history(fake_writer)
    anna, bert = named["anna"], named["bert"]

    def show(user_id: int, entry_id: int, merchant_id: int = MERCHANT_ID) -> ActivityLine | None:
        return on(fake_writer.url, lambda conn: show_entry(conn, merchant_id, user_id, entry_id))

    lines = {line.entry_id: line for line in listed(fake_writer, anna)}
    for entry_id in fake_writer.entry_ids():
        assert show(anna, entry_id) == lines.get(entry_id)
        assert show(bert, entry_id) is None
        assert show(anna, entry_id, OTHER) is None
    for no_entry in (0, -1, named["fees"] + 1, MAX_ID, MAX_ID + 1, 2**64):
        assert show(anna, no_entry) is None


def test_the_head_of_a_wallet_tells_what_the_page_shows_first(fake_writer: FakeWriter) -> None:
    named = write_history(fake_writer)
    fake_writer.run("update merchant set frame_origins = array['https://shop.example']")
    fake_writer.run("update merchant set require_pin = true, status = 'suspended'")
    fake_writer.run(
        "update sub_user set paused = true, limit_debit_units = 7, limit_day_units = 9, language = 'en'"
    )
    head = shown(fake_writer, named["anna"])
    assert head is not None
    sub_user = fake_writer.draft.sub_users[named["anna"]]
    assert (head.merchant_id, head.user_id, head.ext_user_id) == (MERCHANT_ID, named["anna"], "anna")
    assert (head.username, head.currency, head.language) == (sub_user.username, KFB, "en")
    assert (head.evm_address, head.tron_address) == (sub_user.evm_address, sub_user.tron_address)
    assert (head.paused, head.limit_debit_units, head.limit_day_units) == (True, 7, 9)
    assert (head.day, head.day_debited_units) == (sub_user.day, 30 * COIN)
    assert (head.has_pin, head.pin_set_ms, head.pin_locked_until_ms) == (False, None, 0)
    assert (head.merchant_name, head.require_pin, head.is_suspended) == ("Merchant 1001", True, True)
    assert head.frame_origins == ("https://shop.example",)
    assert head.version == (fake_writer.draft.balances[named["anna"]], named["adjust"])
    assert shown(fake_writer, named["fund"]) is None
    assert on(fake_writer.url, lambda conn: read_wallet(conn, OTHER, named["anna"])) is None


def test_a_wallet_that_nothing_has_moved_has_a_version_too(fake_writer: FakeWriter) -> None:
    named = write_history(fake_writer)
    head = shown(fake_writer, named["bert"])
    assert head is not None
    assert (head.version, head.frame_origins, head.is_suspended) == ((0, 0), (), False)


def test_many_wallets_balances_are_one_question(fake_writer: FakeWriter) -> None:
    named = write_history(fake_writer)
    other = FakeWriter(fake_writer.url, OTHER, 8)
    other.fund(50 * COIN, KFB)
    gina = other.register("gina")
    paid = other.credit(gina, "c1", 4 * COIN)
    other.close()
    anna, bert = (MERCHANT_ID, named["anna"]), (MERCHANT_ID, named["bert"])
    found = balances(
        fake_writer, anna, bert, (OTHER, gina.user_id), (OTHER, named["anna"]), anna, (MERCHANT_ID, 1)
    )
    assert found == {
        anna: (fake_writer.draft.balances[named["anna"]], named["adjust"]),
        bert: (0, 0),
        (OTHER, gina.user_id): (4 * COIN, paid.entry_id),
    }
    assert balances(fake_writer) == {}


BUSY = """
insert into merchant (merchant_id, name, app_key, currency_mode, created_ms)
values (1, 'Shop', 'mk_1', 'KFB', 0);
insert into book (merchant_id, id_range, head_hash, last_ms) values (1, 1, '', 0);
insert into account (merchant_id, account_id, kind, currency)
select 1, n, case when n > 100 then 'subuser' else 'merchant' end, 'KFB' from generate_series(1, 400) n;
insert into sub_user (merchant_id, user_id, ext_user_id, username, address_index, evm_address, tron_address,
                      created_ms)
select 1, n, n, 'u', n, substr(sha256(n::text::bytea), 1, 20), substr(sha256(n::text::bytea), 2, 20), 0
  from generate_series(101, 400) n;
insert into entry (merchant_id, entry_id, kind, mc_order_id, at_ms, hash)
select 1, 1000 + n, case when n % 2 = 0 then 'merchant_to_user' else 'user_to_merchant' end, n, n, ''
  from generate_series(1, 60000) n;
insert into posting
select 1, 1000 + n, 1, case when n % 2 = 0 then 2 else w end, case when n % 2 = 0 then w else 2 end, 'KFB',
       1, 0, 0
  from (select n, case when n % 3 > 0 then 101 else 102 + n % 250 end as w
          from generate_series(1, 60000) n) of_wallets;
analyze;
"""


@pytest.fixture(scope="module")
def busy_url(postgres: Any) -> Iterator[str]:
    """A book of 60,000 transfers. Two thirds belong to one wallet, 101."""
    with postgres.database(BARE_TEMPLATE) as url:
        with connect_sync(url) as connection:
            connection.execute(BUSY.encode())
        yield url


def rows_read(url: str, name: str, values: dict[str, Any], mode: str) -> int:
    """The most rows that any node of a statement's plan has read, over all its loops."""
    names = list(values)
    text = re.sub(r"%\((\w+)\)s", lambda found: f"${names.index(found[1]) + 1}", QUERIES[name].text)
    marks = ", ".join(["%s"] * len(names))
    with connect_sync(url) as connection:
        connection.execute(f"set plan_cache_mode = {mode}".encode())
        connection.execute(f"prepare asked as {text}".encode())
        explain = f"explain (analyze, timing off, format json) execute asked ({marks})".encode()
        row = psycopg.ClientCursor(connection).execute(explain, list(values.values())).fetchone()
    assert row is not None
    return _most_rows(row[0][0]["Plan"])


def _most_rows(plan: dict[str, Any]) -> int:
    own = (plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)) * plan["Actual Loops"]
    return int(max([own, *(_most_rows(node) for node in plan.get("Plans", ()))]))


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize("user_id", [101, 200])
@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("page_activity", {"before_id": MAX_ID, "limit": 20, "takes_in": True, "takes_out": True}),
        ("page_activity", {"before_id": 30_000, "limit": 20, "takes_in": True, "takes_out": True}),
        ("page_activity", {"before_id": MAX_ID, "limit": 20, "takes_in": False, "takes_out": True}),
        ("read_wallet", {}),
    ],
)
def test_a_page_of_a_busy_wallet_reads_little_more_than_it_shows(
    busy_url: str, name: str, more: dict[str, Any], user_id: int, mode: str
) -> None:
    assert 1 <= rows_read(busy_url, name, {"merchant_id": 1, "user_id": user_id, **more}, mode) <= 60


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
def test_many_open_pages_are_read_by_whole_keys(busy_url: str, mode: str) -> None:
    values = {"merchant_ids": [1] * 200, "user_ids": list(range(101, 301))}
    assert rows_read(busy_url, "read_balances", values, mode) == 200
