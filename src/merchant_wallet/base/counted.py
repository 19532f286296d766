"""A number with what it counts, in English: `1 merchant`, `2 merchants`. Pure."""


def count_of(number: int, one: str, many: str = "") -> str:
    """A number and its thing. `many` is for things whose plural is not the word with an s."""
    return f"{number} {one if number == 1 else many or one + 's'}"
