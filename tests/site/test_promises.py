"""What the pages about reliability and promises claim is what the service does."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from scripts.site.texts import WRITTEN, read
from tests.journeys import conftest as journeys
from tests.journeys.conftest import Platform, Shop
from tests.tools import require_tool

from merchant_wallet.api import connection, endpoint, wire
from merchant_wallet.base.codes import CODES
from merchant_wallet.callbacks.schedule import PAUSES_S
from merchant_wallet.web.kinds import KINDS, ORDER_STATUSES
from merchant_wallet.web.languages import Language, translate

SETTINGS = {"rate_limit": 200}
clock, platform, own_platform, shop = journeys.clock, journeys.platform, journeys.own_platform, journeys.shop
TRON = "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC"


def read_page(path: str, language: str = "en") -> str:
    return (WRITTEN / language / f"{path}.md").read_text(encoding="utf-8")


def list_codes(row: str) -> set[int]:
    """The codes that a row of a table links to, with those between `A to B`."""
    cell = row.split("|")[1]
    codes = {int(code) for code in re.findall(r"\[(\d+)\]", cell)}
    for low, high in re.findall(r"\[(\d+)\]\S* to \[(\d+)\]", cell):
        codes |= {code for code in CODES if int(low) <= code <= int(high)}
    return codes


def split_by_what_a_repeat_proves() -> tuple[set[int], set[int]]:
    """Codes that prove that the first request was not carried out, and codes that prove nothing."""
    table = (
        read_page("reliability/idempotency")
        .partition("## What a refusal of a repeat")[2]
        .partition("\n## ")[0]
    )
    rows = [line for line in table.splitlines() if line.startswith("| [")]
    proving = [row for row in rows if "was not carried out" in row]
    silent = [row for row in rows if "unknown" in row]
    return list_codes(proving[0]), list_codes(silent[0])


def test_every_code_that_an_operation_can_give_is_in_a_decision_table() -> None:
    text = read_page("reliability/idempotency").partition("\n## By operation")[0]
    rows = [line for line in text.splitlines() if line.startswith("|")]
    told = set().union(*(list_codes(row) for row in rows))
    # 404xx of the transport never reach an operation, and 40401 is a query's.
    assert {code for code in CODES if code >= 40000} - told == {40000, 40401}


@pytest.mark.parametrize("kind", ["suspended", "switched off", "another amount's form"])
def test_refusals_that_prove_nothing_also_come_after_the_first_request_was_done(
    shop: Shop, kind: str
) -> None:
    _, silent = split_by_what_a_repeat_proves()
    first: dict[str, Any] = {"extUserId": "alice", "currency": "KFB", "amount": "1", "mcOrderId": "cart"}
    shop.client.do("getMerchantCustomer", extUserId="alice")
    shop.fund("KFB", "10", "alice")
    shop.client.do("transferFromUserToMerchant", **first)
    if kind == "suspended":
        shop.suspend()
    elif kind == "switched off":
        shop.change(disabled_operations="transferFromUserToMerchant")
    else:
        first["amount"] = "1."
    assert shop.client.call("transferFromUserToMerchant", **first).code in silent


@pytest.mark.parametrize("kind", ["no funds", "paused", "limited", "not listed"])
def test_refusals_that_prove_something_never_come_after_the_first_request_was_done(
    shop: Shop, kind: str
) -> None:
    proving, _ = split_by_what_a_repeat_proves()
    shop.client.do("getMerchantCustomer", extUserId="alice")
    shop.fund("KFB", "10", "alice")
    shop.fund("USDT", "10")
    debit = {"extUserId": "alice", "currency": "KFB", "amount": "6", "mcOrderId": "cart"}
    payout = {
        "amount": "6",
        "chainType": "TRC20",
        "currency": "USDT",
        "mcOrderId": "out",
        "address": TRON,
        "notifyUrl": "https://shop.example/n",
    }
    calls = [("transferFromUserToMerchant", debit), ("createMerchantWithdrawOrder", payout)]
    for operation, fields in calls:
        shop.client.do(operation, **fields)
    operation, fields = calls[kind == "not listed"]
    if kind == "paused":
        shop.set_controls("alice", paused=True)
    elif kind == "limited":
        shop.set_controls("alice", limit_debit_units="1")
    elif kind == "not listed":
        shop.change(allowed_addresses="TEJcyYjnqEx9VCCSnYUAH4hHd3g4FTzPSH")
    # The same order gets its first outcome, and another order the refusal.
    assert shop.client.call(operation, **fields).code == 200
    assert shop.client.call(operation, **{**fields, "mcOrderId": "other"}).code in proving


def test_the_headers_of_the_page_are_those_of_a_first_answer(shop: Shop) -> None:
    headers = shop.client.call("getMerchantBalance").headers
    shown = dict(re.findall(r"^(RateLimit[\w-]*): (.+)$", read_page("reliability/rate-limits"), re.MULTILINE))
    assert {name.lower(): value for name, value in shown.items()} == {
        name: headers[name] for name in ("ratelimit-policy", "ratelimit")
    }


def test_a_refusal_from_before_the_count_has_no_header(shop: Shop) -> None:
    for spoilt in ({"sign": "0" * 32}, {"appKey": "nobody"}, {"timestamp": "1"}):
        assert "ratelimit" not in shop.client.call("getMerchantBalance", **spoilt).headers


def test_the_first_request_of_the_quick_start_gets_its_answer(platform: Platform, shop: Shop) -> None:
    require_tool("curl")
    require_tool("openssl")
    done = subprocess.run(
        ["sh", "-eu", "-c", read("docs/site/examples/first_request.sh")],
        env={
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "MERCHANT_WALLET_URL": platform.address,
            "MERCHANT_WALLET_APP_KEY": shop.client.app_key,
            "MERCHANT_WALLET_SECRET": shop.client.secret,
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith('{"code":200,"msg":"success","data":{"merchantId":')


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_sizes_of_the_page_are_those_of_the_code(language: str) -> None:
    page = read_page("reliability/limits", language)
    assert f"| {wire.MAX_BODY_BYTES // 1024} KiB |" in page
    assert f"| {connection.MAX_HEAD_BYTES // 1024} KiB |" in page
    assert re.search(rf"\| {endpoint.BODY_TIMEOUT_S} (?:s|秒) \|", page)
    assert re.search(rf"\| {connection.KEEP_ALIVE_S:g} (?:s|秒)", page)
    assert f"| {connection.MAX_PIPELINED} |" in page


@pytest.mark.parametrize("language", list(Language))
def test_reconciliation_names_every_movement_and_status_as_the_files_do(language: Language) -> None:
    guide = (
        read("docs/integrating.md").partition("\n## Statements and reconciliation\n")[2].partition("\n## ")[0]
    )
    page = guide if language is Language.EN else read_page("reliability/reconciliation", "zh")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if "|" in line]
    moving = {translate(language, words) for kind, words in KINDS.items() if kind != "register"}
    named = {name for row in rows if len(row) == 3 for name in re.split(r", |、", row[0])}
    assert moving <= named
    [statuses] = [row for row in rows if row[1].startswith("`txnStatus`")]
    assert re.findall(r"\d", statuses[1]) == [str(status) for status in ORDER_STATUSES]
    names = re.split(r", |、", re.split(r": |：", statuses[0])[1])
    assert names == [translate(language, words) for words in ORDER_STATUSES.values()]


def test_the_attempts_of_a_callback_end_after_the_time_that_the_page_says() -> None:
    hours = sum(PAUSES_S) / 3600
    assert 51 < hours < 53
    assert "about two days and four hours" in read_page("reliability/callback-order")


def test_the_page_that_the_wheel_may_carry_is_named_in_the_project_file(built: Path) -> None:
    assert read("pyproject.toml").count('artifacts = ["src/merchant_wallet/web/documentation.zip"]') == 2
    assert (built / "documentation.zip").exists()
