"""The dashboard of money: is every coin where it should be, and does it move? Pure."""

from typing import Final

from scripts.documents.panels import (
    BAD_ABOVE_0,
    FIRING,
    GREEN,
    ORANGE,
    RED,
    Dashboard,
    Panel,
    Row,
    tile,
)

MONEY: Final = Dashboard(
    "wallet-money",
    "merchant-wallet: money",
    "Is every coin where it should be, and does it move?",
    (
        Row(
            "Now",
            (
                tile(
                    "Mode",
                    "max(wallet_sandbox)",
                    "A sandbox moves no real money.",
                    ((1, ORANGE),),
                    names=(("0", "live"), ("1", "sandbox")),
                ),
                FIRING,
                tile(
                    "Frozen orders", "max(wallet_frozen_orders)", "An operator must look at each: `doctor`."
                ),
                tile(
                    "Payouts stopped",
                    "count(max by (chain, actor) (wallet_payout_stops)) or vector(0)",
                    "Chains whose payouts somebody has stopped, once for each who did.",
                ),
                tile(
                    "Signs of a rollback",
                    "sum(max by (subject) (wallet_rollback_evidence))",
                    "While it is not 0, nothing is paid.",
                ),
                tile(
                    "Unexplained",
                    "max(abs(max by (chain) (wallet_reconciliation_unexplained_coins)))",
                    "The largest difference between books and a chain, in USDT.",
                    ((0.000001, RED),),
                    unit="short",
                ),
            ),
        ),
        Row(
            "Withdrawals",
            (
                Panel(
                    "Open withdrawals",
                    (("max by (standing) (wallet_orders)", "{{standing}}"),),
                    "`approval` waits for a person, `queued` for a payer, `processing` for its chain, "
                    "`failed` for its refund.",
                    stacks=True,
                ),
                Panel(
                    "Oldest open withdrawal",
                    (("max by (standing) (wallet_order_oldest_seconds)", "{{standing}}"),),
                    "`queued` should stay below a minute.",
                    unit="s",
                ),
                Panel(
                    "Payouts that wait, by obstacle",
                    (("max by (chain, kind) (wallet_obstacles)", "{{chain}} {{kind}}"),),
                    "A payout goes on when its obstacle has passed. docs/chains.md lists the kinds.",
                    stacks=True,
                ),
            ),
        ),
        Row(
            "Hot wallets",
            (
                Panel(
                    "Funds and reservations, USDT",
                    (
                        ("max by (chain) (wallet_hot_wallet_funds_coins)", "{{chain}} funds"),
                        ("max by (chain) (wallet_hot_wallet_reserved_coins)", "{{chain}} reserved"),
                    ),
                    "Where `reserved` comes near `funds`, payouts will wait. Empty while nothing was paid.",
                ),
                Panel(
                    "Payouts that the gas is enough for",
                    (
                        (
                            "max by (chain) (wallet_hot_wallet_gas_coins) / "
                            "max by (chain) (wallet_fee_cap_coins)",
                            "{{chain}}",
                        ),
                    ),
                    "The chain's own coin in the hot wallet, in payouts at the fee cap. Empty in a sandbox.",
                    steps=((0, RED), (20, ORANGE), (50, GREEN)),
                ),
                Panel(
                    "Above and below the limits of cold money, USDT",
                    (("max by (chain, limit) (wallet_hot_wallet_outside_coins)", "{{chain}} {{limit}}"),),
                    "0 within the limits. Above: propose a transfer to the cold wallet. Below: refill.",
                ),
                Panel(
                    "How long outside its limits",
                    (("max by (chain, limit) (wallet_hot_wallet_outside_seconds)", "{{chain}} {{limit}}"),),
                    "It ends when a transfer between hot and cold wallet is final.",
                    unit="s",
                ),
                Panel(
                    "Oldest transfer between hot and cold",
                    (("max by (chain, state) (wallet_cold_transfer_oldest_seconds)", "{{chain}} {{state}}"),),
                    "`signature` waits for a person. `cold list` says what it waits for.",
                    unit="s",
                ),
                Panel(
                    "Hot wallets frozen",
                    (("max by (chain) (wallet_hot_wallet_frozen)", "{{chain}}"),),
                    "A frozen hot wallet signs nothing. `wallets list` says why.",
                    steps=BAD_ABOVE_0,
                ),
            ),
        ),
        Row(
            "Screening",
            (
                Panel(
                    "Kept back by screening",
                    (("max by (subject, state) (wallet_screenings)", "{{subject}} {{state}}"),),
                    "`held` waits for a person, `unanswered` for the list or the provider.",
                    stacks=True,
                ),
                Panel(
                    "Kept back for how long",
                    (("max by (subject, state) (wallet_screening_oldest_seconds)", "{{subject}} {{state}}"),),
                    "Somebody waits for this money.",
                    unit="s",
                ),
                Panel(
                    "Questions to the provider, last hour",
                    (("max by (outcome) (wallet_screening_questions)", "{{outcome}}"),),
                    "`unanswered` should be 0.",
                    stacks=True,
                ),
            ),
        ),
        Row(
            "Books and chains",
            (
                Panel(
                    "Merchants' and sub-users' balances",
                    (
                        (
                            'max by (kind, currency) (wallet_money_coins{kind=~"merchant|subuser|hold"})',
                            "{{kind}} {{currency}}",
                        ),
                    ),
                    "What the platform owes, over all books.",
                ),
                Panel(
                    "Custody, USDT",
                    (("max by (chain) (wallet_custody_coins)", "{{chain}}"),),
                    "What is at all our addresses, at the last comparison.",
                    stacks=True,
                ),
                Panel(
                    "Unexplained difference, USDT",
                    (("max by (chain) (wallet_reconciliation_unexplained_coins)", "{{chain}}"),),
                    "Above 0 the chain has more than the books. It should be 0 at all times.",
                ),
                Panel(
                    "Time since the last comparison",
                    (
                        ("max by (chain) (wallet_reconciliation_age_seconds)", "{{chain}}"),
                        ('max(wallet_setting{setting="WALLET_RECONCILE_INTERVAL_S"})', "interval"),
                    ),
                    "It falls back to 0 at each interval.",
                    unit="s",
                ),
                Panel(
                    "Earned fees",
                    (('max by (currency) (wallet_money_coins{kind="fees"})', "{{currency}}"),),
                    "Fees in the books that were not withdrawn yet.",
                ),
                Panel(
                    "Exchange desk",
                    (('max by (currency) (wallet_money_coins{kind="exchange"})', "{{currency}}"),),
                    "The platform's own position from exchanges. It may be negative.",
                ),
            ),
        ),
        Row(
            "Deposits and callbacks",
            (
                Panel(
                    "Deposits not credited yet",
                    (("max by (chain, status) (wallet_deposits)", "{{chain}} {{status}}"),),
                    "`held` waits for a person, `dust` for more money.",
                    stacks=True,
                    width=6,
                ),
                Panel(
                    "Oldest deposit not credited",
                    (
                        (
                            'max by (chain, status) (wallet_deposit_oldest_seconds{status!="dust"})',
                            "{{chain}} {{status}}",
                        ),
                    ),
                    "Without `dust`, which may wait for ever.",
                    unit="s",
                    width=6,
                ),
                Panel(
                    "Callbacks not delivered",
                    (("max by (state) (wallet_callbacks)", "{{state}}"),),
                    "`parked` were given up: a merchant's endpoint is down.",
                    stacks=True,
                    width=6,
                ),
                Panel(
                    "Failed sign-ins of an hour",
                    (("max by (factor) (wallet_failed_sign_ins)", "{{factor}}"),),
                    "A wrong `code` comes after a right password.",
                    width=6,
                ),
            ),
        ),
    ),
)
