"""The generated blocks by name: examples from the story, and tables from the code's own tables."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from scripts.documents.alerts import show_metrics, show_runbook
from scripts.documents.decisions import show_index
from scripts.documents.field_tables import make_field_tables, show_table
from scripts.documents.packages import list_map_rows
from scripts.documents.sandbox_tables import make_sandbox_tables
from scripts.documents.story import CALLBACK_SECRET, SECRET, VECTOR, VECTOR_OPERATION, Example, Story

from merchant_wallet.base.codes import CODES
from merchant_wallet.base.config import describe_settings
from merchant_wallet.base.setting_readers import READERS, SAME, Reader
from merchant_wallet.base.settings import SETTINGS
from merchant_wallet.base.signing import (
    CALLBACK_PATH,
    HMAC,
    MD5,
    build_md5_string_to_sign,
    build_string_to_sign,
    sign,
)
from merchant_wallet.book.verification.violations import RULES
from merchant_wallet.callbacks.payloads import Payload
from merchant_wallet.cli.program import load_all_commands
from merchant_wallet.console.request import Page
from merchant_wallet.console.routes import list_pages
from merchant_wallet.merchants.settings import SETTINGS as MERCHANT_SETTINGS
from merchant_wallet.observability.log_keys import ABOUT, ALWAYS, OF_REQUESTS
from merchant_wallet.operators.roles import RIGHTS, Right, Role

DEPLOY: Final = Path(__file__).parents[2] / "deploy"
PROGRAM: Final = "merchant-wallet"
NAME_WIDTH: Final = 34
SETTING_GROUPS: Final = {
    "Web side and worker side": frozenset({Reader.WEB, Reader.WORKER}),
    "Web side": frozenset({Reader.WEB}),
    "Worker side and signer": frozenset({Reader.WORKER, Reader.SIGNER}),
    "Worker side": frozenset({Reader.WORKER}),
    "`up`": frozenset({Reader.UP}),
}
"""The parts of the page of settings, each with those who must read a setting. The first that fits has it."""


def make_blocks(story: Story) -> dict[str, str]:
    """Every generated block's text, without its markers."""
    examples = {f"example {name}": _show_example(example) for name, example in story.operations.items()}
    return {
        **examples,
        **make_field_tables(),
        "callback": _show_callback(story.callback),
        "deposit": _fence("json", story.deposit_callback.body.decode()),
        "vector": _show_vector(),
        "signed answer": _show_signed_answer(story.operations[VECTOR_OPERATION]),
        "refusals": "\n\n".join(_fence("json", example.answer) for example in story.refusals),
        "codes": _show_codes(),
        **make_sandbox_tables(),
        "settings": _show_settings(),
        "merchant settings": _show_merchant_settings(story.fresh_settings),
        "roles": _show_roles(),
        "commands": _fence("text", "\n".join(_list_commands(load_all_commands(), PROGRAM))),
        "metrics": show_table(("Metric", "What it says", "Shown by", "Wrong when"), show_metrics()),
        "runbook": show_runbook(),
        "decisions": show_index(),
        "nginx": _fence("nginx", _read_deployed("nginx.conf")),
        "haproxy": _fence("haproxy", _read_deployed("haproxy.cfg")),
        "log keys": _show_log_keys(),
        "packages": show_table(("Package", "What it contains", "Modules"), list_map_rows()),
        "verification": show_table(("Rule", "What must hold"), RULES.items()),
    }


def _read_deployed(name: str) -> str:
    return (DEPLOY / name).read_text().rstrip()


def _show_example(example: Example) -> str:
    return "\n\n".join(
        (
            "Request body:",
            _fence("json", example.body),
            "String to sign:",
            _fence("text", example.string_to_sign),
            "Answer:",
            _fence("json", example.answer),
        )
    )


def _show_vector() -> str:
    texts = {name: str(value) for name, value in VECTOR.items()}
    path = f"/merchant/{VECTOR_OPERATION}"
    signed = build_string_to_sign(path, texts)
    return "\n\n".join(
        (
            f"Secret: `{SECRET}`. The string to sign has {len(signed.splitlines())} lines:",
            _fence("text", signed),
            f"`sign` is `{sign(HMAC, SECRET, path, texts)}`.",
            "The legacy method signs, for the same request, this text followed by `&key=` and the secret:",
            _fence("text", build_md5_string_to_sign(texts)),
            f"and its `sign` is `{sign(MD5, SECRET, path, texts)}`.",
        )
    )


def _show_signed_answer(example: Example) -> str:
    answer = json.loads(example.answer, parse_float=str, parse_int=str)
    texts = {name: text for name, text in answer["data"].items() if text and name != "sign"}
    bound = {**texts, "code": answer["code"], "nonceStr": example.nonce}
    signed = build_string_to_sign(f"/merchant/{example.operation}", bound)
    return f"{_fence('text', signed)}\n\nIts `sign` has 20 characters: `{answer['data']['sign']}`."


def _show_callback(payload: Payload) -> str:
    fields = json.loads(payload.body)
    texts = {name: str(value) for name, value in fields.items() if value is not None and name != "sign"}
    # The client adds these. The version would make the page older with each release.
    first = ["User-Agent: merchant-wallet/VERSION (+PAGE)", "Accept: */*", "Accept-Encoding: identity"]
    lines = [f"{name.decode()}: {value.decode()}" for name, value in payload.headers]
    headers = "\n".join([*first, *lines])
    return "\n\n".join(
        (
            "Headers:",
            _fence("text", headers),
            "Body, one line on the wire:",
            _fence("json", payload.body.decode()),
            "String to sign:",
            _fence("text", build_string_to_sign(CALLBACK_PATH, texts)),
            f"The secret is `{SECRET}`, the callback secret `{CALLBACK_SECRET}`.",
        )
    )


def _show_codes() -> str:
    rows = [
        (str(code.code), code.meaning, code.retry, str(code.http_status) if code.http_status != 200 else "")
        for code in CODES.values()
    ]
    return show_table(("Code", "Meaning", "Ask again", "HTTP status, when not 200"), rows)


def _show_settings() -> str:
    """One table for each group of programs that read the same settings."""
    described = {name: (default, text) for name, default, text in describe_settings()}
    groups: dict[str, list[tuple[str, ...]]] = {title: [] for title in SETTING_GROUPS}
    for name, setting in SETTINGS.items():
        shown = f"WALLET_{name.upper()}"
        default, text = described[shown]
        kept = " **Secret.**" if setting.secret else ""
        same = "yes" if name in SAME else ""
        row = (f"`{shown}`", f"`{default}`", same, text + kept)
        groups[_find_group(READERS[name])].append(row)
    head = ("Setting", "Default", "The same everywhere", "Meaning")
    return "\n\n".join(f"## {title}\n\n{show_table(head, rows)}" for title, rows in groups.items())


def _find_group(readers: frozenset[Reader]) -> str:
    return next(title for title, needed in SETTING_GROUPS.items() if needed <= readers)


def _show_merchant_settings(fresh: dict[str, str]) -> str:
    rows = [
        (f"`{name}`", "" if name == "name" else f"`{fresh[name]}`", setting.rule)
        for name, setting in MERCHANT_SETTINGS.items()
    ]
    return show_table(("Setting", "When new", "Value"), rows)


def _show_roles() -> str:
    """The rights that pages of the console ask for, by role."""
    asked = {page.right for page in list_pages() if isinstance(page, Page)}
    rows = [
        (right.value, *(_format_right(role, right) for role in Role)) for right in Right if right in asked
    ]
    return show_table(("To", *(role.value for role in Role)), rows)


def _format_right(role: Role, right: Right) -> str:
    if right not in RIGHTS[role]:
        return ""
    return "its own book" if role is Role.MERCHANT else "yes"


def _show_log_keys() -> str:
    listed = (("all lines", ALWAYS), ("what the line is about", ABOUT), ("`request` lines too", OF_REQUESTS))
    rows = [(f"`{key}`", where, text) for where, keys in listed for key, text in keys.items()]
    return show_table(("Key", "In", "Meaning"), rows)


# `Any`: the library's command classes are not public.
def _list_commands(command: Any, name: str) -> Iterator[str]:
    """One line per command: its name, and the first sentence of its help."""
    children = getattr(command, "commands", None)
    if children is None or command.invoke_without_command:
        sentence = " ".join((command.help or "").split("\n\n")[0].split())
        yield f"{name:{NAME_WIDTH}}  {sentence}"
    for word, child in (children or {}).items():
        # A former name of a command is hidden.
        if not child.hidden:
            yield from _list_commands(child, f"{name} {word}")


def _fence(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```"
