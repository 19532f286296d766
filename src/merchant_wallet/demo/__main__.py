"""`python -m merchant_wallet.demo [--exit]`: start the service, tell the story, serve until Ctrl-C."""

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from merchant_wallet.demo import interruption
from merchant_wallet.demo.backstage import Backstage, Failure, choose_port, installed_program
from merchant_wallet.demo.client import Client
from merchant_wallet.demo.stage import Stage
from merchant_wallet.demo.story import SHOP, Day, check_book, open_account

INTERRUPTED = 130
"""What a shell gives for a program that Ctrl-C ended before it was done."""


def main(arguments: Sequence[str] | None = None, program: Path | None = None) -> int:
    """Run the demo; gives the exit status: 0 done, 1 something went wrong, 130 interrupted in the middle."""
    parser = argparse.ArgumentParser(
        prog="make demo", description="The whole service, told as the day of a shop."
    )
    parser.add_argument("--exit", action="store_true", help="end when the story has been told")
    leave = parser.parse_args(arguments).exit
    stage = Stage()
    interruption.listen()
    try:
        backstage = Backstage(program or installed_program())
        try:
            return _perform(stage, backstage, leave=leave)
        finally:
            interruption.ignore()
            stage.note("stopping the service and removing its folder")
            backstage.stop()
    except KeyboardInterrupt:
        return INTERRUPTED
    except (Failure, OSError) as error:
        stage.failure(str(error))
        return 1


def _perform(stage: Stage, backstage: Backstage, *, leave: bool) -> int:
    stage.chapter("merchant-wallet · the demo", "a sandbox: no real money moves")
    stage.note(f"starting the service in {backstage.data}")
    base_url = backstage.start(0 if leave else choose_port(), stage.note)
    stage.note(f"serving at {base_url}")
    app_key, secret = open_account(stage, backstage)
    with Client(base_url, app_key, secret) as client:
        Day(stage, client).run()
    check_book(stage, backstage)
    if leave:
        return 0
    _invite(stage, backstage, client)
    try:
        backstage.wait()
    except KeyboardInterrupt:
        return 0


def _invite(stage: Stage, backstage: Backstage, client: Client) -> None:
    program = shlex.quote(os.path.relpath(backstage.program))
    stage.chapter("Your turn")
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
    stage.gap()
    stage.say("Serving until Ctrl-C.", "bold")


if __name__ == "__main__":
    sys.exit(main())
