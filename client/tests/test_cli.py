"""The command line: profiles, calls, signatures, explanations."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from client.tests.conftest import order_of
from typer.testing import CliRunner, Result

from merchant_wallet_client import MerchantWallet
from merchant_wallet_client.cli.program import app
from merchant_wallet_client.testing import FakeWallet
from merchant_wallet_client.testing.answering import FakeCallback

Run = Callable[..., Result]


@pytest.fixture
def environment(fake: FakeWallet, tmp_path: Path) -> dict[str, str]:
    """The variables of somebody who uses the fake service."""
    return {
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "MERCHANT_WALLET_URL": fake.base_url,
        "MERCHANT_WALLET_APP_KEY": fake.app_key,
        "MERCHANT_WALLET_SECRET": fake.secret,
        "MERCHANT_WALLET_CALLBACK_SECRET": fake.callback_secret,
    }


@pytest.fixture
def run(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command, expecting an exit status."""

    def run_command(
        *words: str, status: int = 0, stdin: str | bytes = "", env: Mapping[str, str] | None = None
    ) -> Result:
        for name in environment:
            monkeypatch.delenv(name, raising=False)
        chosen = environment if env is None else env
        result = CliRunner().invoke(app, list(words), env=dict(chosen), input=stdin)
        assert result.exit_code == status, result.output + repr(result.exception)
        return result

    return run_command


def write_profiles(environment: Mapping[str, str], text: str, mode: int = 0o600) -> dict[str, str]:
    """The environment of somebody who has only a file of profiles."""
    path = Path(environment["XDG_CONFIG_HOME"]) / "merchant-wallet" / "profiles.toml"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    path.chmod(mode)
    return {name: environment[name] for name in ("HOME", "XDG_CONFIG_HOME")}


def profile_of(fake: FakeWallet, name: str = "default", **changed: str) -> str:
    keys = {"base_url": fake.base_url, "app_key": fake.app_key, "secret": fake.secret, **changed}
    return f"[{name}]\n" + "".join(f'{key} = "{value}"\n' for key, value in keys.items())


def test_a_call_in_a_pipe_is_the_answer_as_it_came(run: Run, fake: FakeWallet) -> None:
    said = json.loads(run("call", "getMerchantBalance").stdout)
    assert (said["code"], said["data"]["usdtBalance"]) == (200, 1000)
    moved = ["currency=USDT", "amount=12.50"]
    assert '"amountArrival":12.5' in run("call", "getWithdrawFee", *moved).stdout


def test_a_call_for_people_shows_the_fields(run: Run) -> None:
    said = run("call", "getMerchantBalance", "--text").stdout
    assert "usdtBalance  1000" in said
    assert "sign" not in said


def test_a_refusal_is_explained_and_ends_with_1(run: Run) -> None:
    words = ("call", "createMerchantWithdrawOrder", "amount=5000", "chainType=TRC20", "currency=USDT")
    order = order_of()
    rest = (f"mcOrderId=7 address={order['address']} notifyUrl={order['notify_url']}").split()
    said = json.loads(run(*words, *rest, status=1).stdout)
    assert (said["code"], said["retry"]) == (42200, "after funding")
    people = run(*words, *rest, "--text", status=1).stdout
    assert "Send the same mcOrderId again when there is money" in people


def test_numbers_of_a_refusal_are_numbers(run: Run, fake: FakeWallet) -> None:
    data = {"serverTime": 1763712008000, "skewMs": -600000}
    fake.refuse("getMerchantBalance", 40102, times=2, data=data)
    assert json.loads(run("call", "getMerchantBalance", status=1).stdout)["data"] == data


def test_a_wrong_secret_shows_what_the_sandbox_signed(run: Run, environment: dict[str, str]) -> None:
    stranger = {**environment, "MERCHANT_WALLET_SECRET": "x" * 32}
    said = run("call", "getMerchantBalance", "--text", status=1, env=stranger).stdout
    assert "40101" in said
    assert "  /merchant/getMerchantBalance\n" in said


def test_no_answer_ends_with_2_and_says_that_it_is_not_known(
    run: Run, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from merchant_wallet_client import Retries

    monkeypatch.setattr(Retries.__init__, "__defaults__", (2, 0.0, 60.0))
    nowhere = {**environment, "MERCHANT_WALLET_URL": "http://127.0.0.1:9"}
    moved = (
        "call",
        "transferFromUserToMerchant",
        "extUserId=alice",
        "currency=KFB",
        "amount=1",
        "mcOrderId=1",
    )
    result = run(*moved, status=2, env=nowhere)
    assert "It is not known whether it was done" in result.stderr
    assert result.stdout == ""
    read = run("call", "getMerchantBalance", status=2, env=nowhere).stderr
    assert "It moves no money: call it again later" in read
    assert "not known" not in read
    words = ("call", "exchange", "amount=1", "sendCurrency=USDT", "receiveCurrency=KFB")
    assert "a repeat would be another exchange" in run(*words, status=2, env=nowhere).stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("call", "getMerchantBalanc"), "did you mean getMerchantBalance?"),
        (("call", "getMerchantCustomer", "alice"), "type FIELD=VALUE"),
        (("call", "getMerchantCustomer", "extUserId=a", "extUserId=b"), "extUserId is there twice"),
        (("call", "getMerchantCustomer", "extUserId=a\nb"), "control character"),
        (("call", "getMerchantCustomer", "extuserid=a"), "no field 'extuserid'; did you mean extUserId?"),
        (("trigger", "deposit.credited", "amout=5"), "did you mean amount?"),
        (("explain", "40109"), "There is no code 40109. Near it: 40"),
        (("trigger", "order.payed"), "did you mean order.paid?"),
        (("verify", "--path", "exchange"), "--nonce: the signature of an answer covers"),
        (("verify", "--header", "webhook-id"), "is not NAME: VALUE"),
    ],
)
def test_a_mistake_is_told_in_a_sentence(run: Run, words: tuple[str, ...], said: str) -> None:
    result = run(*words, status=2)
    assert said in result.stderr
    assert result.stdout == ""


def test_a_live_key_moves_money_only_when_it_is_said(
    run: Run, environment: dict[str, str], fake: FakeWallet
) -> None:
    live = {**environment, "MERCHANT_WALLET_APP_KEY": "mk_live_abcdefghijkl"}
    words = ("call", "exchange", "amount=1", "sendCurrency=USDT", "receiveCurrency=KFB", "mcOrderId=1")
    assert "add --live" in run(*words, status=2, env=live).stderr
    assert json.loads(run(*words, "--live", status=1, env=live).stdout)["code"] == 40100
    assert json.loads(run("call", "getMerchantBalance", status=1, env=live).stdout)["code"] == 40100
    for command in (("trigger", "order.paid"), ("listen",)):
        assert "has a live key" in run(*command, status=2, env=live).stderr
    assert fake.requests == []


def test_a_profile_of_the_file_is_used_when_it_is_named_or_the_default(
    run: Run, environment: dict[str, str], fake: FakeWallet
) -> None:
    text = profile_of(fake) + profile_of(fake, "other", secret="x" * 32)
    alone = write_profiles(environment, text)
    assert json.loads(run("call", "getMerchantBalance", env=alone).stdout)["code"] == 200
    named = ("call", "getMerchantBalance", "--profile", "other")
    assert json.loads(run(*named, status=1, env=alone).stdout)["code"] == 40101
    assert json.loads(run(*named, status=1).stdout)["code"] == 40101, "the name wins over the environment"
    missing = run("call", "getMerchantBalance", "--profile", "shop", status=2, env=alone)
    assert "has no profile [shop]; there are: default, other." in missing.stderr


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_file_that_others_may_read_is_not_used(
    run: Run, environment: dict[str, str], fake: FakeWallet, mode: int
) -> None:
    alone = write_profiles(environment, profile_of(fake), mode)
    said = run("call", "getMerchantBalance", status=2, env=alone).stderr
    assert "chmod 600" in said
    assert fake.secret not in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nonsense", "can't be read"),
        ('[default]\nbase_url = "http://x"\n', "The profile default has no app_key."),
        ('[default]\napi_key = "a"\n', "there is no 'api_key'; there are base_url, app_key"),
        ('[default]\nsign_method = "SHA1"\n', "sign_method must be HMAC or MD5"),
    ],
)
def test_a_profile_that_can_t_be_used_says_why(
    run: Run, environment: dict[str, str], text: str, said: str
) -> None:
    alone = write_profiles(environment, text)
    assert said in run("call", "getMerchantBalance", status=2, env=alone).stderr


def test_what_nobody_sees_around_a_key_is_left_out_and_inside_it_is_named(
    run: Run, environment: dict[str, str], fake: FakeWallet
) -> None:
    odd = {
        name: f"\ufeff{text}\u00a0\n"
        for name, text in environment.items()
        if name.endswith(("KEY", "SECRET"))
    }
    assert odd
    assert json.loads(run("call", "getMerchantBalance", env=environment | odd).stdout)["code"] == 200
    broken = {"MERCHANT_WALLET_SECRET": "ab\u200bcd"}
    said = run("call", "getMerchantBalance", status=2, env=environment | broken).stderr
    assert "secret has a character that nobody sees, U+200B at character 3" in said


def test_without_any_keys_both_ways_to_give_them_are_told(run: Run, environment: dict[str, str]) -> None:
    alone = {name: environment[name] for name in ("HOME", "XDG_CONFIG_HOME")}
    said = run("call", "getMerchantBalance", status=2, env=alone).stderr
    assert "MERCHANT_WALLET_URL, MERCHANT_WALLET_APP_KEY, MERCHANT_WALLET_SECRET" in said
    assert "profiles.toml" in said


def test_sign_prints_what_the_client_signs(run: Run, wallet: MerchantWallet) -> None:
    request = wallet.prepare("exchange", {"amount": "12.50", "mcOrderId": "ü"})
    said = json.loads(run("sign", "--path", "exchange", stdin=request.body).stdout)
    assert said["sign"] == request.fields["sign"]
    assert said["stringToSign"] == request.string_to_sign
    assert said["path"] == "/merchant/exchange"
    people = run("sign", "--path", "/merchant/exchange", "--text", stdin=request.body).stdout
    assert f"sign: {request.fields['sign']}" in people
    for body in ("[]", "{", b"\xff"):
        assert "standard input" in run("sign", "--path", "exchange", status=2, stdin=body).stderr


def test_an_answer_is_verified_with_its_nonce(run: Run, wallet: MerchantWallet) -> None:
    request = wallet.prepare("getMerchantBalance", {})
    body = wallet.send(request).body
    words = ("verify", "--path", "getMerchantBalance", "--nonce")
    said = json.loads(run(*words, request.nonce, stdin=body).stdout)
    assert (said["ok"], said["given"]) == (True, said["expected"])
    said = json.loads(run(*words, "another", stdin=body, status=1).stdout)
    assert (said["ok"], said["given"] == said["expected"]) == (False, False)
    people = run(*words, "another", "--text", stdin=body, status=1).stdout
    assert "The signature of this answer is WRONG." in people
    refusal = '{"code":40001,"msg":"no","data":null}'
    assert "Refusals are not signed" in run(*words, "n", stdin=refusal, status=2).stderr


def headers_of(callback: FakeCallback) -> list[str]:
    named = [name for name in callback.headers if name.startswith("webhook-")]
    return [word for name in named for word in ("--header", f"{name}: {callback.headers[name]}")]


def test_a_callback_is_verified_by_both_signatures(
    run: Run, fake: FakeWallet, environment: dict[str, str]
) -> None:
    came = fake.deposit("10")
    said = json.loads(run("verify", *headers_of(came), stdin=came.body + b"\n").stdout)
    assert (said["ok"], said["sign"], said["webhookSignature"]) == (True, True, True)
    assert said["eventId"] == came.headers["webhook-id"]
    assert abs(said["ageS"]) < 300
    said = json.loads(run("verify", stdin=came.body).stdout)
    assert (said["ok"], said["sign"], said["webhookSignature"]) == (True, True, None)
    changed = came.body.replace(b'"10"', b'"99"')
    said = json.loads(run("verify", *headers_of(came), stdin=changed, status=1).stdout)
    assert (said["ok"], said["sign"], said["webhookSignature"]) == (False, False, False)
    without = {name: value for name, value in environment.items() if "SECRET" not in name}
    assert "has no secret" in run("verify", stdin=came.body, status=2, env=without).stderr


def test_a_code_is_explained_by_number_and_by_name(run: Run) -> None:
    by_number, by_name = run("explain", "42200"), run("explain", "balance_insufficient")
    assert by_number.stdout == by_name.stdout
    assert json.loads(by_number.stdout)["retry"] == "after funding"
    assert "does not use its id" in run("explain", "42200", "--text").stdout


def test_a_service_without_controls_says_so(run: Run) -> None:
    result = run("trigger", "order.paid", status=1)
    assert json.loads(result.stdout)["code"] == 404
    assert "no control interface" in result.stderr
    assert "no stream of callbacks" in run("listen", "--limit", "1", status=2).stderr


def test_text_from_outside_is_no_control_sequence(run: Run, fake: FakeWallet) -> None:
    fake.refuse("getMerchantBalance", 40300, "\x1b[31mred\x07")
    said = run("call", "getMerchantBalance", "--text", status=1).stdout
    assert "\x1b" not in said
    assert "�[31mred�" in said


def test_a_command_without_its_word_says_which_words_there_are(run: Run) -> None:
    for command, word in (("call", "queryOrder"), ("trigger", "order.paid"), ("explain", "explain 40101")):
        assert word in run(command, status=2).output


def test_the_help_of_each_command_has_an_example(run: Run) -> None:
    for command in ("call", "listen", "trigger", "sign", "verify", "explain"):
        said = run(command, "--help").stdout
        assert f"merchant-wallet-client {command}" in said
        assert "--json" in said
    assert run("--version").stdout.startswith("merchant-wallet-client 0.")
