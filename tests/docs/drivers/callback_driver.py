"""Drives the page's Python code for callbacks: a question per line of input, an answer per line of output."""

import sys

import callback  # type: ignore[import-not-found]  # The page's code, which the test puts beside this file.

for line in sys.stdin.buffer.read().decode().split("\n")[:-1]:
    now_s, *words, body = line.split("\t")
    print("true" if callback.is_callback(*words, body.encode(), int(now_s)) else "false")
