"""Every metric: its name, its meaning, and what to do when it is wrong. Pure.

Rules: `/metrics` and the operators' page are both made from this table, so every metric is documented. Money
is in coins, times are in seconds, `chain` is a chain's code.
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
    Metric("wallet_batches", (), "Database transactions that this process has committed for books"),
    Metric("wallet_batch_commands", (), "Commands in them; per batch, how well commands gather"),
    Metric(
        "wallet_optimistic_batches",
        (),
        "Those of them that were judged on the cached book and passed its preconditions",
    ),
    Metric(
        "wallet_signer_refusals",
        (),
        "Signatures that the signer refused this worker",
        "grows",
        "The log of the signer says why. Limits: WALLET_SIGNER_PAYMENT_LIMIT, WALLET_SIGNER_HOUR_LIMIT. "
        "Anything else: freeze the wallet and look for who asks.",
    ),
)
"""Counters, which only grow while a process lives. Prometheus sees them with `_total`."""

HISTOGRAM: Final = Metric(
    "wallet_request_seconds",
    ("operation",),
    "How long requests took in this process, by doubling milliseconds",
    "the share above 0.256 grows",
    "Look at the database first (`fsync` time, locks), then at `wallet_commands_waiting`.",
)

GAUGES: Final = (
    Metric(
        "wallet_failed_sign_ins",
        ("factor",),
        "Sign-ins that failed in the last hour, by factor: password, code, recovery code, pin",
        "more than people mistype",
        "The audit log says who was tried and from where: `operator.sign_in_failed`, `sub_user.pin_failed`. "
        "Wrong codes come after a right password: somebody may know it, so disable that operator.",
    ),
    Metric(
        "wallet_sandbox",
        (),
        "1 in a sandbox, which moves no real money; 0 in a live service",
        "1 where money should be paid",
        "Set WALLET_SANDBOX=false, on a database that no sandbox has used.",
    ),
    Metric(
        "wallet_requests_under_way",
        (),
        "Requests that wait for their answer in this process",
        "keeps growing",
        "As for `wallet_commands_waiting`.",
    ),
    Metric(
        "wallet_commands_waiting",
        (),
        "Commands in the queues of all books in this process",
        "near WALLET_QUEUE_LIMIT",
        "The database is slow or away, or one merchant asks more than its book can commit: `rate-limit`.",
    ),
    Metric(
        "wallet_database_up",
        (),
        "Whether the database answered this question in time",
        "0",
        "Requests get 50300. Bring the database back; nothing is lost.",
    ),
    Metric(
        "wallet_money_coins",
        ("kind", "currency"),
        "What all books hold, by kind of account; `chain` accounts are negative for what came in",
    ),
    Metric(
        "wallet_orders",
        ("standing",),
        "Withdrawals by standing: `approval` waits for an operator, `queued` for a payer, `processing` is "
        "being paid, `failed` waits for its refund",
        "`queued` keeps growing, `failed` is not 0",
        "`queued`: is a `work` running, is a chain stopped? `failed`: `withdrawals refund`, where refunds "
        "are kept back.",
    ),
    Metric(
        "wallet_order_oldest_seconds",
        ("standing",),
        "Age of the oldest of them",
        "`queued` above 60, `processing` above 3600, `approval` near WALLET_APPROVAL_DEADLINE_S",
        "`withdrawals show` says what an order waits for; `withdrawals approve` or `cancel`.",
    ),
    Metric(
        "wallet_frozen_orders",
        (),
        "Payouts that are stopped until an operator has looked",
        "not 0",
        "`doctor` lists them; compare order, journal and chain, then `withdrawals thaw`.",
    ),
    Metric("wallet_frozen_order_oldest_seconds", (), "Age of the oldest of them"),
    Metric(
        "wallet_hot_wallet_funds_coins",
        ("chain",),
        "USDT in the hot wallet, as the payer last saw it",
        "below a day's withdrawals, or below `wallet_hot_wallet_reserved_coins`",
        "Send USDT to it and `reconcile record IN`; or `sweep run`.",
    ),
    Metric("wallet_hot_wallet_reserved_coins", ("chain",), "USDT of it reserved for payouts under way"),
    Metric(
        "wallet_hot_wallet_gas_coins",
        ("chain",),
        "The chain's own coin (ETH, TRX) in the hot wallet, at the last reconciliation",
        "below 50 times the fee cap",
        "Send coin to it.",
    ),
    Metric(
        "wallet_hot_wallet_frozen",
        ("chain",),
        "1 while the wallet signs nothing",
        "1",
        "`wallets list` says why; look at the chain, then `wallets thaw`.",
    ),
    Metric(
        "wallet_hot_wallet_checked_seconds",
        ("chain",),
        "How long ago the payer asked the chain for the wallet's funds, which it does when it pays",
    ),
    Metric(
        "wallet_obstacles",
        ("chain", "kind"),
        "Payouts that wait: for `funds`, `fuel`, a lower `fee`, an issuer that takes a `token_fee`, a token "
        "that is `paused`, a `wallet`, a `node`, a signing `limit`, because figures are `stale` or from a "
        "`clock` that is ahead, because payouts are `stopped`, or with an `alert`",
        "not 0 for long",
        "`wallets list` has the causes. They go on by themselves once the cause has passed.",
    ),
    Metric("wallet_obstacle_oldest_seconds", ("chain", "kind"), "How long the longest of them has waited"),
    Metric(
        "wallet_payout_stops",
        ("chain", "actor"),
        "1 for each who has stopped a chain's payouts",
        "actor `reconciliation`",
        "Less is held than is owed: `reconcile` says how much. Bring it in, `reconcile record IN`, then "
        "`wallets thaw`.",
    ),
    Metric(
        "wallet_rollback_signs",
        ("subject",),
        "What shows that the database was rolled back: a `book` or the `audit` log behind its checkpoint, "
        "a `signer` that signed what the database does not know, another checkpoint `key`",
        "not 0",
        "Nothing is paid until a person has looked: `doctor` lists them, then see Back-up and restore.",
    ),
    Metric(
        "wallet_rollback_signs_found",
        (),
        "How many such signs this process itself found when it last compared, where it sees the checkpoints",
        "not 0",
        "As for `wallet_rollback_signs`, which only a `work` writes down: is one running?",
    ),
    Metric("wallet_rollback_sign_oldest_seconds", ("subject",), "Age of the oldest of them"),
    Metric(
        "wallet_callbacks",
        ("state",),
        "Callbacks that are `due`, `parked` (given up) or `paused`",
        "`parked` grows",
        "The merchant's endpoint is down: `callbacks list --state parked`, tell them, `callbacks resend`.",
    ),
    Metric(
        "wallet_callback_oldest_seconds",
        ("state",),
        "Age of the oldest of them",
        "`due` above 172800",
        "Is a `work` running?",
    ),
    Metric(
        "wallet_deposits",
        ("chain", "status"),
        "Deposits in no book yet: `seen` is not final, `pending` is about to be credited, `dust` too little, "
        "`held` waits for a person",
        "`pending` grows, `held` is not 0",
        "`deposits list --status pending` has the cause, most often a missing or old rate: `rates set`. "
        "What is `held` is decided by `deposits release` or `deposits drop`.",
    ),
    Metric("wallet_deposit_oldest_seconds", ("chain", "status"), "Age of the oldest of them"),
    Metric(
        "wallet_watcher_block", ("chain", "which"), "Up to which block deposits were read: `final`, `head`"
    ),
    Metric(
        "wallet_watcher_lag_blocks",
        ("chain",),
        "Final blocks that the watcher was behind at the last reconciliation",
        "keeps growing",
        "Look at the node: is it slow or pruned? Deposits come late, none is lost.",
    ),
    Metric(
        "wallet_watcher_idle_seconds",
        ("chain",),
        "How long ago the watcher last moved on (the sandbox's moves only when something arrives)",
        "above 300",
        "Is a `work` running, does the node answer? The log has `worker's turn failed`.",
    ),
    Metric(
        "wallet_watcher_stopped",
        ("chain",),
        "1 while the chain can't be read on",
        "1",
        "`deposits chains` says why: a final block has left the chain, or nodes contradict each other.",
    ),
    Metric(
        "wallet_reconciliation_age_seconds",
        ("chain",),
        "How long ago books and chain were last compared",
        "above three times WALLET_RECONCILE_INTERVAL_S",
        "Is a `work` running? The log has `reconciliation could not be made` with the cause.",
    ),
    Metric(
        "wallet_reconciliation_unexplained_coins",
        ("chain",),
        "How much more the chain has than the books, and nothing explains",
        "not 0",
        "`reconcile` has the whole account. What you moved yourself: `reconcile record`. Else stop payouts "
        "with `wallets freeze`, then `book verify`.",
    ),
    Metric(
        "wallet_reconciliation_sound",
        ("chain",),
        "1 when the last comparison calls for nobody",
        "0",
        "`reconcile`: a line that is alarming, an unexplained difference, or a chain that gave no answer.",
    ),
    Metric("wallet_custody_coins", ("chain",), "USDT on all our addresses, at the last comparison"),
    Metric(
        "wallet_nonce_days_ahead",
        (),
        "Coming days for which nonces have a place",
        "below 1",
        "Is a `work` running? Without today's place every request fails; `serve` makes it hourly, too.",
    ),
    Metric("wallet_nonce_partitions", (), "Days of nonces that are kept"),
    Metric(
        "wallet_id_ranges_left",
        (),
        "Ranges of ids that no book has yet",
        "below 1000",
        "Each merchant takes one, and a further one every 8.5 billion ids. Tell the developers in time.",
    ),
    Metric(
        "wallet_book_ids_left",
        (),
        "Ids left to the book that has fewest and no further range",
        "below 1000000",
        "Is a `work` running? It gives a further range.",
    ),
    Metric(
        "wallet_accounts_left",
        (),
        "Derived accounts that no merchant has, for deposit addresses (real chains)",
        "below 10",
        "`keys derive --count 1000`, where the seed is.",
    ),
)
"""Gauges: the value at the time of the request."""

METRICS: Final = (*COUNTERS, HISTOGRAM, *GAUGES)
