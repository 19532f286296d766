"""Two merchants who do the same, one of them in an apart cell, and what pages say of them."""

import re
import secrets
from dataclasses import dataclass
from html import unescape
from typing import LiteralString

from tests.cells.layout import Layout
from tests.journeys.conftest import Platform, Shop
from tests.journeys.orders import credit, debit, withdrawal

from merchant_wallet.base.cells import DEFAULT_CELL_ID
from merchant_wallet.base.db import connect_sync
from merchant_wallet.book.commands import Cancel

COIN = 1_000_000
DEBIT, CREDIT = "transferFromUserToMerchant", "transferFromMerchantToUser"
_VARYING = re.compile(
    r"ERC20 0x.{,150}?(?= Since)|0x[0-9a-fA-F]+|T[1-9A-HJ-NP-Za-km-z]{33}|mk_test_\w+|[0-9a-f]{12,}"
    r"|\w*…\w*|Shop \d+|\d[\d,.: ]*"
)
"""What differs from merchant to merchant: ids, addresses, hashes, keys, names, times."""


@dataclass(frozen=True)
class CellShop:
    """A merchant in one of the cells, and what it has."""

    shop: Shop
    url: str
    user_id: int
    address: str
    order_id: int
    frozen_id: int
    cancelled_id: int
    tx_hash: str

    @property
    def merchant_id(self) -> int:
        return self.shop.merchant_id

    @property
    def event(self) -> str:
        """The event of the cancelled order."""
        return f"evt_{self.cancelled_id}_4"

    def rows(self, statement: LiteralString, *values: object) -> list[tuple[object, ...]]:
        """Run a statement in the merchant's cell."""
        with connect_sync(self.url) as connection:
            cursor = connection.execute(statement, values)
            return cursor.fetchall() if cursor.description else []

    def list_pages(self) -> dict[str, str]:
        """The console's pages about this merchant, by name."""
        merchant, book = f"/console/merchants/{self.merchant_id}", f"/console/books/{self.merchant_id}"
        of = f"merchant={self.merchant_id}"
        return {
            "merchant": merchant,
            "settings": f"{merchant}/settings",
            "rates": f"{merchant}/rates",
            "sub-user": f"{merchant}/users/{self.user_id}",
            "book": book,
            "account": f"{book}/accounts/1",
            "wallet's account": f"{book}/accounts/{self.user_id}",
            "entry": f"{book}/entries/{self.order_id}",
            "verification": f"{book}/verify",
            "order": f"/console/withdrawals/{self.order_id}",
            "frozen order": f"/console/withdrawals/{self.frozen_id}",
            "cancelled order": f"/console/withdrawals/{self.cancelled_id}",
            "queue": f"/console/withdrawals?{of}",
            "orders": f"/console/withdrawals/all?{of}",
            "orders by amount": f"/console/withdrawals/all?{of}&sort=-amount",
            "deposits": f"/console/deposits?{of}",
            "deposit": f"/console/deposits/ERC20/{self.tx_hash}/0",
            "callbacks": f"/console/callbacks?{of}",
            "callback": f"/console/callbacks/{self.event}",
            "sub-users": f"/console/sub-users?{of}",
            "search": f"/console/search?q={self.tx_hash}",
        }


def open_shops(platform: Platform, layout: Layout) -> tuple[CellShop, CellShop]:
    """The two merchants, the one in the default cell first."""
    return _open(platform, layout, away=False), _open(platform, layout, away=True)


def _open(platform: Platform, layout: Layout, *, away: bool) -> CellShop:
    cell_id = layout.far_id if away else DEFAULT_CELL_ID
    shop = platform.open_merchant(cell_id=cell_id, approval_limit="1")
    shop.fund("USDT", "1000")
    shop.fund("KFB", "1000")
    alice = shop.client.do("getMerchantCustomer", extUserId="alice")
    shop.client.do(CREDIT, **credit("opening", alice["address"], "500"))
    shop.client.do(DEBIT, **debit("sale", "20"))
    waiting, frozen, cancelled = [
        int(shop.client.do("createMerchantWithdrawOrder", **withdrawal(name, amount))["orderId"])
        for name, amount in (("waits", "60"), ("stuck", "80"), ("given up", "70"))
    ]
    shop.ask_book(Cancel(cancelled, "operator"))
    made = CellShop(
        shop,
        layout.far_url if away else layout.url,
        int(alice["userId"]),
        alice["address"],
        waiting,
        frozen,
        cancelled,
        secrets.token_hex(32),
    )
    let_arrive(made, made.tx_hash, 5 * COIN)
    _freeze(made)
    return made


def _freeze(one: CellShop) -> None:
    """Freeze an order that may have been paid, at both places."""
    one.shop.platform.rows(
        "insert into payout (merchant_id, order_id, chain, fence, claimed_by, claimed_until_ms, frozen_cause,"
        " frozen_ms) values (%s, %s, 'ERC20', 1, 'acceptance', 0, 'it may have been paid', 1)",
        one.merchant_id,
        one.frozen_id,
    )
    one.rows("update withdrawal set frozen_ms = 1 where order_id = %s", one.frozen_id)


def let_arrive(one: CellShop, tx_hash: str, amount_units: int) -> None:
    """Insert a deposit to alice's wallet, as the intake does."""
    at_ms = one.shop.platform.clock()
    one.rows(
        "insert into deposit (merchant_id, chain, tx_hash, log_index, block_number, block_hash, sender,"
        " address, user_id, amount, status, seen_ms)"
        " values (%s, 'ERC20', %s, 0, 100, 'b', %s, %s, %s, %s, 'seen', %s)",
        one.merchant_id,
        tx_hash,
        bytes(20),
        one.rows("select evm_address from sub_user where user_id = %s", one.user_id)[0][0],
        one.user_id,
        amount_units,
        at_ms,
    )


def read_text(page: str) -> str:
    """A page's text without its markup, and without what differs from merchant to merchant."""
    body = re.sub(r"(?s)<(script|style|svg|head)\b.*?</\1>", " ", page)
    text = " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())
    return " ".join(_VARYING.sub("# ", text).split())
