"""What errors of the database mean for whoever runs a command."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from tests.ports import find_port

from merchant_wallet.base.db import connect_sync, explain_error
from merchant_wallet.base.sqlstates import explain

KINDS = {
    "25P03": "stood still",
    "26000": "pooler",
    "28P01": "refuses the sign-in",
    "3D000": "no such database",
    "40001": "another was in its way",
    "40P01": "another was in its way",
    "42501": "may not do this",
    "53100": "disk",
    "53200": "memory",
    "53300": "no more connections",
    "53400": "limit",
    "55P03": "holds a lock",
    "55006": "present state",
    "57014": "cancelled a statement",
    "57P01": "administrator",
    "57P04": "dropped",
    "58030": "its own machine",
    "XX001": "damaged",
}


@pytest.mark.parametrize("sqlstate", KINDS)
def test_each_error_of_a_session_or_server_says_what_happened_and_what_to_do(sqlstate: str) -> None:
    explanation = explain(sqlstate)
    assert explanation is not None
    assert KINDS[sqlstate] in f"{explanation.what} {explanation.advice}"
    assert explanation.advice.endswith(".")
    assert not explanation.what.endswith(".")


@pytest.mark.parametrize("sqlstate", ["22001", "23505", "42601", "42P01"])
def test_a_fault_of_a_statement_is_not_explained_away(sqlstate: str) -> None:
    assert explain(sqlstate) is None


def _fail(act: Callable[[], Any]) -> str:
    with pytest.raises(psycopg.Error) as raised:
        act()
    explanation = explain_error(raised.value)
    assert explanation is not None
    return explanation.what


def test_only_what_did_not_answer_can_not_be_reached(database_url: str) -> None:
    nobody = f"postgresql://wallet@127.0.0.1:{find_port()}/wallet?connect_timeout=2"
    assert _fail(lambda: connect_sync(nobody)).startswith("The database can't be reached: ")
    unknown = database_url.replace("postgresql://wallet", "postgresql://nobody", 1)
    assert _fail(lambda: connect_sync(unknown)).startswith("The database refuses this session: ")


def test_a_cancelled_statement_is_said_in_the_servers_own_words(database_url: str) -> None:
    with connect_sync(database_url) as connection:
        connection.execute("set statement_timeout = 1")
        told = _fail(lambda: connection.execute("select pg_sleep(10)"))
    assert told.startswith("The database cancelled a statement")
    assert told.endswith("canceling statement due to statement timeout")
