"""The fee that the USDT contract can take from each transfer (`basisPointsRate`, `maximumFee`). Pure.

Rules:
- The contract keeps the fee and the recipient gets less. So nothing is signed while a fee is in force.
- A contract without these functions takes no fee.
"""

from typing import Final

from merchant_wallet.base.money import format_units
from merchant_wallet.chains.protocol import Blocked, Obstacle

_BASIS_POINTS: Final = 10_000


def compute_fee_units(amount_units: int, basis_points: int | None, max_units: int | None) -> int:
    """What the contract would keep of a transfer."""
    fee = amount_units * (basis_points or 0) // _BASIS_POINTS
    return fee if max_units is None else min(fee, max_units)


def require_no_fee(amount_units: int, fee: int) -> None:
    """Raises Blocked if the contract would keep a part of the amount."""
    if fee:
        text = (
            f"the token's issuer takes a fee: {format_units(fee)} of {format_units(amount_units)} USDT would "
            "not arrive; nothing is signed while the fee is in force"
        )
        raise Blocked(Obstacle("token_fee", text))
