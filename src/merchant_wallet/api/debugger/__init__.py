"""The signature debugger: the string that a request had to sign, and where an integrator's own string or
signature differs from it. Pure.

Rules:
- It looks nothing up and stores nothing.
- It receives secrets to try them. It never returns a secret, nor a signature computed with one.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from merchant_wallet.api.debugger.bodies import (
    FORM,
    JSON,
    PATHS,
    judge_marks,
    judge_path,
    judge_sign,
    read_body,
)
from merchant_wallet.api.debugger.findings import NOTE, SENTENCES, WRONG, Finding
from merchant_wallet.api.debugger.signature_mistakes import try_secrets
from merchant_wallet.api.debugger.string_to_sign import Difference, compare, explain
from merchant_wallet.base.signing import MD5, Method, build_md5_string_to_sign, build_string_to_sign

__all__ = [
    "FORM",
    "JSON",
    "NOTE",
    "PATHS",
    "SENTENCES",
    "WRONG",
    "Diagnosis",
    "Difference",
    "Finding",
    "Line",
    "compare",
    "diagnose",
]

MAX_TEXT: Final = 64 * 1024
"""So many characters of their string are compared: four times the length of a body."""


class Line(msgspec.Struct, frozen=True):
    """One line of our string to sign, or one pair of MD5's; `field` is its source, None for the path."""

    number: int
    text: str
    field: str | None


class Diagnosis(msgspec.Struct, frozen=True):
    """What we would sign, line by line, and the findings. None where the body can't be read.

    `difference` is the first place where their string differs from ours.
    """

    string_to_sign: str | None
    lines: tuple[Line, ...]
    findings: tuple[Finding, ...]
    difference: Difference | None = None

    @property
    def is_right(self) -> bool:
        """Whether no finding is an error."""
        return all(finding.level == NOTE for finding in self.findings)


def diagnose(
    path: str,
    body: str,
    method: Method,
    *,
    content_type: str = JSON,
    their_text: str | None = None,
    their_sign: str | None = None,
    secrets: Sequence[str] = (),
) -> Diagnosis:
    """Check a request: the path as it was called, the body as it was sent.

    `their_text` is the string that they signed. `their_sign` is their signature; without it the body's own is
    taken. With the merchant's live `secrets`, newest first, a finding says how the signature was made.
    """
    findings = judge_path(path)
    read, notable = read_body(body, content_type)
    findings += notable
    if read is None:
        return Diagnosis(None, (), tuple(findings))
    findings += judge_marks(read, method)
    # A path with a small mistake is corrected before signing, so that one mistake is reported once.
    right = findings[0].values["right"] if findings and findings[0].kind == "path-nearly" else path
    is_md5 = method == MD5
    ours = build_md5_string_to_sign(read.texts) if is_md5 else build_string_to_sign(right, read.texts)
    given = their_sign.strip() if their_sign and their_sign.strip() else read.sign
    tried = given is not None and bool(secrets)
    verdict = try_secrets(right, read.texts, method, given, secrets, their_text) if given and tried else None
    # If we know how the signature was made, that already explains what is wrong with its form.
    if verdict is None or verdict.kind == "no-match":
        findings += judge_sign(given, method)
    difference = None
    if their_text:
        theirs = their_text[:MAX_TEXT]
        difference = compare(ours, theirs)
        findings += explain(right, read, method, ours, theirs, body)
    if verdict is not None:
        findings.append(verdict)
    return Diagnosis(ours, _number(right, read.texts, is_md5), tuple(findings), difference)


def _number(path: str, texts: dict[str, str], is_md5: bool) -> tuple[Line, ...]:
    fields = [(f"{name}={texts[name]}", name) for name in sorted(texts)]
    lines: list[tuple[str, str | None]] = [*fields] if is_md5 else [(path, None), *fields]
    return tuple(Line(number, text, field) for number, (text, field) in enumerate(lines, 1))
