"""The demo as a reader runs it: the whole story, Ctrl-C, and a failure in the middle."""

import ast
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import httpx
import pytest
from demo.authenticator import make_code
from demo.callback_receiver import CallbackReceiver
from demo.chain_node import read_digits
from demo.deployment import Failure
from demo.transcript import Transcript

ROOT = Path(__file__).parents[1]
DEMO = ROOT / "demo"
OPERATIONS = (
    "getMerchantBalance",
    "exchange",
    "getMerchantCustomer",
    "transferFromMerchantToUser",
    "transferFromUserToMerchant",
    "getWithdrawFee",
    "createMerchantWithdrawOrder",
    "queryOrder",
)
END_TIMEOUT_S = 300.0
"""The longest time for a story when many programs share the CPU. Alone it takes a tenth."""
TERM_TIMEOUT_S = 20.0
ANSWER_TIMEOUT_S = 60.0
WITH_PROGRAM = (
    "import sys, pathlib; from demo.__main__ import main; "
    "sys.exit(main(['--exit'], pathlib.Path(sys.argv[1])))"
)
"""A demo of the program that is its argument."""

pytestmark = pytest.mark.timeout(3 * END_TIMEOUT_S)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """The folder for the demo's temporary folder; its name has a space.

    A failed demo may leave its service running, in a session of its own. It is ended here.
    """
    path = tmp_path / "a place"
    path.mkdir()
    yield path
    end_users(path)


def environment(folder: Path) -> dict[str, str]:
    # A setting of the reader. The demo must not use that database.
    return {**os.environ, "TMPDIR": str(folder), "WALLET_DATABASE_URL": "postgresql://nobody@nowhere/nothing"}


@contextmanager
def performance(
    folder: Path, *arguments: str, errors: int | IO[str] = subprocess.STDOUT
) -> Iterator["subprocess.Popen[str]"]:
    """A running demo. What is left of it at the end is stopped."""
    demo = subprocess.Popen(
        [sys.executable, "-m", "demo", *arguments],
        cwd=ROOT,
        env={**environment(folder), "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
    )
    try:
        yield demo
    finally:
        demo.terminate()
        try:
            demo.communicate(timeout=END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            demo.kill()
            demo.communicate()
            raise


def read_until(demo: "subprocess.Popen[str]", words: str) -> str:
    """What the demo prints up to the line with this text."""
    assert demo.stdout is not None
    said = ""
    for line in demo.stdout:
        said += line
        if words in line:
            return said
    raise AssertionError(f"the demo never said {words!r}:\n{said}")


def users_of(folder: Path) -> dict[int, str]:
    """The processes that name this folder in their arguments or environment, by id."""
    named = os.fsencode(folder)
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # It may have ended meanwhile, or be another user's.
            if named in (process / "cmdline").read_bytes() + (process / "environ").read_bytes():
                found[int(process.name)] = (process / "cmdline").read_text().replace("\0", " ")
    return found


def end_users(folder: Path) -> None:
    """Stop the processes of this folder, later by force."""
    began_s = time.monotonic()
    asked: set[int] = set()
    while users := users_of(folder):
        assert time.monotonic() < began_s + 2 * TERM_TIMEOUT_S, users
        is_late = time.monotonic() > began_s + TERM_TIMEOUT_S
        for process_id in users if is_late else users.keys() - asked:
            with suppress(ProcessLookupError):
                os.kill(process_id, signal.SIGKILL if is_late else signal.SIGTERM)
        asked |= users.keys()
        time.sleep(0.1)


def assert_nothing_is_left(folder: Path) -> None:
    assert users_of(folder) == {}
    assert list(folder.iterdir()) == []


@pytest.mark.extended
def test_the_story_with_real_blocks_is_told_and_nothing_is_left(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "demo", "--devnet", "--exit"],
        cwd=ROOT,
        env=environment(folder),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=END_TIMEOUT_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert "✓ 1000 USDT, credited once the blocks were final" in done.stdout
    assert "✓ 213 KFB: 30 USDT at 7.1, the rate" in done.stdout
    assert done.stdout.count("✓ 0 → 1 → 2, and the signature of every answer is the service's") == 2
    hashes = re.findall(r"^ +txHash  (0x)?[0-9a-f]{64}$", done.stdout, re.MULTILINE)
    assert hashes == ["0x", ""]
    assert "✓ 250 USDT arrived at" in done.stdout
    assert "✓ 150 USDT arrived at TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC" in done.stdout
    assert re.search(r"^ +ERC20 +yes +\d+ +1000370 +1000370 ", done.stdout, re.MULTILINE)
    assert re.search(r"^ +TRC20 +yes +\d+ +1000260 +1000260 ", done.stdout, re.MULTILINE)
    assert "✓ nothing is unexplained on any chain" in done.stdout
    assert "✓ the book is verified: 9 entries" in done.stdout
    assert_nothing_is_left(folder)


def test_the_whole_story_is_told_what_it_offers_works_and_ctrl_c_ends_it_quietly(
    folder: Path, tmp_path: Path
) -> None:
    complaints = tmp_path / "stderr"
    with complaints.open("w") as errors, performance(folder, errors=errors) as demo:
        said = read_until(demo, "Serving until Ctrl-C")
        check_story(said)
        open_pages(said)
        run_lines(said)
        assert users_of(folder)
        demo.send_signal(signal.SIGINT)
        rest, _ = demo.communicate(timeout=END_TIMEOUT_S)
        assert demo.returncode == 0
        assert rest.strip() == "· stopping the service and removing its folder"
    assert complaints.read_text() == ""
    assert_nothing_is_left(folder)


def check_story(said: str) -> None:
    """Every chapter was told, and every check in it passed."""
    headings = re.findall(r"^(\d)\. .+ · (\w+) ─", said, re.MULTILINE)
    assert headings == [(str(number), name) for number, name in enumerate(OPERATIONS, 1)]
    for name in OPERATIONS:
        assert f"  to sign   /merchant/{name}" in said
    assert said.count("✓ 200, and the answer's signature is the service's") == len(OPERATIONS) - 1
    assert "✓ 0 → 1 → 2, and the signature of every answer is the service's" in said
    assert re.findall(r"✓ status (\d) of order (\d+): ", said) == [("2", "10001"), ("4", "10002")]
    assert said.count("✓ sign: the callback was signed with the shop's secret") == 2
    assert said.count("✓ webhook-signature: and with its callback secret") == 2
    assert re.findall(r"✓ refused with (\d+)", said) == ["40103", "40101", "40900", "42200"]
    assert re.search(r"✓ transaction \d+, as the first time", said)
    assert "✓ the book is verified: 9 entries" in said
    assert "✓ KFB adds up to 0 and USDT adds up to 0" in said
    assert re.search(r"^ +merchant:KFB +KFB +1538$", said, re.MULTILINE)


def open_pages(said: str) -> None:
    """The console accepts the operator's password, and the link leads to Alice's wallet."""
    console, name, password, wallet = re.findall(
        r"^  console      (\S+)\n +as (\S+), password (\S+)\n(?: {13}.+\n)+  a wallet     (\S+)$",
        said,
        re.MULTILINE,
    )[0]
    with httpx.Client(follow_redirects=True, trust_env=False, timeout=ANSWER_TIMEOUT_S) as browser:
        page = browser.get(console)
        assert (page.status_code, page.url.path) == (200, "/console/sign-in")
        csrf = re.findall(r'name="csrf" content="([^"]+)"', page.text)[0]
        form = {"csrf": csrf, "name": name, "password": password}
        page = browser.post(page.url.copy_with(query=None), data=form)
        assert (page.status_code, page.url.path) == (200, "/console/sign-in/enrol"), page.text
        (key,) = re.findall(r"data-secret>(\w+)<", page.text)
        (csrf,) = re.findall(r'name="csrf" content="([^"]+)"', page.text)
        code = make_code(key, int(time.time()))
        page = browser.post(page.url.copy_with(query=None), data={"csrf": csrf, "code": code})
        assert "Keep your recovery codes" in page.text
    with httpx.Client(follow_redirects=True, trust_env=False, timeout=ANSWER_TIMEOUT_S) as browser:
        for name in ("start page", "reference"):
            (address,) = re.findall(rf"^  {name} +(\S+)$", said, re.MULTILINE)
            page = browser.get(address)
            assert (page.status_code, page.history) == (200, []), address
        page = browser.get(wallet)
        assert (page.status_code, page.url.path) == (200, "/wallet")
        assert "1,300" in page.text
        assert browser.get(page.url).status_code == 200, "by its cookie"


def run_lines(said: str) -> None:
    """Paste the commands that the demo prints into a shell."""
    _, _, script = said.partition("as the shop:\n")
    shop, _, operator = script.removesuffix("  Serving until Ctrl-C.\n").partition("As the operator")
    ran = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", shop + operator.partition("\n")[2]],
        cwd=ROOT,
        env={
            name: value for name, value in os.environ.items() if not name.startswith(("WALLET_", "MERCHANT_"))
        },
        capture_output=True,
        text=True,
        timeout=END_TIMEOUT_S,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert '"ok": true, "event": "order.paid"' in ran.stdout
    assert re.search(r"usdtBalance +350\b", ran.stdout) or '"usdtBalance":350' in ran.stdout, ran.stdout


def test_ctrl_c_while_it_starts_beside_its_chains_leaves_nothing(folder: Path) -> None:
    with performance(folder, "--devnet") as demo:
        read_until(demo, "starting PostgreSQL")
        assert any("devnet" in user for user in users_of(folder).values())
        demo.send_signal(signal.SIGINT)
        time.sleep(0.1)
        demo.send_signal(signal.SIGINT)  # An impatient second one changes nothing.
        rest, _ = demo.communicate(timeout=END_TIMEOUT_S)
        assert demo.returncode == 130
        assert "Traceback" not in rest
    assert_nothing_is_left(folder)


def test_a_service_that_does_not_start_ends_the_demo_with_a_sentence(folder: Path, tmp_path: Path) -> None:
    program = tmp_path / "merchant-wallet"
    program.write_text("#!/bin/sh\necho 'the disk is full' >&2\nexit 1\n")
    program.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", WITH_PROGRAM, str(program)],
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=END_TIMEOUT_S,
    )
    assert done.returncode == 1
    assert done.stdout.endswith(
        "The demo ends here: the service did not start.\nIts last words:\n  the disk is full\n"
    )
    assert_nothing_is_left(folder)


def test_where_two_people_are_wished_for_the_service_asks_for_them(folder: Path, tmp_path: Path) -> None:
    program = tmp_path / "merchant-wallet"
    program.write_text("#!/bin/sh\necho $WALLET_SANDBOX_TWO_PEOPLE $WALLET_OPERATOR_WAIT_S\nexit 1\n")
    program.chmod(0o755)
    for wish, given in (("true", "true 0"), ("false", "")):
        done = subprocess.run(
            [sys.executable, "-c", WITH_PROGRAM, str(program)],
            env={**environment(folder), "WALLET_SANDBOX_TWO_PEOPLE": wish},
            capture_output=True,
            text=True,
            timeout=END_TIMEOUT_S,
        )
        assert done.stdout.endswith(f"Its last words:\n  {given}\n")


def test_what_a_killed_demo_leaves_behind_is_ended_by_its_folder(folder: Path) -> None:
    # Like the service: in a session of its own, with its folder only in its environment.
    left = subprocess.Popen(["sleep", "1000"], env=environment(folder), start_new_session=True)
    stranger = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    try:
        assert set(users_of(folder)) == {left.pid}
        end_users(folder)
        assert left.wait(END_TIMEOUT_S) == -signal.SIGTERM
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_command_that_is_wrapped_can_be_pasted(capsys: pytest.CaptureFixture[str]) -> None:
    spelled = "merchant-wallet merchant set 'Lantern Tea' " + " ".join(f"--option-{n} {n}" for n in range(20))
    Transcript().command(spelled, "")
    said = capsys.readouterr().out
    assert said.count(" \\\n") >= 2
    assert shlex.split(said.replace("\\\n", "")) == ["$", *shlex.split(spelled)]


def test_the_code_of_a_key_is_that_of_rfc_6238() -> None:
    # Appendix B: the secret "12345678901234567890" at 59 s has 94287082, of which six digits are used here.
    assert make_code("GEZDGNBV GY3TQOJQ GEZDGNBV GY3TQOJQ", 59) == "287082"


def test_the_demo_imports_nothing_of_the_service() -> None:
    for path in DEMO.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                assert name.partition(".")[0] != "merchant_wallet", path


def test_addresses_of_both_chains_are_the_digits_that_events_have() -> None:
    assert read_digits("TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC") == "5cd0fb0ab3ce40f3051414c604b27756e69e43db"
    evm = "0x52908400098527886E0F7030069857D2E4169EE7"
    assert read_digits(evm) == "52908400098527886e0f7030069857d2e4169ee7"


def test_a_mailbox_gives_what_came_or_says_that_nothing_did() -> None:
    with CallbackReceiver() as receiver:
        answer = httpx.post(receiver.url, json={"orderId": 7}, headers={"webhook-id": "evt"}, trust_env=False)
        assert (answer.status_code, answer.text) == (200, "success")
        came = receiver.wait(END_TIMEOUT_S)
        assert (came.body, came.headers["webhook-id"]) == ('{"orderId":7}', "evt")
        with pytest.raises(Failure, match="no callback"):
            receiver.wait(0)
