"""`doctor`: whether limits of cold money, cold wallets and the signer's settings fit; and rescues."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from merchant_wallet.cli.findings import Finding

if TYPE_CHECKING:
    from merchant_wallet.base.settings import Settings
    from merchant_wallet.custody.cold.limits import Limits
    from merchant_wallet.custody.cold.store import ColdTransfer
    from merchant_wallet.hot_wallet.store import WalletShown

NAME: Final = "cold money"
OLD_MS: Final = 600_000
"""A worker reads the hot wallet each minute where there are limits."""
LATE_MS: Final = 1_800_000


class ColdState(NamedTuple):
    """What there is on one chain. `named` has the cold wallets of the settings here."""

    chain: str
    limits: "Limits | None" = None
    cold: bytes | None = None
    named: tuple[bytes, ...] = ()
    hot: "WalletShown | None" = None
    transfer: "ColdTransfer | None" = None


async def check_cold(home: Any, settings: "Settings") -> AsyncIterator[Finding]:
    """A finding for each chain that has limits or a cold wallet."""
    from merchant_wallet.base.clock import now_ms
    from merchant_wallet.custody.cold import store, wallets
    from merchant_wallet.hot_wallet.store import find_wallet

    limits = await wallets.list_limits(home)
    current = {one.chain: one.address for one in await wallets.list_wallets(home) if one.is_current}
    under_way = {one.chain: one for one in await store.list_open(home)}
    for chain in sorted({*limits, *current}):
        state = ColdState(
            chain,
            limits.get(chain),
            current.get(chain),
            settings.chains[chain].cold_addresses,
            await find_wallet(home, chain),
            under_way.get(chain),
        )
        yield judge(state, now_ms(), is_live=not settings.sandbox)


async def check_rescues(home: Any) -> AsyncIterator[Finding]:
    """A finding if rescues wait for a person."""
    from merchant_wallet.base.clock import now_ms
    from merchant_wallet.custody.rescues.store import STANDS_MS, list_standing

    if standing := await list_standing(home, now_ms() - STANDS_MS):
        first = standing[0]
        text = f"{len(standing)} failed or wait for long, the first is {first.rescue_no}"
        hint = f"`rescue show {first.rescue_no}` says why; `rescue end` ends one, or propose it again"
        yield Finding("rescues", f"{text}: {first.cause or first.obstacle or first.step}", hint=hint)


def judge(state: ColdState, at_ms: int, *, is_live: bool) -> Finding:
    """The finding about one chain. Pure."""
    from merchant_wallet.base.addresses import format_address

    chain = state.chain
    if state.cold is None:
        advice = f"register one: `merchant-wallet cold wallet {chain} ADDRESS --reason TEXT`"
        return Finding(NAME, f"{chain} has limits and no cold wallet, so nothing can move", advice)
    setting, address = f"WALLET_{chain}_COLD_ADDRESSES", format_address(chain, state.cold)
    if is_live and state.named and state.cold not in state.named:
        advice = f"name it in {setting} of the signer, and start the signer again"
        return Finding(NAME, f"{chain}: the settings do not name its cold wallet {address}", advice)
    if state.limits is None:
        advice = f"set limits: `merchant-wallet cold limits {chain} …`"
        return Finding(NAME, f"{chain} has a cold wallet and no limits", hint=advice)
    if (hint := _find_hint(state, state.limits, at_ms)) is None and is_live and not state.named:
        hint = f"{setting} is not set here: unless the signer's own settings have it, sign elsewhere"
    return Finding(NAME, f"{chain}: {_describe(state, state.limits)}, cold wallet {address}", hint=hint)


def _describe(state: ColdState, limits: "Limits") -> str:
    from merchant_wallet.base.money import format_units

    free = None if state.hot is None else state.hot.free_units
    held = "the hot wallet is unknown" if free is None else f"{format_units(free)} free in the hot wallet"
    return f"{held}, limits {format_units(limits.least_units)} to {format_units(limits.most_units)}"


def _find_hint(state: ColdState, limits: "Limits", at_ms: int) -> str | None:
    """What could be better: the first of these."""
    from merchant_wallet.custody.cold.limits import suggest

    if limits.target_units in (limits.least_units, limits.most_units):
        return "the target is one of its limits, so nearly every payment asks for another transfer"
    if state.transfer is not None:
        if at_ms - state.transfer.opened_ms > LATE_MS:
            return f"transfer {state.transfer.transfer_id} has waited for long: `cold list` says why"
        return None
    if state.hot is None or state.hot.checked_ms is None or at_ms - state.hot.checked_ms > OLD_MS:
        return "the hot wallet's balance is not read: is a `work` running?"
    if suggest(state.hot.free_units, limits) is not None:
        return "it is outside its limits: `cold show` says how much should move"
    return None
