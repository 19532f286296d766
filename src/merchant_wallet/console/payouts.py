"""Payouts: whether each chain's go on, who stopped them and why, and the orders that can't go on.

Rules:
- One person stops a chain; what is signed goes on to its end.
- A stop has a reason, and an entry in the audit log that is committed with it.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from merchant_wallet.chains.addresses import ERC20, TRC20, format_address
from merchant_wallet.console import flash
from merchant_wallet.console.filled import EMPTY, Filled, refill
from merchant_wallet.console.frame import POST, Connection, Page, Seat, act
from merchant_wallet.console.notices import PAYOUTS
from merchant_wallet.console.waiting import find_reasons
from merchant_wallet.operators.roles import Right
from merchant_wallet.oversight import orders
from merchant_wallet.oversight.halts import Halt, Queued, count_queued, list_halts
from merchant_wallet.pages.languages import N_
from merchant_wallet.withdrawals import hot_wallets, stops
from merchant_wallet.withdrawals.hot_wallets import WalletShown

ROWS: Final = 50
MAX_REASON: Final = 500
CHAINS: Final = (ERC20, TRC20)

NO_REASON: Final = N_("A reason of 1 to 500 characters on one line.")
STOPPED: Final = N_("Stopped: nothing new is signed on {chain}.")
STOPPED_BEFORE: Final = N_("You had stopped it before; nothing was changed.")


class ChainShown(msgspec.Struct, frozen=True):
    """One chain: its wallet, what keeps its payouts, and the approved orders that nobody has begun."""

    chain: str
    wallet: WalletShown | None
    address: str
    halts: tuple[Halt, ...]
    queued: Queued

    @property
    def stops(self) -> list[Halt]:
        """What keeps the whole chain from signing."""
        return [halt for halt in self.halts if halt.stops_chain]


async def show_payouts(request: Request, seat: Seat, conn: Connection) -> Response:
    """Every chain, and what can't go on."""
    return await _show(seat, conn)


async def stop(request: Request, seat: Seat, conn: Connection) -> Response:
    """Stop new payouts of a chain."""
    chain, reason = _read_chain(request), seat.form.text("reason")
    if not 1 <= len(reason) <= MAX_REASON or not reason.isprintable():
        return await _show(seat, conn, chain, refill(seat.form, ("reason",), {"reason": seat.say(NO_REASON)}))
    async with conn.transaction():
        if not await stops.stop_payouts(conn, chain, seat.actor, reason, seat.at_ms):
            return seat.go(PAYOUTS, STOPPED_BEFORE, tone=flash.WARN)
        await act(seat, conn, "wallet.freeze", f"wallet {chain}", after={"reason": reason})
    return seat.go(PAYOUTS, STOPPED, chain=chain)


async def _show(seat: Seat, conn: Connection, refused: str = "", filled: Filled = EMPTY) -> Response:
    halts = await list_halts(conn)
    held = await orders.list_held(conn, limit=ROWS)
    return seat.page(
        "console/payouts.html",
        active="payouts",
        status=200 if filled.ok else 422,
        chains=await _read_chains(seat, conn, halts),
        held=held,
        reasons=find_reasons(None, held, halts, seat.at_ms),
        most=ROWS,
        refused=refused,
        filled=filled,
        max_reason=MAX_REASON,
    )


async def _read_chains(seat: Seat, conn: Connection, halts: Sequence[Halt]) -> list[ChainShown]:
    """The chains that are connected, and any other that something is known of."""
    wallets = {wallet.chain: wallet for wallet in await hot_wallets.list_wallets(conn)}
    known = {*seat.ground.chains, *wallets, *(halt.chain for halt in halts)}
    queued = {one.chain: one for one in await count_queued(conn, list(CHAINS))}
    return [
        ChainShown(
            chain,
            wallets.get(chain),
            format_address(chain, wallets[chain].address) if chain in wallets else "",
            tuple([halt for halt in halts if halt.chain == chain]),
            queued[chain],
        )
        for chain in CHAINS
        if chain in known
    ]


def _read_chain(request: Request) -> str:
    chain = str(request.path_params["chain"])
    if chain not in CHAINS:
        raise HTTPException(404)
    return chain


ROUTES: Final = (
    Page(PAYOUTS, show_payouts, Right.READ),
    Page(f"{PAYOUTS}/{{chain}}/stop", stop, Right.STOP_PAYOUTS, POST),
)
