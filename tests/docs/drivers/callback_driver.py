"""Drives the page's Python code for callbacks: one question per line of standard input, one answer per line."""

import sys

import callback  # type: ignore[import-not-found]  # The page's code, which the test puts beside this file.

for line in sys.stdin.buffer.read().decode().split("\n")[:-1]:
    now_s, *words, body = line.split("\t")
    print("true" if callback.is_callback(*words, body.encode(), int(now_s)) else "false")
