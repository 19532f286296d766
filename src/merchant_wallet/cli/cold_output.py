"""What `cold` prints: chains with their limits and wallets, and transfers between hot and cold."""

from typing import TYPE_CHECKING, Any, Final

from merchant_wallet.cli import terminal
from merchant_wallet.cli.session import Session

if TYPE_CHECKING:
    from merchant_wallet.custody.cold.store import ColdTransfer

CHAIN_COLUMNS: Final = terminal.Table(
    "chainType",
    "hot",
    "hotMs",
    "reserved",
    "coldWallet",
    "cold",
    "coldMs",
    "refillBelow",
    "target",
    "mostHot",
    "suggestion",
    spare=("hotMs", "coldMs", "coldWallet"),
)
TRANSFER_COLUMNS: Final = terminal.Table(
    "transferId", "chainType", "direction", "amount", "way", "step", "txHash", "why", spare=("way",)
)


def describe_transfer(one: "ColdTransfer") -> dict[str, Any]:
    """A transfer as a document."""
    from merchant_wallet.base.addresses import format_address
    from merchant_wallet.base.money import format_units

    return {
        "transferId": one.transfer_id,
        "chainType": one.chain,
        "direction": one.direction,
        "way": one.way,
        "amount": format_units(one.amount_units),
        "from": format_address(one.chain, one.sender),
        "to": format_address(one.chain, one.transfer.recipient),
        "step": one.step,
        "txHash": one.tx_hash,
        "nonce": one.nonce,
        "why": one.cause or one.obstacle,
        "approvedBy": one.approved_by,
        "proposalNo": one.proposal_no,
        "openedMs": one.opened_ms,
        "endedMs": one.ended_ms,
    }


async def list_chains(session: Session) -> list[dict[str, Any]]:
    """Each chain's limits, what its wallets hold, and what should move."""
    from merchant_wallet.base.addresses import format_address
    from merchant_wallet.base.money import format_units
    from merchant_wallet.custody.cold import wallets
    from merchant_wallet.custody.cold.limits import suggest
    from merchant_wallet.hot_wallet.store import find_wallet

    def show_units(units: int | None) -> str | None:
        return None if units is None else format_units(units)

    cold = {one.chain: one for one in await wallets.list_wallets(session.conn) if one.is_current}
    limits = await wallets.list_limits(session.conn)
    found = []
    for chain in sorted({*session.settings.shown_chains, *cold, *limits}):
        hot, one, limit = await find_wallet(session.conn, chain), cold.get(chain), limits.get(chain)
        suggestion = suggest(None if hot is None else hot.free_units, limit)
        found.append(
            {
                "chainType": chain,
                "hot": show_units(None if hot is None else hot.funds_units),
                "hotMs": None if hot is None else hot.checked_ms,
                "reserved": show_units(None if hot is None else hot.open_units),
                "coldWallet": None if one is None else format_address(chain, one.address),
                "cold": show_units(None if one is None else one.balance_units),
                "coldMs": None if one is None else one.at_ms,
                "refillBelow": show_units(None if limit is None else limit.least_units),
                "target": show_units(None if limit is None else limit.target_units),
                "mostHot": show_units(None if limit is None else limit.most_units),
                "suggestion": None
                if suggestion is None
                else f"{suggestion.direction} {format_units(suggestion.amount_units)}",
            }
        )
    return found
