"""The parts of a TRON node's answers that are read.

Rules:
- Names are those of the wire, so no mapping is needed.
- TRON leaves out zero and empty values. Such a field has its empty value here.
- An answer that does not fit is no answer.
"""

from typing import Annotated, Final

import msgspec

NO_TRANSACTIONS: Final = "0" * 64
"""The transaction root of an empty block."""

Hex = Annotated[str, msgspec.Meta(pattern="^([0-9a-fA-F]{2})*$")]


class HeaderNumbers(msgspec.Struct, frozen=True, gc=False):
    """The data of a block's header."""

    number: int = 0
    timestamp: int = 0
    parentHash: str = ""
    txTrieRoot: str = ""


class Header(msgspec.Struct, frozen=True, gc=False):
    """A block's header. Its signature is not checked."""

    raw_data: HeaderNumbers = HeaderNumbers()


class Listed(msgspec.Struct, frozen=True, gc=False):
    """One transaction in a block. Only its id is read."""

    txID: str


class CoinValue(msgspec.Struct, frozen=True, gc=False):
    """Of a transfer of TRX: who sent how much to whom. Addresses have the prefix 41."""

    owner_address: Hex = ""
    to_address: Hex = ""
    amount: int = 0


class CoinParameter(msgspec.Struct, frozen=True, gc=False):
    """The parameter of a contract of a transaction."""

    value: CoinValue = CoinValue()


class ListedContract(msgspec.Struct, frozen=True, gc=False):
    """What a transaction asks for: its kind and its parameter."""

    type: str = ""
    parameter: CoinParameter = CoinParameter()


class ListedData(msgspec.Struct, frozen=True, gc=False):
    """The signed part of a transaction."""

    contract: tuple[ListedContract, ...] = ()


class WholeTransaction(msgspec.Struct, frozen=True, gc=False):
    """A transaction itself. Empty if there is none with this id."""

    txID: str = ""
    raw_data: ListedData = ListedData()


class Waiting(msgspec.Struct, frozen=True, gc=False):
    """A transaction in a node's pool. Empty if there is none with this id."""

    txID: str = ""


class BlockAnswer(msgspec.Struct, frozen=True, gc=False):
    """A block, with its transactions if they were asked for. Empty if there is no such block."""

    blockID: Hex = ""
    block_header: Header = Header()
    transactions: tuple[Listed, ...] = ()


class BlockList(msgspec.Struct, frozen=True, gc=False):
    """The blocks of a range, by number. Empty if there is none."""

    block: tuple[BlockAnswer, ...] = ()


class Log(msgspec.Struct, frozen=True, gc=False):
    """One log of a transaction. Hex without a prefix, as the node writes it."""

    address: Hex = ""
    topics: tuple[Hex, ...] = ()
    data: Hex = ""


class Receipt(msgspec.Struct, frozen=True, gc=False):
    """The result of a contract call. Empty for a transfer of TRX."""

    result: str = ""


class TransactionRecord(msgspec.Struct, frozen=True, gc=False):
    """What a block says about the result of one transaction.

    `contractResult` is not read: USDT returns "false" there even if it succeeds.
    """

    id: str = ""
    blockNumber: int = 0
    blockTimeStamp: int = 0
    fee: int = 0
    receipt: Receipt = Receipt()
    result: str = ""
    resMessage: Hex = ""
    log: tuple[Log, ...] = ()


class CallOutcome(msgspec.Struct, frozen=True, gc=False):
    """Whether a call could run at all. A message with `result` set means that the contract reverted."""

    result: bool = False
    code: str = ""
    message: str = ""


class Ret(msgspec.Struct, frozen=True, gc=False):
    """`FAILED` if the call reverted."""

    ret: str = ""


class CallTransaction(msgspec.Struct, frozen=True, gc=False):
    """The simulated transaction. Only its result is read."""

    ret: tuple[Ret, ...] = ()


class CallAnswer(msgspec.Struct, frozen=True, gc=False):
    """The result of a simulated call."""

    result: CallOutcome = CallOutcome()
    energy_used: int = 0
    constant_result: tuple[Hex, ...] = ()
    transaction: CallTransaction = CallTransaction()


class Resources(msgspec.Struct, frozen=True, gc=False):
    """What an account can use without burning TRX: energy and bytes from staking, its own or another's, and
    the free bytes of every account (600 a day).
    """

    freeNetLimit: int = 0
    freeNetUsed: int = 0
    NetLimit: int = 0
    NetUsed: int = 0
    EnergyLimit: int = 0
    EnergyUsed: int = 0


class Account(msgspec.Struct, frozen=True, gc=False):
    """An account. Without `address` it has never received anything, and it can't pay."""

    address: str = ""
    balance: int = 0


class Parameter(msgspec.Struct, frozen=True, gc=False):
    """One parameter of the chain."""

    key: str
    value: int = 0


class Parameters(msgspec.Struct, frozen=True, gc=False):
    """All parameters of the chain."""

    chainParameter: tuple[Parameter, ...] = ()


class BroadcastAnswer(msgspec.Struct, frozen=True, gc=False):
    """A node's answer to a broadcast. No `code` of TRON's is a verdict."""

    result: bool = False
    code: str = ""
    message: str = ""
