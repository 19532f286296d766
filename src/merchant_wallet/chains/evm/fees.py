"""The fee offer of a transaction (from the latest blocks, and above an earlier offer), and its most. Pure.

Rules:
- Amounts are wei, whole numbers, rounded up.
- A replacement raises both fees by at least an eighth. The mempool of nodes asks for a tenth. An eighth
  leaves room for their rounding.
- What nodes refused offers twice the tip. Not every node names the tip that it asks for.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from merchant_wallet.chains.agreement import cautious_high, cautious_low
from merchant_wallet.chains.evm.node import EvmFees
from merchant_wallet.chains.evm.transactions import EvmTransaction

# The base fee may double (about six full blocks) before the offer is too low.
BASE_FEE_ROOM: Final = 2


class Offer(msgspec.Struct, frozen=True, gc=False):
    """Wei per unit of gas: the most for the tip, and the most in all (EIP-1559)."""

    max_priority_fee: int
    max_fee: int


def suggest_offer(fees: EvmFees, min_tip: int) -> Offer:
    """The median tip of the latest blocks, at least `min_tip`, plus twice the base fee.

    If the base fee is 0, as on BNB Smart Chain, the offer is the tip alone.
    """
    tip = max(_middle(fees.tips), min_tip)
    return Offer(tip, BASE_FEE_ROOM * fees.base_fee + tip)


def agree_fees(said: Sequence[EvmFees]) -> EvmFees:
    """The common answer of several nodes: the higher base fee and the lower tip.

    The chain itself charges the base fee, so a value that is too high costs nothing. The tip is paid.
    """
    tips = [_middle(fees.tips) for fees in said]
    return EvmFees(cautious_high([fees.base_fee for fees in said]), (cautious_low(tips),))


def _middle(tips: Sequence[int]) -> int:
    return sorted(tips)[len(tips) // 2] if tips else 0


def most_of(transaction: EvmTransaction) -> int:
    """The wei that a transaction may cost. The sender must hold it for all its transactions together."""
    return transaction.gas_limit * transaction.max_fee + transaction.value


def is_too_low(transaction: EvmTransaction, fees: EvmFees, min_tip: int) -> bool:
    """Whether no block would take a transaction now: it pays less than the base fee and the least tip."""
    return transaction.max_priority_fee < min_tip or transaction.max_fee < fees.base_fee + min_tip


def outbid(earlier: EvmTransaction, suggested: Offer, *, is_refused: bool = False) -> Offer:
    """An offer at least an eighth above both fees of `earlier`, and not below `suggested`.

    With `is_refused` the tip is twice as high.
    """
    tip = earlier.max_priority_fee
    least_tip = 2 * tip if is_refused else _an_eighth_more(tip)
    return Offer(
        max(least_tip, suggested.max_priority_fee),
        max(_an_eighth_more(earlier.max_fee), earlier.max_fee + least_tip - tip, suggested.max_fee),
    )


def _an_eighth_more(fee: int) -> int:
    return -(-fee * 9 // 8)
