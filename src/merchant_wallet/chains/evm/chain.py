"""An EVM chain over its nodes: builds, signs, sends and judges payouts, reads deposits and balances.

Rules:
- Only the signer holds the key. Its result must be the wallet's signature of exactly these bytes.
- The rules limit the fees, whatever a node says.
- Every transfer is simulated before it is signed: its gas is estimated. All checks run in one round, right
  before signing.
- If two nodes are configured, both must say that a recipient can't be paid before a payout fails.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from merchant_wallet.base import clock as system_clock
from merchant_wallet.chains.agreement import agree_on_block, cautious_low, is_known
from merchant_wallet.chains.cold import Execution, UnsignedTransfer
from merchant_wallet.chains.evm import verdict as evm_verdict
from merchant_wallet.chains.evm.broadcast import Broadcaster
from merchant_wallet.chains.evm.conditions import (
    ChainConditions,
    read_conditions,
    require_coin,
    require_state,
)
from merchant_wallet.chains.evm.execution import find_execution
from merchant_wallet.chains.evm.fees import Offer, outbid
from merchant_wallet.chains.evm.node import EvmNode, EvmNodes, is_transfer, read_word, transfer_of
from merchant_wallet.chains.evm.nonces import next_nonce
from merchant_wallet.chains.evm.rules import EvmRules, read_final_block, read_head_block
from merchant_wallet.chains.evm.token import (
    BALANCE_OF,
    TokenState,
    ask_refused,
    ask_state,
    ask_successor,
    require_payable,
)
from merchant_wallet.chains.evm.token_transfers import NodeReads, check_receipts, read_token_transfers
from merchant_wallet.chains.evm.transactions import (
    EvmTransaction,
    encode_unsigned,
    hash_of,
    join,
    parse_signed,
    recover_sender,
)
from merchant_wallet.chains.evm.unsigned import build_unsigned
from merchant_wallet.chains.fitting_nodes import FittingNodes
from merchant_wallet.chains.foreign import (
    DECIMALS,
    SYMBOL,
    Moved,
    SeenTransaction,
    TokenWords,
    read_words,
)
from merchant_wallet.chains.jsonrpc import CallReverted, JsonRpc
from merchant_wallet.chains.node_status import NodeStatus, look_at
from merchant_wallet.chains.protocol import (
    Block,
    Blocked,
    ChainAway,
    ChainDisagrees,
    Obstacle,
    Payout,
    SignedTransfer,
    TokenTransfer,
    Transfer,
    Verdict,
)
from merchant_wallet.chains.recent import Recent
from merchant_wallet.chains.signer import Purpose, Signer, SigningRefused, SigningRequest
from merchant_wallet.chains.transport import (
    Admission,
    Endpoints,
    NodeFailed,
    NodeRefused,
    answer_of,
    attempt,
    for_signed,
)

_PLAIN_GAS: Final = 21_000
_SKEW_MS: Final = 300_000


class EvmChain:
    """One EVM chain (see `protocol.Chain` and `protocol.ChainReader`)."""

    def __init__(
        self,
        rules: EvmRules,
        endpoints: Endpoints,
        *,
        wallet: bytes | None = None,
        signer: Signer | None = None,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Only payouts need `wallet` and `signer`. A chain that is only read has neither."""
        self.rules = rules
        self.nodes = EvmNodes(JsonRpc(endpoints), Recent(rules.recent_s, clock_s))
        self._broadcaster = Broadcaster(self.nodes, rules.min_tip_wei)
        self._wallet = wallet
        self._signer = signer
        self._agreed_number = -1
        self._reads = {node: NodeReads(node, rules) for node in self.nodes.each}
        self._clock_s = clock_s
        self._fitting: FittingNodes[EvmNode] = FittingNodes(clock_s)

    @property
    def wallet(self) -> bytes:
        """The hot wallet, 20 bytes. Raises ValueError for a chain that is only read."""
        if self._wallet is None:
            raise ValueError(f"{self.rules.name} is only read here: no signer is configured")
        return self._wallet

    @property
    def has_nonces(self) -> bool:
        """True."""
        return True

    async def close(self) -> None:
        """Close every connection."""
        await self.nodes.close()

    # For the payer.

    async def next_nonce(self, known: int | None, *, is_first: bool) -> int:
        """See `nonces`. Raises ChainAway, Blocked."""
        return await next_nonce(self.nodes, self.wallet, self.rules.chain_id, known, is_first=is_first)

    @property
    def rules_now(self) -> EvmRules:
        """The rules, with the least tip that the nodes ask for now (see `broadcast`)."""
        return msgspec.structs.replace(self.rules, min_tip_wei=self._broadcaster.least_tip_wei)

    async def funds(self) -> int:
        """The lowest balance that nodes show at their final blocks (see `agreement`).

        Raises ChainAway. Raises Blocked if the final block is so old that no node has its state.
        """

        async def at_final(node: EvmNode) -> int:
            return await self._balance(node, self.wallet, (await read_final_block(node, self.rules)).number)

        try:
            return cautious_low(await self.nodes.answers(at_final, is_urgent=True))
        except ChainAway as away:
            await require_state(self.nodes, self.rules, away)
            raise

    async def check_payable(self, transfer: Transfer) -> None:
        """Checks successor, pause, blacklist, funds, token fee, simulation, gas and coin, in this order.

        Raises Unpayable, Blocked.
        """
        gas, conditions = await self._prepare(transfer)
        cost_wei = self._check_cap(gas, conditions.offer)
        await require_coin(self.nodes, self.wallet, conditions, cost_wei)

    async def build(self, payout: Payout, earlier: Sequence[SignedTransfer]) -> SignedTransfer:
        """See `protocol.Chain.build`. Raises Unpayable, Blocked, ChainAway, SignerAway."""
        if payout.nonce is None:
            raise ValueError("a payout on this chain needs its nonce")
        gas, conditions = await self._prepare(payout.transfer)
        call = self.rules.encode_transfer_call(payout.transfer.recipient, payout.transfer.amount_units)
        return await self._sign(payout.nonce, earlier, self.rules.token, call, gas, conditions, payout)

    async def build_cancel(self, nonce: int, earlier: Sequence[SignedTransfer]) -> SignedTransfer:
        """A transfer of nothing from the wallet to itself. Raises Blocked, ChainAway, SignerAway."""
        nothing = Payout(0, Transfer(self.rules.name, self.rules.currency, self.wallet, 0))
        conditions = await self._read_conditions()
        return await self._sign(nonce, earlier, self.wallet, b"", _PLAIN_GAS, conditions, nothing)

    @for_signed
    async def broadcast(self, raw: bytes) -> None:
        """See `broadcast`. Raises NodeRefused, ChainAway."""
        await self._broadcaster.broadcast(raw)

    @for_signed
    async def judge(self, payout: Payout, signed: Sequence[SignedTransfer]) -> Verdict:
        """See `verdict`. Raises ChainAway."""
        query = evm_verdict.PayoutQuery(self.rules_now, self.wallet, payout, signed)
        return await evm_verdict.judge(self.nodes, query)

    # For cold money.

    async def build_unsigned(
        self, sender: bytes, transfer: Transfer, nonce: int | None, lifetime_ms: int
    ) -> UnsignedTransfer:
        """See `unsigned`. Raises Blocked, ChainAway."""
        return await build_unsigned(self.nodes, self.rules_now, sender, transfer, nonce)

    async def find_execution(self, sender: bytes, transfer: UnsignedTransfer) -> Execution | None:
        """See `execution`. Raises ChainAway, ChainDisagrees."""
        return await find_execution(self.nodes, self.rules, sender, transfer)

    async def knows(self, tx_hash: str) -> bool:
        """See `cold.ColdChain`. Raises ChainAway."""
        said = await self.nodes.answers(lambda node: node.knows(tx_hash))
        return is_known(said, self.nodes.quorum, tx_hash)

    async def find_block(self, tx_hash: str) -> int | None:
        """See `cold.ColdChain`. Raises ChainAway, ChainDisagrees."""
        receipts = await self.nodes.answers(lambda node: node.receipt(tx_hash))
        numbers = [receipt.block_number for receipt in receipts if receipt is not None]
        return agree_on_block(numbers, self.nodes.quorum, f"{self.rules.name} {tx_hash}")

    # For the watcher and reconciliation.

    async def head(self) -> Block:
        """The newest block of the first node that answers. Raises ChainAway."""
        return await self.nodes.first(lambda node: self._reads[node].head())

    async def final(self) -> Block:
        """The newest block that two nodes call final. Raises ChainAway, ChainDisagrees."""
        answers = await self.nodes.every(lambda node: self._reads[node].final())
        numbers = [answer.number for answer in answers if isinstance(answer, Block)]
        if len(numbers) < self.nodes.quorum:
            failures = "; ".join(str(answer) for answer in answers if isinstance(answer, Exception))
            raise ChainAway(f"only one node says which block is final: {failures}" if numbers else failures)
        number = sorted(numbers)[-self.nodes.quorum]
        shown = await self.nodes.answers(lambda node: self._reads[node].final_block(number))
        headers = [header for header in shown if header is not None]
        if any(header != headers[0] for header in headers):
            raise ChainDisagrees(f"{self.rules.name}: nodes show different blocks {number}, which is final")
        if len(headers) < self.nodes.quorum:
            raise ChainAway(f"only one node shows block {number}")
        self._agreed_number = max(self._agreed_number, number)
        return headers[0]

    async def block(self, number: int) -> Block | None:
        """The block of this number on the first node that answers. Raises ChainAway."""
        block = await self.nodes.first(lambda node: self._reads[node].block(number))
        return None if block is None else block.header

    async def transfers(self, first: int, last: int) -> list[TokenTransfer]:
        """See `token_transfers`. Raises ChainAway, ChainDisagrees, NodeRefused."""
        name, agreed_number = self.rules.name, self._agreed_number
        return await read_token_transfers(name, self.nodes, self._reads, first, last, agreed_number)

    def forget(self) -> None:
        """Ask the nodes again for what they have shown."""
        self.nodes.recent.forget()
        for reads in self._reads.values():
            reads.forget()

    async def balance(self, address: bytes, block: Block | None = None) -> int:
        """Whole units of the token. A node that lacks the block's state answers for now. Raises ChainAway."""
        if block is not None:
            number = block.number
            try:
                return await self.nodes.first(lambda node: self._balance(node, address, number))
            except NodeRefused as refused:
                # Only what lacks the state is asked for now: another refusal would compare other moments.
                if refused.is_overload:
                    raise
        return await self.nodes.first(lambda node: self._balance(node, address, "latest"))

    async def balances(self, addresses: Sequence[bytes], block: Block) -> list[int]:
        """The balances of many addresses at a block, asked together. See `balance`.

        Raises ChainAway. Raises NodeRefused if no node has the block's state.
        """
        calls = [BALANCE_OF + address.rjust(32, b"\0") for address in addresses]

        async def ask(node: EvmNode) -> list[int]:
            answers = await node.call_many(self.rules.token, calls, block.number)
            return [_word(node, answer) // self.rules.base_units for answer in answers]

        return await self.nodes.first(ask)

    async def successor(self, contract: bytes | None = None) -> str | None:
        """The contract that any node says replaces the token, or another contract. Raises ChainAway."""
        name, asked = self.rules.name, contract or self.rules.token
        said = await self.nodes.answers(lambda node: ask_successor(node, name, asked))
        return next((successor for successor in said if successor), None)

    async def coin_balance(self, address: bytes) -> int:
        """Wei at an address, now. Raises ChainAway."""
        return await self.nodes.first(lambda node: node.coin_balance(address))

    async def foreign_balance(self, address: bytes, contract: bytes | None) -> int:
        """What an address holds of another token, or of the coin (None), in smallest units, now.

        The lowest that nodes show. 0 if the contract does not answer as a token does. Raises ChainAway.
        """

        async def ask(node: EvmNode) -> int:
            if contract is None:
                return await node.coin_balance(address)
            (view,) = await node.views(contract, [BALANCE_OF + address.rjust(32, b"\0")])
            return int.from_bytes(view, "big") if view is not None and len(view) == 32 else 0

        return cautious_low(await self.nodes.answers(ask))

    async def look_up(self, tx_hash: str) -> SeenTransaction | None:
        """What a transaction moved, as the first node that answers shows it. None if it is in no block.

        Raises ChainAway.
        """

        async def ask(node: EvmNode) -> SeenTransaction | None:
            receipt, coins = await node.receipt(tx_hash), await node.coin_transfer(tx_hash)
            if receipt is None:
                return None
            moved = [Moved(None, *coins)] if coins is not None and coins[2] and receipt.is_success else []
            moved += [Moved(log.address, *transfer_of(log)) for log in receipt.logs if is_transfer(log)]
            return SeenTransaction(receipt.block_number, receipt.is_success, tuple(moved))

        return await self.nodes.first(ask)

    async def read_words(self, contract: bytes) -> TokenWords:
        """What a contract says of itself, on the first node that answers. Raises ChainAway."""
        symbol, decimals = await self.nodes.first(lambda node: node.views(contract, [SYMBOL, DECIMALS]))
        return read_words(symbol, decimals)

    async def has_code(self, address: bytes) -> bool:
        """Whether an address has code now, a contract's or a delegated one (EIP-7702). Raises ChainAway."""
        return bool(await self.nodes.first(lambda node: node.code(address)))

    async def check_setup(self, clock_ms: Callable[[], int] = system_clock.now_ms) -> list[str]:
        """Sentences about nodes, token or clock that do not fit the rules. Empty if all is well.

        A node that is down is mentioned only if too few others answer.
        """
        answers = await self.nodes.every(lambda node: self._check_reading_node(node, clock_ms))
        failures = [f"{self.rules.name}: {answer}" for answer in answers if isinstance(answer, Exception)]
        wrong = [sentence for answer in answers if isinstance(answer, list) for sentence in answer]
        return wrong + (failures if len(answers) - len(failures) < self.nodes.quorum else [])

    async def admit_nodes(self, clock_ms: Callable[[], int] = system_clock.now_ms) -> Admission:
        """Use exactly the nodes that fit the rules. Whether deposits can be read from them is not asked."""
        return await self.nodes.admit(lambda node: self._check_again(node, clock_ms))

    async def list_failures(self) -> list[str]:
        """Why nodes could not be checked, also if enough others could."""
        answers = await self.nodes.every(lambda node: self._check_node(node, system_clock.now_ms))
        return [str(answer) for answer in answers if isinstance(answer, Exception)]

    async def look_at_nodes(self) -> list[NodeStatus]:
        """How each node is (see `node_status`)."""
        names = [node.name for node in self.nodes.each]
        return await look_at(
            names,
            self.nodes.list_use,
            self.nodes.every,
            read_head_block,
            lambda node: read_final_block(node, self.rules),
        )

    async def check_chain(self) -> list[str]:
        """Sentences about nodes of another chain, and about too few nodes that name their chain."""
        answers = await self.nodes.every(EvmNode.chain_id)
        failures = [f"{self.rules.name}: {answer}" for answer in answers if isinstance(answer, Exception)]
        wrong = [
            f"{self.rules.name}: the chain id is {answer}, the setting says {self.rules.chain_id}"
            for answer in answers
            if isinstance(answer, int) and answer != self.rules.chain_id
        ]
        return wrong + (failures if len(answers) - len(failures) < self.nodes.quorum else [])

    async def _check_again(self, node: EvmNode, clock_ms: Callable[[], int]) -> list[str]:
        """Like `_check_node`. Chain and token of a node that fitted lately are not asked for again."""
        return await self._fitting.check(
            node,
            lambda node: self._check_node(node, clock_ms),
            lambda node: self._check_clock(node, clock_ms),
        )

    async def _check_node(self, node: EvmNode, clock_ms: Callable[[], int]) -> list[str]:
        rules, where = self.rules, f"{self.rules.name}, node {node.name}"
        chain_id = await node.chain_id()
        if chain_id != rules.chain_id:
            return [f"{where}: the chain id is {chain_id}, the setting says {rules.chain_id}"]
        wrong = []
        if not await node.code(rules.token):
            wrong.append(f"{where}: there is no contract at the token's address 0x{rules.token.hex()}")
        elif (decimals := await _decimals(node, rules.token)) != rules.token_decimals:
            wrong.append(f"{where}: the token has {decimals} decimals and must have {rules.token_decimals}")
        return wrong + await self._check_clock(node, clock_ms)

    async def _check_clock(self, node: EvmNode, clock_ms: Callable[[], int]) -> list[str]:
        skew_ms = (await read_head_block(node)).time_ms - clock_ms()
        if abs(skew_ms) <= _SKEW_MS:
            return []
        text = f"the newest block is {abs(skew_ms) // 1000} s {'ahead of' if skew_ms > 0 else 'behind'}"
        return [f"{self.rules.name}, node {node.name}: {text} this machine's clock"]

    async def _check_reading_node(self, node: EvmNode, clock_ms: Callable[[], int]) -> list[str]:
        if wrong := await self._check_node(node, clock_ms):
            return wrong
        if reason := await check_receipts(node):
            where = f"{self.rules.name}, node {node.name}"
            return [f"{where}: deposits can't be read from its receipts: {reason}"]
        return []

    # How a transfer is checked, priced and signed.

    async def _prepare(self, transfer: Transfer) -> tuple[int, ChainConditions]:
        """Asks everything that signing needs, in one round: the gas limit, and what the nodes say.

        Raises Unpayable, Blocked.
        """
        if (transfer.chain, transfer.token) != (self.rules.name, self.rules.currency):
            raise ValueError(f"{transfer.token} on {transfer.chain} can't be paid on {self.rules.name}")
        rules, recipient = self.rules, transfer.recipient
        states, refused, gas, conditions = await asyncio.gather(
            attempt(self.read_token_states()),
            attempt(self.nodes.answers(lambda node: ask_refused(node, rules, recipient), is_urgent=True)),
            attempt(self._gas(transfer)),
            attempt(self._read_conditions()),
        )
        amounts = transfer.amount_units, rules.base_units
        require_payable(answer_of(states), answer_of(refused), self.nodes.quorum, *amounts)
        return answer_of(gas), answer_of(conditions)

    async def read_token_states(self) -> list[TokenState]:
        """What the nodes have said recently about the token and the hot wallet. Raises ChainAway."""
        rules, wallet = self.rules, self.wallet

        async def ask() -> list[TokenState]:
            return await self.nodes.answers(lambda node: ask_state(node, rules, wallet), is_urgent=True)

        return await self.nodes.recent.read("token", ask)

    async def _read_conditions(self) -> ChainConditions:
        return await read_conditions(self.nodes, self.rules_now, self.wallet)

    async def _gas(self, transfer: Transfer) -> int:
        """The gas limit of a transfer, which was simulated recently. Raises Blocked."""
        rules = self.rules
        call_data = rules.encode_transfer_call(transfer.recipient, transfer.amount_units)

        async def ask() -> int:
            return await self.nodes.first(lambda node: node.estimate_gas(rules.token, call_data, self.wallet))

        try:
            estimate = await self.nodes.recent.read(("gas", call_data), ask)
        except CallReverted as error:
            raise Blocked(Obstacle("node", f"the token refuses the simulated transfer: {error}")) from error
        gas = max(estimate * 5 // 4, rules.min_gas)
        if gas > rules.max_gas:
            raise Blocked(Obstacle("fee", f"a transfer needs {gas} units of gas, above {rules.max_gas}"))
        return gas

    def _check_cap(self, gas: int, offer: Offer) -> int:
        """The wei that a transaction may cost: its gas limit at its highest price.

        Raises Blocked above the cap.
        """
        cost_wei = gas * offer.max_fee
        if cost_wei > self.rules.fee_cap_wei:
            text = f"the chain may cost {cost_wei} wei, above the cap of {self.rules.fee_cap_wei}"
            raise Blocked(Obstacle("fee", text))
        return cost_wei

    async def _sign(
        self,
        nonce: int,
        earlier: Sequence[SignedTransfer],
        to: bytes,
        call_data: bytes,
        gas: int,
        conditions: ChainConditions,
        payout: Payout,
    ) -> SignedTransfer:
        """A signed transaction with this nonce that outbids the earlier ones. Raises Blocked, SignerAway."""
        offer = conditions.offer
        for signed in earlier:
            transaction, _ = parse_signed(signed.raw)
            if transaction.nonce != nonce:
                raise ValueError("what was signed before has another nonce")
            offer = outbid(transaction, offer, is_refused=payout.is_refused)
        cost_wei = self._check_cap(gas, offer)
        await require_coin(self.nodes, self.wallet, conditions, cost_wei, payout.pending, nonce)
        unsigned = encode_unsigned(
            EvmTransaction(
                self.rules.chain_id, nonce, offer.max_priority_fee, offer.max_fee, gas, to, 0, call_data
            )
        )
        raw = join(unsigned, await self._signature(unsigned, payout, is_cancel=not call_data))
        if recover_sender(raw) != self.wallet:
            raise ValueError("the signer's signature is not the hot wallet's")
        return SignedTransfer(raw, hash_of(raw), conditions.height)

    async def _signature(self, unsigned: bytes, payout: Payout, *, is_cancel: bool) -> bytes:
        if self._signer is None:
            raise ValueError(f"{self.rules.name} is only read here: no signer is configured")
        purpose: Purpose = "cancel" if is_cancel else payout.purpose
        request = SigningRequest(self.rules.name, purpose, unsigned, payout.payout_id, payout.transfer)
        try:
            return await self._signer.sign(request)
        except SigningRefused as error:
            raise Blocked(Obstacle("limit", f"the signer refuses: {error}")) from error

    async def _balance(self, node: EvmNode, address: bytes, at: int | str) -> int:
        try:
            answer = await node.call(self.rules.token, BALANCE_OF + address.rjust(32, b"\0"), at=at)
        except CallReverted as error:
            raise NodeFailed(node.name, f"there is no token that answers balanceOf: {error}") from error
        return _word(node, answer) // self.rules.base_units


async def _decimals(node: EvmNode, token: bytes) -> int | None:
    """None if the contract reverts: it has no such function."""
    try:
        return _word(node, await node.call(token, DECIMALS))
    except CallReverted:
        return None


def _word(node: EvmNode, answer: bytes) -> int:
    try:
        return read_word(answer)
    except ValueError as error:
        raise NodeFailed(node.name, f"the token's view: {error}") from error
