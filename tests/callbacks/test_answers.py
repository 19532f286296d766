"""What an answer to a callback means, in words for the engineer of the endpoint."""

import msgspec
from tests.rows import each_row

from merchant_wallet.callbacks.answers import Answer, Kept, explain_failure, find_remark, is_accepted


class KeptAnswer(msgspec.Struct, Kept, frozen=True):
    """The column of an attempt that says what came of it."""

    error: str | None


WORD = "the body of the answer is not the word success"


@each_row(
    ("body", "remark"),
    [
        (b"success", None),
        (b" Success\r\n", None),
        (b"\xef\xbb\xbfsuccess", "the word success has U+FEFF byte order mark at character 1"),
        ("SUCCESS\u200b".encode(), "the word success has U+200B zero width space at character 8"),
        ("\u00a0success\u00a0\n".encode(), "the word success has U+00A0 no-break space at character 1"),
    ],
)
def test_the_word_is_taken_with_what_nobody_sees_around_it(body: bytes, remark: str | None) -> None:
    assert is_accepted(200, body)
    assert explain_failure(Answer(1, "192.0.2.1", 200, body)) is None
    kept = KeptAnswer(find_remark(Answer(1, "192.0.2.1", 200, body)))
    assert (kept.failure, kept.remark) == (None, remark)


def test_what_was_passed_over_is_joined() -> None:
    answer = Answer(1, "192.0.2.1", 200, b"success\xc2\xa0", remark="the certificate is old")
    assert KeptAnswer(find_remark(answer)).remark == (
        "the certificate is old; the word success has U+00A0 no-break space at character 8"
    )


def test_the_word_in_an_answer_that_broke_off_is_a_failure() -> None:
    answer = Answer(1, "192.0.2.1", 200, b"success", "RemoteProtocolError: peer closed connection")
    kept = KeptAnswer(explain_failure(answer))
    assert (kept.failure, kept.remark) == ("RemoteProtocolError: peer closed connection", None)


@each_row(
    ("status", "body", "failure"),
    [
        (200, b"", f"{WORD}: it is empty"),
        (200, b"\xef\xbb\xbf \n", f"{WORD}: it is empty"),
        (200, b"OK", WORD),
        (200, b'{"code":200}', f"{WORD}: it is a JSON object, and the word must stand alone"),
        (200, b'{"msg": "success"}', f"{WORD}: it is a JSON object, and the word must stand alone"),
        (200, b'["success"]', f"{WORD}: it is a JSON array, and the word must stand alone"),
        (200, b'"success"', f"{WORD}: the word stands in quotation marks, and must stand alone"),
        (200, b"'Success'", f"{WORD}: the word stands in quotation marks, and must stand alone"),
        (200, b"success!", f"{WORD}: more than the word stands in it"),
        (200, b"[" * 4000, WORD),
        (200, "suc\u00adcess".encode(), f"{WORD}: it has U+00AD soft hyphen at character 4"),
        (200, "success".encode("utf-16"), f"{WORD}: it is not UTF-8; UTF-16 perhaps"),
        (200, "success".encode("utf-16-le"), f"{WORD}: it is not UTF-8; UTF-16 perhaps"),
        (
            200,
            b"\r\n<!DOCTYPE html><title>Sign in</title>",
            f"{WORD}: it is a page (HTML); is a sign-in or a firewall in front of the endpoint?",
        ),
        (201, b"success", "HTTP status 201: only 200 with the word success accepts a callback"),
        (204, b"", "HTTP status 204: only 200 with the word success accepts a callback"),
        (
            302,
            b"",
            "HTTP status 302: redirects are not followed, so notifyUrl must be the endpoint itself",
        ),
        (403, b"", "HTTP status 403: is a firewall or a sign-in in front of the endpoint?"),
        (405, b"", "HTTP status 405: the endpoint must take POST"),
        (500, b"success", "HTTP status 500"),
    ],
)
def test_the_reason_says_what_to_look_for(status: int, body: bytes, failure: str) -> None:
    assert not is_accepted(status, body)
    assert explain_failure(Answer(1, "192.0.2.1", status, body)) == failure
