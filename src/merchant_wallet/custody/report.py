"""The document of a comparison. It is stored in the database and printed. Pure.

Rules: names are those of the command line's documents. Money is a decimal string. A chain's coin is a whole
number of its smallest unit, as a string.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.currencies import CURRENCIES, USDT
from merchant_wallet.base.money import format_units
from merchant_wallet.custody.comparison import (
    KINDS,
    Comparison,
    Custody,
    Line,
    Movement,
    Waiting,
    sum_liabilities,
)

Document = dict[str, Any]
DESK: Final = "exchange"
ADJUSTMENT: Final = "adjustment"


class ReportContext(msgspec.Struct, frozen=True):
    """Facts that do not affect the comparison but are shown with it.

    `strays` are deposit addresses with an unexpected balance, with both amounts, if a difference is
    unexplained. `surveyed_ms` is when all issued addresses were last checked. `seen` deposits are not final.
    `under_way` payouts are signed and not known to be final. `coin` is each hot wallet's balance of the
    chain's own coin, and `coin_before` the same at the last comparison. `successor` is the contract
    that replaces the token, if its issuer has deprecated it.
    """

    seen: Waiting
    under_way: Waiting
    deposit_addresses: int
    coin: Mapping[str, int]
    coin_before: Mapping[str, int]
    strays: Mapping[str, tuple[int, int]] = {}
    surveyed_ms: int | None = None
    successor: str | None = None


def describe_comparison(comparison: Comparison, around: ReportContext, *, is_sound: bool) -> Document:
    """One chain's document."""
    books = comparison.books
    return {
        "chainType": comparison.chain,
        "currency": USDT,
        "sound": is_sound,
        "block": comparison.block_number,
        "books": format_units(books.total_units),
        "fromOutside": format_units(books.outside_units),
        "treasury": format_units(books.treasury_units),
        "sandboxPurse": format_units(books.own_units),
        "chain": format_units(comparison.chain_units),
        "hotWallets": format_units(comparison.hot_units),
        "unswept": format_units(comparison.deposit_units),
        "coldWallets": format_units(comparison.cold_units),
        "coldOpening": format_units(books.opening_units),
        "depositAddresses": around.deposit_addresses,
        "difference": format_units(comparison.difference_units),
        "explained": format_units(comparison.explained_units),
        "unexplained": format_units(comparison.unexplained_units),
        "seen": _describe_waiting(around.seen),
        "held": _describe_waiting(books.held),
        "underWay": _describe_waiting(around.under_way),
        "coin": [
            {
                "address": address,
                "held": str(units),
                "spent": str(around.coin_before[address] - units) if address in around.coin_before else None,
            }
            for address, units in around.coin.items()
        ],
        "addresses": [
            {"address": address, "holds": format_units(held), "should": format_units(expected)}
            for address, (held, expected) in around.strays.items()
        ],
        "surveyedMs": around.surveyed_ms,
        "successor": around.successor,
        "lines": [_describe_line(comparison.chain, line) for line in comparison.lines],
    }


def read_coin(document: Document | None) -> dict[str, int]:
    """Each hot wallet's coin, from a document."""
    return {} if document is None else {each["address"]: int(each["held"]) for each in document["coin"]}


def describe_failure(chain: str, cause: str) -> Document:
    """The document of a comparison that failed."""
    return {"chainType": chain, "currency": USDT, "sound": False, "cause": cause}


def describe_custody(custody: Custody | None, balances: Mapping[tuple[str, str], int]) -> Document:
    """What is held and owed in total. Without `custody` not every chain could be read."""
    return {
        "held": None if custody is None else format_units(custody.held_units),
        "owed": None if custody is None else format_units(custody.owed_units),
        "shortage": None if custody is None else format_units(custody.shortage_units),
        "inBooks": {
            currency: {
                "owed": format_units(sum_liabilities(balances, currency)),
                "desk": format_units(balances.get((DESK, currency), 0)),
                "adjustment": format_units(balances.get((ADJUSTMENT, currency), 0)),
            }
            for currency in CURRENCIES
        },
    }


def _describe_waiting(waiting: Waiting) -> Document:
    return {"count": waiting.count, "amount": format_units(waiting.units)}


def _describe_line(chain: str, line: Line) -> Document:
    return {
        "kind": line.kind,
        "meaning": KINDS[line.kind],
        "count": line.count,
        "effect": format_units(line.units),
        "alarming": line.is_alarming,
        "movements": [_describe_movement(chain, movement) for movement in line.movements],
    }


def _describe_movement(chain: str, movement: Movement) -> Document:
    merchant_id, order_id = movement.order or (None, None)
    return {
        "txHash": movement.tx_hash,
        "logIndex": movement.log_index,
        "block": movement.block_number,
        "direction": "OUT" if movement.is_out else "IN",
        "sender": format_address(chain, movement.sender),
        "recipient": format_address(chain, movement.recipient),
        "amount": format_units(movement.amount_units),
        "merchantId": merchant_id,
        "orderId": order_id,
    }
