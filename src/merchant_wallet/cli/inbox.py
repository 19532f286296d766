"""`inbox`: what waits for a person, and who may act on it."""

from collections.abc import Mapping
from typing import Any

import typer

from merchant_wallet.cli import terminal
from merchant_wallet.cli.options import DataOption, JsonOption
from merchant_wallet.cli.session import Session, run

app = typer.Typer()

COLUMNS = terminal.Table("kind", "text", "merchantId", "sinceMs", "mayAct", spare=("mayAct", "merchantId"))


@app.command()
def inbox(data: DataOption = None, as_json: JsonOption = False) -> None:
    """List what waits for a person, the most urgent first: at most a thousand of each kind.

    \b
    Example:
      merchant-wallet inbox
    """
    found = run(data, list_waiting)
    terminal.print_list(found, "items", COLUMNS, as_json, show=_show)
    if found["more"]:
        terminal.note_more(f"act on what has waited longest ({', '.join(found['more'])})")


async def list_waiting(session: Session) -> dict[str, Any]:
    """The items of the inbox, the cells that are away, and the kinds that could not be read."""
    from merchant_wallet.base.clock import now_ms
    from merchant_wallet.base.fair_places import SERVICE
    from merchant_wallet.operators import records
    from merchant_wallet.reporting.inbox import Asked, list_actors, read_inbox
    from merchant_wallet.web.cells import CellPools
    from merchant_wallet.web.inbox_sources import BY_KIND, SOURCES
    from merchant_wallet.web.languages import Language, translate

    at_ms, pools = now_ms(), CellPools(session.cells, 1)
    try:
        async with pools.open(session.conn, SERVICE) as cells:
            asked = Asked(session.conn, cells, None, at_ms, session.settings.shown_chains)
            found = await read_inbox(asked, SOURCES)
    finally:
        await pools.close()
    session.away = list(found.away)
    people = await records.list_everybody(session.conn)
    items = []
    for group in found.groups:
        source = BY_KIND[group.kind]
        for item in group.items:
            items.append(
                {
                    "kind": group.kind,
                    "key": item.key,
                    "text": translate(Language.EN, source.texts[item.form], **item.values),
                    "merchantId": item.merchant_id,
                    "sinceMs": item.since_ms,
                    "mayAct": [one.name for one in list_actors(source, item, people, at_ms)],
                    "path": source.url_of(item),
                }
            )
    return {
        "items": items,
        "more": [group.kind for group in found.groups if group.has_more],
        "away": list(found.away),
        "unread": list(found.unread),
    }


def _show(item: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**item, "mayAct": ", ".join(item["mayAct"])}
