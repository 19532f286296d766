"""The deposit addresses: one for each connected network, as text and as a QR code.

Rules: a network whose deposits are not watched has no address here.
"""

from starlette.responses import Response

from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.chains import CHAINS, EVM, TRON
from merchant_wallet.wallet_site.arrivals import read_arrivals
from merchant_wallet.wallet_site.pending_deposits import list_pending_deposits, read_crediting, version_of
from merchant_wallet.wallet_site.request import Connection, WalletRequest


async def show_receive(request: WalletRequest, conn: Connection) -> Response:
    """The addresses, what would be credited, and pending deposits."""
    wallet, settings = request.wallet, request.context.settings
    own = {TRON: wallet.tron_address, EVM: wallet.evm_address}
    # Most people use TRON, so it comes first.
    followed = [CHAINS[code] for code in request.context.chains]
    chains = [chain for family in own for chain in followed if chain.family is family]
    ways = [
        {
            "chain": chain.code,
            "network": chain.network,
            "address": format_address(chain.code, own[chain.family]),
        }
        for chain in chains
    ]
    wished = request.http.query_params.get("network", "").upper()
    chosen = next((way for way in ways if way["chain"] == wished), ways[0])
    deposits = await list_pending_deposits(request, conn)
    return request.page(
        "wallet/receive.html",
        active="receive",
        ways=ways,
        chosen=chosen,
        crediting=await read_crediting(conn, request.merchant_id, wallet.currency, request.at_ms),
        minimum_units=settings.deposit_minimum,
        arrivals=await read_arrivals(request, conn),
        deposits=deposits,
        deposits_version=version_of(deposits),
    )
