"""Routes about money: which roles each admits, and the records that its path names. `test_rights` checks
every row.
"""

import secrets

from tests.cold.cold_scene import COLD
from tests.console.test_callbacks import make_event
from tests.console.test_deposits import arrive
from tests.journeys.conftest import Platform, Shop
from tests.journeys.orders import withdrawal

from merchant_wallet.approvals import changes, proposals
from merchant_wallet.approvals.acts import asked, kinds
from merchant_wallet.approvals.decisions import Person
from merchant_wallet.audit.records import Author
from merchant_wallet.chains.evm import transactions as evm
from merchant_wallet.chains.evm.transactions import EvmTransaction
from merchant_wallet.custody import records
from merchant_wallet.screening import asking
from merchant_wallet.screening.facts import PayoutFacts

HOT = b"H" * 20

ALL = "owner operator auditor merchant"
STAFF = "owner operator auditor"
HANDS = "owner operator"
OWN_HANDS = "owner operator merchant"

ROWS = {
    "GET /console/withdrawals": ALL,
    "GET /console/withdrawals/all": ALL,
    "GET /console/withdrawals/{order_id:int}": ALL,
    "GET /console/withdrawals/{order_id:int}/state": ALL,
    "GET /console/withdrawals/confirm": ALL,
    "GET /console/withdrawals/results": ALL,
    "POST /console/withdrawals/approve": HANDS,
    "POST /console/withdrawals/cancel": OWN_HANDS,
    "POST /console/withdrawals/{order_id:int}/refund": HANDS,
    "POST /console/withdrawals/{order_id:int}/thaw": HANDS,
    "GET /console/payouts": STAFF,
    "POST /console/payouts/{chain}/stop": HANDS,
    "POST /console/payouts/{chain}/resume": HANDS,
    "GET /console/screening": STAFF,
    "GET /console/screening/{screening_no:int}": STAFF,
    "POST /console/screening/{screening_no:int}/release": HANDS,
    "POST /console/screening/{screening_no:int}/refuse": HANDS,
    "POST /console/screening/{screening_no:int}/ask": HANDS,
    "GET /console/rescues": STAFF,
    "POST /console/rescues/look": HANDS,
    "POST /console/rescues/propose": HANDS,
    "POST /console/rescues/{rescue_no:int}/end": HANDS,
    "GET /console/cold": STAFF,
    "GET /console/cold/transfers/{transfer_id:int}": STAFF,
    "GET /console/cold/transfers/{transfer_id:int}/unsigned": HANDS,
    "POST /console/cold/transfers/{transfer_id:int}/signed": HANDS,
    "POST /console/cold/transfers/{transfer_id:int}/drop": HANDS,
    "POST /console/cold/{chain}/move": HANDS,
    "POST /console/cold/{chain}/limits": HANDS,
    "POST /console/cold/{chain}/wallet": HANDS,
    "GET /console/safety": STAFF,
    "GET /console/safety/acts": STAFF,
    "GET /console/safety/acts/{act_no:int}": STAFF,
    "GET /console/safety/acts/{act_no:int}/state": STAFF,
    "POST /console/safety/acts/{act_no:int}/cancel": HANDS,
    "POST /console/safety/stop-all": HANDS,
    "POST /console/safety/resume-all": HANDS,
    "POST /console/safety/record": HANDS,
    "POST /console/safety/sweeps/{sweep_id:int}/end": HANDS,
    "POST /console/safety/{chain}/reconcile": HANDS,
    "POST /console/safety/{chain}/rescan": HANDS,
    "POST /console/safety/{chain}/sweep-plan": HANDS,
    "POST /console/safety/{chain}/sweep": HANDS,
    "GET /console/books": ALL,
    "GET /console/books/{merchant_id:int}": ALL,
    "GET /console/books/{merchant_id:int}/accounts/{account_id:int}": ALL,
    "GET /console/books/{merchant_id:int}/entries/{entry_id:int}": ALL,
    "GET /console/books/{merchant_id:int}/export": ALL,
    "GET /console/books/{merchant_id:int}/verify": STAFF,
    "GET /console/books/{merchant_id:int}/verify/state": STAFF,
    "POST /console/books/{merchant_id:int}/verify": STAFF,
    "POST /console/books/{merchant_id:int}/verify/cancel": STAFF,
    "GET /console/deposits": ALL,
    "GET /console/deposits/{chain}/{tx_hash}/{log_index:int}": ALL,
    "POST /console/deposits/{chain}/{tx_hash}/{log_index:int}/release": HANDS,
    "POST /console/deposits/{chain}/{tx_hash}/{log_index:int}/drop": HANDS,
    "GET /console/callbacks": ALL,
    "GET /console/callbacks/{event}": ALL,
    "POST /console/callbacks/{event}/resend": OWN_HANDS,
    "POST /console/callbacks/{event}/pause": HANDS,
    "POST /console/callbacks/{event}/resume": HANDS,
    "POST /console/callbacks/merchants/{merchant_id:int}/resend-parked": OWN_HANDS,
    "POST /console/callbacks/merchants/{merchant_id:int}/pause": HANDS,
    "POST /console/callbacks/merchants/{merchant_id:int}/resume": HANDS,
    "GET /console/reconciliation": STAFF,
    "GET /console/reconciliation/{chain}": STAFF,
    "GET /console/reconciliation/{chain}/{result_no:int}": STAFF,
    "GET /console/rates": STAFF,
    "POST /console/rates": HANDS,
    "GET /console/adjustments": STAFF,
    "GET /console/adjustments/new": HANDS,
    "GET /console/adjustments/new/effect": HANDS,
    "POST /console/adjustments/new": HANDS,
    "GET /console/adjustments/{proposal_no:int}": STAFF,
    "POST /console/adjustments/{proposal_no:int}/accept": HANDS,
    "POST /console/adjustments/{proposal_no:int}/carry-out": HANDS,
    "POST /console/adjustments/{proposal_no:int}/refuse": HANDS,
    "POST /console/adjustments/{proposal_no:int}/withdraw": HANDS,
    "GET /console/proposals": STAFF,
    "GET /console/proposals/{change_no:int}": STAFF,
    "POST /console/proposals/{change_no:int}/accept": HANDS,
    "POST /console/proposals/{change_no:int}/refuse": HANDS,
    "POST /console/proposals/{change_no:int}/withdraw": HANDS,
    "GET /console/search": ALL,
    "GET /console/finance": ALL,
    "GET /console/finance/solvency": STAFF,
    "GET /console/finance/solvency.csv": STAFF,
    "GET /console/finance/report.pdf": ALL,
    "GET /console/finance/report.csv": ALL,
    "GET /console/finance/statement.pdf": ALL,
    "GET /console/finance/months": STAFF,
    "GET /console/finance/months/{month}": STAFF,
    "POST /console/finance/months/{month}/close": HANDS,
    "POST /console/finance/months/{month}/restate": HANDS,
    "GET /console/finance/invoices": ALL,
    "GET /console/finance/invoices/{invoice}": ALL,
    "GET /console/finance/files": ALL,
    "GET /console/finance/files/send": ALL,
    "GET /console/search/suggestions": ALL,
}


MONTH = b"""
insert into month_report (month, figures, books, digest, prepared_ms)
values ('2024-10', '[]', 0, sha256(''), 1) on conflict do nothing"""
"""A prepared month."""
INVOICE = b"""
insert into invoice
select 2024, n.last + 1, nullif(n.last, 0), %(merchant_id)s, '2024-10', 'Shop', 'Wallet Ltd',
       '[{"kind":"settle","currency":"USDT","count":1,"amount":"2"}]', 1
  from (select coalesce(max(number), 0) as last from invoice where year = 2024) n"""
"""The merchant's invoice in that month."""


def make_records(shop: Shop) -> dict[str, object]:
    """Values for the routes' parameters: an order, an entry, a deposit, a callback, a reconciliation,
    proposals and a transfer of cold money.
    """
    shop.fund("USDT", "500")
    shop.change(approval_limit="0")
    event = make_event(shop)
    fields = withdrawal(shop.next_order(), "60", "ERC20")
    order_id = int(shop.client.do("createMerchantWithdrawOrder", **fields)["orderId"])
    proposal = shop.platform.operate(
        lambda conn: proposals.propose(
            conn, shop.merchant_id, "USDT", 5, "for the rights", proposed_by="cli:somebody-else", at_ms=1
        )
    )
    change = shop.platform.operate(
        lambda conn: changes.propose(
            conn,
            "merchant.set",
            f"merchant {shop.merchant_id}",
            {"daily-limit": "5"},
            {"daily-limit": "6"},
            "for the rights",
            person=Person("cli:somebody-else", "terminal"),
            at_ms=1,
            lasts_ms=4 * 10**12,
            merchant_id=shop.merchant_id,
        )
    )
    act = shop.platform.operate(
        lambda conn: asked.ask(
            conn,
            kinds.PLAN_SWEEPS,
            kinds.format_chain("ERC20"),
            {"chain": "ERC20"},
            author=Author("cli:somebody-else", "terminal", 1),
        )
    )
    document = {"cause": "no node answers"}
    shop.platform.operate(
        lambda conn: records.write_result(
            conn, "ERC20", None, document, is_sound=False, cause="no node answers", now_ms=1
        )
    )
    shop.platform.operate(lambda conn: conn.execute(MONTH))
    shop.platform.operate(lambda conn: conn.execute(INVOICE, {"merchant_id": shop.merchant_id}))
    [(number,)] = shop.platform.rows("select max(number) from invoice where year = 2024")
    found = shop.platform.rows("select max(reconciliation_no) from reconciliation where chain = 'ERC20'")
    facts = PayoutFacts(shop.merchant_id, order_id, "a", "ERC20", bytes(20), 5, 4, 1)
    screening = shop.platform.operate(lambda conn: asking.begin(conn, facts, 1))
    return {
        "screening_no:int": screening.screening_no,
        "order_id:int": order_id,
        "account_id:int": 1,
        "entry_id:int": order_id,
        "chain": "ERC20",
        "tx_hash": arrive(shop, "seen"),
        "log_index:int": 0,
        "event": event,
        "result_no:int": found[0][0],
        "proposal_no:int": proposal.proposal_no,
        "change_no:int": change.proposal_no,
        "month": "2024-10",
        "invoice": f"2024-{number:06d}",
        "transfer_id:int": begin_cold_transfer(shop),
        "act_no:int": act.act.act_no,
        "sweep_id:int": open_sweep(shop.platform, secrets.token_bytes(20)),
        "rescue_no:int": decide_rescue(shop.platform, secrets.token_bytes(20)),
    }


def open_sweep(platform: Platform, address: bytes) -> int:
    """A sweep that can't go on: moving the token costs too much."""
    [(number,)] = platform.rows(
        "insert into sweep (chain, address, merchant_id, account_no, branch, address_index, wallet, amount,"
        " coin_price, top_up, top_up_fee_limit, token_fee_limit, budget, actor, opened_ms, step, obstacle)"
        " select 'TRC20', %s, min(merchant_id), 0, 0, 0, %s, 70000000, 1, 0, 0, 1, 1, 'tests', 1, 'token',"
        " 'dear' from merchant returning sweep_id",
        *(address, HOT),
    )
    return int(number)


def decide_rescue(platform: Platform, address: bytes) -> int:
    """A rescue of another token that no worker has begun."""
    [(number,)] = platform.rows(
        "insert into rescue (chain, address, merchant_id, account_no, branch, address_index, contract,"
        " recipient, actor, opened_ms) select 'TRC20', %s, min(merchant_id), 0, 0, 0, %s, %s, 'tests', 1"
        " from merchant returning rescue_no",
        *(address, b"O" * 20, b"S" * 20),
    )
    return int(number)


def begin_cold_transfer(shop: Shop) -> int:
    """A refill whose bytes wait to be signed elsewhere."""
    rows = shop.platform.rows
    rows("update cold_transfer set step = 'dropped', ended_ms = 1 where ended_ms is null")
    rows(
        "insert into cold_wallet (chain, address, registered_ms) values ('ERC20', %s, 1)"
        " on conflict do nothing",
        COLD,
    )
    call = evm.encode_transfer_call(HOT, 200_000_000)
    unsigned = evm.encode_unsigned(EvmTransaction(1, 7, 1, 2, 100_000, b"T" * 20, 0, call))
    [(number,)] = rows(
        "insert into cold_transfer (chain, direction, way, hot, cold, amount, approved_by, opened_ms, step,"
        " unsigned, unsigned_at_block, unsigned_until_ms) values ('ERC20', 'to_hot', 'elsewhere', %s, %s,"
        " 200000000, 'operator:ann', 1, 'unsigned', %s, 5, 2000000000000) returning transfer_id",
        *(HOT, COLD, unsigned),
    )
    return int(number)
