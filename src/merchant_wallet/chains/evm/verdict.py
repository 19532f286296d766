"""What became of a payout on an EVM chain: the finding of each node, and the verdict from all of them.

Rules:
- A node's finding counts only in a block that it calls final, on the branch that it follows.
- If several nodes are configured, two must have found the same. A node that found something else causes an
  alert and no verdict.
- A missing receipt proves nothing: the node may lag, prune or lie.
- Receipts are asked for when the wallet's count at the final block says that the nonce is used, and of what
  has waited for long. The counts are the same for all payouts of a wallet, so they are asked for once.
- Another transaction took the payout's nonce only if that is proven: the wallet's own key signed it, it is in
  a final block, and every configured node shows it, twice.
- If that other transaction pays exactly the order, there is no verdict. A restored database may have lost it.
- What was signed for another chain is not judged.
- Everything else is Pending.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from merchant_wallet.chains.evm.fees import is_too_low
from merchant_wallet.chains.evm.node import EvmNode, EvmNodes, EvmReceipt, is_transfer, transfer_of
from merchant_wallet.chains.evm.nonces import NonceSearch, count_final, find_spender
from merchant_wallet.chains.evm.rules import EvmRules, recent_final_block, recent_head_block
from merchant_wallet.chains.evm.transactions import parse_signed
from merchant_wallet.chains.protocol import (
    Block,
    ChainAway,
    FinalRecord,
    Payout,
    Pending,
    ProvenUnpaid,
    SignedTransfer,
    TransferLog,
    Verdict,
)
from merchant_wallet.chains.transfer_logs import make_final_record
from merchant_wallet.chains.transport import NodeFailed, NodeRefused

# A transaction that waits for earlier nonces this many times longer than `stuck_blocks` seems to wait in
# vain.
LONG_WAITS: Final = 10
# Another look at what is in no block makes sense after so many times the age of a recent answer, which is
# half a block on Ethereum and a block on BNB Smart Chain.
MINED_AFTER: Final = 7
FINAL_AFTER: Final = 10
"""A transfer that is in a block is looked at after this at the latest: a minute on Ethereum."""


class PayoutQuery(msgspec.Struct, frozen=True):
    """The payout to judge: its wallet, and everything that was ever signed for it."""

    rules: EvmRules
    wallet: bytes
    payout: Payout
    signed: Sequence[SignedTransfer]

    @property
    def nonce(self) -> int:
        """The nonce of everything that was signed for this payout."""
        if self.payout.nonce is None:
            raise ValueError("a payout on this chain has a nonce")
        return self.payout.nonce

    @property
    def search(self) -> NonceSearch:
        """The search for what used the nonce."""
        built_at = min((signed.built_at_block for signed in self.signed), default=None)
        return NonceSearch(self.wallet, self.rules.chain_id, self.nonce, built_at)


class Finding(msgspec.Struct, frozen=True, gc=False):
    """What one node shows as final, and its block. `by_all`: every node must show it, twice."""

    verdict: FinalRecord | ProvenUnpaid
    block_number: int
    block_hash: str
    by_all: bool = False


class NotFinal(msgspec.Struct, frozen=True, gc=False):
    """A node shows nothing final up to `final_number`. `alert` says if that is odd.

    `is_mined`: a block has used the nonce.
    """

    final_number: int
    is_mined: bool = False
    is_stuck: bool = False
    alert: str | None = None


async def judge(nodes: EvmNodes, query: PayoutQuery) -> Verdict:
    """The verdict on a payout. Raises ChainAway only if no node answered."""
    for signed in query.signed:
        transaction, _ = parse_signed(signed.raw)
        if transaction.chain_id != query.rules.chain_id:
            text = f"{signed.tx_hash} was signed for chain {transaction.chain_id}: restore its settings"
            return Pending(alert=text)
    verdict, is_by_all = await _judge_once(nodes, query)
    if not is_by_all:
        return verdict
    nodes.recent.forget()
    again, _ = await _judge_once(nodes, query)
    return verdict if again == verdict else Pending(alert="a second look found something else")


async def _judge_once(nodes: EvmNodes, query: PayoutQuery) -> tuple[Verdict, bool]:
    answers = await nodes.every(lambda node: find(node, query))
    findings = [answer for answer in answers if isinstance(answer, Finding)]
    not_finals = [answer for answer in answers if isinstance(answer, NotFinal)]
    failures = [str(answer) for answer in answers if isinstance(answer, NodeFailed | NodeRefused)]
    if len(failures) == len(answers):
        raise ChainAway("; ".join(failures))
    alerts = [not_final.alert for not_final in not_finals if not_final.alert]
    if not findings:
        stuck = [not_final for not_final in not_finals if not_final.is_stuck]
        # A replacement costs more, so one node alone can't cause it.
        is_stuck = len(stuck) >= nodes.quorum and not any(not_final.is_mined for not_final in not_finals)
        is_mined = len(not_finals) >= nodes.quorum and all(
            not_final.is_mined and not not_final.alert for not_final in not_finals
        )
        times = MINED_AFTER
        if is_mined:
            # No block up to that of its signature has it.
            final_number = max(not_final.final_number for not_final in not_finals)
            times = min(FINAL_AFTER, query.signed[-1].built_at_block + 1 - final_number)
        check_after_ms = max(0, int(1000 * query.rules.recent_s * times)) or None
        alert = "; ".join(alerts) or None
        return Pending(check_after_ms, stuck=is_stuck, alert=alert, is_mined=is_mined), False
    found = findings[0]
    needed = len(answers) if found.by_all else nodes.quorum
    denied = [not_final for not_final in not_finals if not_final.final_number >= found.block_number]
    if any(other != found for other in findings):
        return Pending(alert=_quarrel(query, findings)), False
    if len(findings) < needed:
        if denied:
            alerts.append(f"one node shows as final what another does not: {found.verdict}")
        return Pending(alert="; ".join(alerts + failures) or None), False
    return found.verdict, found.by_all


def _quarrel(query: PayoutQuery, findings: list[Finding]) -> str:
    said = "; ".join(f"{found.verdict} in block {found.block_hash}" for found in findings)
    return f"nodes disagree about payout {query.payout.payout_id}: {said}"


async def find(node: EvmNode, query: PayoutQuery) -> Finding | NotFinal:
    """What one node shows. Raises NodeFailed, NodeRefused."""
    # The order matters: what was final before the receipts were requested must have them.
    final = await recent_final_block(node, query.rules)
    wallet, number, waited = query.wallet, final.number, 0
    following = await node.recently((wallet, "latest", number), lambda: node.count(wallet, "latest"))
    if following > query.nonce:
        if await node.recently((wallet, number), lambda: count_final(node, wallet, number)) <= query.nonce:
            return NotFinal(number, is_mined=True)
    else:
        waited = await _count_waited(node, query)
        # A count may be behind its blocks. So receipts are asked for before a replacement is signed.
        if waited < query.rules.stuck_blocks:
            return NotFinal(number)
    receipts = [await node.receipt(signed.tx_hash) for signed in query.signed]
    mined = [receipt for receipt in receipts if receipt is not None]
    for receipt in mined:
        if receipt.block_number <= number:
            return await _find_by_receipt(node, query, receipt, final)
    if mined:
        return NotFinal(number, is_mined=True)
    if following > query.nonce:
        return await _find_spender(node, query, final)
    # It is stuck if its nonce is the next or its fee is too low now. So all payouts that a higher base fee
    # has stopped are replaced together.
    is_stuck = following == query.nonce or await _is_too_low(node, query)
    alert = None
    if following < query.nonce and waited >= LONG_WAITS * query.rules.stuck_blocks:
        alert = f"its nonce is {query.nonce}, the chain is at {following}: earlier nonces are missing"
    return NotFinal(number, is_stuck=is_stuck, alert=alert)


async def _count_waited(node: EvmNode, query: PayoutQuery) -> int:
    """How many blocks have come since the newest transfer was signed."""
    head = await recent_head_block(node)
    return head.number - (query.signed[-1].built_at_block if query.signed else head.number)


async def _is_too_low(node: EvmNode, query: PayoutQuery) -> bool:
    newest, _ = parse_signed(query.signed[-1].raw)
    return is_too_low(newest, await node.recently("fees", lambda: node.fees(1)), query.rules.min_tip_wei)


async def _find_by_receipt(
    node: EvmNode, query: PayoutQuery, receipt: EvmReceipt, final: Block
) -> Finding | NotFinal:
    number = receipt.block_number
    block = await node.recently(number, lambda: node.block(number))
    if (
        block is None
        or block.header.hash != receipt.block_hash
        or receipt.tx_hash not in block.transactions
        or receipt.sender != query.wallet
    ):
        return NotFinal(
            final.number, True, alert=f"{node.name} shows a receipt that contradicts its own blocks"
        )
    node.note_fee(receipt)
    where = (receipt.block_number, receipt.block_hash)
    if not receipt.is_success:
        return Finding(ProvenUnpaid(f"{receipt.tx_hash} reverted in block {where[0]}, {where[1]}"), *where)
    transfer_logs = _transfer_logs(query.rules, receipt)
    return Finding(
        make_final_record(query.payout.transfer, query.wallet, transfer_logs, receipt.tx_hash), *where
    )


def _transfer_logs(rules: EvmRules, receipt: EvmReceipt) -> list[TransferLog]:
    """Every Transfer log of the token in a transaction, in its order."""
    transfers = [transfer_of(log) for log in receipt.logs if log.address == rules.token and is_transfer(log)]
    return [TransferLog(sender, to, *divmod(amount, rules.base_units)) for sender, to, amount in transfers]


async def _find_spender(node: EvmNode, query: PayoutQuery, final: Block) -> Finding | NotFinal:
    """A final block has used the nonce, but no known transaction did. Find the one that did."""
    taken = await find_spender(node, query.search, final.number)
    if taken is None:
        text = f"{node.name} says that nonce {query.nonce} is spent, but shows no transaction that spent it"
        return NotFinal(final.number, True, alert=text)
    block, spender = taken
    if spender.tx_hash in {signed.tx_hash for signed in query.signed}:
        text = f"{node.name} has no receipt of {spender.tx_hash}, which is in its block {block.number}"
        return NotFinal(final.number, True, alert=text)
    ordered = query.payout.transfer
    call_data = query.rules.encode_transfer_call(ordered.recipient, ordered.amount_units)
    if spender.is_call(query.rules.token, call_data):
        text = (
            f"nonce {query.nonce} was spent by {spender.tx_hash}, which pays exactly the order but is "
            "not recorded here: was the database restored?"
        )
        return NotFinal(final.number, True, alert=text)
    fault = f"nonce {query.nonce} was spent by {spender.tx_hash}, which was never signed for a payout here"
    return Finding(
        ProvenUnpaid(f"{fault}, in block {block.number}", wallet_fault=fault),
        block.number,
        block.hash,
        by_all=True,
    )
