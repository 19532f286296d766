"""Bodies on the wire: request bytes to named texts, answers to envelope bytes, checks of single fields.

Rules for a request:
- It is one flat set of fields, and each value is a text.
- A JSON number keeps the literal that was sent, because the client signed that text.
- Null and the empty text count as absent and are dropped.
- A boolean, array or object becomes `NON_SCALAR`. It is refused when its field is read.
- An ambiguous body is refused as a whole: a repeated key, a lone surrogate, invalid UTF-8, or a name outside
  `[A-Za-z0-9_]{1,64}`.

In an answer each value is made once as a text. The same text is signed and sent, also for numbers.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from functools import lru_cache
from typing import Any, Final, NoReturn, cast
from urllib.parse import unquote_to_bytes

import msgspec

from merchant_wallet.base.codes import (
    BODY_MALFORMED,
    BODY_TOO_LARGE,
    FIELD_INVALID,
    MEDIA_TYPE_UNSUPPORTED,
    SUCCESS,
    Refusal,
    Refused,
    refuse,
)
from merchant_wallet.base.invisible_text import note_invisible
from merchant_wallet.base.signing import find_control_character

MAX_BODY_BYTES: Final = 16 * 1024
MAX_NAME_LENGTH: Final = 64
_MAX_STORED_NAMES: Final = 32
"""Longer lists of names are checked each time, so that no client can fill the memory."""
RESPONSE_CONTENT_TYPE: Final = "application/json; charset=utf-8"


class NonScalar(Enum):
    """The type of `NON_SCALAR`, which stands for a boolean, an array or an object."""

    NON_SCALAR = "not a string or a number"


NON_SCALAR: Final = NonScalar.NON_SCALAR
Fields = dict[str, str | NonScalar]

# One field of an answer's `data`: its name, its text (None is sent as null), and whether it is sent as a
# number.
DataItem = tuple[str, str | None, bool]
NUMBER: Final = True
TEXT: Final = False

_match_name = re.compile(rf"[A-Za-z0-9_]{{1,{MAX_NAME_LENGTH}}}").fullmatch
# Characters that change the direction of text on the screen (Unicode standard annex 9, section 2).
_search_direction = re.compile(r"[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]").search
_JSON_SPACES: Final = " \t\r\n"
_match_subject = re.compile(r"[A-Za-z0-9_]+").match
_match_long = re.compile(r"0|[1-9][0-9]{0,19}").fullmatch
_search_broken_escape = re.compile(rb"%(?![0-9A-Fa-f]{2})").search
_encode = msgspec.json.encode


def parse_body(content_type: str | None, body: bytes) -> Fields:
    """The fields of a request body that are present, in the order they were sent.

    Refused with 415 for a content type other than JSON or form in UTF-8, 413 over MAX_BODY_BYTES, 40000 for a
    body that is not one object (or form) of uniquely and properly named fields. Interface 4; RFC 8259; URL
    standard section 5.
    """
    read = find_reader(content_type, len(body))
    sent = read(body)
    if not _are_names(tuple(sent)):
        if read is _read_form and body.lstrip().startswith(b"{"):
            # What `curl -d` sends without a header.
            refuse(
                BODY_MALFORMED,
                "the body looks like JSON, but its Content-Type is that of a form: send application/json",
            )
        odd = next(filter(None, map(note_invisible, sent)), "")
        rule = Refusal(BODY_MALFORMED, f"field names must be 1 to {MAX_NAME_LENGTH} of A-Z, a-z, 0-9 and _")
        raise Refused(_add_note(rule, odd))
    return {
        name: value if type(value) is str else NON_SCALAR
        for name, value in sent.items()
        if value is not None and value != ""
    }


def find_reader(content_type: str | None, body_bytes: int) -> Callable[[bytes], dict[str, Any]]:
    """What reads a body of this type and length. Refused with 415 or 413, as `parse_body` says."""
    read = _reader_of(content_type)
    if read is None:
        refuse(
            MEDIA_TYPE_UNSUPPORTED,
            "Content-Type must be application/json or application/x-www-form-urlencoded, in UTF-8",
        )
    if body_bytes > MAX_BODY_BYTES:
        refuse(BODY_TOO_LARGE, f"the body must have at most {MAX_BODY_BYTES} bytes")
    return read


def name_invisible(refusal: Refusal, fields: Fields | None) -> Refusal:
    """The refusal, with the invisible character in the field that it begins with, if that has one."""
    subject = _match_subject(refusal.msg)
    value = fields.get(subject[0]) if subject and fields else None
    note = note_invisible(value) if isinstance(value, str) else ""
    return refusal if refusal.msg.endswith(note) else _add_note(refusal, note)


def read_signed_texts(fields: Fields) -> dict[str, str]:
    """The texts that a request's signature covers: every field except `sign`, unknown fields included.

    Refused 40001 naming the first field, `sign` among them, that is not a scalar or that holds a control
    character. Interface 5.
    """
    if NON_SCALAR in fields.values():
        _refuse_non_scalar(next(name for name, value in fields.items() if value is NON_SCALAR))
    texts = cast(dict[str, str], fields.copy())
    offender = find_control_character(texts)
    if offender is not None:
        refuse(FIELD_INVALID, f"{offender} must not contain control characters")
    texts.pop("sign", None)
    return texts


def require(fields: Fields, name: str, max_length: int) -> str:
    """The text of a required field.

    Refused 40001 when absent, no scalar or over `max_length` code points.
    """
    value = fields.get(name)
    # Each request has several of these, and nearly all of them are as they should be.
    if type(value) is str and len(value) <= max_length:
        return value
    text = optional(fields, name, max_length)
    if text is None:
        _refuse_absent(fields, name)
    return text


def _refuse_absent(fields: Fields, name: str) -> NoReturn:
    """Names the field that was sent in its place, if only the case of letters differs."""
    lower = name.lower()
    near = next((sent for sent in fields if sent != name and sent.lower() == lower), None)
    refuse(FIELD_INVALID, f"{name} is required" if near is None else f"{name} is required, not {near}")


def optional(fields: Fields, name: str, max_length: int) -> str | None:
    """As `require`, for an optional field: None if absent."""
    value = fields.get(name)
    if value is NON_SCALAR:
        _refuse_non_scalar(name)
    if value is not None and len(value) > max_length:
        refuse(FIELD_INVALID, f"{name} must have at most {max_length} characters")
    return value


def require_order_id(fields: Fields, name: str, max_length: int) -> str:
    """As `require`, for an id that is shown on pages. Refused 40001 if it has direction controls."""
    text = require(fields, name, max_length)
    refuse_direction_control(name, text)
    return text


def optional_order_id(fields: Fields, name: str, max_length: int) -> str | None:
    """As `require_order_id`, for an optional id: None if absent."""
    return require_order_id(fields, name, max_length) if name in fields else None


def refuse_direction_control(name: str, text: str) -> None:
    """Check that a page shows an id as it was sent. Refused 40001."""
    if not text.isascii() and _search_direction(text):
        refuse(FIELD_INVALID, f"{name} must not contain characters that change the direction of text")


def require_long(fields: Fields, name: str) -> int:
    """The value of a Long field: 1 to 20 decimal digits without leading zeros, else refused 40001.

    The value may exceed 64 bits. Compare it with a limit before it reaches SQL.
    """
    text = require(fields, name, 20)
    if _match_long(text) is None:
        refuse(FIELD_INVALID, f"{name} must be a whole number of digits, without leading zeros")
    return int(text)


def list_present_texts(items: Iterable[DataItem]) -> dict[str, str]:
    """The fields of an answer's `data` that its signature covers: those that are neither null nor empty."""
    return {name: text for name, text, _ in items if text}


def encode_success(items: Sequence[DataItem], sign: str) -> bytes:
    """The envelope of a success; `sign` follows the fields of `data`.

    A number is sent exactly as its text.
    """
    return _encode(
        {
            "code": SUCCESS,
            "msg": "success",
            "data": {
                **{
                    name: msgspec.Raw(text) if is_number and text else text for name, text, is_number in items
                },
                "sign": sign,
            },
        }
    )


def encode_refusal(refusal: Refusal) -> bytes:
    """The envelope of a refusal: `data` is its payload, or null."""
    return _encode({"code": refusal.code, "msg": refusal.msg, "data": refusal.payload})


@lru_cache(maxsize=256)
def _reader_of(content_type: str | None) -> Callable[[bytes], dict[str, Any]] | None:
    media_type, *parameters = (content_type or "").split(";")
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        if key.strip().lower() == "charset" and value.strip().strip('"').lower() not in ("utf-8", "utf8"):
            return None
    return _READERS.get(media_type.strip().lower())


def _are_names(names: tuple[str, ...]) -> bool:
    return _are_known_names(names) if len(names) <= _MAX_STORED_NAMES else all(map(_match_name, names))


@lru_cache(maxsize=256)
def _are_known_names(names: tuple[str, ...]) -> bool:
    # An operation's requests have the same names in the same order, so one look-up replaces a check of each.
    return all(map(_match_name, names))


def _read_json(body: bytes) -> dict[str, Any]:
    try:
        text = body.decode()
        value = _decode(text)
        if "\\u" in text:
            # Only an escape can contain a lone surrogate. Encoding the result finds it at any depth.
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeDecodeError:
        refuse(BODY_MALFORMED, "the body is not valid UTF-8")
    except UnicodeEncodeError:
        refuse(BODY_MALFORMED, "the body holds half of a surrogate pair")
    except RecursionError:
        refuse(BODY_MALFORMED, "the body is nested too deeply")
    except json.JSONDecodeError as error:
        if not body:
            refuse(BODY_MALFORMED, "the body is empty")
        place = error.pos
        odd = text[place : place + 1]
        note = note_invisible(odd.strip(_JSON_SPACES), place)
        rule = Refusal(BODY_MALFORMED, f"the body is not valid JSON at character {place}")
        raise Refused(_add_note(rule, note)) from None
    if not isinstance(value, dict):
        refuse(BODY_MALFORMED, "the body must be a JSON object")
    return value


def _decode(text: str) -> Any:
    # `decode` looks for spaces around the object with two patterns. Most bodies have none.
    if text.startswith("{"):
        value, end = _DECODER.raw_decode(text)
        if end == len(text):
            return value
    return _DECODER.decode(text)


def _read_form(body: bytes) -> dict[str, Any]:
    # Most forms have no escape: one check of the whole body saves a check of each part.
    decode = _unescape if b"%" in body or b"+" in body else bytes.decode
    try:
        pairs = [
            (decode(name), decode(value))
            for name, _, value in (part.partition(b"=") for part in body.split(b"&") if part)
        ]
    except UnicodeDecodeError:
        refuse(BODY_MALFORMED, "the body is not valid UTF-8")
    return _unique(pairs)


def _unescape(raw: bytes) -> str:
    raw = raw.replace(b"+", b" ")
    if b"%" in raw:
        if _search_broken_escape(raw):
            refuse(BODY_MALFORMED, "the body has a percent sign that two hex digits do not follow")
        raw = unquote_to_bytes(raw)
    return raw.decode()


def _find_repeated(pairs: list[tuple[str, Any]]) -> str:
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            return name
        seen.add(name)
    raise AssertionError("no name stands twice")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) != len(pairs):
        name = _find_repeated(pairs)
        # Only what can be the name of a field is repeated in the answer.
        if _match_name(name):
            refuse(BODY_MALFORMED, f"the body names the field {name} twice")
        refuse(BODY_MALFORMED, "the body names a field twice")
    return unique


def _refuse_constant(literal: str) -> NoReturn:
    refuse(BODY_MALFORMED, f"the body holds {literal}, which is not JSON")


# This decoder scans in C and gives numbers as their literals.
_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_unique, parse_int=str, parse_float=str, parse_constant=_refuse_constant
)
_READERS: Final[dict[str, Callable[[bytes], dict[str, Any]]]] = {
    "application/json": _read_json,
    "application/x-www-form-urlencoded": _read_form,
}
CONTENT_TYPES: Final = tuple(_READERS)


def _add_note(refusal: Refusal, note: str) -> Refusal:
    return msgspec.structs.replace(refusal, msg=refusal.msg + note)


def _refuse_non_scalar(name: str) -> NoReturn:
    raise Refused(Refusal(FIELD_INVALID, f"{name} must be a string or a number"))
