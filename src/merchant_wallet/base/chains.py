"""The chains: one row for each. Everything else asks this table.

Rules:
- Pure data. Only the ledger's decimals are imported.
- `code` is the interface's own word. The database's domain `chain_code` lists the same codes.
- A chain belongs to a family. The family has the code that talks to its nodes, the form of its addresses, and
  the keys: all chains of a family share their deposit addresses and their hot wallet's key.
- A row has facts of the chain, and defaults of its settings. What an operator may change is a setting.
"""

from typing import Final, Literal, NamedTuple

from merchant_wallet.base.currencies import LEDGER_DECIMALS

FINALIZED: Final = "finalized"
"""The finality rule of a chain that itself tells which blocks are final."""


MIN_GAS: Final = 100_000
"""The least gas limit of a payout on an EVM chain. Unused gas costs nothing."""
STATE_BLOCKS: Final = 128
"""A full node of an EVM chain has the state of about as many of its newest blocks. Only an archive node has
older state.
"""


MAX_RECENT_S: Final = 6.0
MIN_WATCH_S: Final = {"evm": 3.0, "tron": 15.0}
"""A TRON block is read with one request of its own, and final after a minute."""


class Family(NamedTuple):
    """Chains of one kind.

    `coin_type` is the second level of a BIP44 path (SLIP-44). `key_name` names the family's keys in the
    keystore and its extended public keys in the database: the code of the family's first chain.
    `calls_per_s` and `calls_per_day` are what a provider's free plan usually allows; None: not counted so.
    """

    name: Literal["evm", "tron"]
    coin_type: int
    key_name: str
    calls_per_s: int
    calls_per_day: int | None = None


class Chain(NamedTuple):
    """One row of the table.

    `network` is the chain's name for people. `coin` pays its fees and has `coin_decimals`. `token` is the
    contract of USDT on the main network, `token_decimals` its decimals. `chain_id` is the EIP-155 number, or
    for TRON the last four bytes of the first block's id. `finality` is `FINALIZED` or a number of blocks.
    `fee_cap`, `min_tip` and `stuck_blocks` are about one payout: the most that it may cost in the smallest
    unit of the coin, the least tip for a unit of gas, and the blocks after which it is sent again. `block_s`:
    about how far apart blocks are. `explorer`
    shows a transaction to people. `account_id` is the number of the chain's account in every
    book (see `book.chart`), and never changes. `is_default`: see `DEFAULT_CODES`.
    """

    code: str
    account_id: int
    family: Family
    network: str
    coin: str
    coin_decimals: int
    token: bytes
    token_decimals: int
    chain_id: int
    fee_cap: int
    explorer: str
    block_s: float
    finality: str | int = FINALIZED
    min_tip: int = 0
    stuck_blocks: int = 0
    is_default: bool = False

    @property
    def account_kind(self) -> str:
        """The kind of the account on the other side of deposits and payouts on this chain."""
        return f"chain:{self.code}"

    @property
    def base_units(self) -> int:
        """How many of the token's smallest units are one unit of the ledger."""
        return count_base_units(self.token_decimals)

    @property
    def recent_s(self) -> float:
        """How old an answer of a node may be that is the same for all orders: no older than a block, and half
        of one on Ethereum.
        """
        return min(MAX_RECENT_S, self.block_s)

    @property
    def watch_s(self) -> float:
        """How often the chain is read: at each block, but no more often than people notice."""
        return max(MIN_WATCH_S[self.family.name], self.block_s)


ERC20: Final = "ERC20"
TRC20: Final = "TRC20"
BEP20: Final = "BEP20"

# Providers count units of their own here, by the month.
EVM: Final = Family("evm", coin_type=60, key_name=ERC20, calls_per_s=25)
# TronGrid suspends whoever is faster, and again with each call.
TRON: Final = Family("tron", coin_type=195, key_name=TRC20, calls_per_s=15, calls_per_day=100_000)
FAMILIES: Final = (EVM, TRON)
COIN_TYPES: Final = {family.key_name: family.coin_type for family in FAMILIES}
KEY_NAMES: Final = tuple(COIN_TYPES)

_GWEI: Final = 10**9
_ETHER: Final = 10**18
_TRX: Final = 10**6

TABLE: Final = (
    Chain(
        code=ERC20,
        account_id=8,
        family=EVM,
        network="Ethereum",
        coin="ETH",
        coin_decimals=18,
        token=bytes.fromhex("dac17f958d2ee523a2206206994597c13d831ec7"),
        token_decimals=6,
        chain_id=1,
        fee_cap=_ETHER // 50,
        explorer="https://etherscan.io/tx/{tx}",
        block_s=12.0,
        min_tip=_GWEI // 10,
        stuck_blocks=20,
        is_default=True,
    ),
    Chain(
        code=TRC20,
        account_id=9,
        family=TRON,
        network="TRON",
        coin="TRX",
        coin_decimals=6,
        token=bytes.fromhex("a614f803b6fd780986a42c78ec9c7f77e6ded13c"),
        token_decimals=6,
        chain_id=728_126_428,
        fee_cap=60 * _TRX,
        explorer="https://tronscan.org/#/transaction/{tx}",
        block_s=3.0,
        is_default=True,
    ),
    Chain(
        code=BEP20,
        account_id=12,
        family=EVM,
        network="BNB Smart Chain",
        coin="BNB",
        coin_decimals=18,
        token=bytes.fromhex("55d398326f99059ff775485246999027b3197955"),
        token_decimals=18,
        chain_id=56,
        # The base fee is 0 there, and a block takes less than a second.
        fee_cap=_ETHER // 500,
        explorer="https://bscscan.com/tx/{tx}",
        block_s=0.75,
        min_tip=_GWEI // 10,
        stuck_blocks=300,
    ),
)

CHAINS: Final = {row.code: row for row in TABLE}
CODES: Final = tuple(CHAINS)
DEFAULT_CODES: Final = tuple(row.code for row in TABLE if row.is_default)
"""Chains that are always shown and that the sandbox has. Any other chain is off until its nodes are set."""
COINS: Final = {row.code: row.coin for row in TABLE}


def count_base_units(token_decimals: int) -> int:
    """How many smallest units of a token with so many decimals are one unit of the ledger."""
    return int(10 ** (token_decimals - LEDGER_DECIMALS))


def is_evm(code: str) -> bool:
    """Whether a chain belongs to the EVM family."""
    return CHAINS[code].family is EVM
