"""`find`, and what a typed text names: an id, a merchant's order number, a hash, an address, a name.

Rules: the look-ups are those of the console's search box. A command that shows one thing says what it found,
or names what the text could mean. It never guesses.
"""

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from merchant_wallet.cli import terminal
from merchant_wallet.cli.failures import Failure
from merchant_wallet.cli.options import DataOption, JsonOption, MerchantOption
from merchant_wallet.cli.session import Session, run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merchant_wallet.reporting.search import Hit

app = typer.Typer()

COLUMNS: Final = terminal.Table("kind", "label", "merchantId", "key", "command", spare=("key",))
COMMANDS: Final = {
    "merchant": "merchant show {merchant}",
    "sub-user": "sub-users show {merchant} {label}",
    "order": "withdrawals show {key}",
    "entry": "book entry {key}",
    "deposit": "deposits show {hash}",
    "callback": "callbacks show {key}",
    "sweep": "sweep list",
    "address": "withdrawals list --address {label}",
}
"""The command that shows a thing, by its kind."""
MAX_NAMED: Final = 5
"""At most so many things are named in a refusal."""


@app.command()
def find(
    text: Annotated[
        str,
        typer.Argument(
            metavar="TEXT", help="An id, an order number, a hash, an address, a name or a part of one."
        ),
    ],
    merchant: MerchantOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find whatever a text names, as the console's search box does, with the command that shows it.

    \b
    Examples:
      merchant-wallet find 10001
      merchant-wallet find TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC
      merchant-wallet find evt_8589934595_2
    """

    async def act(session: Session) -> dict[str, Any]:
        merchant_id = None if merchant is None else (await session.find(merchant)).merchant_id
        hits = await look_up(session, text, merchant_id)
        return {"found": [describe(session, hit) for hit in hits], "awayCells": session.away}

    terminal.print_list(run(data, act), "found", COLUMNS, as_json)


async def look_up(session: Session, text: str, merchant_id: int | None = None) -> "list[Hit]":
    """What a text names, then what it is a part of, each thing once."""
    from merchant_wallet.reporting import search
    from merchant_wallet.reporting.search_parts import find_parts

    async with session.reach() as cells:
        exact = await search.search(session.conn, cells, text, merchant_id)
        parts = await find_parts(session.conn, cells, text, merchant_id, limit=search.MAX_OF_A_KIND)
    for name in session.away:
        terminal.note(f"Cell {name} is away, what it has is not found.")
    return search.drop_duplicates([*exact, *parts])


async def resolve(session: Session, text: str, kind: str, merchant_id: int | None = None) -> "Hit":
    """The one thing of a kind that a text names, which a note says. Raises Failure."""
    from merchant_wallet.book.outcomes import ORDER_UNKNOWN
    from merchant_wallet.reporting import search

    async with session.reach() as cells:
        found = search.drop_duplicates(await search.search(session.conn, cells, text, merchant_id))
    of_order = {
        hit.key.removeprefix("evt_").rpartition("_")[0] for hit in found if hit.kind == search.CALLBACK
    }
    if kind == search.ORDER and len(of_order) == 1:
        return await resolve(session, of_order.pop(), kind, merchant_id)
    fitting = [hit for hit in found if hit.kind == kind]
    if len(fitting) == 1:
        if text != fitting[0].key:
            terminal.note(f"{text} is {name(fitting[0])}.")
        return fitting[0]
    if not found:
        found = await look_up(session, text, merchant_id)
        fitting = [hit for hit in found if hit.kind == kind]
    is_unknown = kind == search.ORDER and not fitting
    raise Failure(
        _explain(session, text, kind, fitting or found), code=ORDER_UNKNOWN.code if is_unknown else None
    )


def _explain(session: Session, text: str, kind: str, hits: "Sequence[Hit]") -> str:
    if not hits:
        return f"There is no {kind} {text}, and nothing else has that id, number, hash, address or name."
    named = "; ".join(f"{name(hit)}: `{session.name_command(command_of(hit))}`" for hit in hits[:MAX_NAMED])
    more = f"; and {len(hits) - MAX_NAMED} more" if len(hits) > MAX_NAMED else ""
    means = "could mean" if hits[0].kind == kind else f"is no {kind}. It could mean"
    return f"{text} {means} {named}{more}."


def name(hit: "Hit") -> str:
    """A thing for people, with its merchant."""
    label = hit.label if hit.kind in ("merchant", "sub-user", "address") else hit.key
    return (
        f"{hit.kind} {label} of merchant {hit.merchant_id}" if hit.kind != "merchant" else f"merchant {label}"
    )


def command_of(hit: "Hit") -> str:
    """The command that shows a thing."""
    from shlex import quote

    tx_hash = hit.key.split("/")[1] if hit.kind == "deposit" else ""
    return COMMANDS[hit.kind].format(
        merchant=hit.merchant_id, key=quote(hit.key), label=quote(hit.label), hash=quote(tx_hash)
    )


def describe(session: Session, hit: "Hit") -> dict[str, Any]:
    """A thing for output."""
    return {
        "kind": hit.kind,
        "label": hit.label,
        "merchantId": hit.merchant_id,
        "key": hit.key,
        "command": session.name_command(command_of(hit)),
    }
