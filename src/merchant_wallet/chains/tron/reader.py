"""Reads a TRON chain: its blocks, the token's Transfer logs in them, balances.

Rules:
- Final means what a node serves under `/walletsolidity`. If several nodes are configured, two of them must
  have it and show the same.
- The scan reads the result of every transaction of a block, once (see `blocks`). Every node can serve that
  without an index.
- A node that shows no results for a block that is not empty has pruned it. It is not used.
"""

import time
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import msgspec

from merchant_wallet.base import clock
from merchant_wallet.base.addresses import keccak256, to_tron
from merchant_wallet.base.chains import CHAINS, TRC20
from merchant_wallet.chains.agreement import agree_on_block, is_known
from merchant_wallet.chains.fitting_nodes import FittingNodes
from merchant_wallet.chains.foreign import Moved, SeenTransaction, TokenWords, read_words
from merchant_wallet.chains.issuer import NOWHERE, read_destroyed
from merchant_wallet.chains.node_status import NodeStatus, look_at
from merchant_wallet.chains.node_texts import show_text
from merchant_wallet.chains.protocol import Block, ChainAway, ChainDisagrees, TokenTransfer
from merchant_wallet.chains.recent import Recent
from merchant_wallet.chains.transport import Admission, NodeFailed
from merchant_wallet.chains.tron.answers import Log, TransactionRecord
from merchant_wallet.chains.tron.blocks import NodeBlocks
from merchant_wallet.chains.tron.http import FAILED, SUCCESS, TronNode, TronNodes
from merchant_wallet.chains.tron.token import DECIMALS, TronToken

TRANSFER_CONTRACT: Final = "TransferContract"
CALL_CONTRACT: Final = "TriggerSmartContract"
TRANSFER_TOPIC: Final = keccak256(b"Transfer(address,address,uint256)").hex()
MAX_SKEW_MS: Final = 60_000
OFFSET_RANGE_MS: Final = 60_000
"""The bytes of a transfer name a moment up to so long before their signature, which makes them unique."""

_WORD_HEX_DIGITS: Final = 64
_ADDRESS_HEX_DIGITS: Final = 40

T = TypeVar("T")


class TronRules(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of one TRON chain.

    `chain_id` is a number: the last four bytes of the first block's id. `token` has the 20 bytes of the
    token's contract. `fee_cap_sun` is the most that one payout may burn. The chain can take a payout for
    `lifetime_ms` of its own time. Until `grace_ms` after that nobody checks if it has expired. `recent_s` is
    how old an answer may be that is the same for all orders (see `recent`).
    """

    chain_id: int = CHAINS[TRC20].chain_id
    token: bytes = CHAINS[TRC20].token
    fee_cap_sun: int = CHAINS[TRC20].fee_cap
    lifetime_ms: int = 300_000
    recent_s: float = CHAINS[TRC20].recent_s
    grace_ms: int = 30_000


class Movement(msgspec.Struct, frozen=True, gc=False):
    """One Transfer log of the token, and its position among the logs of its transaction."""

    log_index: int
    sender: bytes
    recipient: bytes
    amount_units: int


class TronReader:
    """See `protocol.ChainReader`."""

    def __init__(
        self, rules: TronRules, nodes: TronNodes, clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        self.rules = rules
        self.nodes = nodes
        self.recent = Recent(rules.recent_s, clock_s)
        self.token = TronToken(rules.token, nodes, self.recent)
        self._blocks = {node: NodeBlocks(node, self._read_transfers) for node in nodes.all}
        self._agreed_number = -1
        self._clock_s = clock_s
        self._fitting: FittingNodes[TronNode] = FittingNodes(clock_s)

    async def close(self) -> None:
        """Close the connections to the nodes."""
        await self.recent.close()
        await self.nodes.close()

    async def head(self) -> Block:
        """See `protocol.ChainReader`. Raises ChainAway."""

        async def ask(node: TronNode) -> tuple[TronNode, Block]:
            return node, await self._blocks[node].head()

        asked, head = await self.nodes.first(ask)
        for node, blocks in self._blocks.items():
            # Whoever is asked in its place may have shown blocks long ago that are on no branch now.
            if node is not asked:
                blocks.leave_branch()
        return head

    async def final(self) -> Block:
        """The newest final block, on two nodes if several are configured.

        Raises ChainAway. Raises ChainDisagrees if the two have different blocks with one number.
        """
        return await self.recent.renew("final", self._read_final)

    async def _read_final(self) -> Block:
        answers = await self.nodes.every(lambda node: self._blocks[node].solid())
        final = sorted(select_usable(answers), key=lambda block: block.number, reverse=True)
        if len(final) < self.nodes.quorum:
            raise ChainAway(failures_of(answers))
        newest = final[self.nodes.quorum - 1]
        if self.nodes.quorum > 1:
            await self.compare(newest)
        self._agreed_number = max(self._agreed_number, newest.number)
        return newest

    async def block(self, number: int) -> Block | None:
        """See `protocol.ChainReader`. Raises ChainAway."""
        return await self.nodes.first(lambda node: self._blocks[node].block(number))

    async def transfers(self, first: int, last: int) -> list[TokenTransfer]:
        """See `protocol.ChainReader`. Raises ChainAway, ChainDisagrees."""
        # A node may go back. A block that was agreed to be final always needs the agreement of two nodes.
        recent = await self.recent.read("final", self._read_final)
        final = max(recent.number, self._agreed_number)
        transfers = await self._final_transfers(first, min(last, final)) if first <= final else []
        if last > final:
            start = max(first, final + 1)
            transfers += await self.nodes.first(lambda node: self._blocks[node].newest_transfers(start, last))
        return transfers

    def forget(self) -> None:
        """Ask the nodes again for what they have shown."""
        self.recent.forget()
        for blocks in self._blocks.values():
            blocks.forget()

    async def balance(self, address: bytes, block: Block | None = None) -> int:
        """See `protocol.ChainReader`. With a block it is the balance at the newest final block, which may be
        a later one.

        TRON nodes keep no past balances. Raises ChainAway.
        """
        return await self.token.balance(address, is_solid=block is not None)

    async def successor(self, contract: bytes | None = None) -> str | None:
        """The contract that any node says replaces the token, or another contract. Raises ChainAway."""
        return await (self.token if contract is None else self.open_token(contract)).successor()

    async def coin_balance(self, address: bytes) -> int:
        """Sun at an address, as of the newest block. Raises ChainAway."""
        return (await self.nodes.first(lambda node: node.account(address))).balance

    async def find_block(self, tx_hash: str) -> int | None:
        """See `cold.ColdChain`. Only final blocks count. Raises ChainAway, ChainDisagrees."""
        records = await self.nodes.answers(lambda node: node.solid_record(tx_hash))
        numbers = [record.blockNumber for record in records if record is not None]
        return agree_on_block(numbers, self.nodes.quorum, f"{TRC20} {tx_hash}")

    async def knows(self, tx_hash: str) -> bool:
        """See `cold.ColdChain`. Raises ChainAway."""
        said = await self.nodes.answers(lambda node: node.knows(tx_hash))
        return is_known(said, self.nodes.quorum, tx_hash)

    def open_token(self, contract: bytes) -> TronToken:
        """Any token. Nothing that it says is used twice."""
        return TronToken(contract, self.nodes, Recent(0, self._clock_s))

    async def foreign_balance(self, address: bytes, contract: bytes | None) -> int:
        """What an address holds of another token, or of TRX (None), in smallest units, now.

        0 if the contract does not answer as a token does. Raises ChainAway.
        """
        if contract is None:
            return await self.coin_balance(address)
        return await self.open_token(contract).shown_balance(address)

    async def look_up(self, tx_hash: str) -> SeenTransaction | None:
        """What a transaction moved, as the first node that answers shows it. None if it is in no block.

        Raises ChainAway.
        """
        return await self.nodes.first(lambda node: _look_up(node, tx_hash))

    async def read_words(self, contract: bytes) -> TokenWords:
        """What a contract says of itself, on the first node that answers. Raises ChainAway."""

        async def ask(node: TronNode) -> TokenWords:
            symbol, decimals = [
                await node.call(contract, contract, function, b"") for function in ("symbol()", "decimals()")
            ]
            return read_words(symbol.returned, decimals.returned)

        return await self.nodes.first(ask)

    async def check_setup(self, now_ms: Callable[[], int] = clock.now_ms) -> list[str]:
        """Sentences about what is wrong with nodes or the token. Empty if all is well.

        A node that is down is mentioned only if too few others answer.
        """
        answers = await self.nodes.every(lambda node: self._check_node(node, now_ms()))
        failures = [f"{TRC20}: {answer}" for answer in answers if isinstance(answer, NodeFailed)]
        wrong = [sentence for answer in select_usable(answers) for sentence in answer]
        return wrong + (failures if len(answers) - len(failures) < self.nodes.quorum else [])

    async def admit_nodes(self, now_ms: Callable[[], int] = clock.now_ms) -> Admission:
        """Use exactly the nodes that fit the rules."""
        return await self.nodes.admit(lambda node: self._check_again(node, now_ms()))

    async def list_failures(self) -> list[str]:
        """Why nodes could not be checked, also if enough others could."""
        answers = await self.nodes.every(lambda node: self._check_node(node, clock.now_ms()))
        return [str(answer) for answer in answers if isinstance(answer, NodeFailed)]

    async def look_at_nodes(self) -> list[NodeStatus]:
        """How each node is (see `node_status`)."""
        names = [node.name for node in self.nodes.all]
        return await look_at(names, self.nodes.list_use, self.nodes.every, TronNode.head, TronNode.solid)

    async def check_chain(self) -> list[str]:
        """Sentences about nodes of another chain, and about too few nodes that name their chain."""
        answers = await self.nodes.every(self._check_chain_id)
        failures = [f"{TRC20}: {answer}" for answer in answers if isinstance(answer, NodeFailed)]
        wrong = [sentence for answer in select_usable(answers) for sentence in answer]
        return wrong + (failures if len(answers) - len(failures) < self.nodes.quorum else [])

    async def _check_chain_id(self, node: TronNode) -> list[str]:
        genesis = await node.header(0, is_solid=True)
        chain_id = int(genesis[0].hash[-8:], 16) if genesis is not None else None
        if chain_id == self.rules.chain_id:
            return []
        where = f"{TRC20}, node {node.name}"
        return [f"{where}: the chain id is {chain_id}, the setting says {self.rules.chain_id}"]

    async def _check_again(self, node: TronNode, now_ms: int) -> list[str]:
        """Like `_check_node`. Chain and token of a node that fitted lately are not asked for again."""
        return await self._fitting.check(
            node,
            lambda node: self._check_node(node, now_ms),
            lambda node: self._check_clock(node, now_ms),
        )

    async def _check_node(self, node: TronNode, now_ms: int) -> list[str]:
        rules, where = self.rules, f"{TRC20}, node {node.name}"
        if wrong := await self._check_chain_id(node):
            return wrong
        if not await node.has_contract(rules.token):
            wrong.append(f"{where}: there is no contract at the token's address {to_tron(rules.token)}")
        elif (decimals := await self.token.decimals(node)) != DECIMALS:
            wrong.append(f"{where}: the token has {decimals} decimals and must have {DECIMALS}")
        return wrong + await self._check_clock(node, now_ms)

    async def _check_clock(self, node: TronNode, now_ms: int) -> list[str]:
        skew_ms = (await node.head()).time_ms - now_ms
        if abs(skew_ms) <= MAX_SKEW_MS:
            return []
        text = f"the newest block is {abs(skew_ms) // 1000} s {'ahead of' if skew_ms > 0 else 'behind'}"
        return [f"{TRC20}, node {node.name}: {text} this machine's clock"]

    async def compare(self, block: Block, *, is_urgent: bool = False) -> None:
        """Raises ChainDisagrees if two nodes have different final blocks with its number."""
        answers = await self.nodes.every(
            lambda node: self._blocks[node].final_hash(block.number), is_urgent=is_urgent
        )
        hashes = {block.hash, *(found for found in select_usable(answers) if found is not None)}
        if len(hashes) > 1:
            raise ChainDisagrees(f"two nodes have different final blocks {block.number}")

    async def _final_transfers(self, first: int, last: int) -> list[TokenTransfer]:
        answers = await self.nodes.every(lambda node: self._blocks[node].final_transfers(first, last))
        scans = select_usable(answers)
        if len(scans) < self.nodes.quorum:
            raise ChainAway(failures_of(answers))
        if any(scan != scans[0] for scan in scans):
            self.forget()
            raise ChainDisagrees(f"two nodes show different transfers in blocks {first} to {last}")
        return scans[0]

    def _read_transfers(self, block: Block, records: Sequence[TransactionRecord]) -> list[TokenTransfer]:
        return [transfer for record in records for transfer in self._transfers_of(block, record)]

    def _transfers_of(self, block: Block, record: TransactionRecord) -> list[TokenTransfer]:
        if record.receipt.result not in ("", SUCCESS):
            return []
        token = self.rules.token
        movements = [*movements_of(record, token), *_destroyed_in(record, token)]
        return [
            TokenTransfer(
                chain=TRC20,
                tx_hash=record.id,
                log_index=movement.log_index,
                block_number=block.number,
                block_hash=block.hash,
                sender=movement.sender,
                recipient=movement.recipient,
                amount_units=movement.amount_units,
            )
            for movement in sorted(movements, key=lambda movement: movement.log_index)
        ]


async def _look_up(node: TronNode, txid: str) -> SeenTransaction | None:
    record, asked = await node.record(txid), await node.transaction(txid)
    if record is None or asked is None:
        return None
    is_success = record.result != FAILED and record.receipt.result in ("", SUCCESS)
    moved = []
    value = asked.parameter.value
    if asked.type == TRANSFER_CONTRACT and is_success:
        moved = [Moved(None, _read_wire(value.owner_address), _read_wire(value.to_address), value.amount)]
    for index, log in enumerate(record.log):
        contract = _read_wire(log.address)
        if (movement := _movement(index, log, contract)) is not None:
            moved.append(Moved(contract, movement.sender, movement.recipient, movement.amount_units))
    other = asked.type if asked.type not in (TRANSFER_CONTRACT, CALL_CONTRACT) else None
    return SeenTransaction(record.blockNumber, is_success, tuple(moved), other and show_text(other))


def _read_wire(address: str) -> bytes:
    """The 20 bytes of an address with or without its prefix."""
    return bytes.fromhex(address[-_ADDRESS_HEX_DIGITS:])


def movements_of(record: TransactionRecord, token: bytes) -> list[Movement]:
    """The token's Transfer logs in a transaction, in order. Logs of other contracts are skipped."""
    movements = (_movement(index, log, token) for index, log in enumerate(record.log))
    return [movement for movement in movements if movement is not None]


def _destroyed_in(record: TransactionRecord, token: bytes) -> list[Movement]:
    """What the issuer destroyed in a transaction (see `issuer`)."""
    found = []
    for index, log in enumerate(record.log):
        topics = [bytes.fromhex(topic) for topic in log.topics] if _is_of(log, token) else []
        if destroyed := read_destroyed(topics, bytes.fromhex(log.data)):
            found.append(Movement(index, destroyed[0], NOWHERE, destroyed[1]))
    return found


def _is_of(log: Log, token: bytes) -> bool:
    # Some nodes write a log's address with the prefix 41, most don't.
    return log.address[-_ADDRESS_HEX_DIGITS:].lower() == token.hex()


def _movement(index: int, log: Log, token: bytes) -> Movement | None:
    if not _is_of(log, token) or len(log.topics) != 3:
        return None
    words = (*log.topics, log.data)
    if log.topics[0] != TRANSFER_TOPIC or any(len(word) != _WORD_HEX_DIGITS for word in words):
        return None
    sender, recipient = (bytes.fromhex(topic[-_ADDRESS_HEX_DIGITS:]) for topic in log.topics[1:])
    return Movement(index, sender, recipient, int(log.data, 16))


def select_usable(answers: Sequence[T | NodeFailed]) -> list[T]:
    """The answers without the failures."""
    return [answer for answer in answers if not isinstance(answer, NodeFailed)]


def failures_of(answers: Sequence[object]) -> str:
    """Why too few nodes gave a usable answer."""
    failures = [str(answer) for answer in answers if isinstance(answer, NodeFailed)]
    return "two nodes are needed: " + "; ".join(failures) if failures else "no two nodes are up to date"
