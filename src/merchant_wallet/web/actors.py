"""Actors in words: `operator:ann` is shown as "ann". Pure.

Rule: the platform's own person is a bare name. Whoever acts from elsewhere is named with the place.
"""

from collections.abc import Callable, Mapping
from typing import Final

from merchant_wallet.web.languages import N_

SIDES: Final[Mapping[str, str]] = {
    "cli": N_("{name}, on the command line"),
    "merchant": N_("{name}, of the merchant"),
    "sub-user": N_("{name}, sub-user"),
    "operator": "{name}",
    "sandbox": N_("a test with the key {name}"),
}
"""Who acted, by the first part of the actor's name."""

PROGRAMS: Final[Mapping[str, str]] = {
    "reconciliation": N_("reconciliation"),
    "sign-in": N_("the sign-in page"),
    "up": N_("the command up"),
    "worker": N_("a worker"),
}
"""Programs that act by themselves."""

Translate = Callable[..., str]


def name_actors(values: Mapping[str, str], translate: Translate) -> dict[str, str]:
    """The values of a text, whose `who` is an actor, with the actor in words."""
    return {name: say_actor(value, translate) if name == "who" else value for name, value in values.items()}


def say_actor(actor: str, translate: Translate) -> str:
    """Who did it, in words. The name of a certain process stays as it is."""
    if actor in PROGRAMS:
        return translate(PROGRAMS[actor])
    side, colon, name = actor.partition(":")
    return translate(SIDES[side], name=name) if colon and side in SIDES else actor
