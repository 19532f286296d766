"""Metrics of cold money and of screening, from a real database."""

from collections.abc import Iterator

import psycopg
import pytest
from tests.observability.test_metrics import NOW_MS, Shown, show

from merchant_wallet.base.db import connect_sync
from merchant_wallet.base.units import HOUR_MS

LIMITED = f"""
insert into hot_wallet (chain, address, funds, funds_ended_payouts, checked_ms)
values ('ERC20', repeat('h', 20)::bytea, 900000000, 0, 1), ('TRC20', repeat('h', 20)::bytea, 5000000, 0, 1);
insert into cold_limit values
    ('ERC20', 100000000, 300000000, 500000000, 1, {NOW_MS - 7_200_000}),
    ('TRC20', 100000000, 300000000, 500000000, 1, {NOW_MS - 60_000}),
    ('BEP20', 100000000, 300000000, 500000000, 1, null);
insert into cold_wallet (chain, address, registered_ms) values ('ERC20', repeat('c', 20)::bytea, 1)
"""
TRANSFER = """
insert into cold_transfer
    (chain, direction, way, hot, cold, amount, approved_by, opened_ms, step, unsigned, obstacle)
values ('ERC20', 'to_cold', %(way)s, repeat('h', 20)::bytea, repeat('c', 20)::bytea, 5, 'ann', %(opened_ms)s,
        %(step)s, 'x'::bytea, %(obstacle)s)
"""
SCREENINGS = f"""
insert into screening
    (merchant_id, order_id, tx_hash, log_index, chain, address, amount, facts, state, begun_ms, changed_ms,
     cleared_ms)
select 1, o, t, case when t is not null then 0 end, 'ERC20', repeat('a', 20)::bytea, 5, '{{}}', s, 1,
       {NOW_MS} - a * 1000, case when s = 'passed' then 1 end
  from (values (1, null, 'held', 50), (2, null, 'held', 40), (3, null, 'open', 30), (4, null, 'open', 9000),
               (5, null, 'passed', 99), (null, '0xa', 'held', 20), (null, '0xb', 'open', 10)) v (o, t, s, a);
insert into payout
    (merchant_id, order_id, chain, fence, claimed_until_ms, obstacle_kind, obstacle_cause, obstacle_ms)
values (1, 3, 'ERC20', 0, 1, 'screening_away', 'c', 1), (1, 4, 'ERC20', 0, 1, 'payout_hours', 'c', 1);
insert into screening_question
    (screening_no, round_no, request_id, body, asked_ms, attempts, error, answered_ms, verdict)
values (1, 1, 'a', 'b', {NOW_MS - 5_000}, 1, null, 2, 'pass'),
       (2, 1, 'b', 'b', {NOW_MS - 5_000}, 1, null, 2, 'hold'),
       (3, 1, 'c', 'b', {NOW_MS - 5_000}, 4, 'away', null, null),
       (4, 1, 'd', 'b', {NOW_MS - 5_000}, 1, null, null, null),
       (5, 1, 'e', 'b', {NOW_MS - 2 * HOUR_MS}, 4, 'away', null, null)
"""
RESERVED = b"""
insert into payout (merchant_id, order_id, chain, fence, claimed_until_ms) values (1, 1, 'ERC20', 0, 1);
insert into payout_reservation (merchant_id, order_id, chain, wallet, amount, reserved_ms, recipient)
values (1, 1, 'ERC20', repeat('h', 20)::bytea, 450000000, 1, repeat('r', 20)::bytea)
"""


@pytest.fixture
def connection(database_url: str) -> Iterator[psycopg.Connection]:
    with connect_sync(database_url) as opened:
        yield opened


def pick(shown: Shown, name: str) -> dict[tuple[str, ...], float]:
    """The values of one metric that are not 0, by their labels."""
    return {names: value for (found, names), value in shown.items() if found == name and value}


def test_a_hot_wallet_outside_its_limits_says_by_how_much_and_for_how_long(
    database_url: str, connection: psycopg.Connection
) -> None:
    connection.execute(LIMITED.encode())
    shown = show(database_url)
    outside = {("ERC20", "above"): 400.0, ("TRC20", "below"): 95.0}
    assert pick(shown, "wallet_hot_wallet_outside_coins") == outside
    ages = {("ERC20", "above"): 7200.0, ("TRC20", "below"): 60.0}
    assert pick(shown, "wallet_hot_wallet_outside_seconds") == ages
    assert shown["wallet_hot_wallet_outside_coins", ("ERC20", "below")] == 0
    assert ("wallet_hot_wallet_outside_coins", ("BEP20", "above")) not in shown, "its wallet is unknown"
    assert pick(shown, "wallet_cold_transfers") == {}


def test_what_is_promised_to_payouts_is_not_above_the_limit(
    database_url: str, connection: psycopg.Connection
) -> None:
    connection.execute(LIMITED.encode())
    connection.execute(RESERVED)
    assert ("ERC20", "above") not in pick(show(database_url), "wallet_hot_wallet_outside_seconds")


@pytest.mark.parametrize(
    ("way", "step", "obstacle", "state"),
    [
        ("elsewhere", "unsigned", None, "signature"),
        ("signer", "open", "payouts are stopped", "obstacle"),
        ("signer", "signed", None, "moving"),
    ],
)
def test_a_cold_transfer_says_what_it_waits_for_and_for_how_long(
    database_url: str, connection: psycopg.Connection, way: str, step: str, obstacle: str | None, state: str
) -> None:
    connection.execute(LIMITED.encode())
    values = {"way": way, "step": step, "obstacle": obstacle, "opened_ms": NOW_MS - 90_000}
    connection.execute(TRANSFER.encode(), values)
    shown = show(database_url)
    assert pick(shown, "wallet_cold_transfers") == {("ERC20", state): 1}
    assert pick(shown, "wallet_cold_transfer_oldest_seconds") == {("ERC20", state): 90}


def test_screening_says_what_it_keeps_back_and_which_questions_had_no_answer(
    database_url: str, connection: psycopg.Connection
) -> None:
    connection.execute(SCREENINGS.encode())
    shown = show(database_url)
    assert pick(shown, "wallet_screenings") == {
        ("order", "held"): 2,
        ("order", "unanswered"): 1,
        ("deposit", "held"): 1,
        ("deposit", "unanswered"): 1,
    }
    assert pick(shown, "wallet_screening_oldest_seconds") == {
        ("order", "held"): 50,
        ("order", "unanswered"): 30,
        ("deposit", "held"): 20,
        ("deposit", "unanswered"): 10,
    }
    assert shown["wallet_screening_questions", ("answered",)] == 2
    assert shown["wallet_screening_questions", ("unanswered",)] == 1
