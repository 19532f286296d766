"""`python -m demo.authenticator KEY`: the code that an authenticator app would show for a key (RFC 6238).

Rules: for a demo alone. A second factor on the same machine as the password is none.
"""

import base64
import hashlib
import hmac
import sys
import time
from collections.abc import Sequence
from typing import Final

STEP_S: Final = 30
DIGITS: Final = 6


def main(arguments: Sequence[str]) -> int:
    """Print the present code. Returns the exit status: 0 done, 2 no key."""
    try:
        (typed,) = arguments
        code = make_code(typed, int(time.time()))
    except ValueError:
        sys.stderr.write("usage: python -m demo.authenticator KEY, as the console's page shows the key\n")
        return 2
    sys.stdout.write(f"{code}\n")
    return 0


def make_code(key: str, at_s: int) -> str:
    """The code of a key at a time. Raises ValueError for what is no base32. Pure."""
    letters = key.replace(" ", "").upper()
    secret = base64.b32decode(letters + "=" * (-len(letters) % 8))
    digest = hmac.digest(secret, (at_s // STEP_S).to_bytes(8), hashlib.sha1)
    begin = digest[-1] & 0xF
    number = int.from_bytes(digest[begin : begin + 4]) & 0x7FFF_FFFF
    return f"{number % 10**DIGITS:0{DIGITS}d}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
