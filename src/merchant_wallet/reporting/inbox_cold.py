"""Cold money and rescues that wait for a person, as items of the inbox: crossed limits, transfers."""

from typing import Final

from merchant_wallet.base.currencies import USDT
from merchant_wallet.custody.cold import store, wallets
from merchant_wallet.custody.cold.limits import TO_COLD, suggest
from merchant_wallet.custody.rescues.store import STANDS_MS, list_standing
from merchant_wallet.hot_wallet.store import find_wallet
from merchant_wallet.reporting.inbox import Asked, Item

ABOVE: Final = "above"
BELOW: Final = "below"
SIGN: Final = "sign"
WAITS: Final = "waits"


async def list_cold(asked: Asked) -> list[Item]:
    """One item at most for each chain's limits and for its transfer."""
    found = []
    for chain, limits in (await wallets.list_limits(asked.home)).items():
        hot, open_id = await find_wallet(asked.home, chain), await store.find_open(asked.home, chain)
        suggestion = suggest(None if hot is None else hot.free_units, limits)
        outside_ms = await wallets.read_outside(asked.home, chain)
        if suggestion is not None and open_id is None and outside_ms is not None:
            form = ABOVE if suggestion.direction == TO_COLD else BELOW
            found.append(
                Item(
                    f"{chain} {form}",
                    outside_ms,
                    {"chain": chain},
                    form,
                    amount_units=suggestion.amount_units,
                    currency=USDT,
                )
            )
    for one in await store.list_open(asked.home):
        form = SIGN if one.waits_for_signature else WAITS if one.obstacle else ""
        if form:
            number = str(one.transfer_id)
            values = {"chain": one.chain, "number": number}
            found.append(
                Item(
                    f"{number} {form}",
                    one.opened_ms,
                    values,
                    form,
                    amount_units=one.amount_units,
                    currency=USDT,
                )
            )
    return found


async def list_rescues(asked: Asked) -> list[Item]:
    """Rescues that failed, or that have been under way for long."""
    found = await list_standing(asked.home, asked.at_ms - STANDS_MS, limit=asked.limit + 1)
    return [
        Item(
            f"rescue {one.rescue_no}",
            one.ended_ms or one.opened_ms,
            {"number": str(one.rescue_no), "chain": one.chain},
            "" if one.ended_ms is None else "failed",
        )
        for one in found
    ]
