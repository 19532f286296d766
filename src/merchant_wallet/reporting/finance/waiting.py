"""What waits for a person in finance: prepared months that nobody has proposed to close. For the inbox."""

from merchant_wallet.reporting.finance.months import QUERIES
from merchant_wallet.reporting.inbox import Asked, Item
from merchant_wallet.reporting.paging import fetch


async def list_months_to_close(asked: Asked) -> list[Item]:
    """The months, oldest first. One that does not add up has a form of its own."""
    values = {"at_ms": asked.at_ms, "most": asked.limit + 1}
    rows = await fetch(asked.home, QUERIES["list_waiting"].text, values)
    return [
        Item(
            row["month"],
            row["prepared_ms"],
            {"month": row["month"]},
            form="wrong" if row["is_wrong"] else "",
        )
        for row in rows
    ]
