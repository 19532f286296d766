"""What a page says of one thing is English: every text that counts has its form for one, or needs none."""

import re

from tests.rows import each_row
from tests.web.test_words import find_placeholders, list_texts

from merchant_wallet.web.languages import Language, read_words, translate
from merchant_wallet.web.plurals import ONE, choose_form

COUNTING = frozenset(
    (
        "books",
        "count",
        "days",
        "hours",
        "left",
        "length",
        "minutes",
        "most",
        "orders",
        "seconds",
        "times",
        "typed",
    )
)
"""The placeholders of numbers of things. A number that is a name, such as `{number}`, is not among them."""
NAMES_NOTHING = re.compile(
    r"\{(count|hours)\} (min|h|d|ms|compared|chosen|accepted|failed|refused|for you|more|since)\b"
    r"|\{count\} a (second|day)\b"
    r"|[:,] \{count\}\.?$|\{\w+\} of \{count\}|^the newest \{count\}$|^The last \{count\}\."
    r"|At most \{most\}\."
)
"""Forms in which the counted things are not named, or do not follow the number."""
RECORDED = ("web/refusals.py", "web/causes.py")
SAME = {
    "of {books} merchants": "the page says `of one merchant`",
    "Nothing was changed. {count} fields must be corrected.": "of one field there is another text",
    "{count} confirmations": "of one there is another text",
    "{count} confirmations so far": "of one there is another text",
    "Paid {count} times: {amount} USDT": "of one there is another text",
    "Approve {count} orders?": "of one order there is another text",
    "Cancel {count} orders?": "of one order there is another text",
    "{count} orders wait.": "of one order there is another text",
    "{count} things wait for you": "of one there is another text",
    "{times} times the usual amount": "it is said from two times on",
    "The {count} that have waited longest.": "it is said of a hundred",
    "The {count} that have waited longest, of {total}.": "it is said of a hundred",
    "At most {count} are listed here.": "the limit is a constant",
    "at most {count} characters": "no limit is one",
    "You have asked for {count} tests within the hour. Try again later.": "the limit is six",
    "Counted are the attempts of the newest {count} callbacks.": "the limit is a constant",
    "There are more than {most} movements. The CSV file has each of them.": "the limit is a constant",
    "{most} proposals of this merchant's own people wait already. Wait until some are decided.": "a constant",
    "Hours are typed here. If you mean {typed} hours, type {typed} h; seconds are {typed} s.": "far more",
    "{typed} can mean {typed}% or {share}%: write {typed}% or {share}%.": "nothing is counted",
    "Write the percent sign: {typed}%.": "nothing is counted",
    "Missing or different before: {count}. Cells take them in within seconds.": "nothing is named",
    "Nothing was asked: the last block is a number from the first block on, at most {count} blocks in all."
    " Leave it empty to read up to now.": "the limit is a constant",
    "You have {left} of 10 recovery codes left.": "the ten are counted",
}
"""Texts that never stand with one, and why."""


def list_counting() -> list[str]:
    """Every text of the pages that counts things, without refusals and causes, whose English is recorded."""
    return [
        text
        for text in read_words()
        if COUNTING & set(find_placeholders(text)) and list_texts().get(text) not in RECORDED
    ]


def test_every_text_that_counts_has_its_form_for_one() -> None:
    texts = list_counting()
    assert len(texts) > 60
    unknown = [
        text for text in texts if text not in ONE and text not in SAME and not NAMES_NOTHING.search(text)
    ]
    assert not unknown, "\n".join(unknown)


def test_no_form_is_left_over_and_each_is_of_a_text() -> None:
    assert set(ONE) | set(SAME) <= set(read_words())
    assert not set(ONE) & set(SAME)
    for text, one in ONE.items():
        assert one.counts in find_placeholders(text), text
        assert set(find_placeholders(one.text)) <= set(find_placeholders(text)), text
        assert one.text != text


@each_row(
    ("count", "said"),
    [
        (0, "0 callbacks are parked"),
        (1, "1 callback is parked"),
        ("1", "1 callback is parked"),
        (2, "2 callbacks are parked"),
        (11, "11 callbacks are parked"),
        ("1,000+", "1,000+ callbacks are parked"),
    ],
)
def test_one_callback_is_given_up_and_two_are(count: object, said: str) -> None:
    assert translate(Language.EN, "{count} callbacks are parked", count=count) == said
    assert translate(Language.ZH, "{count} callbacks are parked", count=count) == f"{count} 条回调已搁置"


def test_a_text_without_a_form_is_said_as_it_is() -> None:
    assert choose_form("{count} for you", {"count": 1}) == "{count} for you"
