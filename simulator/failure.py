"""How a simulation ends early."""


class Broken(Exception):
    """The world itself can't go on: a program is missing, a server does not start. No finding."""


class Contradiction(Exception):
    """The service said or did what the model does not allow: a finding. The text says what and whose."""
