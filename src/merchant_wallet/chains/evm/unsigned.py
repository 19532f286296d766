"""A transfer of the token from any address of an EVM chain, to be signed elsewhere.

Rules:
- The highest fee is twice the usual offer, because signing may take hours. The fee cap limits it.
- The transfer is simulated before its bytes are given out. A deprecated token gets none.
"""

from typing import Final

from merchant_wallet.chains.agreement import cautious_high
from merchant_wallet.chains.cold import UnsignedTransfer
from merchant_wallet.chains.evm.conditions import read_conditions
from merchant_wallet.chains.evm.node import EvmNodes
from merchant_wallet.chains.evm.rules import EvmRules
from merchant_wallet.chains.evm.token import ask_successor
from merchant_wallet.chains.evm.transactions import EvmTransaction, encode_unsigned
from merchant_wallet.chains.issuer import require_current
from merchant_wallet.chains.jsonrpc import CallReverted
from merchant_wallet.chains.protocol import Blocked, Obstacle, Transfer

FEE_ROOM: Final = 2


async def build_unsigned(
    nodes: EvmNodes, rules: EvmRules, sender: bytes, transfer: Transfer, nonce: int | None
) -> UnsignedTransfer:
    """The bytes to sign. Raises Blocked, ChainAway."""
    require_current(await nodes.answers(lambda node: ask_successor(node, rules.name, rules.token)))
    call_data = rules.encode_transfer_call(transfer.recipient, transfer.amount_units)
    try:
        estimate = await nodes.first(lambda node: node.estimate_gas(rules.token, call_data, sender))
    except CallReverted as error:
        raise Blocked(Obstacle("node", f"the token refuses the simulated transfer: {error}")) from error
    gas = min(max(estimate * 5 // 4, rules.min_gas), rules.max_gas)
    conditions = await read_conditions(nodes, rules, sender)
    max_fee = min(FEE_ROOM * conditions.offer.max_fee, rules.fee_cap_wei // gas)
    if max_fee < conditions.offer.max_fee:
        text = (
            f"the chain may cost {gas * conditions.offer.max_fee} wei, above the cap of {rules.fee_cap_wei}"
        )
        raise Blocked(Obstacle("fee", text))
    if conditions.held_wei < gas * max_fee:
        text = f"the sender holds {conditions.held_wei} wei of {gas * max_fee} for the fee"
        raise Blocked(Obstacle("fuel", text))
    if nonce is None:
        nonce = cautious_high(await nodes.answers(lambda node: node.count(sender, "pending")))
    tip = conditions.offer.max_priority_fee
    made = EvmTransaction(rules.chain_id, nonce, tip, max_fee, gas, rules.token, 0, call_data)
    return UnsignedTransfer(encode_unsigned(made), conditions.height)
