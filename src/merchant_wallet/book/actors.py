"""Who acts: `cli:ann`, `operator:ann`, `merchant:ann`. Pure.

Rules: an actor is a door and a name; the person is the name, whichever door. Two people must be two names.
"""


def person_of(actor: str) -> str:
    """The person behind an actor such as `cli:ann` or `operator:Ann`, in lower case.

    The database's function `person_of` says the same of ASCII names, which are all that operators may have.
    """
    return actor[actor.find(":") + 1 :].lower()
