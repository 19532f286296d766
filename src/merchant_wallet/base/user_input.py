"""Text that a person typed and that can't be read."""


class InvalidInput(ValueError):
    """A part of what was typed breaks a rule. The text is a sentence that begins with that part in quotes."""

    def __init__(self, part: str, rest: str) -> None:
        super().__init__(f"{part!r} {rest}")
        self.part = part
