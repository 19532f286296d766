"""`make demo`: the whole service in a temporary folder, and a story about one shop's day.

Rules: the demo is a client. It runs the `merchant-wallet` command and speaks HTTP. It imports nothing of the
rest of the package.
"""
