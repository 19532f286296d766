"""`sign`: the string to sign and the signature; without a secret, the merchant's own."""

import json

from tests.cli.conftest import Wallet
from typer.testing import CliRunner, Result

from merchant_wallet.base import signing
from merchant_wallet.cli.program import app
from merchant_wallet.cli.signature import CLIENTS_VARIABLE, SECRET_VARIABLE

SECRET = "0123456789abcdef0123456789abcdef"
PATH = "/merchant/createMerchantWithdrawOrder"
BODY = {
    "appKey": "demo",
    "timestamp": 1763712000000,
    "nonceStr": "a1B2c3D4e5F6g7H8",
    "mcOrderId": "10001",
    "chainType": "TRC20",
    "currency": "USDT",
    "amount": "12.50",
    "address": "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC",
    "notifyUrl": "https://example.com/n?a=1&b=2",
}
HMAC_SIGN = "48a6def3592a734ec4b9ee728e0e781a"
MD5_SIGN = "E288E4BDC300EE1855AC79F4517AAEAF"


def sign(*options: str, body: str = json.dumps(BODY), secret: str | None = SECRET) -> Result:
    # Empty: the tester's environment may have it.
    env = {SECRET_VARIABLE: secret, CLIENTS_VARIABLE: ""}
    return CliRunner().invoke(app, ["sign", "--path", PATH, *options], input=body, env=env)


def test_the_documented_request_gets_the_documented_signatures() -> None:
    assert json.loads(sign("--json").stdout)["sign"] == HMAC_SIGN
    assert json.loads(sign("--json", "--method", "MD5").stdout)["sign"] == MD5_SIGN


def test_the_string_to_sign_is_shown_line_by_line() -> None:
    shown = sign()
    lines = shown.stdout.splitlines()
    assert lines[0] == PATH
    assert lines[1:10] == sorted(f"{name}={value}" for name, value in BODY.items())
    assert lines[-1] == f"sign: {HMAC_SIGN}"
    assert SECRET not in shown.output


def test_a_sign_that_is_in_the_body_already_is_not_signed() -> None:
    body = json.dumps({**BODY, "sign": "old"})
    assert json.loads(sign("--json", body=body).stdout)["sign"] == HMAC_SIGN


def test_the_secret_may_be_an_argument_and_must_be_given() -> None:
    assert json.loads(sign("--json", "--secret", SECRET, secret=None).stdout)["sign"] == HMAC_SIGN
    missing = sign(secret=None)
    assert missing.exit_code == 2
    assert SECRET_VARIABLE in missing.stderr


def test_the_variable_of_the_quick_start_is_enough_unless_a_folder_is_named(wallet: Wallet) -> None:
    env = {SECRET_VARIABLE: None, CLIENTS_VARIABLE: SECRET}
    typed = ["sign", "--path", PATH, "--json"]
    done = CliRunner().invoke(app, typed, input=json.dumps(BODY), env=env)
    assert json.loads(done.stdout)["sign"] == HMAC_SIGN
    made = wallet.ask("merchant", "create", "Shop")
    wallet.variables |= {SECRET_VARIABLE: "", CLIENTS_VARIABLE: SECRET}
    body = json.dumps({**BODY, "appKey": made["appKey"]})
    signed = wallet.run(*typed, "--data", wallet.variables["WALLET_DATA"], stdin=body)
    assert json.loads(signed.stdout)["sign"] == expect("HMAC", made["appSecret"], made["appKey"])


def test_the_help_never_shows_a_secret_that_is_set() -> None:
    assert SECRET not in sign("--help").output


def test_a_body_that_the_service_would_refuse_is_refused_with_its_code() -> None:
    refused = sign(body='{"a": 1, "a": 2}')
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "Refused (40000)" in refused.stderr
    assert "Refused (40001)" in sign(body='{"a": true}').stderr


def test_what_is_marked_as_a_callback_or_hides_a_field_is_refused_as_the_service_does() -> None:
    assert "eventId: belongs to callbacks" in sign(body=json.dumps({**BODY, "eventId": "e"})).stderr
    hiding = json.dumps({**BODY, "notifyUrl": "https://example.com/n?a=1&timestamp=2"})
    assert sign(body=hiding).exit_code == 0
    refused = sign("--method", "MD5", body=hiding)
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "notifyUrl must not contain &timestamp=" in refused.stderr


def test_a_path_that_no_operation_has_is_refused_with_the_nearest() -> None:
    refused = sign("--path", "/merchant/exchang")
    assert refused.exit_code == 2
    assert "did you mean /merchant/exchange?" in refused.stderr


def sign_here(wallet: Wallet, app_key: str, *options: str, status: int = 0) -> Result:
    body = json.dumps({**BODY, "appKey": app_key})
    # Empty: the tester's environment may have this variable.
    wallet.variables |= {SECRET_VARIABLE: "", CLIENTS_VARIABLE: ""}
    return wallet.run("sign", "--path", PATH, *options, stdin=body, status=status)


def expect(method: signing.Method, secret: str, app_key: str) -> str:
    fields = {name: str(value) for name, value in {**BODY, "appKey": app_key}.items()}
    return signing.sign(method, secret, PATH, fields)


def test_without_a_secret_the_named_merchants_newest_is_used(wallet: Wallet) -> None:
    made = wallet.ask("merchant", "create", "Shop")
    key = made["appKey"]
    signed = json.loads(sign_here(wallet, key, "--json").stdout)
    assert (signed["method"], signed["sign"]) == ("HMAC", expect("HMAC", made["appSecret"], key))
    newest = wallet.ask("merchant", "rotate-secret", "Shop")["appSecret"]
    shown = sign_here(wallet, key)
    assert f"sign: {expect('HMAC', newest, key)}" in shown.stdout
    assert newest not in shown.output


def test_the_merchants_method_is_used_unless_one_is_typed(wallet: Wallet) -> None:
    made = wallet.ask("merchant", "create", "Shop")
    key, secret = made["appKey"], made["appSecret"]
    wallet.run("merchant", "set", "Shop", "--sign-method", "MD5")
    assert json.loads(sign_here(wallet, key, "--json").stdout)["sign"] == expect("MD5", secret, key)
    typed = json.loads(sign_here(wallet, key, "--json", "--method", "HMAC").stdout)
    assert typed["sign"] == expect("HMAC", secret, key)


def test_an_app_key_that_nobody_has_is_told(wallet: Wallet) -> None:
    refused = sign_here(wallet, "mk_nobody", status=1)
    assert refused.stdout == ""
    assert "No merchant has the appKey 'mk_nobody'" in refused.stderr
    assert "no appKey" in sign_here(wallet, "", status=1).stderr
