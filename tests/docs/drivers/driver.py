"""Drives the page's Python code: one question per line of standard input, one answer per line."""

import sys

import wallet  # type: ignore[import-not-found]  # The page's code, which the test puts beside this file.

for line in sys.stdin.buffer.read().decode().split("\n")[:-1]:
    what, path, secret, *rest = line.split("\t")
    if what == "sign":
        print(wallet.sign(secret, path, dict(pair.split("=", 1) for pair in rest)))
    else:
        print("true" if wallet.verify(secret, path, *rest) else "false")
