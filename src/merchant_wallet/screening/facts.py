"""What is asked about an order or a deposit. Pure.

Rules:
- The facts of an order or a deposit are always the same text, so a repeat is known as one.
- They have the names of the interface and of callbacks. Money is a string.
"""

import msgspec

from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.currencies import USDT
from merchant_wallet.base.money import format_units


class PayoutFacts(msgspec.Struct, frozen=True):
    """An order that is to be paid."""

    merchant_id: int
    order_id: int
    mc_order_id: str
    chain: str
    address: bytes
    amount_units: int
    arrival_units: int
    created_ms: int

    def text(self) -> str:
        """The facts as JSON."""
        return _encode(
            {
                "type": "payout",
                "merchantId": self.merchant_id,
                "orderId": self.order_id,
                "mcOrderId": self.mc_order_id,
                "chainType": self.chain,
                "address": format_address(self.chain, self.address),
                "currency": USDT,
                "amount": format_units(self.amount_units),
                "amountArrival": format_units(self.arrival_units),
                "createTime": self.created_ms,
            }
        )


class DepositFacts(msgspec.Struct, frozen=True):
    """A deposit that is to be credited. `address` sent it, `recipient` is ours."""

    merchant_id: int
    chain: str
    tx_hash: str
    log_index: int
    address: bytes
    recipient: bytes
    amount_units: int

    def text(self) -> str:
        """The facts as JSON."""
        return _encode(
            {
                "type": "deposit",
                "merchantId": self.merchant_id,
                "chainType": self.chain,
                "txHash": self.tx_hash,
                "logIndex": self.log_index,
                "sender": format_address(self.chain, self.address),
                "address": format_address(self.chain, self.recipient),
                "currency": USDT,
                "amount": format_units(self.amount_units),
            }
        )


Facts = PayoutFacts | DepositFacts


def _encode(facts: dict[str, str | int]) -> str:
    return msgspec.json.encode(facts).decode()


def build_body(request_id: str, facts: str) -> bytes:
    """The body of a question: the facts, and the id that the answer must name."""
    return msgspec.json.encode({"screeningId": request_id, **msgspec.json.decode(facts)})
