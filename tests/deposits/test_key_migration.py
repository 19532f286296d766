"""The migration to keys with the index in the transaction: what was credited before keeps its key."""

import shutil
from pathlib import Path
from typing import Any

from merchant_wallet.base.db import connect_sync
from merchant_wallet.postgres.migrate import migrate
from merchant_wallet.postgres.migration_files import MIGRATIONS

RENAMING = next(MIGRATIONS.glob("*_deposit_keys.sql")).name
BEFORE = """
insert into merchant (merchant_id, name, app_key, currency_mode, created_ms)
values (1001, 'shop', 'shop', 'KFB', 1);
insert into id_range values (1, 1001);
insert into book (merchant_id, id_range, head_hash, last_ms) values (1001, 1, sha256('x'), 1);
insert into chain_cursor
values ('ERC20', 90, '0xb90', 99, '0xb99', null, 1), ('TRC20', 90, 'b90', 99, 'b99', null, 1);
insert into chain_block values ('ERC20', 99, '0xb99'), ('TRC20', 99, 'b99');
insert into deposit (merchant_id, chain, tx_hash, log_index, block_number, block_hash, sender, address,
                     amount, status, seen_ms, final_ms)
select 1001, chain, tx, place, block, 'b' || block, repeat('s', 20)::bytea, repeat('a', 20)::bytea, 25,
       status, 1, case when status in ('seen', 'undone') then null else 1 end
  from (values ('ERC20', 'one', 5, 10, 'credited'), ('ERC20', 'twice', 7, 10, 'credited'),
               ('ERC20', 'twice', 8, 11, 'credited'), ('ERC20', 'half', 6, 10, 'credited'),
               ('ERC20', 'half', 9, 12, 'pending'), ('ERC20', 'new', 3, 99, 'seen'),
               ('TRC20', 'tron', 1, 10, 'credited'), ('TRC20', 'fresh', 1, 99, 'seen'))
       v (chain, tx, place, block, status);
insert into entry (merchant_id, entry_id, kind, at_ms, rate_e8, facts, hash)
select 1001, n, 'deposit', 1, 0, '', sha256(n::text::bytea) from generate_series(1, 5) n;
insert into deposit_credit
select merchant_id, chain, tx_hash, log_index, row_number() over (order by block_number, tx_hash), 'USDT',
       25, 0
  from deposit where status = 'credited';
"""


def test_credited_deposits_keep_their_names_and_a_second_credit_shows(
    empty_database_url: str, tmp_path: Path
) -> None:
    for file in sorted(MIGRATIONS.glob("*.sql")):
        if file.name < RENAMING:
            shutil.copy(file, tmp_path)
    migrate(empty_database_url, lambda _: None, tmp_path)
    with connect_sync(empty_database_url) as connection:
        connection.execute(BEFORE.encode())
    migrate(empty_database_url, lambda _: None)
    with connect_sync(empty_database_url) as connection:

        def rows(statement: bytes) -> list[tuple[Any, ...]]:
            return connection.execute(statement).fetchall()

        assert rows(b"select tx_hash, log_index, block_log_index, status from deposit order by 1, 2") == [
            ("fresh", 1, None, "seen"),
            ("half", 6, 6, "credited"),
            ("half", 9, 9, "held"),
            ("one", 5, 5, "credited"),
            ("tron", 1, None, "credited"),
            ("twice", 7, 7, "credited"),
            ("twice", 8, 8, "credited"),
        ]
        assert rows(b"select tx_hash, block_hash, released_by from deposit_credit order by 1, log_index") == [
            ("half", "b10", None),
            ("one", "b10", None),
            ("tron", "b10", None),
            ("twice", "b10", None),
            ("twice", None, "before blocks were compared"),
        ]
        [(cause,)] = rows(b"select cause from deposit where tx_hash = 'twice' and cause is not null")
        assert "credited from a second block" in cause
        # Unconfirmed blocks of the chain whose keys changed are read again.
        assert rows(b"select chain, head_number from chain_cursor order by 1") == [
            ("ERC20", 90),
            ("TRC20", 99),
        ]
        assert rows(b"select chain from chain_block") == [("TRC20",)]
        # Home has the settled transfers, and the cell has taken them in.
        settled = "chain, tx_hash, log_index, block_log_index, block_hash, merchant_id, amount"
        transfers = rows(f"select {settled} from chain_transfer where taken_ms = 1 order by 1, 2, 3".encode())
        assert len(transfers) == 6
        assert transfers == rows(
            f"select {settled} from deposit where final_ms is not null order by 1, 2, 3".encode()
        )
        assert rows(b"select chain, final_number, rewind_no from chain_position order by 1") == [
            ("ERC20", 90, 0),
            ("TRC20", 90, 0),
        ]
