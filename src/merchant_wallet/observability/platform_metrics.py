"""The metrics of the platform, which are read from the database. Pure.

Rules:
- They are the same whichever process reads them. So one process shows them, however many are scraped (see
  `platform_turn`).
- Money is in coins, times are in seconds. `chain` is a chain's code.
"""

from typing import Final

from merchant_wallet.observability.metric_rows import Alert, Metric

PLATFORM: Final = (
    Metric(
        "wallet_failed_sign_ins",
        ("factor",),
        "Sign-ins that failed in the last hour, by factor: password, code, recovery code, pin",
        (
            Alert(
                "WalletSignInsFail",
                "above 100",
                "max by (factor) (wallet_failed_sign_ins) > 100",
                "ticket",
                says="{count} sign-ins failed within an hour ({factor})",
                means="Merchants notice nothing. Somebody may be guessing passwords.",
                first="`audit list --action operator.sign_in_failed` and `audit list --action "
                "sub_user.pin_failed` have the names and the sources.",
            ),
            Alert(
                "WalletCodesFail",
                "`code` above 10",
                'max(wallet_failed_sign_ins{factor="code"}) > 10',
                "page",
                says="{count} sign-ins failed at the second factor within an hour",
                means="Somebody may know an operator's password, and could approve payouts with the code.",
                first="`audit list --action operator.sign_in_failed` has the name. The password was right: "
                "run `operator disable NAME`, then ask that person.",
            ),
        ),
    ),
    Metric(
        "wallet_cell_up",
        ("cell",),
        "1 if an apart cell answered the query for these metrics in time, else 0. The other metrics are then "
        "without its books",
        (
            Alert(
                "WalletCellDown",
                "0",
                "max by (cell) (wallet_cell_up) == 0",
                "page",
                "1m",
                says="Cell {cell} does not answer",
                means="Its merchants' requests get 50300; everybody else is served. Nothing is lost.",
                first="`doctor` and `cell list` say what is wrong. Repair the cell's database. Nothing else "
                "is needed.",
            ),
        ),
    ),
    Metric(
        "wallet_cell_rates_age_seconds",
        ("cell",),
        "Age of an apart cell's copies of the exchange rates",
        (
            Alert(
                "WalletCellRatesOld",
                "above 30",
                "max by (cell) (wallet_cell_rates_age_seconds) > 30",
                "page",
                "1m",
                says="Cell {cell}: the copies of the exchange rates are {duration} old",
                means="Exchanges of its merchants are refused when they are a minute old.",
                first="`doctor` says whether a worker runs and whether the cell answers. At the age of a "
                "minute rates are not used.",
            ),
        ),
    ),
    Metric(
        "wallet_cell_unfollowed_seconds",
        ("cell",),
        "How long the service has not used the node that Citus names for a cell; 0 if it does",
        (
            Alert(
                "WalletCellNotFollowed",
                "above 60",
                "max by (cell) (wallet_cell_unfollowed_seconds) > 60",
                "page",
                says="Cell {cell}: the node that Citus names is not used, for {duration}",
                means="Its merchants may be away, or the service uses a node that Citus has left.",
                first="`doctor` says which node, and why it is not used. Workers look each minute, and each "
                "second while the cell does not answer.",
            ),
        ),
    ),
    Metric(
        "wallet_watcher_block",
        ("chain", "which"),
        "Number of the last block that the watcher has read: `final` block, `head` block",
    ),
    Metric(
        "wallet_watcher_lag_blocks",
        ("chain",),
        "Final blocks that the watcher was behind at the last reconciliation",
        (
            Alert(
                "WalletWatcherBehind",
                "above 100 and more than 30 minutes ago",
                "max by (chain) (wallet_watcher_lag_blocks) > 100 and max by (chain) "
                "(wallet_watcher_lag_blocks) > max by (chain) (wallet_watcher_lag_blocks offset 30m)",
                "ticket",
                says="{chain}: deposits are read {count} blocks late, and later and later",
                means="Deposits are credited late, but none is lost.",
                first="`doctor` says whether the chain's nodes answer, `deposits chains` how far each chain "
                "was read. If they answer, look whether the node is slow or pruned.",
            ),
        ),
    ),
    Metric(
        "wallet_watcher_idle_seconds",
        ("chain",),
        "Time since the watcher last moved its cursor. In the sandbox it moves only for a deposit",
        (
            Alert(
                "WalletWatcherIdle",
                "above 300 outside the sandbox",
                "max by (chain) (wallet_watcher_idle_seconds) > 300 and on () max(wallet_sandbox) == 0",
                "ticket",
                "5m",
                says="{chain}: no block was read for {duration}",
                means="Deposits on this chain are not seen and not credited. None is lost.",
                first="`doctor` says whether a worker runs and whether the chain's nodes answer. If both do, "
                "the log has `worker's turn failed`.",
            ),
        ),
    ),
    Metric(
        "wallet_watcher_stopped",
        ("chain",),
        "1 while the watcher can't read on, else 0",
        (
            Alert(
                "WalletWatcherStopped",
                "1",
                "max by (chain) (wallet_watcher_stopped) > 0",
                "page",
                says="{chain}: deposits are not read any more",
                means="Deposits on this chain are not credited until it is repaired. None is lost.",
                first="`deposits chains` says why: a final block has left the chain, or nodes contradict "
                "each other.",
            ),
        ),
    ),
    Metric(
        "wallet_nonce_days_ahead",
        (),
        "Future days for which the table of nonces has a partition",
        (
            Alert(
                "WalletNonceDaysEnd",
                "below 1",
                "min(wallet_nonce_days_ahead) < 1",
                "page",
                "10m",
                says="There is no partition of nonces for tomorrow",
                means="From midnight UTC every call of every merchant would fail.",
                first="`doctor` says whether a worker runs. Start one: it creates the partitions. `serve` "
                "does so hourly, too.",
            ),
        ),
    ),
    Metric("wallet_nonce_partitions", (), "Partitions of the table of nonces, one for each day"),
    Metric(
        "wallet_id_ranges_left",
        (),
        "Ranges of ids that belong to no book yet",
        (
            Alert(
                "WalletIdRangesEnd",
                "below 1000",
                "min(wallet_id_ranges_left) < 1000",
                "ticket",
                says="{count} ranges of ids are left",
                means="Without one no merchant can be added.",
                first="Each merchant takes one, and another one after 8.6 billion ids. Tell the developers "
                "in time.",
            ),
        ),
    ),
    Metric(
        "wallet_book_ids_left",
        (),
        "Ids left in the book that has the fewest and has no next range",
        (
            Alert(
                "WalletBookIdsEnd",
                "below 1000000",
                "min(wallet_book_ids_left) < 1000000",
                "page",
                "5m",
                says="{count} ids are left in a book without a next range",
                means="Without ids that merchant's calls would fail.",
                first="`doctor` says whether a worker runs. Start one: it gives the book another range.",
            ),
        ),
    ),
    Metric(
        "wallet_accounts_left",
        (),
        "Derived accounts that belong to no merchant yet (real chains)",
        (
            Alert(
                "WalletAccountsEnd",
                "below 10",
                "min(wallet_accounts_left) < 10",
                "ticket",
                says="{count} derived accounts are left",
                means="Without one new merchants get no deposit addresses.",
                first="Run `keys derive --count 1000` on the machine that has the seed.",
            ),
        ),
    ),
)
"""What else is read from the database: sign-ins, cells, watchers and supplies."""
