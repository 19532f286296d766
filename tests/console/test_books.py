"""Books in the console: accounts, statements, single entries with their hashes, long downloads,
verification.
"""

import csv
import io
import json
import socket
import threading
from pathlib import Path
from typing import LiteralString

import pytest
from tests.console.conftest import People, read_text
from tests.journeys.conftest import Platform, Shop
from tests.waits import wait_until

from merchant_wallet.book.commands import Adjust
from merchant_wallet.book.outcomes import Adjusted
from merchant_wallet.book.state import Posting
from merchant_wallet.console import book_export, verifier
from merchant_wallet.console.books import list_statement_lines
from merchant_wallet.console.session_cookie import COOKIE
from merchant_wallet.console.verifier import Verification
from merchant_wallet.reporting.entries import EntryLine
from merchant_wallet.reporting.export import COLUMNS
from merchant_wallet.web import connection as page_connection

BOOKS = "/console/books"
FILL = Path(__file__).with_name("large_journal.sql")
FILL_ROWS = 120_000
FILL_BYTES = 10_000_000
"""The exported file is at least this large."""
CONNECTIONS: LiteralString = (
    "select count(*) from pg_stat_activity"
    " where datname = current_database() and backend_type = 'client backend'"
)
SPARE_KB = 60_000
"""Memory may grow by this much during the download: far less than the whole file or all its rows need."""


def url_of(shop: Shop) -> str:
    return f"{BOOKS}/{shop.merchant_id}"


def rss_kb() -> int:
    """Resident memory of this process, in which the service runs too."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def test_an_accounts_statement_shows_what_came_and_went_and_what_was_left(shop: Shop, people: People) -> None:
    user = shop.user("player-7", "100")
    shop.client.do(
        "transferFromUserToMerchant", extUserId="player-7", currency="KFB", amount="40", mcOrderId="t-1"
    )
    operator = people.signed_in("operator")
    page = operator.page(f"{url_of(shop)}/accounts/{user['userId']}")
    told = read_text(page)
    assert "player-7" in told
    assert "−40.00" in told
    assert "+100.00" in told
    assert told.index("−40.00") < told.index("+100.00")
    assert "60.00 KFB" in told
    mine = read_text(operator.page(f"{url_of(shop)}/accounts/2"))
    assert f"subuser:{user['userId']}:KFB" in mine


def test_an_entry_that_pays_twice_has_two_lines_the_last_one_first() -> None:
    row = EntryLine(1, 7, "settle", None, 5, 0, "hold:USDT", "chain:ERC20:USDT", "USDT", 90)
    postings = [Posting(3, 8, "USDT", 90, 10, -90), Posting(3, 4, "USDT", 10, 0, 10)]
    lines = list_statement_lines(3, [row], {7: postings})
    assert [(line.signed_units, line.balance_units) for line in lines] == [(-10, 0), (-90, 10)]
    others = list_statement_lines(4, [row], {7: postings})
    assert [(line.signed_units, line.balance_units) for line in others] == [(10, 10)]


def test_statements_are_filtered_by_kind_day_and_order_id(shop: Shop, people: People) -> None:
    shop.user("player-7", "100")
    shop.client.do(
        "transferFromUserToMerchant", extUserId="player-7", currency="KFB", amount="40", mcOrderId="t-1"
    )
    operator = people.signed_in("operator")

    def kinds(query: str) -> list[str]:
        rows = read_text(operator.page(f"{url_of(shop)}{query}").split('id="entries"')[1].split("</form>")[1])
        return [name for name in ("Sub-user to merchant", "Adjustment", "Wallet opened") if name in rows]

    assert kinds("") == ["Sub-user to merchant", "Adjustment", "Wallet opened"]
    assert kinds("?kind=register") == ["Wallet opened"]
    assert kinds("?id=t-1") == ["Sub-user to merchant"]
    assert kinds("?from=2000-01-01&to=2000-01-02") == []
    assert operator.get(f"{url_of(shop)}?after=nonsense").status_code == 404


def test_pages_of_entries_go_on_by_key_and_back_again(platform: Platform, people: People) -> None:
    shop = platform.open_merchant()
    for number in range(60):
        shop.ask_book(Adjust("USDT", 1_000_000 + number, f"n{number}", "cli:ann", None))
    operator = people.signed_in("operator")
    first = operator.page(url_of(shop))
    follow = first.split('rel="next" href="')[1].split('"')[0].replace("&amp;", "&")
    second = operator.page(follow)
    assert "1.000059" in first
    assert "1.000059" not in second
    assert "1.000000" in second or "1.00 USDT" in read_text(second)
    back = second.split('rel="prev" href="')[1].split('"')[0].replace("&amp;", "&")
    assert "1.000059" in operator.page(back)


def test_one_entry_shows_balances_facts_its_hash_and_the_one_before(shop: Shop, people: People) -> None:
    done = shop.ask_book(Adjust("USDT", 5_000_000, "<i>goodwill</i>", "operator:ann", None))
    assert isinstance(done, Adjusted)
    found = shop.platform.rows(
        "select hash from entry where merchant_id = %s order by entry_id desc limit 2", shop.merchant_id
    )
    page = people.signed_in("auditor").page(f"{url_of(shop)}/entries/{done.entry_id}")
    assert found[0][0].hex() in page
    assert found[1][0].hex() in page
    assert "&lt;i&gt;goodwill&lt;/i&gt;" in page
    assert "1,005.00" in read_text(page)
    assert "operator:ann" in page
    own = people.signed_in("merchant", shop.merchant_id).page(f"{url_of(shop)}/entries/{done.entry_id}")
    assert "goodwill" in own
    assert "operator:ann" not in own


def test_a_merchants_user_goes_to_its_own_book_and_finds_no_other(shop: Shop, people: People) -> None:
    other = shop.platform.open_merchant(name="A Book Nobody May Know")
    other.fund("USDT", "777")
    entry = shop.platform.rows("select entry_id from entry where merchant_id = %s", other.merchant_id)[0][0]
    user = people.signed_in("merchant", shop.merchant_id)
    assert user.get(BOOKS).headers["location"] == url_of(shop)
    for path in ("", "/accounts/1", f"/entries/{entry}", "/export", "/verify", "/verify/state"):
        assert user.get(f"{url_of(other)}{path}").status_code == 404, path
    # An entry of another book is not found under this book's path.
    assert user.get(f"{url_of(shop)}/entries/{entry}").status_code == 404
    assert user.get(f"{url_of(shop)}/verify").status_code == 403


@pytest.mark.parametrize("path", ["/accounts/0", "/accounts/12", "/accounts/99999999999", "/entries/1"])
def test_what_is_not_in_the_book_is_not_there(shop: Shop, people: People, path: str) -> None:
    assert people.signed_in("operator").get(f"{url_of(shop)}{path}").status_code == 404


def test_a_download_has_every_posting_the_oldest_first(shop: Shop, people: People) -> None:
    shop.user("=cmd()", "100")
    shop.client.do(
        "transferFromUserToMerchant", extUserId="=cmd()", currency="KFB", amount="40", mcOrderId="=1+1"
    )
    operator = people.signed_in("operator")
    answer = operator.get(f"{url_of(shop)}/export?account=merchant:KFB&form=csv")
    assert answer.headers["content-type"].startswith("text/csv")
    name = f"book-{shop.merchant_id}-merchant-KFB.csv"
    assert answer.headers["content-disposition"] == f'attachment; filename="{name}"'
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["amount"] for row in rows] == ["1000", "40"]
    assert [row["balance"] for row in rows] == ["1000", "1040"]
    # A spreadsheet must not run a merchant's text as a formula.
    assert rows[1]["mcOrderId"] == "'=1+1"
    lines = operator.get(f"{url_of(shop)}/export?form=jsonl").text.splitlines()
    assert len(lines) == 2 * shop.entry_count() - 2
    assert set(json.loads(lines[0])) == set(COLUMNS)


@pytest.mark.parametrize("query", ["form=xml", "account=nobody", "account=subuser:99999"])
def test_no_download_of_what_there_is_not(shop: Shop, people: People, query: str) -> None:
    assert people.signed_in("operator").get(f"{url_of(shop)}/export?{query}").status_code == 404


@pytest.fixture(scope="module")
def large_shop(platform: Platform) -> Shop:
    """A merchant with a long journal."""
    shop = platform.open_merchant()
    platform.rows(FILL.read_text(), shop.merchant_id, FILL_ROWS)
    return shop


def test_a_download_of_a_large_book_takes_no_more_memory_than_of_a_small_one(
    large_shop: Shop, people: People
) -> None:
    shop = large_shop
    operator = people.signed_in("operator")
    operator.get(f"{url_of(shop)}/export?from=2100-01-01")
    before_kb, most_kb, size, lines = rss_kb(), 0, 0, 0
    with operator.http.stream("GET", f"{url_of(shop)}/export?form=csv") as answer:
        assert answer.status_code == 200
        for piece in answer.iter_bytes():
            size += len(piece)
            lines += piece.count(b"\n")
            most_kb = max(most_kb, rss_kb())
    assert lines == 1 + 2 * FILL_ROWS
    assert size > FILL_BYTES
    assert most_kb - before_kb < SPARE_KB


def test_only_so_many_downloads_run_at_once(
    shop: Shop, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit in ("MAX_CONCURRENT", "MAX_OF_ONE"):
        with monkeypatch.context() as patch:
            patch.setattr(book_export, limit, 0)
            answer = people.signed_in("operator").get(f"{url_of(shop)}/export")
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "30")


def test_merchants_people_leave_the_platforms_people_a_place(
    shop: Shop, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator, theirs = people.signed_in("operator"), people.signed_in("merchant", shop.merchant_id)
    assert theirs.get(f"{url_of(shop)}/export").status_code == 200
    monkeypatch.setattr(book_export, "MAX_OF_MERCHANTS", 0)
    assert theirs.get(f"{url_of(shop)}/export").status_code == 503
    assert operator.get(f"{url_of(shop)}/export").status_code == 200


@pytest.mark.new_sessions
def test_a_download_that_nobody_reads_ends_and_frees_its_connection(
    platform: Platform, large_shop: Shop, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = large_shop
    operator = people.signed_in("operator")
    operator.page("/console")
    idle = platform.rows(CONNECTIONS)
    cookie = f"{COOKIE}={operator.http.cookies[COOKIE]}"
    request = f"GET {url_of(shop)}/export HTTP/1.1\r\nHost: x\r\nCookie: {cookie}\r\n\r\n"
    with socket.socket() as reader:
        # With a small receive buffer the service notices sooner that the reader has stopped reading.
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.connect(("127.0.0.1", platform.port))
        reader.sendall(request.encode())
        assert reader.recv(12) == b"HTTP/1.1 200"
        wait_until(lambda: platform.rows(CONNECTIONS) > idle, "the download's connection")
        monkeypatch.setattr(page_connection, "WRITE_TIMEOUT_S", 0.0)
        # Another session may have ended meanwhile.
        wait_until(lambda: platform.rows(CONNECTIONS) <= idle, "the connection to be free again")
        # The database's side ends a moment before the service frees the download's slot.
        wait_until(lambda: not book_export._turns.total(), "the next download's turn")


def test_a_sound_book_is_found_sound(shop: Shop, people: People) -> None:
    operator = people.signed_in("operator")
    operator.follow(operator.post(f"{url_of(shop)}/verify"))
    wait_until(lambda: "The book is sound" in operator.page(f"{url_of(shop)}/verify/state"), "verified")
    assert f"{shop.entry_count()} entries were replayed" in read_text(operator.page(f"{url_of(shop)}/verify"))


def test_a_book_that_somebody_changed_is_found_out_and_the_rule_is_named(
    platform: Platform, people: People
) -> None:
    shop = platform.open_merchant()
    shop.fund("USDT", "10")
    platform.rows(
        "update account set balance = balance + 1 where merchant_id = %s and account_id = 1", shop.merchant_id
    )
    auditor = people.signed_in("auditor")
    auditor.follow(auditor.post(f"{url_of(shop)}/verify"))
    wait_until(lambda: "The book has a fault" in auditor.page(f"{url_of(shop)}/verify/state"), "verified")
    told = read_text(auditor.page(f"{url_of(shop)}/verify"))
    assert "an account's balance is the sum of its postings" in told


def test_one_verification_at_a_time_and_it_ends_when_asked_to(
    shop: Shop, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on, begun = threading.Event(), threading.Event()
    note = verifier._note

    def hold(made: Verification):  # type: ignore[no-untyped-def]
        told = note(made)

        def wait(merchant_id: int, done: int, total: int) -> None:
            begun.set()
            assert goes_on.wait(60)
            told(merchant_id, done, total)

        return wait

    monkeypatch.setattr(verifier, "_note", hold)
    operator = people.signed_in("operator")
    other = shop.platform.open_merchant()
    operator.post(f"{url_of(shop)}/verify")
    assert begun.wait(60)
    assert "<progress" in operator.page(f"{url_of(shop)}/verify/state")
    second = operator.follow(operator.post(f"{url_of(other)}/verify"))
    assert "Another verification is running" in read_text(second.text)
    assert "Another book is being verified" in read_text(second.text)
    operator.post(f"{url_of(shop)}/verify/cancel")
    goes_on.set()
    wait_until(lambda: "Stopped before its end" in operator.page(f"{url_of(shop)}/verify/state"), "stopped")


def test_books_are_listed_with_what_they_hold(shop: Shop, people: People) -> None:
    operator = people.signed_in("operator")
    found = read_text(operator.page(f"{BOOKS}?q={shop.merchant_id}"))
    assert "1,000.00" in found
    assert "No merchant matches" in operator.page(f"{BOOKS}?q=nobody-is-called-so")
