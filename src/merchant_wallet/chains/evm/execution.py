"""What became of a transfer that was exported to be signed elsewhere: which transaction used its nonce.

Rules:
- The sender's own key signed what used the nonce (see `proof`), and a final block has it on enough nodes.
- Wallet programs choose other fees. A call of the same contract with the same data is the same transfer.
- A node that counts the nonce as used, in its mempool too, is enough to wait.
"""

from merchant_wallet.chains.cold import Executed, Execution, InFlight, Replaced, UnsignedTransfer
from merchant_wallet.chains.evm.node import EvmNode, EvmNodes
from merchant_wallet.chains.evm.nonces import NonceSearch, count_final, find_spender
from merchant_wallet.chains.evm.rules import EvmRules, read_final_block
from merchant_wallet.chains.evm.transactions import EvmTransaction, parse_unsigned
from merchant_wallet.chains.protocol import ChainAway, ChainDisagrees


async def find_execution(
    nodes: EvmNodes, rules: EvmRules, sender: bytes, transfer: UnsignedTransfer
) -> Execution | None:
    """See `cold.ColdChain.find_execution`. Raises ChainAway, ChainDisagrees."""
    transaction = parse_unsigned(transfer.unsigned)
    search = NonceSearch(sender, rules.chain_id, transaction.nonce, transfer.built_at_block)
    answers = await nodes.answers(lambda node: _ask_node(node, rules, search, transaction))
    final = [answer for answer in answers if isinstance(answer, Executed | Replaced)]
    if any(answer != final[0] for answer in final):
        hashes = " and ".join(sorted({answer.tx_hash for answer in final}))
        raise ChainDisagrees(f"{rules.name}: nodes show that nonce {search.nonce} was used by {hashes}")
    if final and len(final) >= nodes.quorum:
        return final[0]
    for answer in answers:
        if isinstance(answer, InFlight):
            return answer
    if final:
        return InFlight(f"{final[0].tx_hash} is final on one node only")
    if len(answers) < nodes.quorum:
        raise ChainAway(f"only {len(answers)} of {len(nodes.each)} nodes says whether a nonce is used")
    return None


async def _ask_node(
    node: EvmNode, rules: EvmRules, search: NonceSearch, transaction: EvmTransaction
) -> Execution | None:
    final = await read_final_block(node, rules)
    if await count_final(node, search.wallet, final.number) > search.nonce:
        taken = await find_spender(node, search, final.number)
        if taken is None:
            return InFlight(f"{node.name} says that nonce {search.nonce} is used, and does not show by what")
        spender = taken[1]
        is_same = spender.is_call(transaction.to, transaction.call_data)
        return Executed(spender.tx_hash) if is_same else Replaced(spender.tx_hash)
    if await node.count(search.wallet, "pending") > search.nonce:
        return InFlight(f"a transaction with nonce {search.nonce} is on its way and not final yet")
    return None
