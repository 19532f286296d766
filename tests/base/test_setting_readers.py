"""The page of settings tells the truth about who reads what."""

import re
from pathlib import Path
from typing import Final

from tests.rows import each_row

from merchant_wallet.base.setting_readers import READERS, SAME, Reader
from merchant_wallet.base.settings import SETTINGS

PACKAGE: Final = Path(__file__).parents[2] / "src" / "merchant_wallet"
SOURCES: Final = {
    Reader.WEB: (
        "api",
        "web",
        "console",
        "wallet_site",
        *(f"processes/{name}.py" for name in ("app", "web", "routes", "listener")),
    ),
    Reader.WORKER: tuple(
        f"processes/{name}.py"
        for name in (
            "worker",
            "cell_workers",
            "payout_workers",
            "sweeps",
            "custody_readers",
            "reconciliation",
            "maintenance",
            "signers",
        )
    ),
    Reader.SIGNER: ("processes/signers.py", "cli/signer.py"),
    Reader.UP: ("processes/side_users.py",),
}
"""The code of each side that no other side runs, or that the page counts as its own."""
CHECKED_ELSEWHERE: Final = {
    # The web side refuses to start with them.
    Reader.WEB: {"keystore_passphrase", "checkpoint_key"},
    # It has no key in the sandbox, and prepares folders and environments of the others.
    Reader.UP: {
        "sandbox",
        "master_key",
        "checkpoint_key",
        "keystore_passphrase",
        "signer_socket",
        "port",
        "metrics_port",
    },
}


def _list_files(places: tuple[str, ...]) -> list[Path]:
    return [
        path
        for place in places
        for path in ([PACKAGE / place] if place.endswith(".py") else sorted((PACKAGE / place).rglob("*.py")))
    ]


@each_row("side", list(Reader))
def test_whoever_reads_a_setting_is_named(side: Reader) -> None:
    texts = [path.read_text(encoding="utf-8") for path in _list_files(SOURCES[side])]
    read = {name for text in texts for name in re.findall(r"\bsettings\.([a-z0-9_]+)\b", text)}
    used = (read & SETTINGS.keys()) - CHECKED_ELSEWHERE.get(side, set())
    assert used, side
    assert {name for name in used if side not in READERS[name]} == set()


def test_every_setting_has_its_readers() -> None:
    assert READERS.keys() == SETTINGS.keys()
    assert all(READERS.values())


def test_only_what_several_programs_may_read_can_differ() -> None:
    assert SETTINGS.keys() >= SAME
