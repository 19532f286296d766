"""Actors: `cli:ann`, `operator:ann`, `merchant:ann`. Pure.

An actor is a channel and a name. The name alone identifies the person. Two people must have two different
names.
"""

from typing import Final

EVERYONE: Final = "*"
"""Stands for every person in a wait. No operator and no user of a system has this name."""


def person_of(actor: str) -> str:
    """The person behind an actor such as `cli:ann` or `operator:Ann`, in lower case.

    The database's function `person_of` gives the same result for ASCII names, and operators have no others.
    """
    return actor[actor.find(":") + 1 :].lower()
