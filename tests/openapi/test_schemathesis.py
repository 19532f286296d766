"""schemathesis plays the document against a running service: what it allows, and what it forbids."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
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
TIMEOUT_S = 600
ORDERS = ("createMerchantWithdrawOrder", "queryOrder", "exchange", "getMerchantBalance")
"""The document links an order with the question about it."""
PHASES = "examples,coverage,fuzzing"
LENGTHS = """
[phases.fuzzing.generation]
max-examples = 60
[phases.stateful.generation]
max-examples = 20
"""
"""How many cases an operation gets at random, and how many chains of up to six requests there are. What the
document forbids in each field is tried in the phase of coverage, which has a length of its own."""
LEAST_CASES = 500


def run_schemathesis(shop: Shop, folder: Path, operations: Sequence[str], phases: str) -> Counter[str]:
    """Play well-formed and malformed requests. Returns how many cases of an operation had which code."""
    counted = folder / "counted"
    words = [sys.executable, "-m", "schemathesis.cli", "run", f"{shop.platform.address}/openapi.json"]
    words += ["--include-path-regex", f"^/merchant/({'|'.join(operations)})$"]
    (folder / "schemathesis.toml").write_text(LENGTHS)
    words += ["--mode", "all", "--phases", phases, "--checks", ",".join(CHECKS)]
    words += ["--workers", "2", "--no-color", "--warnings", "off"]
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


@pytest.mark.timeout(TIMEOUT_S)
@pytest.mark.parametrize(
    ("operations", "phases"),
    [(ORDERS, f"{PHASES},stateful"), (tuple(sorted({*OPERATIONS} - {*ORDERS})), PHASES)],
    ids=["orders", "others"],
)
def test_the_service_keeps_to_the_document_in_hundreds_of_cases(
    shop: Shop, tmp_path: Path, operations: Sequence[str], phases: str
) -> None:
    counts = run_schemathesis(shop, tmp_path, operations, phases)
    assert counts.total() > LEAST_CASES
    assert {f"{operation} 200" for operation in operations} <= set(counts)
