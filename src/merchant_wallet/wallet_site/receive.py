"""Where deposits are sent to: an address for each network that is followed here, as text and as a QR code.

Rules: no address is shown of a network on which nobody looks for deposits.
"""

from starlette.requests import Request
from starlette.responses import Response

from merchant_wallet.base.addresses import ERC20, TRC20, format_address
from merchant_wallet.wallet_site.pending_deposits import list_arrivals, read_crediting, version_of
from merchant_wallet.wallet_site.request import Connection, Holder
from merchant_wallet.web.qr import draw_address

NETWORKS = {TRC20: "TRON", ERC20: "Ethereum"}
"""What people call the networks, the one that most of them use first."""


async def show_receive(request: Request, holder: Holder, conn: Connection) -> Response:
    """The addresses, what would be credited, and what is on its way."""
    wallet, settings = holder.wallet, holder.ground.settings
    own = {TRC20: wallet.tron_address, ERC20: wallet.evm_address}
    ways = [
        {
            "chain": chain,
            "network": name,
            "address": (address := format_address(chain, own[chain])),
            "qr": draw_address(address),
        }
        for chain, name in NETWORKS.items()
        if chain in holder.ground.chains
    ]
    wished = request.query_params.get("network", "").upper()
    chosen = next((way for way in ways if way["chain"] == wished), ways[0])
    arrivals = await list_arrivals(conn, (holder.merchant_id, holder.user_id), holder.at_ms)
    return holder.page(
        "wallet/receive.html",
        active="receive",
        ways=ways,
        chosen=chosen,
        crediting=await read_crediting(conn, holder.merchant_id, wallet.currency, holder.at_ms),
        minimum_units=settings.deposit_minimum,
        arrivals=arrivals,
        arrivals_version=version_of(arrivals),
    )
