"""schemathesis plays the document against a running service: what it allows, and what it forbids."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.journeys.conftest import Shop
from tests.journeys.orders import ADDRESSES, OPERATIONS, withdrawal

SETTINGS = {"trusted_proxies": ()}
ROOT = Path(__file__).parents[2]
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
    "code_is_right",
)
TIMEOUT_S = 3000


def run_schemathesis(shop: Shop, folder: Path, *told: str) -> Counter[str]:
    """One run. Returns how many cases of an operation had which code."""
    counted = folder / "counted"
    words = [sys.executable, "-m", "schemathesis.cli", "run", f"{shop.platform.address}/openapi.json"]
    words += ["--include-path-regex", "^/merchant/"]
    words += ["--checks", ",".join(CHECKS), "--workers", "2", "--no-color", "--warnings", "off", *told]
    environment = {
        **os.environ,
        "SCHEMATHESIS_HOOKS": "tests.openapi.schemathesis_hooks",
        "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}",
        "WALLET_TEST_COUNTED": str(counted),
        "WALLET_TEST_MERCHANT": json.dumps(describe(shop)),
    }
    done = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-4000:]
    print(done.stdout)
    return Counter(counted.read_text(encoding="utf-8").splitlines())


def describe(shop: Shop) -> dict[str, object]:
    """What the hooks know of the merchant."""
    shop.fund("USDT", "1000000000")
    shop.fund("KFB", "1000000000")
    address = str(shop.user("alice", "1000000000")["address"])
    order = shop.client.do("createMerchantWithdrawOrder", **withdrawal("known"))
    values = {
        "transferFromUserToMerchant": {"extUserId": "alice", "currency": "KFB"},
        "transferFromMerchantToUser": {"address": address, "currency": "KFB"},
        "createMerchantWithdrawOrder": {"chainType": "TRC20", "address": ADDRESSES["TRC20"]},
        "queryOrder": {"orderId": int(str(order["orderId"])), "mcOrderId": "known"},
        "exchange": {"sendCurrency": "KFB", "receiveCurrency": "USDT"},
    }
    return {"appKey": shop.client.app_key, "secret": shop.client.secret, "values": values}


def test_the_service_does_what_the_document_allows(shop: Shop, tmp_path: Path) -> None:
    told = ("--mode", "positive", "--phases", "examples,fuzzing", "--max-examples", "25")
    counts = run_schemathesis(shop, tmp_path, *told)
    assert counts.total() > 150
    assert {f"{operation} 200" for operation in OPERATIONS} <= set(counts)


@pytest.mark.extended
@pytest.mark.timeout(TIMEOUT_S)
@pytest.mark.parametrize("mode", ["positive", "all"])
def test_the_service_keeps_to_the_document_in_thousands_of_cases(
    shop: Shop, tmp_path: Path, mode: str
) -> None:
    counts = run_schemathesis(shop, tmp_path, "--mode", mode, "--max-examples", "250")
    assert counts.total() > 2_000
    assert {f"{operation} 200" for operation in OPERATIONS} <= set(counts)
