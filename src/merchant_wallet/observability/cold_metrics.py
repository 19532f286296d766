"""Metrics of cold money, and how they are read: limits that are crossed, and transfers that wait.

Rules: a chain without limits and without a transfer shows none. What is free in the hot wallet is compared
with the limits as the pages and the inbox do it.
"""

from collections.abc import Iterable
from typing import Any, Final

from psycopg import AsyncConnection

from merchant_wallet.base.settings import Settings
from merchant_wallet.custody.cold import store, wallets
from merchant_wallet.custody.cold.limits import Limits
from merchant_wallet.custody.cold.store import ColdTransfer
from merchant_wallet.hot_wallet.store import find_wallet
from merchant_wallet.observability.cell_figures import Sample, age, make_coins
from merchant_wallet.observability.metric_rows import Alert, Metric

_OUTSIDE: Final = "max by (chain) (wallet_hot_wallet_outside_seconds"
_NONE_UNDER_WAY: Final = "unless on (chain) sum by (chain) (wallet_cold_transfers) > 0"
_OLDEST: Final = "max by (chain) (wallet_cold_transfer_oldest_seconds"
ABOVE: Final = "above"
BELOW: Final = "below"
SIGNATURE: Final = "signature"
OBSTACLE: Final = "obstacle"
MOVING: Final = "moving"

COLD: Final = (
    Metric(
        "wallet_hot_wallet_outside_coins",
        ("chain", "limit"),
        "USDT that are free in the hot wallet `above` its highest limit, or missing `below` its refill line. "
        "0 within the limits. Only for chains with limits of cold money",
    ),
    Metric(
        "wallet_hot_wallet_outside_seconds",
        ("chain", "limit"),
        "Time since the hot wallet went `above` or `below` its limits, 0 while it is within",
        (
            Alert(
                "WalletHotWalletAboveLimit",
                "`above` longer than 3600, and no transfer is under way",
                f'{_OUTSIDE}{{limit="above"}}) > 3600 {_NONE_UNDER_WAY}',
                "ticket",
                says="{chain}: the hot wallet has been above its limit for {duration}",
                means="Payouts go on. More of the merchants' money than you allow is in a wallet that is "
                "online.",
                first="`cold show` says how much should move. Propose it with `cold move DIRECTION CHAIN "
                "AMOUNT` or on the page Cold money; another person accepts. If it happens each day, "
                "the limits do not fit the payouts.",
            ),
            Alert(
                "WalletHotWalletBelowLimit",
                "`below` longer than 900, and no transfer is under way",
                f'{_OUTSIDE}{{limit="below"}}) > 900 {_NONE_UNDER_WAY}',
                "ticket",
                says="{chain}: the hot wallet has been below its refill line for {duration}",
                means="Payouts go on as long as the funds last.",
                first="`cold show` says how much should move. Propose it with `cold move DIRECTION CHAIN "
                "AMOUNT` or on the page Cold money; another person accepts. If it happens each day, "
                "the limits do not fit the payouts.",
            ),
        ),
    ),
    Metric(
        "wallet_cold_transfers",
        ("chain", "state"),
        "Transfers between hot and cold wallet under way: `signature` waits for a signature that is made "
        "elsewhere, `obstacle` waits until its obstacle has passed, `moving` goes on by itself",
    ),
    Metric(
        "wallet_cold_transfer_oldest_seconds",
        ("chain", "state"),
        "Age of the transfer between hot and cold wallet that is under way, by its state",
        (
            Alert(
                "WalletColdTransferWaits",
                "`signature` or `obstacle` above 1800",
                f'{_OLDEST}{{state=~"signature|obstacle"}}) > 1800',
                "ticket",
                says="{chain}: a cold transfer has waited {duration}",
                means="Payouts go on, unless the hot wallet runs out of funds or its next nonce is held up.",
                first="`cold list` says what it waits for. A signature: bring it with `cold signed NUMBER "
                "--file FILE`, or give the transfer up with `cold drop NUMBER`. On EVM chains a transfer "
                "of the hot wallet holds later payouts up.",
            ),
            Alert(
                "WalletColdTransferSlow",
                "`moving` above 7200",
                f'{_OLDEST}{{state="moving"}}) > 7200',
                "ticket",
                says="{chain}: a cold transfer has been under way for {duration}",
                means="Payouts go on, unless the hot wallet runs out of funds.",
                first="`doctor` says whether a worker runs, and whether the chain's nodes answer. `cold "
                "list` says what the transfer waits for.",
            ),
        ),
    ),
)


async def read_cold(connection: AsyncConnection[Any], now_ms: int, settings: Settings) -> list[Sample]:
    """The limits of each chain that has some, and the transfers under way."""
    limits, samples = await wallets.list_limits(connection), list[Sample]()
    for chain, of_chain in limits.items():
        hot = await find_wallet(connection, chain)
        since_ms = await wallets.read_outside(connection, chain)
        free_units = None if hot is None else hot.free_units
        samples += _show_limits(chain, of_chain, free_units, since_ms, now_ms)
    return samples + _show_transfers(limits, await store.list_open(connection), now_ms)


def _show_limits(
    chain: str, limits: Limits, free_units: int | None, since_ms: int | None, now_ms: int
) -> list[Sample]:
    if free_units is None:
        return []
    outside = {ABOVE: free_units - limits.most_units, BELOW: limits.least_units - free_units}
    samples: list[Sample] = []
    for limit, units in outside.items():
        age_s = (now_ms - since_ms) / 1000 if units > 0 and since_ms is not None else 0.0
        samples.append(("wallet_hot_wallet_outside_coins", (chain, limit), make_coins(max(0, units))))
        samples.append(("wallet_hot_wallet_outside_seconds", (chain, limit), age_s))
    return samples


def _show_transfers(chains: Iterable[str], under_way: list[ColdTransfer], now_ms: int) -> list[Sample]:
    """A chain has one transfer at most. The other states are 0."""
    found = {one.chain: one for one in under_way}
    samples: list[Sample] = []
    for chain in sorted({*chains, *found}):
        for state in (SIGNATURE, OBSTACLE, MOVING):
            one = found.get(chain)
            is_here = one is not None and _find_state(one) == state
            since_ms = one.opened_ms if one is not None and is_here else None
            names = (chain, state)
            samples += age(
                "wallet_cold_transfers",
                "wallet_cold_transfer_oldest_seconds",
                names,
                int(is_here),
                since_ms,
                now_ms,
            )
    return samples


def _find_state(one: ColdTransfer) -> str:
    if one.waits_for_signature:
        return SIGNATURE
    return OBSTACLE if one.obstacle else MOVING
