"""Form fields are read exactly as typed, and other content types are refused."""

import pytest
from starlette.requests import Request
from starlette.types import Message
from tests.crash.shop import run
from tests.rows import each_row

from merchant_wallet.web.forms import MAX_BYTES, MAX_FIELDS, BadForm, Form, parse_form, read_form

FORM = "application/x-www-form-urlencoded"


def send(pieces: list[bytes], content_type: str = FORM) -> Form:
    """Parse the form of a request whose body comes in pieces."""
    waiting = list(pieces)

    async def receive() -> Message:
        return {"type": "http.request", "body": waiting.pop(0), "more_body": bool(waiting)}

    scope = {"type": "http", "method": "POST", "headers": [(b"content-type", content_type.encode())]}

    async def read() -> Form:
        return await read_form(Request(scope, receive))

    return run(read())


def test_fields_come_by_name_and_all_of_a_name_in_order() -> None:
    form = send([b"pin=482", b"913&order=2&order=1&empty="])
    assert form.text("pin") == "482913"
    assert form.all("order") == ["2", "1"]
    assert "empty" in form
    assert "other" not in form
    assert form.text("other", "none") == "none"


def test_spaces_around_a_text_go_and_those_of_a_secret_stay() -> None:
    form = parse_form(b"name=+Alice+&secret=+x+")
    assert (form.text("name"), form.raw("secret")) == ("Alice", " x ")


def test_line_ends_are_one_character() -> None:
    assert parse_form(b"body=a%0D%0Ab").raw("body") == "a\nb"


def test_what_was_typed_can_be_shown_again() -> None:
    assert parse_form(b"a=%3Cb%3E&c=1&c=2").kept() == {"a": "<b>", "c": "1"}


@each_row(
    "body",
    [b"name=%FF%FE", b"name=\xff", b"name=a%00b", b"na%00me=a", b"&".join([b"a=1"] * (MAX_FIELDS + 1))],
    ids=["not UTF-8, escaped", "not UTF-8", "null in a value", "null in a name", "too many fields"],
)
def test_what_is_no_form_is_refused(body: bytes) -> None:
    with pytest.raises(BadForm):
        send([body])


@each_row("content_type", ["application/json", "multipart/form-data; boundary=x", "text/plain"])
def test_other_kinds_of_bodies_are_refused(content_type: str) -> None:
    with pytest.raises(BadForm):
        send([b"a=1"], content_type)


def test_a_form_may_be_as_long_as_the_limit_and_not_a_byte_longer() -> None:
    assert send([b"a=" + b"x" * (MAX_BYTES - 2)]).text("a")
    with pytest.raises(BadForm):
        send([b"a=" + b"x" * (MAX_BYTES - 2), b"x"])
