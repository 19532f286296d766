"""Chinese for the refusals of the interface, for people who read them on a page.

Rules: a refusal is stored in English, as it was answered, and translated when it is shown. Without a
translation it is shown in English.
"""

import re
from collections.abc import Callable
from functools import cache, partial
from typing import Final

from merchant_wallet.web.languages import N_, Language, translate

FORMS: Final = (
    N_("{refusal} (it has {character} at character {place})"),
    N_("{field} is required, not {sent}"),
    N_("{field} is required"),
    N_("{field} must have at most {count} characters"),
    N_("{field} must have at most {count} decimals"),
    N_("{field} must be between {low} and {high}"),
    N_("{field} must be a plain decimal such as 12.5, without sign, exponent or leading zeros"),
    N_("{field} must be a whole number of digits, without leading zeros"),
    N_("{field} must be a string or a number"),
    N_("{field} must not contain control characters"),
    N_("{field} must not contain {hidden} with the method MD5"),
    N_("{field} must not contain characters that change the direction of text"),
    N_("{field}: belongs to callbacks"),
    N_("{field} must be USDT or KFB"),
    N_("{field}: this merchant holds USDT alone and has nothing to exchange"),
    N_("{operation} is disabled for this merchant"),
    N_("this appKey may not use {operation}"),
    N_("timestamp must be within {seconds} s of the server's clock"),
    N_("more than {rate} requests a second"),
    N_("currency must be {currency} for this merchant"),
    N_("chainType must be {chains}"),
    N_("address is not valid on {chain}: {why}"),
    N_("notifyUrl must begin with {schemes}"),
    N_("orderId: an order in status {status} can't be {done}"),
    N_("the body must have at most {count} bytes"),
    N_("the body did not arrive within {seconds} s"),
    N_("the body is not valid JSON at character {at}"),
    N_("the body names the field {field} twice"),
    N_("the body holds {literal}, which is not JSON"),
    N_("field names must be 1 to {count} of A-Z, a-z, 0-9 and _"),
    N_("currency must be {currencies}"),
    N_("currency: this merchant has {currency} alone"),
    N_("screening must be {verdicts}"),
    N_("finality must be {one} or {other}"),
    N_("orderId: the transfer is final, the order is in {status}"),
    N_("txnStatus must be 1, 2, 3, 4 or 6. For {status} use its recipient"),
    N_("you have no own deposit address on {chain} yet: try again soon"),
    N_("{count} of your deposits wait on {chain}, {all} in all: confirm some"),
    N_("a merchant has at most {count} streams of callbacks here"),
    N_("{field}: you have no such event"),
    N_("address, extUserId: send one of them"),
    N_("address: neither yours nor of one of your sub-users"),
    N_("after: no attempt at this event is known any more; leave it out"),
    N_("this process stops; ask again"),
    N_("{meaning} (a test value)"),
)
"""Sentences with a field, a number or a word of the request. The first one that fits is taken."""


def translate_refusal(language: Language, msg: str) -> str:
    """A refusal's `msg` in a language."""
    return msg if language is Language.EN else say_refusal(msg, partial(translate, language))


def say_refusal(msg: str, say: Callable[..., str]) -> str:
    """A refusal's `msg` in the language of `say`."""
    if (told := say(msg)) != msg:
        return told
    for form, pattern in _read_patterns():
        if found := pattern.fullmatch(msg):
            values = found.groupdict()
            if "refusal" in values:
                values["refusal"] = say_refusal(values["refusal"], say)
            return say(form, **values)
    return msg


@cache
def _read_patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((form, re.compile(_PLACE.sub(r"(?P<\1>.+)", re.escape(form)))) for form in FORMS)


_PLACE: Final = re.compile(r"\\\{(\w+)\\\}")
