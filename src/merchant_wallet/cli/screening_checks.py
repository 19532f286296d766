"""What `doctor` says of screening: whether the list can be read, the secret is set, and what waits."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final

from merchant_wallet.cli.findings import Finding

if TYPE_CHECKING:
    from pathlib import Path

    from merchant_wallet.base.settings import Settings

NAME: Final = "screening"


async def check_screening(home: Any, settings: "Settings") -> AsyncIterator[Finding]:
    """A finding for each source that is set, and one for what waits for a person."""
    from merchant_wallet.screening import store

    if settings.screening_url is not None:
        yield judge_hook(settings)
    if settings.screening_list is not None:
        yield judge_list(settings.screening_list)
    held, _ = await store.count_held(home)
    if held:
        most = "or more " if held == store.COUNTED else ""
        yield Finding(NAME, f"{held} {most}held", hint="decide about them: `screening list`")


def judge_hook(settings: "Settings") -> Finding:
    """Judge the settings of the screening URL."""
    if settings.screening_secret is None:
        advice = "set WALLET_SCREENING_SECRET for the workers: without it they do not start"
        return Finding(NAME, "a URL without a secret in the settings here", advice)
    mode = "pass" if settings.screening_fail_open else "wait"
    return Finding(NAME, f"a URL; without an answer orders and deposits {mode}")


def judge_list(path: "Path") -> Finding:
    """Judge the list in a file."""
    from merchant_wallet.screening.address_list import ListUnreadable, read_list

    try:
        found = read_list(path)
    except ListUnreadable as unreadable:
        return Finding(
            NAME, f"the list can't be read: {unreadable}", "correct WALLET_SCREENING_LIST or the file"
        )
    return Finding(NAME, f"a list of {len(found.entries)} addresses in {path}")
