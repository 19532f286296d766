"""`settings`: what is in effect, where each setting is from, and who reads it. Secrets are not shown."""

import os
from collections.abc import Iterator
from typing import Annotated, Any, Final

import typer

from merchant_wallet.base.setting_readers import READERS, SAME, Reader
from merchant_wallet.base.setting_sources import PREFIX, Given, read_given
from merchant_wallet.base.settings import SETTINGS
from merchant_wallet.cli import terminal
from merchant_wallet.cli.options import DataOption, JsonOption
from merchant_wallet.cli.session import read_settings

app = typer.Typer()

COLUMNS: Final = terminal.Table("setting", "value", "from")
HIDDEN: Final = "(set, not shown)"
BY_DEFAULT: Final = "default"


@app.command("settings")
def show(
    side: Annotated[Reader | None, typer.Option(help="Only the settings that this one reads.")] = None,
    changed: Annotated[bool, typer.Option("--changed", help="Only those that are not the default.")] = False,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the settings in effect here and now, and where each is from. Secrets are not shown.

    They are those of this shell: of its environment, the files that it names, and WALLET_CONFIG. Every value
    is checked as at a start. docs/settings.md explains each setting.

    \b
    Examples:
      merchant-wallet settings --changed
      WALLET_CONFIG=/etc/merchant-wallet/wallet.toml merchant-wallet settings --side worker
    """
    read_settings(data)
    given = read_given(os.environ)
    if data is not None:
        given["data"] = Given(str(data), "--data")
    rows = [
        row
        for name, row in _list_rows(given)
        if (side is None or side in READERS[name]) and not (changed and row["from"] == BY_DEFAULT)
    ]
    terminal.print_list({"settings": rows}, "settings", COLUMNS, as_json)
    if not as_json and changed and not rows:
        terminal.note("Every setting is the default.")


def _list_rows(given: dict[str, Given]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, setting in SETTINGS.items():
        here = given.get(name)
        value = setting.show(setting.default if here is None else setting.parse(here.text))
        yield (
            name,
            {
                "setting": PREFIX + name.upper(),
                "value": HIDDEN if here is not None and setting.secret else value,
                "from": BY_DEFAULT if here is None else here.source,
                "sides": sorted(READERS[name]),
                "sameEverywhere": name in SAME,
            },
        )
