"""The migration of a database from before the second limit."""

import shutil
from pathlib import Path

from tests.crash.shop import open_merchant, run

from merchant_wallet.base.db import connect_sync
from merchant_wallet.postgres.migrate import migrate
from merchant_wallet.postgres.migration_files import MIGRATIONS

BEFORE = 10


def test_merchants_keep_what_goes_unasked_and_orders_keep_needing_one(
    empty_database_url: str, tmp_path: Path
) -> None:
    for path in sorted(MIGRATIONS.glob("*.sql"))[:BEFORE]:
        shutil.copy(path, tmp_path)
    migrate(empty_database_url, lambda _: None, tmp_path)
    with connect_sync(empty_database_url) as connection:
        for limit in (1_000_000_000, 250_000_000_000):
            connection.execute(
                "insert into merchant (name, app_key, currency_mode, approval_limit_units, created_ms)"
                " values ('Shop', 'mk_' || %s, 'KFB', %s, 1)",
                (str(limit), limit),
            )
        connection.execute(
            "insert into withdrawal_step (merchant_id, order_id, step_no, to_status, at_ms, cause)"
            " values (1001, 5, 0, 0, 1, 'created')"
        )
        connection.execute(
            "insert into withdrawal (merchant_id, order_id, mc_order_id, amount, fee, rate_e8, chain,"
            " address, notify_url, status, step_no, approved_ms, approved_by, deadline_ms, created_ms)"
            " values (1001, 5, 'w', 900000000000, 1, 0, 'ERC20', 'a', 'u', 0, 0, 1, 'ann', 2, 1)"
        )
        migrate(empty_database_url, lambda _: None)
        limits = "select approval_limit_units, second_approval_limit_units from merchant order by 1"
        assert connection.execute(limits).fetchall() == [
            (1_000_000_000, 100_000_000_000),
            (250_000_000_000, 250_000_000_000),
        ]
        order = "select second_limit_units, first_approved_by, approved_by from withdrawal"
        assert connection.execute(order).fetchall() == [(None, None, "ann")]


def test_a_new_merchants_second_limit_is_100000_usdt(database_url: str) -> None:
    merchant = run(open_merchant(database_url)).merchant
    assert merchant.second_approval_limit_units == 100_000_000_000
