"""Every metric: its name, its meaning, and what to do when it is wrong. Pure.

Rules:
- `/metrics` and the table in docs/operating.md are both generated from this table. So every metric is
  documented.
- A text becomes Prometheus HELP. It is read alone, so it refers to no other metric by position.
- Money is in coins, times are in seconds. `chain` is a chain's code.
"""

from typing import Final, NamedTuple


class Metric(NamedTuple):
    """One metric. `wrong`: when to worry. `remedy`: what to do then. Both are empty for plain information."""

    name: str
    labels: tuple[str, ...]
    text: str
    wrong: str = ""
    remedy: str = ""


COUNTERS: Final = (
    Metric(
        "wallet_requests",
        ("operation", "code"),
        "Requests answered by this process, by operation and code",
        "many 50000, 50300 or 42900",
        "50000: the log has `request failed` or `command failed` with the request's id. 50300: look at "
        "`wallet_commands_waiting` and the database. 42900: the merchant's `rate-limit`.",
    ),
    Metric("wallet_groups", (), "Groups that this process has committed, each one database transaction"),
    Metric("wallet_batches", (), "Batches that this process has committed: one book's commands in a group"),
    Metric("wallet_batch_commands", (), "Commands in the batches that this process has committed"),
    Metric(
        "wallet_optimistic_batches",
        (),
        "Batches that this process has committed without a read, because all their rows were cached",
    ),
    Metric(
        "wallet_signer_refusals",
        (),
        "Signatures that this worker asked for and the signer refused",
        "grows",
        "The log of the signer says why. Limits: WALLET_SIGNER_PAYMENT_LIMIT, WALLET_SIGNER_HOUR_LIMIT. "
        "If it is no limit, freeze the wallet and find out who asks.",
    ),
)
"""Counters, which only grow while a process lives. Prometheus sees them with `_total`."""

HISTOGRAM: Final = Metric(
    "wallet_request_seconds",
    ("operation",),
    "Time that this process took for a request, in buckets that double",
    "the share above 0.256 grows",
    "Look at the database first (`fsync` time, locks), then at `wallet_commands_waiting`.",
)

GAUGES: Final = (
    Metric(
        "wallet_failed_sign_ins",
        ("factor",),
        "Sign-ins that failed in the last hour, by factor: password, code, recovery code, pin",
        "more than typing errors explain",
        "The audit log has the name and the source: `operator.sign_in_failed`, `sub_user.pin_failed`. "
        "A wrong code comes after a right password: somebody may know it. Disable that operator.",
    ),
    Metric(
        "wallet_sandbox",
        (),
        "1 in a sandbox, which moves no real money; 0 in a live service",
        "1 on a service that should pay real money",
        "Set WALLET_SANDBOX=false, with a database that no sandbox has used.",
    ),
    Metric(
        "wallet_requests_under_way",
        (),
        "Requests that this process has not answered yet",
        "keeps growing",
        "See `wallet_commands_waiting`.",
    ),
    Metric(
        "wallet_commands_waiting",
        (),
        "Commands that wait in this process, in the queues of all books",
        "near WALLET_QUEUE_LIMIT",
        "The database is slow or away, or one merchant sends more than its book can commit. In that case "
        "lower its `rate-limit`.",
    ),
    Metric(
        "wallet_database_up",
        (),
        "1 if the database answered the query for these metrics in time, else 0",
        "0",
        "Requests get 50300. Repair the database. Nothing is lost.",
    ),
    Metric(
        "wallet_cell_up",
        ("cell",),
        "1 if an apart cell answered the query for these metrics in time, else 0. The other metrics are then "
        "without its books",
        "0",
        "Its merchants' requests get 50300; everybody else's go on. Repair the cell's database. "
        "`doctor` says what is wrong. Nothing is lost.",
    ),
    Metric(
        "wallet_cell_rates_age_seconds",
        ("cell",),
        "Age of an apart cell's copies of the exchange rates",
        "above 30",
        "A minute old they are not used, and exchanges are refused. Is a `work` running, and does it reach "
        "the cell?",
    ),
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
        "`queued` keeps growing, `failed` is not 0",
        "`queued`: is a `work` running, is a chain stopped? `failed`: if WALLET_HOLD_REFUNDS keeps refunds "
        "back, run `withdrawals refund`.",
    ),
    Metric(
        "wallet_order_oldest_seconds",
        ("standing",),
        "Age of the oldest open withdrawal, by what it waits for (see `wallet_orders`)",
        "`queued` above 60, `processing` above 3600, `approval` near WALLET_APPROVAL_DEADLINE_S",
        "`withdrawals show` says what an order waits for. `approval`: run `withdrawals approve` or `cancel`.",
    ),
    Metric(
        "wallet_frozen_orders",
        (),
        "Frozen withdrawals: an operator must look at each before its payout goes on",
        "not 0",
        "`doctor` lists them. Compare order, journal and chain, then run `withdrawals thaw`.",
    ),
    Metric("wallet_frozen_order_oldest_seconds", (), "Age of the oldest frozen withdrawal"),
    Metric(
        "wallet_hot_wallet_funds_coins",
        ("chain",),
        "USDT in the hot wallet, as the payer read it last",
        "below a day's withdrawals, or below `wallet_hot_wallet_reserved_coins`",
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
        "below 50 times the fee cap",
        "Send coins to it.",
    ),
    Metric(
        "wallet_hot_wallet_frozen",
        ("chain",),
        "1 while the hot wallet is frozen and signs nothing, else 0",
        "1",
        "`wallets list` says why. Look at the chain, then run `wallets thaw`.",
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
        "`wallet`, `node`, `limit`, `stale`, `clock`, `stopped`, `lapsed`, `stuck`, `alert`, `fault`",
        "not 0 for long",
        "`wallets list` has the causes, and docs/chains.md lists the kinds. A payout goes on by itself when "
        "its cause has passed.",
    ),
    Metric(
        "wallet_obstacle_oldest_seconds",
        ("chain", "kind"),
        "How long the payout that waits longest has waited, by the kind of its obstacle",
    ),
    Metric(
        "wallet_payout_stops",
        ("chain", "actor"),
        "1 for each actor that has stopped the payouts of a chain",
        "actor `reconciliation`",
        "Less is held than is owed: `reconcile` says how much. Send the missing USDT to a hot wallet, record "
        "it with `reconcile record IN`, then run `wallets thaw`.",
    ),
    Metric(
        "wallet_rollback_evidence",
        ("subject",),
        "Stored evidence that the database was rolled back: a `book` or the `audit` log is behind its "
        "checkpoint, the `signer` has signed something that the database does not have, or the checkpoint "
        "`key` is another one",
        "not 0",
        "Nothing is paid until a person accepts the evidence. `doctor` lists it; see Back-up and restore.",
    ),
    Metric(
        "wallet_rollback_evidence_found",
        (),
        "Evidence of a rollback that this process found in its last comparison of the checkpoints",
        "not 0",
        "See `wallet_rollback_evidence`. Only a `work` stores evidence: is one running?",
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
        "`parked` grows",
        "A merchant's endpoint is down. Find it with `callbacks list --state parked`, tell the merchant, "
        "then run `callbacks resend`.",
    ),
    Metric(
        "wallet_callback_oldest_seconds",
        ("state",),
        "Age of the oldest callback that is not delivered, by its state",
        "`due` above 172800",
        "Is a `work` running?",
    ),
    Metric(
        "wallet_deposits",
        ("chain", "status"),
        "Deposits that are not credited yet: `seen` is not final, `pending` is about to be credited, `dust` "
        "is too small, `held` waits for a person",
        "`pending` grows, `held` is not 0",
        "`pending`: `deposits list --status pending` has the cause, often a missing or old rate: "
        "`rates set`. `held`: decide with `deposits release` or `deposits drop`.",
    ),
    Metric(
        "wallet_deposit_oldest_seconds",
        ("chain", "status"),
        "Age of the oldest deposit that is not credited yet, by its status",
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
        "keeps growing",
        "Look at the node: is it slow or pruned? Deposits are credited late, but none is lost.",
    ),
    Metric(
        "wallet_watcher_idle_seconds",
        ("chain",),
        "Time since the watcher last moved its cursor. In the sandbox it moves only for a deposit",
        "above 300",
        "Is a `work` running, and does the node answer? If not, the log has `worker's turn failed`.",
    ),
    Metric(
        "wallet_watcher_stopped",
        ("chain",),
        "1 while the watcher can't read on, else 0",
        "1",
        "`deposits chains` says why: a final block has left the chain, or nodes contradict each other.",
    ),
    Metric(
        "wallet_reconciliation_age_seconds",
        ("chain",),
        "Time since books and chain were last compared",
        "above three times WALLET_RECONCILE_INTERVAL_S",
        "Is a `work` running? If yes, the log has `reconciliation could not be made` with the cause.",
    ),
    Metric(
        "wallet_reconciliation_unexplained_coins",
        ("chain",),
        "Unexplained difference of the last comparison: above 0 if the chain has more than the books",
        "not 0",
        "`reconcile` shows every line. If you moved the money yourself, record it with `reconcile record`. "
        "Otherwise stop payouts with `wallets freeze`, then run `book verify`.",
    ),
    Metric(
        "wallet_reconciliation_sound",
        ("chain",),
        "1 if the last comparison found nothing that an operator must look at, else 0",
        "0",
        "`reconcile` shows it: an alarming line, an unexplained difference, or a chain that did not answer.",
    ),
    Metric(
        "wallet_custody_coins",
        ("chain",),
        "USDT at all our addresses, at the last comparison of books and chain",
    ),
    Metric(
        "wallet_nonce_days_ahead",
        (),
        "Future days for which the table of nonces has a partition",
        "below 1",
        "Is a `work` running? Without today's partition every request fails. `serve` creates it hourly, too.",
    ),
    Metric("wallet_nonce_partitions", (), "Partitions of the table of nonces, one for each day"),
    Metric(
        "wallet_id_ranges_left",
        (),
        "Ranges of ids that belong to no book yet",
        "below 1000",
        "Each merchant takes one, and another one after 8.6 billion ids. Tell the developers in time.",
    ),
    Metric(
        "wallet_book_ids_left",
        (),
        "Ids left in the book that has the fewest and has no next range",
        "below 1000000",
        "Is a `work` running? It gives the book another range.",
    ),
    Metric(
        "wallet_accounts_left",
        (),
        "Derived accounts that belong to no merchant yet (real chains)",
        "below 10",
        "Run `keys derive --count 1000` on the machine that has the seed.",
    ),
)
"""Gauges: the value at the time of the request."""

METRICS: Final = (*COUNTERS, HISTOGRAM, *GAUGES)
