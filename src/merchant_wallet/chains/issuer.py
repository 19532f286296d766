"""What the issuer of USDT can do to transfers and balances, besides pausing and blacklisting. Pure.

Rules:
- A fee (`setParams`): the contract keeps it and the recipient gets less. So nothing is signed while a fee is
  in force.
- A successor (`deprecate`): the contract forwards transfers to another one, and only that one logs them. We
  would not see what we paid. So nothing is signed for a deprecated contract. Both contracts move the same
  balances, so neither is another token.
- Destroyed funds (`destroyBlackFunds`): no Transfer is logged. The event is read as a transfer to `NOWHERE`.
- A contract without these functions does none of this.
"""

from collections.abc import Sequence
from typing import Final

from merchant_wallet.base.addresses import format_address, keccak256
from merchant_wallet.base.money import format_units
from merchant_wallet.chains.protocol import Blocked, Obstacle

NOWHERE: Final = bytes(20)
"""The recipient of destroyed funds: no key belongs to the zero address."""
DESTROYED_TOPIC: Final = keccak256(b"DestroyedBlackFunds(address,uint256)")
_BASIS_POINTS: Final = 10_000
_WORD: Final = 32


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


def read_successor(chain: str, word: int | None) -> str | None:
    """The contract that replaces the token, from the answer of `upgradedAddress`. None if there is none."""
    return format_address(chain, word.to_bytes(_WORD, "big")[-20:]) if word else None


def describe_successor(successor: str) -> str:
    """What an operator must know of a deprecated token."""
    return f"the issuer has replaced the token's contract by {successor}"


def require_current(successors: Sequence[str | None]) -> None:
    """Raises Blocked if any node says that another contract replaces the token."""
    if named := next((successor for successor in successors if successor), None):
        text = f"{describe_successor(named)}; nothing is signed until the settings name it"
        raise Blocked(Obstacle("deprecated", text))


def read_destroyed(topics: Sequence[bytes], content: bytes) -> tuple[bytes, int] | None:
    """Whose funds a log of the token says were destroyed, and how much. None for another log."""
    if list(topics) != [DESTROYED_TOPIC] or len(content) != 2 * _WORD:
        return None
    return content[_WORD - 20 : _WORD], int.from_bytes(content[_WORD:], "big")
