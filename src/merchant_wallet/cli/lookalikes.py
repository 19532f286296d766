"""Look-alike addresses at the terminal: what an address looks like that a person judges or adds."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from merchant_wallet.cli import terminal
from merchant_wallet.cli.session import Session

if TYPE_CHECKING:
    from merchant_wallet.reporting.lookalikes import NewAddress

Described = Sequence[Mapping[str, Any]]


async def find_lookalikes(session: Session, new: "Iterable[NewAddress]") -> "dict[NewAddress, Described]":
    """What each of these addresses looks like, for output. Those that look like nothing are missing."""
    from merchant_wallet.reporting import lookalikes

    if not (wanted := list(new)):
        return {}
    async with session.reach() as cells:
        found = await lookalikes.find_lookalikes(session.conn, cells, wanted, None)
    return {
        one: [
            {
                "address": one.address,
                "looksLike": alike.address,
                "known": alike.known.value,
                "paid": alike.paid,
            }
            for alike in alikes
        ]
        for one, alikes in found.items()
    }


async def list_lookalikes(session: Session, new: "Iterable[NewAddress]") -> list[Mapping[str, Any]]:
    """The same in one list."""
    return [alike for alikes in (await find_lookalikes(session, new)).values() for alike in alikes]


def note_lookalikes(described: Described) -> None:
    """Say beside an answer, in the words of the pages, what its addresses look like."""
    if not described:
        return
    from merchant_wallet.base.lookalikes import show_ends
    from merchant_wallet.console.order_notes import LIKE
    from merchant_wallet.reporting.lookalikes import Known

    for one in described:
        text = LIKE[Known(one["known"])].format(ends=show_ends(one["looksLike"]), count=one["paid"])
        terminal.note(f"{one['address']}: {text}. The known address: {one['looksLike']}")
