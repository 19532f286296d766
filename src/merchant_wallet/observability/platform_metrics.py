"""The metrics of the platform, which are read from the database. Pure.

Rules:
- They are the same whichever process reads them. So one process shows them, however many are scraped (see
  `platform_turn`).
- Money is in coins, times are in seconds. `chain` is a chain's code.
"""

from typing import Final

from merchant_wallet.observability.metric_rows import Alert, Metric


def _limit(setting: str) -> str:
    return f'max(wallet_setting{{setting="{setting}"}})'


_OLDEST: Final = "max by (standing) (wallet_order_oldest_seconds"

MONEY: Final = (
    Metric(
        "wallet_money_coins",
        ("kind", "currency"),
        "Sum of the balances of all books, by kind of account. The `chain` account is negative: it is the "
        "source of what came in",
    ),
    Metric(
        "wallet_orders",
        ("standing",),
        "Open withdrawals: `approval` waits for an operator, `queued` waits for a payer, `processing` is "
        "being paid, `failed` waits for its refund",
        (
            Alert(
                "WalletRefundsWait",
                "`failed` is not 0 for 15 minutes",
                'max(wallet_orders{standing="failed"}) > 0',
                "ticket",
                "15m",
            ),
        ),
        "If WALLET_HOLD_REFUNDS keeps refunds back, run `withdrawals refund`.",
    ),
    Metric(
        "wallet_order_oldest_seconds",
        ("standing",),
        "Age of the oldest open withdrawal, by what it waits for (see `wallet_orders`)",
        (
            Alert(
                "WalletOrdersNotPaid",
                "`queued` above 60",
                f'{_OLDEST}{{standing="queued"}}) > 60',
                "page",
                "5m",
            ),
            Alert(
                "WalletPayoutsSlow",
                "`processing` above 3600",
                f'{_OLDEST}{{standing="processing"}}) > 3600',
                "ticket",
                "5m",
            ),
            Alert(
                "WalletApprovalsWait",
                "`approval` above 80 % of WALLET_APPROVAL_DEADLINE_S",
                'max(wallet_order_oldest_seconds{standing="approval"}) > 0.8 * '
                f"{_limit('WALLET_APPROVAL_DEADLINE_S')}",
                "ticket",
            ),
        ),
        "`withdrawals show` says what an order waits for. `queued`: is a `work` running, is a chain stopped? "
        "`approval`: run `withdrawals approve` or `cancel`.",
    ),
    Metric(
        "wallet_frozen_orders",
        (),
        "Frozen withdrawals: an operator must look at each before its payout goes on",
        (Alert("WalletOrderFrozen", "not 0", "max(wallet_frozen_orders) > 0", "page"),),
        "`doctor` lists them. Compare order, journal and chain, then run `withdrawals resume`.",
    ),
    Metric("wallet_frozen_order_oldest_seconds", (), "Age of the oldest frozen withdrawal"),
    Metric(
        "wallet_hot_wallet_funds_coins",
        ("chain",),
        "USDT in the hot wallet, as the payer read it last. Keep a day's withdrawals in it",
        (
            Alert(
                "WalletHotWalletShort",
                "below `wallet_hot_wallet_reserved_coins`",
                "max by (chain) (wallet_hot_wallet_funds_coins) < "
                "max by (chain) (wallet_hot_wallet_reserved_coins)",
                "page",
                "5m",
            ),
        ),
        "Send USDT to it and record that with `reconcile record IN`, or run `sweep run`.",
    ),
    Metric(
        "wallet_hot_wallet_reserved_coins",
        ("chain",),
        "USDT in the hot wallet that is reserved for payouts under way",
    ),
    Metric(
        "wallet_hot_wallet_gas_coins",
        ("chain",),
        "The chain's own coin (ETH, TRX) in the hot wallet, at the last reconciliation",
        (
            Alert(
                "WalletGasLow",
                "below 50 times `wallet_fee_cap_coins`",
                "max by (chain) (wallet_hot_wallet_gas_coins) < 50 * max by (chain) (wallet_fee_cap_coins)",
                "ticket",
                "10m",
            ),
        ),
        "Send coins to it.",
    ),
    Metric(
        "wallet_fee_cap_coins",
        ("chain",),
        "The most that one payout may cost, in the chain's own coin (WALLET_CODE_FEE_CAP)",
    ),
    Metric(
        "wallet_hot_wallet_frozen",
        ("chain",),
        "1 while the hot wallet is frozen and signs nothing, else 0",
        (Alert("WalletHotWalletFrozen", "1", "max by (chain) (wallet_hot_wallet_frozen) > 0", "page"),),
        "`wallets list` says why. Look at the chain, then run `wallets resume`.",
    ),
    Metric(
        "wallet_hot_wallet_checked_seconds",
        ("chain",),
        "Time since the payer read the hot wallet's funds from the chain. It reads them only when it pays",
    ),
    Metric(
        "wallet_obstacles",
        ("chain", "kind"),
        "Payouts that wait, by the kind of their obstacle: `funds`, `fuel`, `fee`, `token_fee`, `paused`, "
        "`deprecated`, `wallet`, `node`, `limit`, `stale`, `clock`, `key`, `stopped`, `lapsed`, `stuck`, "
        "`alert`, `fault`, `screening`, `screening_away`, `payout_rule`, `payout_hours`",
    ),
    Metric(
        "wallet_obstacle_oldest_seconds",
        ("chain", "kind"),
        "How long the payout that waits longest has waited, by the kind of its obstacle",
        (
            Alert(
                "WalletPayoutObstacle",
                "above 1800, unless screening or payout hours hold it",
                'max by (chain, kind) (wallet_obstacle_oldest_seconds{kind!~"screening.*|payout_.*"}) > 1800',
                "ticket",
            ),
        ),
        "`wallets list` has the causes, and docs/chains.md lists the kinds. A payout goes on by itself when "
        "its cause has passed.",
    ),
    Metric(
        "wallet_payout_stops",
        ("chain", "actor"),
        "1 for each actor that has stopped the payouts of a chain",
        (
            Alert(
                "WalletPayoutsStopped",
                "actor `reconciliation`",
                'max by (chain) (wallet_payout_stops{actor="reconciliation"}) > 0',
                "page",
            ),
        ),
        "Less is held than is owed: `reconcile` says how much. Send the missing USDT to a hot wallet, record "
        "it with `reconcile record IN`, then run `wallets resume`.",
    ),
    Metric(
        "wallet_rollback_evidence",
        ("subject",),
        "Stored evidence that the database was rolled back: a `book` or the `audit` log is behind its "
        "checkpoint, the `signer` has signed something that the database does not have, the checkpoint "
        "`key` is another one, or `home` is behind a cell",
        (
            Alert(
                "WalletRollbackEvidence",
                "not 0",
                "max by (subject) (wallet_rollback_evidence) > 0",
                "page",
            ),
        ),
        "Nothing is paid until a person accepts the evidence. `doctor` lists it; see Back-up and restore.",
    ),
    Metric(
        "wallet_rollback_evidence_oldest_seconds",
        ("subject",),
        "Age of the oldest stored evidence that the database was rolled back",
    ),
    Metric(
        "wallet_callbacks",
        ("state",),
        "Callbacks that are not delivered: `due`, `parked` (given up) or `paused`",
        (
            Alert(
                "WalletCallbacksParked",
                "`parked` is more than an hour ago",
                'max(wallet_callbacks{state="parked"}) > max(wallet_callbacks{state="parked"} offset 1h)',
                "ticket",
            ),
        ),
        "A merchant's endpoint is down. Find it with `callbacks list --state parked`, tell the merchant, "
        "then run `callbacks resend`.",
    ),
    Metric(
        "wallet_callback_oldest_seconds",
        ("state",),
        "Age of the oldest callback that is not delivered, by its state",
        (
            Alert(
                "WalletCallbacksNotSent",
                "`due` above 172800",
                'max(wallet_callback_oldest_seconds{state="due"}) > 172800',
                "ticket",
            ),
        ),
        "Is a `work` running?",
    ),
    Metric(
        "wallet_deposits",
        ("chain", "status"),
        "Deposits that are not credited yet: `seen` is not final, `pending` is about to be credited, `dust` "
        "is too small, `held` waits for a person",
        (
            Alert(
                "WalletDepositsHeld",
                "`held` is not 0",
                'max by (chain) (wallet_deposits{status="held"}) > 0',
                "ticket",
            ),
        ),
        "Decide with `deposits release` or `deposits drop`.",
    ),
    Metric(
        "wallet_deposit_oldest_seconds",
        ("chain", "status"),
        "Age of the oldest deposit that is not credited yet, by its status",
        (
            Alert(
                "WalletDepositsNotCredited",
                "`pending` above 3600",
                'max by (chain) (wallet_deposit_oldest_seconds{status="pending"}) > 3600',
                "ticket",
            ),
        ),
        "`deposits list --status pending` has the cause, often a missing or old rate: `rates set`.",
    ),
    Metric(
        "wallet_reconciliation_age_seconds",
        ("chain",),
        "Time since books and chain were last compared",
        (
            Alert(
                "WalletNotReconciled",
                "above three times WALLET_RECONCILE_INTERVAL_S",
                "max by (chain) (wallet_reconciliation_age_seconds) > on () group_left () "
                f"(3 * {_limit('WALLET_RECONCILE_INTERVAL_S')} > 0)",
                "ticket",
            ),
        ),
        "Is a `work` running? If yes, the log has `reconciliation could not be made` with the cause.",
    ),
    Metric(
        "wallet_reconciliation_unexplained_coins",
        ("chain",),
        "Unexplained difference of the last comparison: above 0 if the chain has more than the books",
        (
            Alert(
                "WalletBooksAndChainDiffer",
                "not 0",
                "max by (chain) (wallet_reconciliation_unexplained_coins) != 0",
                "page",
            ),
        ),
        "`reconcile` shows every line. If you moved the money yourself, record it with `reconcile record`. "
        "Otherwise stop payouts with `wallets stop`, then run `book verify`.",
    ),
    Metric(
        "wallet_reconciliation_sound",
        ("chain",),
        "1 if the last comparison found nothing that an operator must look at, else 0",
        (
            Alert(
                "WalletReconciliationUnsound",
                "0 for 15 minutes",
                "min by (chain) (wallet_reconciliation_sound) == 0",
                "ticket",
                "15m",
            ),
        ),
        "`reconcile` shows it: an alarming line, an unexplained difference, or a chain that did not answer.",
    ),
    Metric(
        "wallet_custody_coins",
        ("chain",),
        "USDT at all our addresses, at the last comparison of books and chain",
    ),
)
"""Money: balances, orders, callbacks, deposits and custody."""

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
            ),
            Alert(
                "WalletCodesFail",
                "`code` above 10",
                'max(wallet_failed_sign_ins{factor="code"}) > 10',
                "page",
            ),
        ),
        "The audit log has the name and the source: `operator.sign_in_failed`, `sub_user.pin_failed`. "
        "A wrong code comes after a right password: somebody may know it. Disable that operator.",
    ),
    Metric(
        "wallet_cell_up",
        ("cell",),
        "1 if an apart cell answered the query for these metrics in time, else 0. The other metrics are then "
        "without its books",
        (Alert("WalletCellDown", "0", "max by (cell) (wallet_cell_up) == 0", "page", "1m"),),
        "Its merchants' requests get 50300; everybody else's go on. Repair the cell's database. "
        "`doctor` says what is wrong. Nothing is lost.",
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
            ),
        ),
        "A minute old they are not used, and exchanges are refused. Is a `work` running, and does it reach "
        "the cell?",
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
            ),
        ),
        "Look at the node: is it slow or pruned? Deposits are credited late, but none is lost.",
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
            ),
        ),
        "Is a `work` running, and does the node answer? If not, the log has `worker's turn failed`.",
    ),
    Metric(
        "wallet_watcher_stopped",
        ("chain",),
        "1 while the watcher can't read on, else 0",
        (Alert("WalletWatcherStopped", "1", "max by (chain) (wallet_watcher_stopped) > 0", "page"),),
        "`deposits chains` says why: a final block has left the chain, or nodes contradict each other.",
    ),
    Metric(
        "wallet_nonce_days_ahead",
        (),
        "Future days for which the table of nonces has a partition",
        (Alert("WalletNonceDaysEnd", "below 1", "min(wallet_nonce_days_ahead) < 1", "page", "10m"),),
        "Is a `work` running? Without today's partition every request fails. `serve` creates it hourly, too.",
    ),
    Metric("wallet_nonce_partitions", (), "Partitions of the table of nonces, one for each day"),
    Metric(
        "wallet_id_ranges_left",
        (),
        "Ranges of ids that belong to no book yet",
        (Alert("WalletIdRangesEnd", "below 1000", "min(wallet_id_ranges_left) < 1000", "ticket"),),
        "Each merchant takes one, and another one after 8.6 billion ids. Tell the developers in time.",
    ),
    Metric(
        "wallet_book_ids_left",
        (),
        "Ids left in the book that has the fewest and has no next range",
        (Alert("WalletBookIdsEnd", "below 1000000", "min(wallet_book_ids_left) < 1000000", "page", "5m"),),
        "Is a `work` running? It gives the book another range.",
    ),
    Metric(
        "wallet_accounts_left",
        (),
        "Derived accounts that belong to no merchant yet (real chains)",
        (Alert("WalletAccountsEnd", "below 10", "min(wallet_accounts_left) < 10", "ticket"),),
        "Run `keys derive --count 1000` on the machine that has the seed.",
    ),
)
"""What else is read from the database: sign-ins, cells, watchers and supplies."""
