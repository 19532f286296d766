"""Where someone goes on after having signed in. Pure.

Rules: only a page of the console, whatever the URL says.
"""

import re
from typing import Final
from urllib.parse import unquote

HOME: Final = "/console"
SIGN_IN: Final = "/console/sign-in"
_MAX_LENGTH: Final = 1000
_FORM: Final = re.compile(r"/console(?:[/?][!#$&-;=?-Z_a-z~%\[\]]*)?")


def read_return_path(text: str) -> str:
    """The console's page that a text names; its first page when it names anything else."""
    if len(text) > _MAX_LENGTH or not _FORM.fullmatch(text):
        return HOME
    path = unquote(text.partition("?")[0])
    # A browser takes dots and backslashes out of a path by itself, and would end elsewhere.
    if "\\" in path or "//" in path or any(part in (".", "..") for part in path.split("/")):
        return HOME
    return HOME if path == SIGN_IN or path.startswith(SIGN_IN + "/") else text
