"""The shapes of what a TRON node answers, as far as anything of it is read.

Rules: names are the wire's own, so that no table maps them; whatever is absent on the wire (TRON leaves out
what is zero or empty) has its empty value here. An answer that does not fit is no answer.
"""

from typing import Annotated, Final

import msgspec

NO_TRANSACTIONS: Final = "0" * 64
"""The root over a block's transactions when it has none."""

Hex = Annotated[str, msgspec.Meta(pattern="^([0-9a-fA-F]{2})*$")]


class HeaderNumbers(msgspec.Struct, frozen=True, gc=False):
    """What a block says of itself."""

    number: int = 0
    timestamp: int = 0
    parentHash: str = ""
    txTrieRoot: str = ""


class Header(msgspec.Struct, frozen=True, gc=False):
    """A block's head; the signature beside the numbers is not checked."""

    raw_data: HeaderNumbers = HeaderNumbers()


class Listed(msgspec.Struct, frozen=True, gc=False):
    """One transaction in a block; only its id is read."""

    txID: str


class BlockAnswer(msgspec.Struct, frozen=True, gc=False):
    """A block, with its transactions where they were asked for; nothing at all for one that is not there."""

    blockID: Hex = ""
    block_header: Header = Header()
    transactions: tuple[Listed, ...] = ()


class Log(msgspec.Struct, frozen=True, gc=False):
    """One log of a transaction, as the node writes it: hex without a prefix."""

    address: Hex = ""
    topics: tuple[Hex, ...] = ()
    data: Hex = ""


class Receipt(msgspec.Struct, frozen=True, gc=False):
    """What running a transaction's contract ended in; nothing at all for a transfer of TRX."""

    result: str = ""


class TransactionRecord(msgspec.Struct, frozen=True, gc=False):
    """What a block says became of one transaction.

    `contractResult` is not even read: USDT answers "false" there when it succeeds.
    """

    id: str = ""
    blockNumber: int = 0
    fee: int = 0
    receipt: Receipt = Receipt()
    result: str = ""
    resMessage: Hex = ""
    log: tuple[Log, ...] = ()


class CallOutcome(msgspec.Struct, frozen=True, gc=False):
    """Whether a call could be run at all; a message with `result` set says that the contract reverted."""

    result: bool = False
    code: str = ""
    message: str = ""


class Ret(msgspec.Struct, frozen=True, gc=False):
    """`FAILED` for a call that reverted."""

    ret: str = ""


class CallTransaction(msgspec.Struct, frozen=True, gc=False):
    """The transaction that was tried; only how it ended is read."""

    ret: tuple[Ret, ...] = ()


class CallAnswer(msgspec.Struct, frozen=True, gc=False):
    """What running a function without sending anything gave."""

    result: CallOutcome = CallOutcome()
    energy_used: int = 0
    constant_result: tuple[Hex, ...] = ()
    transaction: CallTransaction = CallTransaction()


class Resources(msgspec.Struct, frozen=True, gc=False):
    """What an account has staked for and may use up without burning TRX; bandwidth in bytes.

    The few free bytes that every account has are not counted: they are gone with the day's first payout.
    """

    NetLimit: int = 0
    NetUsed: int = 0
    EnergyLimit: int = 0
    EnergyUsed: int = 0


class Account(msgspec.Struct, frozen=True, gc=False):
    """An account; one that never received anything has no `address`, and can't pay."""

    address: str = ""
    balance: int = 0


class Parameter(msgspec.Struct, frozen=True, gc=False):
    """One of the chain's own numbers."""

    key: str
    value: int = 0


class Parameters(msgspec.Struct, frozen=True, gc=False):
    """All of them."""

    chainParameter: tuple[Parameter, ...] = ()


class BroadcastAnswer(msgspec.Struct, frozen=True, gc=False):
    """What a node said about bytes it was handed; no `code` of TRON's is a verdict."""

    result: bool = False
    code: str = ""
    message: str = ""
