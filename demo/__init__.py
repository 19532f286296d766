"""`make demo`: the whole service in a temporary folder, and a story about one shop's day.

Rules: the demo is a client. It runs the `merchant-wallet` command, and calls the service with the Python
client in `client/`. It imports nothing of the service.
"""
