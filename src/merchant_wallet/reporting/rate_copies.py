"""Brings a change of the exchange rates to the apart cells, where books read copies of them.

Rules: whoever has changed a rate in home calls this after the commit, so that the change holds from the next
exchange on. A cell that does not answer is named. Workers tell it later, and it uses no copy that is older
than a minute (see `merchants.cells.mirroring`).
"""

from merchant_wallet.merchants.cells.mirroring import Connection, mirror
from merchant_wallet.reporting.cells import Reach


async def copy_rates(home: Connection, reach: Reach) -> tuple[str, ...]:
    """Copy home's rates to every apart cell. Returns the names of cells that did not answer."""

    async def copy(cell: Connection) -> None:
        # Home's own books read the rates themselves.
        if cell is not home:
            await mirror(home, cell, rates_alone=True)

    await reach.ask(copy)
    return reach.away
