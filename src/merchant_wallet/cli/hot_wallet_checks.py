"""`doctor`: whether each hot wallet has coin for fees, and whether the workers have the key that orders or a
transfer to the cold wallet wait for.
"""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from merchant_wallet.cli.findings import Finding

if TYPE_CHECKING:
    from merchant_wallet.base.settings import Settings
    from merchant_wallet.chains.protocol import ChainReader

NAME: Final = "hot wallet"
OLD_MS: Final = 600_000
"""Workers report their keys every 15 seconds. An older report says nothing about now."""


class HotWalletState(NamedTuple):
    """One chain's hot wallet: its coin, if a node says it, the chain's fee cap, what it still has to pay to
    orders and to the cold wallet, the number of these orders, and the wallet of the workers' key, if they
    have reported it.
    """

    chain: str
    address: bytes
    coin: int | None
    fee_cap: int
    open_units: int
    open_orders: int
    workers_wallet: str | None


async def check_hot_wallets(home: Any, settings: "Settings") -> AsyncIterator[Finding]:
    """A finding for each chain with a node and a known hot wallet."""
    from merchant_wallet.processes.nodes import open_chain_readers
    from merchant_wallet.withdrawals.hot_wallet_store import list_wallets

    if settings.sandbox:
        return
    keys = await _read_workers_wallets(home)
    readers = open_chain_readers(settings)
    try:
        for wallet in await list_wallets(home):
            if wallet.chain not in readers:
                continue
            coin = await _read_coin(readers[wallet.chain], wallet.address)
            cap, key = settings.chains[wallet.chain].fee_cap, keys.get(wallet.chain)
            under_way = (wallet.open_units, wallet.open_orders)
            yield judge(HotWalletState(wallet.chain, wallet.address, coin, cap, *under_way, key))
    finally:
        for reader in readers.values():
            await reader.close()


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
    return Finding(NAME, text)


async def _read_coin(reader: "ChainReader", address: bytes) -> int | None:
    from merchant_wallet.chains.protocol import ChainAway
    from merchant_wallet.chains.transport import NodeFailed, NodeRefused

    try:
        return await reader.coin_balance(address)
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
