"""What a wallet's PDF documents say: statements and receipts.

Rules: times are UTC, which the documents say. A receipt as PDF says what its page says.
"""

from calendar import month_name
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypedDict

from psycopg import AsyncConnection

from merchant_wallet.base.money import format_rate
from merchant_wallet.merchants.brand import Brand, read_logo
from merchant_wallet.sub_users.activity import ActivityLine, WalletShown
from merchant_wallet.wallet_site import sentences
from merchant_wallet.wallet_site.sentences import Translate
from merchant_wallet.web.languages import N_, Language
from merchant_wallet.web.pdf.document import Column, Document, Facts, Figure, Table, Text, choose_accent
from merchant_wallet.web.templates import show_money


class Month(NamedTuple):
    """A month of UTC, from `start_ms` to before `end_ms`. `name` is as in `2026-11`."""

    name: str
    start_ms: int
    end_ms: int

    def show(self, language: str) -> str:
        """The month as people write it: "November 2026"."""
        first = datetime.fromtimestamp(self.start_ms / 1000, UTC)
        if language == Language.ZH:
            return f"{first.year}年{first.month}月"
        return f"{month_name[first.month]} {first.year}"


class Statement(NamedTuple):
    """The movements of a month, oldest first, between two balances."""

    month: Month
    opening_units: int
    closing_units: int
    lines: list[ActivityLine]


class Dress(TypedDict):
    """A merchant's logo and colour, as a document takes them, and whether its pages are a sandbox's."""

    logo: bytes | None
    accent: str
    is_sandbox: bool


def write_statement(
    statement: Statement, wallet: WalletShown, say: Translate, language: Language, at_ms: int, dress: Dress
) -> Document:
    """The statement of a month. Pure."""
    columns = (
        Column(say(N_("When (UTC)")), 1.6),
        Column(say(N_("What it was")), 3.4),
        Column(say(N_("Amount")), 1.3, is_number=True),
        Column(say(N_("Balance")), 1.3, is_number=True),
    )
    rows = tuple(_write_row(line, say) for line in statement.lines)
    begins = _write_moment(statement.month.start_ms)
    ends = _write_moment(min(statement.month.end_ms - 1, at_ms))
    facts = (
        (say(N_("Wallet of")), wallet.username),
        (say(N_("Wallet id")), str(wallet.user_id)),
        (say(N_("Begins")), f"{begins} UTC"),
        (say(N_("Ends")), f"{ends} UTC"),
        (say(N_("Balance at the start")), _write_money(statement.opening_units, wallet.currency)),
        (say(N_("In")), _write_money(_sum(statement, "in"), wallet.currency)),
        (say(N_("Out")), _write_money(_sum(statement, "out"), wallet.currency)),
        (say(N_("Balance at the end")), _write_money(statement.closing_units, wallet.currency)),
    )
    table = (
        Table(say(N_("Movements")), columns, rows) if rows else Text(say(N_("Nothing moved in this time.")))
    )
    return Document(
        title=say(N_("Statement of a wallet")),
        subtitle=statement.month.show(language),
        issuer=wallet.merchant_name,
        language=language,
        made_ms=at_ms,
        parts=(Facts("", facts), table),
        **dress,
    )


async def find_dress(home: AsyncConnection[Any], brand: Brand, *, sandbox: bool) -> Dress:
    """The merchant's logo and colour, for white paper. In a sandbox each page says that it is one."""
    logo = None if brand.brand_logo is None else await read_logo(home, brand.brand_logo)
    return {"logo": logo, "accent": choose_accent(brand.brand_colour), "is_sandbox": sandbox}


def write_receipt(
    line: ActivityLine, brand: Brand, say: Translate, language: Language, at_ms: int, dress: Dress
) -> Document:
    """The receipt of a movement. Pure."""
    facts = [(say(N_("When")), f"{_write_moment(line.at_ms)} UTC")]
    if line.mc_order_id:
        facts.append((say(N_("Order")), line.mc_order_id))
    if line.kind == sentences.DEPOSIT:
        facts += [
            (say(N_("Network")), sentences.tell_network(line)),
            (say(N_("Sent by")), line.partner or ""),
            (say(N_("Sent")), _write_money(line.sent_units or 0, "USDT")),
        ]
        if line.rate_e8:
            facts.append((say(N_("Rate")), f"1 USDT = {format_rate(line.rate_e8)} {line.currency}"))
        facts.append((say(N_("Transaction")), line.tx_hash or ""))
    elif line.partner:
        facts.append((say(N_("From") if line.direction == "in" else N_("To")), line.partner))
    facts.append((say(N_("Receipt number")), str(line.entry_id)))
    amount = Figure(say(N_("Amount")), _write_money(line.amount_units, line.currency))
    return Document(
        title=say(N_("Receipt")),
        subtitle=sentences.tell_others(line, say),
        issuer=brand.name,
        language=language,
        made_ms=at_ms,
        parts=(amount, Facts("", tuple(facts))),
        **dress,
    )


def _write_row(line: ActivityLine, say: Translate) -> tuple[str, ...]:
    amount = show_money(line.signed_units, signed=True)
    told = sentences.tell_in_one(line, say)
    return _write_moment(line.at_ms), told, amount, show_money(line.balance_units)


def _write_money(units: int, currency: str) -> str:
    return f"{show_money(units)} {currency}"


def _write_moment(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}"


def _sum(statement: Statement, direction: str) -> int:
    return sum(line.amount_units for line in statement.lines if line.direction == direction)
