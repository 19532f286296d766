"""The legs of one transaction: every Transfer log of the token in it, compared with what was ordered. Pure.

Rules:
- A payout calls the token once, so each of the token's logs in its transaction belongs to the payout.
- Exactly one log, from the payer's wallet, is a plain transfer.
- Several logs (a token that takes a fee) or none are never what was ordered, whatever arrived.
"""

from collections.abc import Sequence

from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.money import format_units
from merchant_wallet.chains.protocol import Final, Leg, Transfer


def final_of(ordered: Transfer, wallet: bytes, legs: Sequence[Leg], tx_hash: str) -> Final:
    """The record of a final transaction with these legs."""
    if len(legs) == 1 and legs[0].sender == wallet:
        moved = Transfer(ordered.chain, ordered.token, legs[0].recipient, legs[0].amount_units)
        return Final(moved, tx_hash)
    ours = [leg for leg in legs if (leg.sender, leg.recipient) == (wallet, ordered.recipient)]
    arrived = sum(leg.amount_units for leg in ours)
    return Final(Transfer(ordered.chain, ordered.token, ordered.recipient, arrived), tx_hash, tuple(legs))


def describe_final(final: Final) -> str:
    """What a transaction moved, leg by leg, for an operator."""
    moved = final.transfer
    if not final.legs and moved.amount_units == 0:
        return f"no {moved.token} on {moved.chain} ({final.tx_hash})"
    if not final.legs:
        amount, recipient = format_units(moved.amount_units), format_address(moved.chain, moved.recipient)
        return f"{amount} {moved.token} on {moved.chain} to {recipient}"
    legs = [_describe(moved, leg) for leg in final.legs]
    return f"{' and '.join(legs)} on {moved.chain} ({len(legs)} transfers in {final.tx_hash})"


def _describe(moved: Transfer, leg: Leg) -> str:
    sender, recipient = (format_address(moved.chain, address) for address in (leg.sender, leg.recipient))
    return f"{format_units(leg.amount_units)} {moved.token} from {sender} to {recipient}"
