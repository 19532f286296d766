"""What the old place of a cell says of its new one: it names a server that is known, or a person must."""

import pytest

from merchant_wallet.merchants.cells.book_placement import Copy, KnownPlace, _is_misplaced
from merchant_wallet.merchants.cells.fence import UNREADABLE, parse_address
from merchant_wallet.merchants.cells.places import find_servers


@pytest.mark.parametrize(
    ("said", "address"),
    [
        ("host=db2 port=5433 dbname=wallet", "host=db2 port=5433 dbname=wallet"),
        ("postgresql://thief:word@db2/wallet?sslmode=disable&passfile=/tmp/p", "host=db2 dbname=wallet"),
        ("host=a,b port=1,2 dbname=wallet options='-c log_statement=all'", "host=a,b port=1,2 dbname=wallet"),
        ("host=db2 hostaddr=10.0.0.9 dbname=wallet", "host=db2 hostaddr=10.0.0.9 dbname=wallet"),
    ],
)
def test_only_a_server_and_a_database_are_taken_from_the_comment(said: str, address: str) -> None:
    assert set(parse_address(said).split()) == set(address.split())


@pytest.mark.parametrize(
    "said",
    [
        "",
        "host='",
        "nonsense",
        "service=other",
        "dbname=wallet",
        "host=db2 port=x",
        "host=a,b port=1,2,3",
        "host=db2 dbname='host=thief'",
        "host=db2 dbname=postgresql://thief/wallet",
        "host='db2\n' dbname=wallet",
    ],
)
def test_a_malformed_comment_names_no_place(said: str) -> None:
    assert parse_address(said) == UNREADABLE


def test_a_server_is_known_by_the_address_that_is_connected_to() -> None:
    known = find_servers(["postgresql://home:word@db1/wallet", "host=db2,db3", "postgresql://web@", None])
    assert known == {"db1", "db2", "db3"}
    assert find_servers(["host=db2 dbname=other"]) <= known
    assert not find_servers(["host=db2,thief dbname=wallet"]) <= known
    assert not find_servers(["host=db2 hostaddr=10.6.6.6 dbname=wallet"]) <= known


@pytest.mark.parametrize("is_between", [False, True])
def test_a_book_closed_in_its_own_place_is_misplaced_unless_a_move_opens_it(is_between: bool) -> None:
    place = KnownPlace(1001, 2, 4, is_opened=True, is_between=is_between)
    closed = Copy(2, 1001, False, 4, 7)
    assert _is_misplaced(place, [closed]) is not is_between
    assert not _is_misplaced(place, [closed._replace(is_open=True)])
