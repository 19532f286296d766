"""`doctor`: whether each hot wallet has coin for fees and no code, and whether the workers have the key that
orders or a transfer to the cold wallet wait for. `keys import` asks for the code, too.
"""

from collections.abc import AsyncIterator, Awaitable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from merchant_wallet.cli.findings import Finding

if TYPE_CHECKING:
    from merchant_wallet.base.settings import Settings
    from merchant_wallet.chains.evm.chain import EvmChain
    from merchant_wallet.chains.tron.reader import TronReader

NAME: Final = "hot wallet"
OLD_MS: Final = 600_000
"""Workers report their keys every 15 seconds. An older report says nothing about now."""
DELEGATED: Final = (
    "the wallet has delegated code (EIP-7702), so its payouts are sent one at a time: clear the delegation, "
    "or use another wallet"
)

T = TypeVar("T")


class HotWalletState(NamedTuple):
    """One chain's hot wallet: its coin, if a node says it, the chain's fee cap, what it still has to pay to
    orders and to the cold wallet, the number of these orders, the wallet of the workers' key, if they have
    reported it, and whether a node says that the wallet has delegated code (EIP-7702).
    """

    chain: str
    address: bytes
    coin: int | None
    fee_cap: int
    open_units: int
    open_orders: int
    workers_wallet: str | None
    has_code: bool = False


async def check_hot_wallets(home: Any, settings: "Settings") -> AsyncIterator[Finding]:
    """A finding for each chain with a node and a known hot wallet."""
    from merchant_wallet.hot_wallet.store import list_wallets
    from merchant_wallet.processes.nodes import open_chain_readers

    if settings.sandbox:
        return
    keys = await _read_workers_wallets(home)
    readers = open_chain_readers(settings)
    try:
        for wallet in await list_wallets(home):
            if wallet.chain not in readers:
                continue
            reader = readers[wallet.chain]
            coin = await _ask(reader.coin_balance(wallet.address))
            cap, key = settings.chains[wallet.chain].fee_cap, keys.get(wallet.chain)
            under_way = (wallet.open_units, wallet.open_orders)
            has_code = await _has_code(reader, wallet.address)
            state = HotWalletState(wallet.chain, wallet.address, coin, cap, *under_way, key, has_code is True)
            yield judge(state)
    finally:
        for reader in readers.values():
            await reader.close()


async def describe_code(settings: "Settings", key_name: str, address: bytes) -> list[str]:
    """Sentences about the code of a new hot wallet, on each chain of its key that has a node."""
    from merchant_wallet.base.chains import CHAINS
    from merchant_wallet.processes.nodes import open_chain_readers

    found = []
    for chain, reader in open_chain_readers(settings).items():
        try:
            if CHAINS[chain].family.key_name == key_name:
                has_code = await _has_code(reader, address)
                if has_code is None:
                    found.append(f"{chain}: no node says whether the wallet has code. Run `doctor` later.")
                elif has_code:
                    found.append(f"{chain}: {DELEGATED}.")
        finally:
            await reader.close()
    return found


def judge(state: HotWalletState) -> Finding:
    """The finding about one chain. Pure."""
    from merchant_wallet.base.addresses import format_address
    from merchant_wallet.base.chains import CHAINS
    from merchant_wallet.base.counted import count_of
    from merchant_wallet.base.setting_types import show_coins

    chain, coin = state.chain, CHAINS[state.chain].coin
    hot, show = format_address(chain, state.address), show_coins(CHAINS[chain].coin_decimals)
    if state.open_units and state.workers_wallet not in (None, hot):
        orders = count_of(state.open_orders, "order waits", "orders wait")
        waiting = orders if state.open_orders else "a transfer to the cold wallet waits"
        text = f"{chain}: {waiting} for the key of {hot}, and the workers have that of {state.workers_wallet}"
        return Finding(NAME, text, "bring the old key back until they are final, and start the workers again")
    if state.coin is None:
        return Finding(NAME, f"{chain}: no node says what {hot} holds", hint="run doctor again")
    text = f"{chain}: {hot} holds {show(state.coin)} {coin} for fees"
    if not state.coin:
        return Finding(NAME, text, f"send {coin} to it: nothing is paid on {chain} before")
    if state.coin < state.fee_cap:
        most = f"{show(state.fee_cap)} {coin}"
        return Finding(NAME, text, hint=f"send {coin} to it: a transaction may cost up to {most}")
    if state.has_code:
        return Finding(NAME, text, hint=DELEGATED)
    return Finding(NAME, text)


async def _has_code(reader: "EvmChain | TronReader", address: bytes) -> bool | None:
    """Whether a wallet has code. None if no node says it. On TRON an account with a key has none."""
    from merchant_wallet.chains.evm.chain import EvmChain

    return await _ask(reader.has_code(address)) if isinstance(reader, EvmChain) else False


async def _ask(asked: Awaitable[T]) -> T | None:
    """The answer of the nodes. None if there is none."""
    from merchant_wallet.chains.protocol import ChainAway
    from merchant_wallet.chains.transport import NodeFailed, NodeRefused

    try:
        return await asked
    except (ChainAway, NodeFailed, NodeRefused):
        return None


async def _read_workers_wallets(home: Any) -> dict[str, str]:
    """The wallets of the keys that the workers' signer has, as they reported it a moment ago."""
    from merchant_wallet.approvals.acts import reports
    from merchant_wallet.base.clock import now_ms

    since_ms = now_ms() - OLD_MS
    found = [one for one in await reports.list_reports(home) if one.topic == reports.SIGNER]
    return {
        chain: wallet
        for one in found
        if one.reported_ms >= since_ms
        for chain, wallet in one.report.get("wallets", {}).items()
    }
