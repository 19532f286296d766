"""What the token's contract says before a transfer is signed: successor, pause, blacklist, balance, fee.

Rules:
- Every configured node is asked, in one request each. Nothing is sent to the chain.
- What is the same for all orders is asked once for all of them, and what is about one order once for its
  check and its signature (see `recent`).
- A function that the contract lacks reverts or returns nothing. That means no.
- One node is enough to make a payout wait. The wallet is frozen, or an order fails, only if all nodes that
  answer say so, and at least two if several are configured.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from merchant_wallet.base.addresses import keccak256
from merchant_wallet.chains.agreement import cautious_low
from merchant_wallet.chains.evm.node import EvmNode, read_word
from merchant_wallet.chains.evm.rules import EvmRules
from merchant_wallet.chains.issuer import compute_fee_units, read_successor, require_current, require_no_fee
from merchant_wallet.chains.protocol import Blocked, Obstacle, Unpayable
from merchant_wallet.chains.transport import NodeFailed


def _selector(signature: str) -> bytes:
    return keccak256(signature.encode())[:4]


BALANCE_OF: Final = _selector("balanceOf(address)")
_PAUSED: Final = _selector("paused()")
_IS_BLACKLISTED: Final = _selector("isBlackListed(address)")
_BASIS_POINTS_RATE: Final = _selector("basisPointsRate()")
_MAXIMUM_FEE: Final = _selector("maximumFee()")
_UPGRADED_ADDRESS: Final = _selector("upgradedAddress()")


class TokenState(msgspec.Struct, frozen=True, gc=False):
    """What one node says at its head about the token and the hot wallet. It is the same for all transfers.

    `fee_points` and `fee_most` are the rate of a transfer's fee and the most of it, in the token's units.
    `successor` is the contract that replaces the token.
    """

    is_paused: bool
    is_wallet_refused: bool
    held_units: int
    fee_points: int | None
    fee_most: int | None
    successor: str | None

    def compute_fee_units(self, amount_units: int, base_units: int) -> int:
        """What the contract would keep. If it keeps a part of a unit, it counts as a whole unit."""
        return -(-compute_fee_units(amount_units * base_units, self.fee_points, self.fee_most) // base_units)


async def ask_state(node: EvmNode, rules: EvmRules, wallet: bytes) -> TokenState:
    """One node's answers. Raises NodeFailed, NodeRefused."""
    calls = [
        _PAUSED,
        _IS_BLACKLISTED + _word(wallet),
        BALANCE_OF + _word(wallet),
        _BASIS_POINTS_RATE,
        _MAXIMUM_FEE,
        _UPGRADED_ADDRESS,
    ]
    views = [_read(node, view) for view in await node.views(rules.token, calls)]
    paused, wallet_refused, held, basis_points, most, upgraded = views
    successor = read_successor(rules.name, upgraded)
    if held is None and successor is None:
        raise NodeFailed(node.name, "there is no token that answers balanceOf")
    held_units = (held or 0) // rules.base_units
    return TokenState(bool(paused), bool(wallet_refused), held_units, basis_points, most, successor)


async def ask_refused(node: EvmNode, rules: EvmRules, recipient: bytes) -> bool:
    """Whether one node has said recently that a recipient is blacklisted. Raises NodeFailed, NodeRefused."""

    async def ask() -> bool:
        (view,) = await node.views(rules.token, [_IS_BLACKLISTED + _word(recipient)])
        return bool(_read(node, view))

    return await node.recently(("refused", recipient), ask)


async def ask_successor(node: EvmNode, chain: str, contract: bytes) -> str | None:
    """The contract that one node says replaces this one. Raises NodeFailed, NodeRefused."""
    (view,) = await node.views(contract, [_UPGRADED_ADDRESS])
    return read_successor(chain, _read(node, view))


def require_payable(
    states: Sequence[TokenState], refused: Sequence[bool], quorum: int, amount_units: int, base_units: int
) -> None:
    """Judge a payout by all nodes' answers. `quorum` nodes must confirm what can't be undone.

    `refused`: whether they say that the recipient is blacklisted. Raises Unpayable, Blocked.
    """
    require_current([state.successor for state in states])
    if any(state.is_paused for state in states):
        raise Blocked(Obstacle("paused", "the token is paused by its issuer"))
    if _is_certain([state.is_wallet_refused for state in states], quorum, "hot wallet"):
        raise Blocked(Obstacle("wallet", "the token has blacklisted the hot wallet"))
    if _is_certain(refused, quorum, "recipient"):
        raise Unpayable("the token has blacklisted the recipient")
    held = cautious_low([state.held_units for state in states])
    if held < amount_units:
        raise Blocked(Obstacle("funds", f"the hot wallet holds {held} units of {amount_units}"))
    _require_no_fee(states, amount_units, base_units)


def require_sweepable(states: Sequence[TokenState], amount_units: int, base_units: int) -> None:
    """Judge a transfer into the hot wallet by all nodes' answers. Raises Blocked."""
    require_current([state.successor for state in states])
    if any(state.is_wallet_refused for state in states):
        raise Blocked(Obstacle("wallet", "the token has blacklisted the hot wallet"))
    _require_no_fee(states, amount_units, base_units)


def _require_no_fee(states: Sequence[TokenState], amount_units: int, base_units: int) -> None:
    require_no_fee(amount_units, max(state.compute_fee_units(amount_units, base_units) for state in states))


def _is_certain(said: Sequence[bool], quorum: int, who: str) -> bool:
    """Whether all nodes, and at least `quorum`, say that somebody is blacklisted.

    Raises Blocked if only some do.
    """
    if not any(said):
        return False
    if all(said) and len(said) >= quorum:
        return True
    text = f"{sum(said)} of {len(said)} nodes that answered say that the {who} is blacklisted"
    raise Blocked(Obstacle("node", f"{text}: all must, and at least {quorum}"))


def _read(node: EvmNode, view: bytes | None) -> int | None:
    if not view:
        return None
    try:
        return read_word(view)
    except ValueError as error:
        raise NodeFailed(node.name, f"the token's view: {error}") from error


def _word(address: bytes) -> bytes:
    return address.rjust(32, b"\0")
