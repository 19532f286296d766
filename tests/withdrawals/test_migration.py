"""A sandbox database from before hot wallets existed continues where it was."""

import shutil
from pathlib import Path
from typing import Any

from merchant_wallet.base.db import connect_sync
from merchant_wallet.postgres.migrate import migrate
from merchant_wallet.postgres.migration_files import MIGRATIONS, read_migrations

STATUSES = {1: 1, 2: 2, 3: 6, 4: 1, 5: 3}
STEPS = {1: [0, 1], 2: [0, 1, 2], 3: [0, 1, 3], 6: [0, 1, 3, 6]}

PAYOUTS = """
insert into payout (merchant_id, order_id, fence, claimed_by, claimed_until_ms, raw, tx_hash, decided_ms,
                    unpayable_cause, frozen_cause, frozen_ms, freezes_wallet)
values (7, 1, 1, 'w', 0, 'one', 'h1', 11, null, null, null, false),
       (7, 2, 1, 'w', 0, 'two', 'h2', 12, null, null, null, false),
       (7, 3, 1, 'w', 0, null, null, 13, 'nobody can be paid', null, null, false),
       (7, 4, 1, 'w', 0, 'four', 'h4', 14, null, 'another amount', 44, true),
       (7, 5, 1, 'w', 0, 'five', 'h5', 15, null, null, null, false)
"""


def _fill(connection: Any) -> None:
    for order_id, status in STATUSES.items():
        steps = STEPS[status]
        for number, to_status in enumerate(steps):
            before = steps[number - 1] if number else None
            connection.execute(
                "insert into withdrawal_step (merchant_id, order_id, step_no, from_status, to_status,"
                " at_ms, cause) values (7, %s, %s, %s, %s, 1, 'x')",
                (order_id, number, before, to_status),
            )
        connection.execute(
            "insert into withdrawal (merchant_id, order_id, mc_order_id, amount, fee, rate_e8, chain,"
            " address, notify_url, status, step_no, deadline_ms, created_ms)"
            " values (7, %s, %s, 10, 1, 0, 'TRC20', 'a', 'u', %s, %s, 1, 1)",
            (order_id, f"m{order_id}", status, len(steps) - 1),
        )
    connection.execute(PAYOUTS)


def test_what_was_signed_and_decided_before_is_kept(empty_database_url: str, tmp_path: Path) -> None:
    for path in sorted(MIGRATIONS.glob("*.sql"))[:2]:
        shutil.copy(path, tmp_path)
    migrate(empty_database_url, lambda _: None, tmp_path)
    with connect_sync(empty_database_url) as connection:
        _fill(connection)
    migrate(empty_database_url, lambda _: None)
    with connect_sync(empty_database_url) as connection:

        def rows(statement: str) -> list[tuple[Any, ...]]:
            return connection.execute(statement.encode()).fetchall()

        assert rows("select order_id, attempt_no, raw, tx_hash, signed_ms from payout_signed order by 1") == [
            (1, 1, b"one", "h1", 11),
            (2, 1, b"two", "h2", 12),
            (4, 1, b"four", "h4", 14),
            (5, 1, b"five", "h5", 15),
        ]
        # What is not final still counts against the wallet's funds. What has ended does not.
        assert rows("select order_id, amount, ended_no from payout_reservation order by 1") == [
            (1, 9, None),
            (2, 9, 0),
            (4, 9, None),
            (5, 9, 0),
        ]
        assert rows(
            "select order_id, signed_no, given_up_cause, given_up_ms, frozen_ms from payout order by 1"
        ) == [
            (1, 1, None, None, None),
            (2, 1, None, None, None),
            (3, 0, "nobody can be paid", 13, None),
            (4, 1, None, None, 44),
            (5, 1, None, None, None),
        ]
        assert rows("select chain, actor, cause, since_ms from payout_stop") == [
            ("TRC20", "order 4", "another amount", 44)
        ]


def test_the_wallets_that_ever_paid_stay_ours_after_the_migration_that_lists_them(database_url: str) -> None:
    (listing,) = [one for one in read_migrations() if one.name.endswith("own_addresses_home")]
    now, before, older = bytes([1]) * 20, bytes([2]) * 20, bytes([3]) * 20
    paid = [("ERC20", before), ("ERC20", bytes(20)), ("TRC20", before), ("TRC20", older), ("TRC20", older)]
    with connect_sync(database_url) as connection:
        connection.execute("insert into hot_wallet (chain, address) values ('TRC20', %s)", (now,))
        for order_id, (chain, wallet) in enumerate(paid, start=1):
            connection.execute(
                "insert into payout (merchant_id, order_id, chain, fence, claimed_until_ms)"
                " values (7, %s, %s, 0, 0)",
                (order_id, chain),
            )
            connection.execute(
                "insert into payout_reservation (merchant_id, order_id, chain, wallet, amount, reserved_ms)"
                " values (7, %s, %s, %s, 1, 0)",
                (order_id, chain, wallet),
            )
        # Each step may run again.
        for step in (*listing.steps[:3], *listing.steps[:3]):
            connection.execute(step.text.encode())
        rows = connection.execute("select chain, address, purpose from custody_address").fetchall()
    assert sorted((chain, bytes(address), purpose) for chain, address, purpose in rows) == [
        ("ERC20", before, "hot"),
        ("TRC20", now, "hot"),
        ("TRC20", before, "hot"),
        ("TRC20", older, "hot"),
    ]
