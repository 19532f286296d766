"""Where a user continues after the sign-in. Pure.

Rules: only to a page of the console, whatever the URL says.
"""

import re
from typing import Final
from urllib.parse import unquote

HOME: Final = "/console"
SIGN_IN: Final = "/console/sign-in"
_MAX_LENGTH: Final = 1000
_FORM: Final = re.compile(r"/console(?:[/?][!#$&-;=?-Z_a-z~%\[\]]*)?")


def read_return_path(text: str) -> str:
    """The console's page in a text; its first page if the text names anything else."""
    if len(text) > _MAX_LENGTH or not _FORM.fullmatch(text):
        return HOME
    path = unquote(text.partition("?")[0])
    # Browsers resolve dots and backslashes in a path, and would go elsewhere.
    if "\\" in path or "//" in path or any(part in (".", "..") for part in path.split("/")):
        return HOME
    return HOME if path == SIGN_IN or path.startswith(SIGN_IN + "/") else text
