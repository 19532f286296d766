"""`python -m demo [--devnet] [--exit]`: start it all, tell the story, serve."""

import argparse
import dataclasses
import json
import os
import shlex
import sys
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from demo import devnet_story
from demo.account import Account
from demo.callback_receiver import CallbackReceiver
from demo.deployment import TWO_PEOPLE, Deployment, Failure, choose_port, find_installed_program
from demo.devnet import Devnet
from demo.guard import run_guarded, succeed_when_stopped
from demo.story import ALICE, SHOP, ShopStory, check_book, open_account
from demo.transcript import Transcript

SECOND_PERSON: Final = "second"
GUIDES_MISSING: Final = (
    "             (the guides and the files of the clients are not built: until `make site` has built them",
    "             and the demo is started again, what is below /docs/clients/ answers 404)",
)


def main(arguments: Sequence[str] | None = None, program: Path | None = None) -> int:
    """Run the demo. Returns the exit status: 0 done, 1 failed, 130 interrupted."""
    parser = argparse.ArgumentParser(
        prog="make demo",
        description="The whole service, told as the day of a shop.",
        epilog=f"With {TWO_PEOPLE}=true the console has two operators and asks for both, as live.",
    )
    parser.add_argument("--exit", action="store_true", help="end when the story has been told")
    parser.add_argument(
        "--devnet", action="store_true", help="tell it with real blocks, on two chains of this machine's own"
    )
    asked = parser.parse_args(arguments)
    return run_guarded(lambda folder: _tell(folder, program, on_devnet=asked.devnet, leave=asked.exit))


def _tell(folder: Path, program: Path | None, *, on_devnet: bool, leave: bool) -> int:
    transcript = Transcript()
    try:
        deployment = Deployment(program or find_installed_program(), folder)
        devnet = Devnet(deployment.data / "devnet.log") if on_devnet else None
        return _perform(transcript, deployment, devnet, leave=leave)
    except (Failure, OSError) as error:
        transcript.failure(str(error))
        return 1


def _perform(transcript: Transcript, deployment: Deployment, devnet: Devnet | None, *, leave: bool) -> int:
    port = 0 if leave else choose_port(transcript.note)
    base_url, account = (
        _run_sandbox_story(transcript, deployment, port)
        if devnet is None
        else _run_devnet_story(transcript, deployment, devnet, port)
    )
    check_book(transcript, deployment)
    if leave:
        return 0
    _invite(transcript, deployment, base_url, account)
    succeed_when_stopped()
    deployment.wait()


def _run_sandbox_story(transcript: Transcript, deployment: Deployment, port: int) -> tuple[str, Account]:
    """The story in the sandbox."""
    transcript.chapter("merchant-wallet · the demo", "a sandbox: no real money moves")
    base_url = _start(transcript, deployment, port)
    # It stays until the demo ends, and accepts the callbacks of what the reader plays.
    receiver = CallbackReceiver()
    receiver.start()
    account = open_account(transcript, deployment, receiver)
    with account.open_client(base_url) as client:
        ShopStory(transcript, client, deployment, account, receiver).run()
    return base_url, dataclasses.replace(account, notify_url=receiver.url)


def _run_devnet_story(
    transcript: Transcript, deployment: Deployment, devnet: Devnet, port: int
) -> tuple[str, Account]:
    """The story on chains with real blocks."""
    transcript.chapter("merchant-wallet · the demo", "real blocks, on chains of this machine's own")
    transcript.note("starting both chains; the first time, their programs are installed")
    devnet.start()
    funding = devnet_story.make_keys(transcript, deployment, devnet)
    transcript.blank_line()
    base_url = _start(transcript, deployment, port, "--no-sandbox")
    account = devnet_story.open_account(transcript, deployment, funding)
    with account.open_client(base_url) as client:
        devnet_story.DevnetStory(transcript, client, deployment, devnet).run()
    devnet_story.reconcile(transcript, deployment)
    return base_url, account


def _start(transcript: Transcript, deployment: Deployment, port: int, *options: str) -> str:
    transcript.note(f"starting the service in {deployment.data}")
    base_url = deployment.start(port, transcript.note, *options)
    transcript.note(f"serving at {base_url}")
    return base_url


def _invite(transcript: Transcript, deployment: Deployment, base_url: str, account: Account) -> None:
    transcript.chapter("Your turn")
    _show_pages(transcript, deployment, base_url, account)
    _show_commands(transcript, deployment, base_url, account)
    transcript.blank_line()
    transcript.say("Serving until Ctrl-C.", "bold")


def _show_pages(transcript: Transcript, deployment: Deployment, base_url: str, account: Account) -> None:
    """What to open in a browser: the start page, the console, and Alice's wallet by a fresh link."""
    with account.open_client(base_url) as client:
        alice = client.get_merchant_customer(ext_user_id=ALICE)
    reference = _find_reference(base_url)
    transcript.say("In a browser:")
    transcript.lines(
        [
            f"start page   {base_url}/",
            f"console      {deployment.sign_in['console']}",
            f"             as {deployment.sign_in['operator']}, password {deployment.sign_in['password']}",
            *_make_second_person(deployment),
            "             (the first sign-in sets up an authenticator, shows recovery codes and asks for",
            "             a new password; without an app, this prints the code of the key on that page:",
            f"             {_show_path(Path(sys.executable))} -m demo.authenticator KEY)",
            f"a wallet     {alice.url}",
            "             (the link opens Alice's wallet for 15 minutes)",
            f"reference    {reference}",
            *(GUIDES_MISSING if reference.endswith("/docs/api") else ()),
        ]
    )
    transcript.blank_line()


def _find_reference(base_url: str) -> str:
    """Where `/docs` leads: to the documentation, or to the interface alone if the site was not built."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"{base_url}/docs") as answer:
        return str(answer.url)


def _make_second_person(deployment: Deployment) -> list[str]:
    """Where the console needs two people, the second one. Raises Failure."""
    if not deployment.two_people:
        return []
    words = ("operator", "create", SECOND_PERSON, "--role", "owner", "--reason", "two people", "--json")
    created = json.loads(deployment.run(*words))
    return [
        f"             or as {created['name']}, password {created['password']}",
        "             (what needs two people, one of them proposes and the other accepts)",
    ]


def _show_commands(transcript: Transcript, deployment: Deployment, base_url: str, account: Account) -> None:
    program = _show_path(deployment.program)
    transcript.say("In another terminal, in this folder, as the shop:")
    transcript.lines(
        [
            f"export MERCHANT_WALLET_URL={base_url}",
            f"export MERCHANT_WALLET_APP_KEY={account.app_key}",
            f"export MERCHANT_WALLET_SECRET={account.secret}",
            f"export MERCHANT_WALLET_CALLBACK_SECRET={account.callback_secret}",
            f"{program} call getMerchantBalance",
            f"{program} call getMerchantCustomer extUserId={ALICE}",
            f"{program} call --help",
            *(_list_test_commands(program, account) if deployment.is_sandbox else ()),
        ]
    )
    transcript.blank_line()
    transcript.say("As the operator, also here. The demo removes its WALLET_DATA at the end:")
    transcript.lines(
        [
            f"export WALLET_DATA={shlex.quote(str(deployment.data))}",
            *(f"export {name}={shlex.quote(value)}" for name, value in deployment.settings.items()),
            f"{program} book statement {shlex.quote(SHOP)} --format csv",
            f"{program} withdrawals list --merchant {shlex.quote(SHOP)}",
            f"{program} doctor",
            f"{program} --help",
        ]
    )


def _list_test_commands(program: str, account: Account) -> list[str]:
    """The sandbox's test mode."""
    return [
        "# The test mode plays what seldom happens, as the console's page Sandbox of a merchant does:",
        f"{program} trigger order.paid amount=12.50 notifyUrl={account.notify_url}",
        f"{program} trigger deposit.held extUserId={ALICE}",
        "# In a third terminal, with the same four exports, this shows each callback as it comes:",
        f"# {program} listen",
    ]


def _show_path(path: Path) -> str:
    """A path as it is typed in this folder."""
    return shlex.quote(os.path.relpath(path))


if __name__ == "__main__":
    sys.exit(main())
