"""The client's commands with the sandbox's control interface: things happen, and callbacks reach a laptop."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from devnet.http_server import serving
from tests.journeys.conftest import Platform
from tests.waits import TIMEOUT_S, wait_until
from typer.testing import CliRunner

from merchant_wallet.api.reference.operations import REFERENCES
from merchant_wallet.api.reference.sandbox_controls import CONTROLS
from merchant_wallet_client import MerchantWallet
from merchant_wallet_client.cli.program import app
from merchant_wallet_client.cli.triggering import ACTIONS
from merchant_wallet_client.errors import PathUnknownError
from merchant_wallet_client.operations import FIELDS

WORKING = True
COMMAND = Path(sys.executable).with_name("merchant-wallet-client")


@pytest.fixture
def keys(platform: Platform) -> Mapping[str, str]:
    """The environment of a merchant without money."""
    shop = platform.open_merchant()
    return {
        "MERCHANT_WALLET_URL": f"http://127.0.0.1:{platform.port}",
        "MERCHANT_WALLET_APP_KEY": shop.client.app_key,
        "MERCHANT_WALLET_SECRET": shop.client.secret,
    }


def trigger(keys: Mapping[str, str], *words: str, status: int = 0) -> Any:
    done = CliRunner().invoke(app, ["trigger", *words], env=dict(keys))
    assert done.exit_code == status, done.output
    # The service in this process may log beside it.
    [document] = [line for line in done.stdout.splitlines() if line.startswith('{"ok"')]
    return json.loads(document)


@contextmanager
def receiver() -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    """A shop's endpoint on a laptop: its URL, and what it accepted."""
    received: list[Mapping[str, Any]] = []

    class Endpoint(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.send_header("Content-Length", "7")
            self.end_headers()
            self.wfile.write(b"success")

        def log_message(self, format: str, *args: object) -> None:
            """No log."""

    with serving(Endpoint) as port:
        yield f"http://127.0.0.1:{port}/paid", received


@contextmanager
def listening(keys: Mapping[str, str], *words: str) -> Iterator["subprocess.Popen[str]"]:
    """A running `listen`, once its stream is open."""
    program = subprocess.Popen(
        [COMMAND, "listen", *words],
        env=dict(keys),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert program.stderr is not None
    try:
        assert program.stderr.readline().startswith("Listening at")
        yield program
    finally:
        program.terminate()
        program.communicate(timeout=TIMEOUT_S)


def test_a_refunded_order_reaches_a_receiver_on_a_laptop(keys: Mapping[str, str], platform: Platform) -> None:
    before = trigger(keys, "order.paid")["steps"][1]["answer"]["data"]
    first = f"evt_{before['orderId']}_2"
    with receiver() as (url, received):
        wait_until(lambda: is_tried(platform, first), "the first callback")
        with listening(keys, "--forward", url, "--after", first) as program:
            steps = trigger(keys, "order.refunded", "amount=12.50")["steps"]
            order = steps[1]["answer"]["data"]
            events = [f"evt_{order['orderId']}_{status}" for status in (3, 6)]
            shown = read_until(program, events[-1], set(events))
    assert (order["amount"], steps[2]["answer"]["data"]["txnStatus"]) == (12.5, "6")
    assert [each["eventId"] for each in shown] == events
    assert all(each["verified"] and each["accepted"] for each in shown)
    assert [each["txnStatus"] for each in received if each["orderId"] == order["orderId"]] == ["3", "6"]
    wait_until(lambda: all(is_delivered(platform, each) for each in events), "what was accepted is reported")


def read_until(program: "subprocess.Popen[str]", last: str, events: set[str]) -> list[dict[str, Any]]:
    """What `listen` shows of these events, up to the last one."""
    assert program.stdout is not None
    shown: list[dict[str, Any]] = []
    for line in program.stdout:
        document = json.loads(line)
        if document["eventId"] in events:
            shown.append(document)
        if document["eventId"] == last:
            break
    return shown


def is_delivered(platform: Platform, event_id: str) -> bool:
    return platform.rows("select state from callback where event_id = %s", event_id) == [("delivered",)]


def is_told(platform: Platform, event_id: str) -> bool:
    return bool(platform.rows("select 1 from callback where event_id = %s", event_id))


def is_tried(platform: Platform, event_id: str) -> bool:
    rows = platform.rows("select attempt_no from callback where event_id = %s", event_id)
    return bool(rows) and bool(rows[0][0])


def test_every_scenario_plays(keys: Mapping[str, str], platform: Platform) -> None:
    assert trigger(keys, "order.cancelled")["steps"][-1]["answer"]["data"]["txnStatus"] == "4"
    assert trigger(keys, "order.failed")["steps"][-1]["answer"]["data"]["txnStatus"] == "3"
    expired = trigger(keys, "order.expired")["steps"][-1]["answer"]["data"]["orderId"]
    wait_until(lambda: is_told(platform, f"evt_{expired}_5"), "the callback of an expired order")
    assert trigger(keys, "order.frozen")["steps"][-1]["answer"]["data"]["txnStatus"] == "0"
    for scenario in ("deposit.credited", "deposit.pending", "deposit.reorganised", "deposit.held"):
        steps = trigger(keys, scenario, "extUserId=alice")["steps"]
        assert [step["answer"]["code"] for step in steps] == [200] * len(steps)
    held = steps[-1]["answer"]["data"]["txHash"]
    wait_until(
        lambda: platform.rows("select status from deposit where tx_hash = %s", held) == [("held",)], "held"
    )
    told = trigger(keys, "fund", "currency=EUR", "amount=1", status=1)
    assert (told["ok"], told["code"]) == (False, 40003)


def test_a_doubled_callback_comes_twice_if_the_listener_accepts_nothing(
    keys: Mapping[str, str], platform: Platform
) -> None:
    with receiver() as (url, received), listening(keys, "--forward", url, "--no-accept") as program:
        trigger(keys, "order.paid", "amount=12.50", "mcOrderId=sbx:twice:1")
        assert program.stdout is not None
        shown = [json.loads(program.stdout.readline()) for _ in range(2)]
    assert shown[0]["eventId"] == shown[1]["eventId"]
    assert [each["eventId"] for each in received] == [each["eventId"] for each in shown]


def test_what_is_refused_gets_no_test_money(keys: Mapping[str, str], platform: Platform) -> None:
    refused = trigger(keys, "order.paid", "chainType=BEP20", status=1)
    assert (refused["code"], refused["steps"]) == (40004, [])
    ordered = ["createMerchantWithdrawOrder", "/sandbox/advance"]
    assert [step["operation"] for step in trigger(keys, "order.failed")["steps"]] == [
        "/sandbox/fund",
        *ordered,
    ]
    trigger(keys, "fund", "currency=USDT", "amount=100")
    assert [step["operation"] for step in trigger(keys, "order.failed")["steps"]] == ordered


def test_the_command_line_knows_the_fields_of_every_operation_and_action() -> None:
    called = (*REFERENCES, *(control for control in CONTROLS if control.name in ACTIONS))
    assert set(FIELDS) == {field.name for each in called for field in each.request} | {"sbx"}


def test_a_misspelled_action_is_told_the_one_that_was_meant(keys: Mapping[str, str]) -> None:
    names = ("URL", "APP_KEY", "SECRET")
    expected = pytest.raises(PathUnknownError, match=r"did you mean /sandbox/fund\? Check the name")
    with MerchantWallet(*(keys[f"MERCHANT_WALLET_{name}"] for name in names)) as wallet, expected:
        wallet.sandbox("funds")


def test_people_are_told_what_follows_from_a_scenario(keys: Mapping[str, str]) -> None:
    done = CliRunner().invoke(app, ["trigger", "deposit.held", "--text"], env=dict(keys))
    [tx_hash] = re.findall(r"^txHash +(\S+)$", done.stdout, re.MULTILINE)
    assert f"`trigger release txHash={tx_hash}` lets it pass" in done.stdout
    done = CliRunner().invoke(app, ["trigger", "deposit.credited", "--text"], env=dict(keys))
    assert re.search(r"^finalTime +\d{13}  \(20\d\d-\d\d-\d\d ", done.stdout, re.MULTILINE)
    done = CliRunner().invoke(app, ["trigger", "order.failed", "--text"], env=dict(keys))
    assert re.search(r"^txnStatus +3  \(failed\)$", done.stdout, re.MULTILINE)
    assert "txnStatus=6` refunds it" in done.stdout
    assert "where nobody listens" in done.stderr
    done = CliRunner().invoke(
        app, ["trigger", "order.paid", "notifyUrl=https://shop.example/paid", "--text"], env=dict(keys)
    )
    assert re.search(r"^order.paid: it is paid$", done.stdout, re.MULTILINE)
    assert "nobody listens" not in done.stderr


def test_an_order_that_no_receiver_accepts_says_that_it_waits(keys: Mapping[str, str]) -> None:
    with listening(keys, "--text") as program:
        trigger(keys, "order.paid")
        assert program.stdout is not None
        shown = program.stdout.readline()
    assert "has status 2 (paid), 25 USDT  (only shown)" in shown
    assert "✓" not in shown


def test_money_goes_only_to_a_sub_user_that_was_looked_up(keys: Mapping[str, str]) -> None:
    fields = {"fund": ("currency=KFB",), "deposit": ("chainType=ERC20",)}
    for action, others in fields.items():
        assert trigger(keys, action, *others, "amount=1", "extUserId=nobody", status=1)["code"] == 40400
