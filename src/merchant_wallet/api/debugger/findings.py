"""Findings of the signature debugger and their sentences. Pure.

Rules:
- A finding has a kind from `SENTENCES` and the values of its sentence. A page translates the sentence first.
- No finding has a secret, or a signature that we computed.
"""

import unicodedata
from typing import Final

import msgspec

WRONG: Final = "wrong"
"""The service refuses the request for this, or the two texts differ in it."""
NOTE: Final = "note"
"""Not an error, but often a hint to one."""

SENTENCES: Final[dict[str, tuple[str, str]]] = {
    # The body.
    "body": (WRONG, "The body can't be read: {msg}"),
    "bom": (WRONG, "The body begins with a byte order mark, U+FEFF; send it without."),
    "absent": (NOTE, "{field} is null or empty, so it is not signed: leave its line out."),
    "non-scalar": (WRONG, "{field} is neither a string nor a number; such a field is refused."),
    "control": (WRONG, "{field} holds {character}; a value with a control character is refused."),
    "event-id": (WRONG, "eventId belongs to callbacks; a request that carries it is refused."),
    "hidden": (WRONG, "{field} holds {hidden}, which MD5 would sign as a field; such a value is refused."),
    "number": (
        NOTE,
        "{field} was sent as the number {sent} and is signed as exactly that text; "
        "a program that reads and prints it again may sign {shortest}. Send it as a string.",
    ),
    "escaped": (NOTE, "{field} was sent with JSON escapes; what is signed is the text they stand for."),
    "percent": (
        NOTE,
        "{field} holds {escape}: it is signed as it stands, nothing is URL-encoded or decoded.",
    ),
    "edges": (NOTE, "{field} begins or ends with a space, which is signed too."),
    "decomposed": (NOTE, "{field} is not in Unicode's composed form (NFC); it is signed as it was sent."),
    # The path.
    "path-unknown": (WRONG, "{path} is the path of no operation; it must be {right}."),
    "path-nearly": (WRONG, "The path is {path}, it must be exactly {right}."),
    # The signature's form.
    "sign-missing": (WRONG, "There is no sign."),
    "sign-length": (WRONG, "sign has {length} characters; it must have 32."),
    "sign-not-hex": (WRONG, "sign must be hexadecimal digits; {character} is none."),
    "sign-case": (NOTE, "sign is in {case} case; we take either, our own is in {right} case."),
    # Their string to sign.
    "equal": (NOTE, "Both strings are the same: what differs is the secret or how it was used."),
    "line-end": (WRONG, "Your string ends with {character}; nothing follows the last line."),
    "line-start": (WRONG, "Your string begins with {character}; the first line is the path."),
    "crlf": (
        WRONG,
        "Your lines are joined with carriage return and line feed; join them with a line feed, U+000A.",
    ),
    "joined": (WRONG, "Your fields are joined with &; join them with a line feed, U+000A."),
    "no-path": (WRONG, "Your first line is not the path; it must be {right}."),
    "other-path": (WRONG, "Your first line is {path}, it must be {right}."),
    "path-not-signed": (WRONG, "MD5 signs no path: begin with the first field."),
    "order": (WRONG, "Your fields are in another order; sort them by name in byte order, A before a."),
    "order-case": (
        WRONG,
        "Your fields are sorted without regard to case; in byte order A to Z come before a to z.",
    ),
    "order-sent": (
        WRONG,
        "Your fields are in the order in which they were sent; sort them by name in byte order.",
    ),
    "signs-sign": (WRONG, "Your string holds sign itself; leave it out."),
    "signs-absent": (WRONG, "Your string holds {field}, which is null or empty: leave it out."),
    "signs-secret": (
        WRONG,
        "Your string holds a line {field}; the secret is no line, it is the key of the HMAC.",
    ),
    "missing": (WRONG, "Your string lacks {field}; every field that was sent is signed, unknown ones too."),
    "extra": (WRONG, "Your string holds {field}, which the body doesn't."),
    "twice": (WRONG, "Your string holds {field} twice."),
    "url-encoded": (WRONG, "{field} is URL-encoded in your string; sign the text itself."),
    "quoted": (WRONG, "{field} stands in quotation marks in your string; sign the text alone."),
    "number-text": (
        WRONG,
        "{field} is {theirs} in your string and {ours} in the body; sign the text that you send.",
    ),
    "spaces": (WRONG, "{field} differs by spaces: yours is {theirs}, the body's is {ours}."),
    "value": (WRONG, "{field} is {theirs} in your string and {ours} in the body."),
    "signs-body": (WRONG, "Your string is the body itself; sign the lines as shown here."),
    # Their signature, tried with the merchant's secrets.
    "matches": (NOTE, "The signature is right."),
    "matches-older": (NOTE, "The signature is right, made with the older of the two secrets."),
    "matches-theirs": (
        WRONG,
        "The signature is right for your string; so only the string differs from ours.",
    ),
    "other-method": (WRONG, "The signature was made with {used}; this merchant's method is {method}."),
    "without-path": (WRONG, "The signature was made without the line of the path."),
    "with-line-end": (WRONG, "The signature was made with a line feed after the last line."),
    "with-crlf": (WRONG, "The signature was made with lines joined by carriage return and line feed."),
    "with-ampersand": (WRONG, "The signature was made with the fields joined by & instead of line feeds."),
    "plain-hash": (WRONG, "The signature is a plain SHA-256 over the string with the secret, not an HMAC."),
    "whole-hmac": (WRONG, "The signature is the whole HMAC of 64 characters; send its first 32."),
    "base64": (WRONG, "The signature is the HMAC in Base64; send it in hexadecimal digits."),
    "secret-as-hex": (
        WRONG,
        "The secret was decoded from hexadecimal digits; its characters themselves are the key.",
    ),
    "secret-with-line-end": (WRONG, "The secret was used with a line end or spaces behind it."),
    "secret-and-text-swapped": (WRONG, "Key and text of the HMAC are swapped: the secret is the key."),
    "no-match": (WRONG, "The signature fits neither secret of this merchant in any way we tried."),
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
        """The sentence without its values, as translations are looked up by it."""
        return SENTENCES[self.kind][1]

    @property
    def sentence(self) -> str:
        """The sentence in English."""
        return self.text.format(**self.values)


_CONTROL_NAMES: Final = {
    "\0": "null",
    "\t": "tab",
    "\n": "line feed",
    "\r": "carriage return",
    "\x1b": "escape",
    "\x7f": "delete",
}


def describe_character(character: str) -> str:
    """An unambiguous name of a character: `U+000D carriage return`, `U+0041 A`. "" is the end of the text."""
    if not character:
        return "the end of the text"
    code = f"U+{ord(character):04X}"
    if character in _CONTROL_NAMES:
        return f"{code} {_CONTROL_NAMES[character]}"
    if "!" <= character <= "~":
        return f"{code} {character}"
    return f"{code} {unicodedata.name(character, 'unnamed').lower()}"
