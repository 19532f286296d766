"""`make cells-demo`: three PostgreSQL servers, one service. A cell moves under load, and a server is killed.

Rules: as the demo beside it, it runs the `merchant-wallet` command and speaks HTTP. Only `servers` uses the
service's own code, to run PostgreSQL's programs as the right user.
"""
