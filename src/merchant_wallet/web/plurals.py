"""The English texts that say another thing of one than of many. Pure.

Rules:
- A text is written for many. `ONE` has its form for exactly one, and which placeholder counts.
- Chinese has one form, so the Chinese of a text stays the only one.
- A test goes through every text that counts something, and asks for its form here.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple


class One(NamedTuple):
    """A text for exactly one, and the name of the placeholder that counts."""

    counts: str
    text: str


ONE: Final[Mapping[str, One]] = {
    "Too many tries. Try again in {seconds} seconds.": One(
        "seconds", "Too many tries. Try again in {seconds} second."
    ),
    "{left} of 10 codes are left. Make new ones before they run out.": One(
        "left", "{left} of 10 codes is left. Make new ones before you have none."
    ),
    "{left} of 10 codes are left. Each signs you in once when your authenticator is not at hand.": One(
        "left", "{left} of 10 codes is left. It signs you in once when your authenticator is not at hand."
    ),
    "{count} other sessions were ended.": One("count", "{count} other session was ended."),
    "{count} sessions were ended.": One("count", "{count} session was ended."),
    "{days} days": One("days", "{days} day"),
    "about {days} days": One("days", "about {days} day"),
    "about {hours} hours": One("hours", "about {hours} hour"),
    "{count} entries: each hash was computed again and chained to the one before, up to the end of the"
    " log.": One("count", "{count} entry: its hash was computed again, up to the end of the log."),
    "{count} entries before it are sound. Keep the database as it is and compare it with a backup.": One(
        "count", "{count} entry before it is sound. Keep the database as it is and compare it with a backup."
    ),
    "sign has {length} characters. It must have 32.": One(
        "length", "sign has {length} character. It must have 32."
    ),
    "Volumes, fees by day and sub-users lack the newest {count} entries; the workers are adding them"
    " up.": One(
        "count", "Volumes, fees by day and sub-users lack the newest entry; the workers are adding it up."
    ),
    "{count} entries were replayed, and everything agrees with them.": One(
        "count", "{count} entry was replayed, and everything agrees with it."
    ),
    "The workers compare the books with the chains every {minutes} minutes.": One(
        "minutes", "The workers compare the books with the chains every minute."
    ),
    "The workers compare the books with the chains every {seconds} seconds.": One(
        "seconds", "The workers compare the books with the chains every second."
    ),
    "Merchant not told: given up after {count} attempts": One(
        "count", "Merchant not told: given up after {count} attempt"
    ),
    "{count} other orders to it today": One("count", "{count} other order to it today"),
    "An obstacle on {chain} keeps {count} orders waiting": One(
        "count", "An obstacle on {chain} keeps {count} order waiting"
    ),
    "The hot wallet on {chain} holds too little for {count} orders": One(
        "count", "The hot wallet on {chain} holds too little for {count} order"
    ),
    "The hot wallet on {chain} holds too little coin for the network fee of {count} orders": One(
        "count", "The hot wallet on {chain} holds too little coin for the network fee of {count} order"
    ),
    "Sweeps of {count} addresses on {chain} have failed": One(
        "count", "The sweep of {count} address on {chain} has failed"
    ),
    "The token on {chain} is replaced by another contract, and {count} orders wait: {why}": One(
        "count", "The token on {chain} is replaced by another contract, and {count} order waits: {why}"
    ),
    "Looks like {ends}, paid {count} times, but is another": One(
        "count", "Looks like {ends}, paid once, but is another"
    ),
    "{count} smallest units": One("count", "{count} smallest unit"),
    "{count} callbacks are parked": One("count", "{count} callback is parked"),
    "{count} sign-ins failed within a day: {subject}": One(
        "count", "{count} sign-in failed within a day: {subject}"
    ),
    "{count} more sign-ins failed since {who} looked: {subject}": One(
        "count", "{count} more sign-in failed since {who} looked: {subject}"
    ),
    "{count} deposits on {chain} wait until more arrives": One(
        "count", "{count} deposit on {chain} waits until more arrives"
    ),
    "{count} things": One("count", "{count} thing"),
    "{count} adjustments to decide": One("count", "{count} adjustment to decide"),
    "{count} failed attempts to sign in as you since your last sign-in, the last on {when} from"
    " {source}.": One(
        "count", "{count} failed attempt to sign in as you since your last sign-in, on {when} from {source}."
    ),
    "at the last week's pace: {amount} USDT and {count} payouts a day": One(
        "count", "at the last week's pace: {amount} USDT and {count} payout a day"
    ),
    "at least {count} payouts": One("count", "at least {count} payout"),
    "begun {count} times": One("count", "begun once"),
    "{count} attempts": One("count", "{count} attempt"),
    "{count} payouts within {hours} h, more than {limit}": One(
        "count", "{count} payout within {hours} h, more than {limit}"
    ),
    "You signed in with a recovery code; {left} are left. A lost phone stays your second factor until an"
    " owner resets your sign-in. Make new codes on your account page.": One(
        "left",
        "You signed in with a recovery code; {left} is left. A lost phone stays your second factor until an"
        " owner resets your sign-in. Make new codes on your account page.",
    ),
    "You signed in with a recovery code; {left} are left. A lost phone stays your second factor until an"
    " owner resets your sign-in. Failed attempts since your last sign-in: {count}, the last on {when} from"
    " {source}.": One(
        "left",
        "You signed in with a recovery code; {left} is left. A lost phone stays your second factor until an"
        " owner resets your sign-in. Failed attempts since your last sign-in: {count}, the last on {when}"
        " from {source}.",
    ),
    "{count} suggestions": One("count", "{count} suggestion"),
    "Not complete yet: {count} entries are not added up.": One(
        "count", "Not complete yet: {count} entry is not added up."
    ),
}


def choose_form(text: str, values: Mapping[str, object]) -> str:
    """The form of an English text for these values."""
    one = ONE.get(text)
    return one.text if one is not None and str(values.get(one.counts)) == "1" else text
