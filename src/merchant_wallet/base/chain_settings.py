"""The settings of a chain: one block for each row of the table of chains.

Rules: a setting's name begins with the chain's code, as `erc20_rpc` does. Its default is the table's. A chain
is off until its nodes are named.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from merchant_wallet.base.addresses import parse_evm, parse_tron, to_eip55, to_tron
from merchant_wallet.base.chains import EVM, MIN_GAS, STATE_BLOCKS, TABLE, Chain, Family
from merchant_wallet.base.node_addresses import (
    UNLIMITED,
    CallLimits,
    HostLimits,
    NodeAddress,
    NodeHeader,
    read_headers,
    read_limits,
    read_nodes,
)
from merchant_wallet.base.setting_types import (
    Setting,
    coins,
    read_addresses,
    read_finality,
    read_link,
    read_node_texts,
    read_price,
    show_addresses,
    show_coins,
    show_price,
    whole_number,
)

MAX_CHAIN_ID: Final = 2**53


class ChainSettings(NamedTuple):
    """The settings of one chain. Amounts of its coin are in the smallest unit, prices in 10^-6 USDT."""

    rpc: tuple[str, ...]
    token: bytes
    chain_id: int
    finality: str | int
    fee_cap: int
    stuck_blocks: int
    coin_price: int | None
    explorer: str | None
    cold_addresses: tuple[bytes, ...] = ()
    rpc_headers: tuple[NodeHeader, ...] = ()
    rpc_limits: tuple[HostLimits, ...] = ()
    default_limits: CallLimits = UNLIMITED
    """Of nodes over https."""
    rescue_addresses: tuple[bytes, ...] = ()

    @property
    def nodes(self) -> tuple[NodeAddress, ...]:
        """The nodes with their headers and limits. Raises ValueError for those of a host that is no node."""
        return read_nodes(self.rpc, self.rpc_headers, self.rpc_limits, self.default_limits)

    def __repr__(self) -> str:
        """Leaves out the nodes' URLs and headers, which may contain a key."""
        return f"ChainSettings(chain_id={self.chain_id}, nodes={len(self.rpc)})"


def list_chain_settings() -> dict[str, Setting]:
    """Every chain's settings, by name."""
    return {
        f"{chain.code.lower()}_{part}": setting for chain in TABLE for part, setting in _list_parts(chain)
    }


def make_chain_settings(given: Mapping[str, Any]) -> dict[str, ChainSettings]:
    """Each chain's settings by its code. `given` has values by the settings' names."""
    return {chain.code: _make(chain, given) for chain in TABLE}


def _make(chain: Chain, given: Mapping[str, Any]) -> ChainSettings:
    prefix = f"{chain.code.lower()}_"
    values: dict[str, Any] = {
        "finality": chain.finality,
        "stuck_blocks": chain.stuck_blocks,
        "default_limits": _default_limits(chain.family),
    }
    values |= {part: setting.default for part, setting in _list_parts(chain)}
    values |= {name.removeprefix(prefix): value for name, value in given.items() if name.startswith(prefix)}
    return ChainSettings(**values)


def _list_parts(chain: Chain) -> Iterator[tuple[str, Setting]]:
    """A chain's settings, each with the part of its name after the code."""
    code, coin = chain.code, chain.coin
    yield "rpc", _rpc(chain)
    yield "rpc_headers", _rpc_headers(chain)
    yield "rpc_limits", _rpc_limits(chain)
    yield "token", _token(chain)
    yield "chain_id", _chain_id(chain)
    if chain.family is EVM:
        yield (
            "finality",
            Setting(
                chain.finality,
                read_finality,
                "finalized, or a whole number of blocks from 0 to 10000",
                f"When a block of {code} is final: when the chain says so, or after this many blocks. Above "
                f"{STATE_BLOCKS}, payouts need an archive node: a full node has no state that old. They also "
                "wait while the chain has had no final block for so long.",
            ),
        )
    yield (
        "fee_cap",
        Setting(
            chain.fee_cap,
            coins(chain.coin_decimals),
            f"an amount with at most {chain.coin_decimals} decimals",
            f"The most that one payout on {code} may cost, in {coin}. Above it, payouts wait. "
            + _describe_count(chain),
            show=show_coins(chain.coin_decimals),
        ),
    )
    if chain.family is EVM:
        yield (
            "stuck_blocks",
            Setting(
                chain.stuck_blocks,
                whole_number(1, 10_000),
                "a whole number from 1 to 10000",
                f"After how many blocks an unmined payout on {code} is sent again with a higher fee.",
            ),
        )
    yield (
        "cold_addresses",
        _addresses(
            chain,
            f"The cold wallets of {chain.code}. The signer sends to no other, whatever the database says.",
        ),
    )
    yield (
        "rescue_addresses",
        _addresses(
            chain,
            f"Where other tokens and coins at deposit addresses of {chain.code} may go, besides the cold "
            "wallets. The signer sends them to no other address.",
        ),
    )
    yield (
        "coin_price",
        Setting(
            None,
            read_price,
            "an amount above 0 with at most 6 decimals",
            f"The price of one {coin} in USDT, to compute the cost of a sweep. "
            f"Without it, {code} is not swept.",
            show=show_price,
        ),
    )
    yield (
        "explorer",
        Setting(
            None,
            read_link,
            "an http:// or https:// URL with {tx} in it",
            f"The console's link to a transaction on {code}; {{tx}} becomes its hash. "
            f"Without it, no link. Example: {chain.explorer}",
        ),
    )


def _describe_count(chain: Chain) -> str:
    """What counts against the fee cap."""
    if chain.family is not EVM:
        return (
            "All energy of a payout counts at its price, also staked energy, and 345 bytes. The chain itself "
            "counts the energy alone."
        )
    base_fee_gwei = chain.fee_cap // MIN_GAS // 2 // 10**9
    return (
        f"The gas limit ({MIN_GAS} or more) counts at its highest price, which is twice the base fee and the "
        f"tip. So the default stops payouts at a base fee near {base_fee_gwei} gwei."
    )


def _addresses(chain: Chain, told: str) -> Setting:
    is_evm = chain.family is EVM
    form = "EVM" if is_evm else "TRON"
    return Setting(
        (),
        read_addresses(parse_evm if is_evm else parse_tron),
        f"{form} addresses, separated by commas",
        told,
        show=show_addresses(to_eip55 if is_evm else to_tron),
    )


def _rpc(chain: Chain) -> Setting:
    is_evm = chain.family is EVM
    api = "JSON-RPC" if is_evm else "HTTP API"
    two_urls = "" if is_evm else "; `URL solidity=URL` for a node that serves /walletsolidity elsewhere"
    return Setting(
        (),
        read_node_texts(may_have_two_urls=not is_evm),
        f"http:// or https:// URLs, separated by commas{two_urls}",
        f"{api} of the {chain.network} nodes, in the order in which they are asked. With several nodes, two "
        f"must agree on what is final. Without it, {chain.code} is off.",
        secret=True,
    )


def _rpc_headers(chain: Chain) -> Setting:
    return Setting(
        (),
        read_headers,
        "HOST NAME: VALUE or HOST:PORT NAME: VALUE, separated by commas or line breaks",
        f"HTTP headers for nodes of WALLET_{chain.code}_RPC, such as a provider's key. Each goes to that "
        "host alone.",
        secret=True,
    )


def _rpc_limits(chain: Chain) -> Setting:
    return Setting(
        (),
        read_limits,
        "HOST N/s N/day, HOST N/s, HOST N/day or HOST none, separated by commas or line breaks",
        f"How many calls a second and a day each process may send to nodes of WALLET_{chain.code}_RPC. "
        f"A node over https that is not named has {_default_limits(chain.family)}, a node over http none. "
        "Several processes that ask one node share its plan: divide the numbers.",
    )


def _default_limits(family: Family) -> CallLimits:
    return CallLimits(family.calls_per_s, family.calls_per_day)


def _token(chain: Chain) -> Setting:
    is_evm = chain.family is EVM
    return Setting(
        chain.token,
        parse_evm if is_evm else parse_tron,
        "an EVM address" if is_evm else "a TRON address",
        f"The token's contract on {chain.code}.",
        show=to_eip55 if is_evm else to_tron,
    )


def _chain_id(chain: Chain) -> Setting:
    is_evm = chain.family is EVM
    meaning = " (EIP-155)" if is_evm else ": the last four bytes of its first block's id as a number"
    return Setting(
        chain.chain_id,
        whole_number(1, MAX_CHAIN_ID),
        "a whole number from 1 to 2^53",
        f"The chain id of {chain.code}{meaning}.",
    )
