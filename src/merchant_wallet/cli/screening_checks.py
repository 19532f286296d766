"""What `doctor` says of screening: whether the list can be read, the provider answers, and what waits."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final

from merchant_wallet.base.counted import count_of
from merchant_wallet.cli.findings import Finding

if TYPE_CHECKING:
    from pathlib import Path

    from merchant_wallet.base.settings import Settings

NAME: Final = "screening"


async def check_screening(home: Any, settings: "Settings") -> AsyncIterator[Finding]:
    """A finding for each source that is set, and one for what waits for a person."""
    from merchant_wallet.screening import store

    if settings.screening_url is not None:
        yield await check_hook(home, settings, settings.screening_url)
    if settings.screening_list is not None:
        yield judge_list(settings.screening_list)
    held, _ = await store.count_held(home)
    if held:
        most = "or more " if held == store.COUNTED else ""
        yield Finding(NAME, f"{held} {most}held", hint="decide about them: `screening list`")


async def check_hook(home: Any, settings: "Settings", url: str) -> Finding:
    """Whether the secret is set, somebody answers at the URL, and the last question had an answer."""
    from merchant_wallet.base.clock import now_ms
    from merchant_wallet.screening import store
    from merchant_wallet.screening.hook import HookAway, ScreeningHook

    if settings.screening_secret is None:
        advice = "set WALLET_SCREENING_SECRET for the workers: without it they do not start"
        return Finding(NAME, "a URL without a secret in the settings here", advice)
    hook = ScreeningHook(
        url,
        settings.screening_secret,
        timeout_ms=settings.screening_timeout_ms,
        clock=now_ms,
        outbound=settings.outbound,
    )
    try:
        status = await hook.look()
    except HookAway as away:
        return Finding(NAME, f"the URL does not answer: {away}", _advise(settings, "start the provider"))
    finally:
        await hook.close()
    _, answered_ms, error = await store.read_last_question(home) or (0, None, None)
    return judge_hook(settings, status, error if answered_ms is None else None)


def judge_hook(settings: "Settings", status: int, last_error: str | None) -> Finding:
    """Judge a URL that answers: by what came of the last question. Pure."""
    if last_error is not None:
        text = f"the URL answers, and the last question had no usable answer: {last_error}"
        return Finding(NAME, text, _advise(settings, "ask the provider, and compare the secrets"))
    return Finding(NAME, f"a URL that answers (HTTP {status} to a GET); {_say_mode(settings)}")


def _advise(settings: "Settings", first: str) -> str:
    return f"{first}, or correct the WALLET_SCREENING_ settings; {_say_mode(settings)}"


def _say_mode(settings: "Settings") -> str:
    return f"without an answer orders and deposits {'pass' if settings.screening_fail_open else 'wait'}"


def judge_list(path: "Path") -> Finding:
    """Judge the list in a file."""
    from merchant_wallet.screening.address_list import ListUnreadable, read_list

    try:
        found = read_list(path)
    except ListUnreadable as unreadable:
        return Finding(
            NAME, f"the list can't be read: {unreadable}", "correct WALLET_SCREENING_LIST or the file"
        )
    return Finding(NAME, f"a list of {count_of(len(found.entries), 'address', 'addresses')} in {path}")
