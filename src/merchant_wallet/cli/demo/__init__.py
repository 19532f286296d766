"""`make demo`: the whole service on a folder of its own, and one shop's day told through it.

Rules: the demo is a client. It drives the `merchant-wallet` command and speaks HTTP; it imports nothing of
the service.
"""
