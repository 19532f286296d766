"""Findings of the signature debugger and their sentences. Pure.

Rules:
- A finding has a kind from `SENTENCES` and the values of its sentence. A page translates the sentence first.
- No finding has a secret, or a signature that we computed.
"""

from typing import Final

import msgspec

WRONG: Final = "wrong"
"""The service refuses the request because of this, or the two texts differ here."""
NOTE: Final = "note"
"""Not an error, but often a hint at one."""

SENTENCES: Final[dict[str, tuple[str, str]]] = {
    # The body.
    "body": (WRONG, "The body can't be read: {msg}"),
    "bom": (WRONG, "The body begins with a byte order mark, U+FEFF. Send it without that mark."),
    "absent": (NOTE, "{field} is null or empty, so it is not signed. Leave out its line."),
    "non-scalar": (WRONG, "{field} is neither a string nor a number. Such a field is refused."),
    "control": (WRONG, "{field} contains {character}. A value with a control character is refused."),
    "event-id": (WRONG, "eventId belongs to callbacks. A request that contains it is refused."),
    "hidden": (WRONG, "{field} contains {hidden}, which MD5 would sign as a field. Such a value is refused."),
    "number": (
        NOTE,
        "{field} was sent as the number {sent}, and exactly that text is signed. "
        "A program that parses and prints the number may sign {shortest}. Send it as a string.",
    ),
    "escaped": (NOTE, "{field} was sent with JSON escapes. The unescaped text is signed."),
    "percent": (
        NOTE,
        "{field} contains {escape}. It is signed as sent: nothing is URL-encoded or decoded.",
    ),
    "edges": (NOTE, "{field} begins or ends with a space. The space is signed too."),
    "decomposed": (NOTE, "{field} is not in Unicode's composed form (NFC). It is signed as sent."),
    # The path.
    "path-unknown": (WRONG, "No operation has the path {path}. It must be {right}."),
    "path-nearly": (WRONG, "The path is {path}. It must be exactly {right}."),
    # The signature's form.
    "sign-missing": (WRONG, "The field sign is missing."),
    "sign-length": (WRONG, "sign has {length} characters. It must have 32."),
    "sign-not-hex": (WRONG, "sign must have only hexadecimal digits. {character} is not one."),
    "sign-case": (NOTE, "sign is in {case} case. Both cases are accepted; the service uses {right} case."),
    # Their string to sign.
    "equal": (NOTE, "Both strings are the same. So the secret is wrong, or it was used in a wrong way."),
    "line-end": (WRONG, "Your string ends with {character}. Nothing must follow the last line."),
    "line-start": (WRONG, "Your string begins with {character}. The first line must be the path."),
    "crlf": (
        WRONG,
        "Your lines are joined with carriage return and line feed. Join them with a line feed, U+000A.",
    ),
    "joined": (WRONG, "Your fields are joined with &. Join them with a line feed, U+000A."),
    "no-path": (WRONG, "Your first line is not the path. It must be {right}."),
    "other-path": (WRONG, "Your first line is {path}. It must be {right}."),
    "path-not-signed": (WRONG, "MD5 does not sign the path. Begin with the first field."),
    "order": (WRONG, "Your fields are in another order. Sort them by name in byte order, A before a."),
    "order-case": (
        WRONG,
        "Your fields are sorted without regard to case. In byte order A to Z come before a to z.",
    ),
    "order-sent": (
        WRONG,
        "Your fields are in the order in which they were sent. Sort them by name in byte order.",
    ),
    "signs-sign": (WRONG, "Your string contains sign itself. Leave it out."),
    "signs-absent": (WRONG, "Your string contains {field}, which is null or empty. Leave it out."),
    "signs-secret": (
        WRONG,
        "Your string has a line {field}. The secret is not a line; it is the key of the HMAC.",
    ),
    "missing": (WRONG, "Your string lacks {field}. Every field that was sent is signed, unknown ones too."),
    "extra": (WRONG, "Your string contains {field}, but the body does not."),
    "twice": (WRONG, "Your string contains {field} twice."),
    "url-encoded": (WRONG, "{field} is URL-encoded in your string. Sign the text itself."),
    "quoted": (WRONG, "{field} is in quotation marks in your string. Sign only the text."),
    "number-text": (
        WRONG,
        "{field} is {theirs} in your string and {ours} in the body. Sign the text that you send.",
    ),
    "spaces": (WRONG, "{field} has different spaces: {theirs} in your string, {ours} in the body."),
    "value": (WRONG, "{field} is {theirs} in your string and {ours} in the body."),
    "signs-body": (WRONG, "Your string is the body itself. Sign the lines that are shown here."),
    # Their signature, tried with the merchant's secrets.
    "matches": (NOTE, "The signature is right."),
    "matches-older": (NOTE, "The signature is right. It was made with the older of the two secrets."),
    "matches-theirs": (
        WRONG,
        "The signature is right for your string, so only the string is wrong.",
    ),
    "other-method": (WRONG, "The signature was made with {used}; this merchant's method is {method}."),
    "without-path": (WRONG, "The signature was made without the path line."),
    "with-line-end": (WRONG, "The signature was made with a line feed after the last line."),
    "with-crlf": (WRONG, "The signature was made with lines joined by carriage return and line feed."),
    "with-ampersand": (WRONG, "The signature was made with the fields joined by & instead of line feeds."),
    "plain-hash": (WRONG, "The signature is a plain SHA-256 over the string with the secret, not an HMAC."),
    "whole-hmac": (WRONG, "The signature is the whole HMAC of 64 characters. Send the first 32."),
    "base64": (WRONG, "The signature is the HMAC in Base64. Send it in hexadecimal digits."),
    "secret-as-hex": (
        WRONG,
        "The secret was decoded from hexadecimal digits. Use its characters themselves as the key.",
    ),
    "secret-with-line-end": (WRONG, "The secret was used with a line end or spaces after it."),
    "secret-and-text-swapped": (WRONG, "Key and text of the HMAC are swapped. The secret is the key."),
    "no-match": (WRONG, "The signature matches no secret of this merchant in any way that we tried."),
}
"""Every kind of finding: its level, and its sentence with `{values}`."""


class Finding(msgspec.Struct, frozen=True):
    """One finding: its kind, the field it is about, and the values that its sentence names."""

    kind: str
    values: dict[str, str] = {}

    @property
    def level(self) -> str:
        """`wrong` or `note`."""
        return SENTENCES[self.kind][0]

    @property
    def text(self) -> str:
        """The sentence without its values. Translations are looked up by it."""
        return SENTENCES[self.kind][1]

    @property
    def sentence(self) -> str:
        """The sentence in English."""
        return self.text.format(**self.values)
