"""The metrics of money: balances, orders, hot wallets, callbacks, deposits and custody. Pure.

The other metrics of the platform are in `platform_metrics`.

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
                says="Failed withdrawals that wait for their refund: {count}",
                means="Merchants do not have the money of these orders back.",
                first="`withdrawals list --status failed` lists them. If WALLET_HOLD_REFUNDS keeps them "
                "back, run `withdrawals refund ORDER_ID`. If not, `doctor` says whether a worker "
                "runs.",
            ),
        ),
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
                says="The oldest approved withdrawal has waited {duration} for a payer",
                means="Merchants' payouts are late. No money is lost.",
                first="`doctor` says whether a worker runs, `wallets list` whether a chain is stopped, and "
                "`withdrawals list` what each order waits for.",
            ),
            Alert(
                "WalletPayoutsSlow",
                "`processing` above 3600",
                f'{_OLDEST}{{standing="processing"}}) > 3600',
                "ticket",
                "5m",
                says="A payout has been under way for {duration}",
                means="A merchant's customer waits for a payout that the chain has not confirmed.",
                first="`withdrawals list --status processing` lists them, the oldest first. `withdrawals "
                "show ORDER_ID` says what one waits for.",
            ),
            Alert(
                "WalletApprovalsWait",
                "`approval` above 80 % of WALLET_APPROVAL_DEADLINE_S",
                'max(wallet_order_oldest_seconds{standing="approval"}) > 0.8 * '
                f"{_limit('WALLET_APPROVAL_DEADLINE_S')}",
                "ticket",
                says="A withdrawal has waited {duration} for approval",
                means="It expires soon: the order fails and the merchant must order anew.",
                first="`withdrawals list --status pending` lists them, the oldest first. Run `withdrawals "
                "approve ORDER_ID` or `withdrawals cancel ORDER_ID`, or decide in the console.",
            ),
        ),
    ),
    Metric(
        "wallet_frozen_orders",
        (),
        "Frozen withdrawals: an operator must look at each before its payout goes on",
        (
            Alert(
                "WalletOrderFrozen",
                "not 0",
                "max(wallet_frozen_orders) > 0",
                "page",
                says="Frozen withdrawals: {count}",
                means="These payouts do not go on until an operator has looked. Others do.",
                first="`doctor` lists them. Compare the order (`withdrawals show ORDER_ID`), the journal "
                "(`book verify MERCHANT`) and the chain. If they agree, run `withdrawals resume "
                "ORDER_ID`.",
            ),
        ),
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
                says="{chain}: the hot wallet holds {coins} USDT, less than is reserved for payouts",
                means="Payouts on this chain wait for funds.",
                first="`sweep plan` says what lies at deposit addresses; `sweep run --chain CHAIN` moves "
                "it. Or send USDT to the address in `wallets list`, and record it with `reconcile "
                "record IN CHAIN AMOUNT --tx HASH --reason TEXT`.",
            ),
        ),
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
                says="{chain}: the hot wallet holds {coins} coins for network fees, less than 50 "
                "payouts may cost",
                means="Payouts on this chain will stop when the coin is used up.",
                first="Send the chain's own coin to the address in `wallets list`.",
            ),
        ),
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
        (
            Alert(
                "WalletHotWalletFrozen",
                "1",
                "max by (chain) (wallet_hot_wallet_frozen) > 0",
                "page",
                says="{chain}: the hot wallet is frozen and signs nothing",
                means="No payout goes out on this chain.",
                first="`wallets list` says why. Look at the chain, then run `wallets resume CHAIN --reason "
                "TEXT`.",
            ),
        ),
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
                says="{chain}: payouts have waited {duration} (obstacle: {kind})",
                means="Merchants' payouts on this chain are late.",
                first="`wallets list` has the causes, and docs/chains.md, Why an order waits, says what "
                "ends each. A payout goes on by itself when its cause has passed.",
            ),
        ),
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
                says="{chain}: reconciliation has stopped payouts",
                means="No payout goes out on this chain: less is held than is owed to merchants.",
                first="`reconcile` says how much is missing. Send it to the address in `wallets list`, "
                "record it with `reconcile record IN CHAIN AMOUNT --tx HASH --reason TEXT`, then run "
                "`wallets resume CHAIN --reason TEXT`.",
            ),
        ),
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
                says="There is evidence of a rolled-back database ({subject}: {count})",
                means="Nothing is paid to anybody until a person accepts it.",
                first="`doctor` lists the evidence. Find out who restored a back-up; if nobody did, copy "
                "the database first. Then go on with Back-up and restore.",
            ),
        ),
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
                says="{count} callbacks are parked, more than there were an hour ago",
                means="A merchant does not hear what became of its orders.",
                first="`callbacks list --state parked` lists them, and `callbacks show EVENT_ID` has what "
                "the merchant's endpoint answered. Tell the merchant, then run `callbacks resend "
                "--parked-of MERCHANT`.",
            ),
        ),
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
                says="A callback has been due for {duration}",
                means="A merchant does not hear what became of its orders.",
                first="`doctor` says whether a worker runs. If one does, `callbacks list --state due` lists "
                "them, and `callbacks show EVENT_ID` has each attempt.",
            ),
        ),
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
                says="{chain}: held deposits: {count}",
                means="The merchants' customers are not credited until a person decides.",
                first="`deposits list --status held` lists them. Look at each on the chain, then run "
                "`deposits release TX_HASH --reason TEXT` or `deposits drop TX_HASH --reason TEXT`.",
            ),
        ),
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
                says="{chain}: a final deposit has waited {duration} to be credited",
                means="A merchant's customer has paid in and is not credited.",
                first="`deposits list --status pending` has the cause. Often a rate is missing or old: "
                "`rates list`, `rates set DIRECTION RATE`.",
            ),
        ),
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
                says="{chain}: books and chain were compared {duration} ago",
                means="Merchants notice nothing. A missing amount would not be found.",
                first="`doctor` says whether a worker runs. If one does, its log has `reconciliation could "
                "not be made` with the cause.",
            ),
        ),
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
                says="{chain}: books and chain differ by {coins} USDT",
                means="Below 0 less is held than merchants are owed; above 0 something came in that no "
                "book knows.",
                first="Run `reconcile`: it shows every line. If you moved the money yourself, record it "
                "with `reconcile record IN CHAIN AMOUNT --tx HASH --reason TEXT`, or with `OUT`. "
                "Otherwise type `wallets stop CHAIN --reason TEXT`, then `book verify`.",
            ),
        ),
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
                says="{chain}: the last comparison of books and chain needs a person",
                means="Merchants notice nothing yet.",
                first="`reconcile` shows it: an alarming line, an unexplained difference, or a chain that "
                "did not answer.",
            ),
        ),
    ),
    Metric(
        "wallet_custody_coins",
        ("chain",),
        "USDT at all our addresses, at the last comparison of books and chain",
    ),
)
"""Money: balances, orders, callbacks, deposits and custody."""
