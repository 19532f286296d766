"""`python -m merchant_wallet.cli.demo [--devnet] [--exit]`: start it all, tell the story, serve."""

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from merchant_wallet.cli.demo import interruption, real_blocks
from merchant_wallet.cli.demo.backstage import Backstage, Failure, choose_port, installed_program
from merchant_wallet.cli.demo.client import Client
from merchant_wallet.cli.demo.devnet import Devnet
from merchant_wallet.cli.demo.mailbox import Mailbox
from merchant_wallet.cli.demo.stage import Stage
from merchant_wallet.cli.demo.story import ALICE, SHOP, Day, check_book, open_account

INTERRUPTED = 130
"""The exit status of a program that Ctrl-C ended, as shells report it."""


def main(arguments: Sequence[str] | None = None, program: Path | None = None) -> int:
    """Run the demo. Returns the exit status: 0 done, 1 failed, 130 interrupted."""
    parser = argparse.ArgumentParser(
        prog="make demo", description="The whole service, told as the day of a shop."
    )
    parser.add_argument("--exit", action="store_true", help="end when the story has been told")
    parser.add_argument(
        "--devnet", action="store_true", help="tell it with real blocks, on two chains of this machine's own"
    )
    asked = parser.parse_args(arguments)
    stage = Stage()
    interruption.listen()
    try:
        backstage = Backstage(program or installed_program())
        devnet = Devnet(backstage.data / "devnet.log")
        try:
            return _perform(stage, backstage, devnet if asked.devnet else None, leave=asked.exit)
        finally:
            interruption.ignore()
            stage.note("stopping the service and removing its folder")
            try:
                backstage.stop()
            finally:
                devnet.stop()
    except KeyboardInterrupt:
        return INTERRUPTED
    except (Failure, OSError) as error:
        stage.failure(str(error))
        return 1


def _perform(stage: Stage, backstage: Backstage, devnet: Devnet | None, *, leave: bool) -> int:
    port = 0 if leave else choose_port()
    client = _tell(stage, backstage, port) if devnet is None else _tell_real(stage, backstage, devnet, port)
    check_book(stage, backstage)
    if leave:
        return 0
    _invite(stage, backstage, client)
    try:
        backstage.wait()
    except KeyboardInterrupt:
        return 0


def _tell(stage: Stage, backstage: Backstage, port: int) -> Client:
    """The story in the sandbox."""
    stage.chapter("merchant-wallet · the demo", "a sandbox: no real money moves")
    base_url = _start(stage, backstage, port)
    account = open_account(stage, backstage)
    with Client(base_url, account.app_key, account.secret) as client, Mailbox() as mailbox:
        Day(stage, client, backstage, account.callback_secret, mailbox).run()
    return client


def _tell_real(stage: Stage, backstage: Backstage, devnet: Devnet, port: int) -> Client:
    """The story on chains with real blocks."""
    stage.chapter("merchant-wallet · the demo", "real blocks, on chains of this machine's own")
    stage.note("starting both chains; the first time, their programs are installed")
    devnet.start()
    funding = real_blocks.make_keys(stage, backstage, devnet)
    stage.gap()
    base_url = _start(stage, backstage, port, "--no-sandbox")
    account = real_blocks.open_account(stage, backstage, funding)
    with Client(base_url, account.app_key, account.secret) as client:
        real_blocks.RealDay(stage, client, backstage, devnet).run()
    real_blocks.reconcile(stage, backstage)
    return client


def _start(stage: Stage, backstage: Backstage, port: int, *options: str) -> str:
    stage.note(f"starting the service in {backstage.data}")
    base_url = backstage.start(port, stage.note, *options)
    stage.note(f"serving at {base_url}")
    return base_url


def _invite(stage: Stage, backstage: Backstage, client: Client) -> None:
    stage.chapter("Your turn")
    _show_pages(stage, backstage, client)
    _show_commands(stage, backstage, client)
    stage.gap()
    stage.say("Serving until Ctrl-C.", "bold")


def _show_pages(stage: Stage, backstage: Backstage, client: Client) -> None:
    """What to open in a browser: the console, and Alice's wallet by a fresh link."""
    with Client(client.base_url, client.app_key, client.secret) as asking:
        answer = asking.send(asking.prepare("getMerchantCustomer", extUserId=ALICE))
    stage.say("In a browser:")
    stage.lines(
        [
            f"console      {backstage.sign_in['console']}",
            f"             as {backstage.sign_in['operator']}, password {backstage.sign_in['password']}",
            f"a wallet     {answer.data['url']}",
            "             (the link opens Alice's wallet for 15 minutes)",
        ]
    )
    stage.gap()


def _show_commands(stage: Stage, backstage: Backstage, client: Client) -> None:
    program = shlex.quote(os.path.relpath(backstage.program))
    stage.lines(
        [
            f"base URL     {client.base_url}",
            f"appKey       {client.app_key}",
            f"secret       {client.secret}",
            f"data folder  {backstage.data} (removed at the end; its log is up.log)",
        ]
    )
    stage.gap()
    stage.say("In another terminal, in this folder, a signed call:")
    stage.lines(
        [
            f"export WALLET_DATA={shlex.quote(str(backstage.data))}",
            *(f"export {name}={shlex.quote(value)}" for name, value in backstage.settings.items()),
            f"export MERCHANT_APP_SECRET={client.secret}",
            "path=/merchant/getMerchantBalance",
            f"""body='{{"appKey":"{client.app_key}","timestamp":'$(date +%s)""",
            """body=$body',"nonceStr":"try'$RANDOM$RANDOM'"'""",
            f"""sign=$(echo "$body}}" | {program} sign --path $path --json |""",
            """  grep -oE '[0-9a-f]{32}')""",
            """curl -H 'Content-Type: application/json' \\""",
            f"""  -d "$body,\\"sign\\":\\"$sign\\"}}" {client.base_url}$path""",
        ]
    )
    stage.gap()
    stage.say("And what the operator can ask:")
    stage.lines(
        [
            f"{program} book statement {shlex.quote(SHOP)} --format csv",
            f"{program} withdrawals list",
            f"{program} doctor",
            f"{program} --help",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
