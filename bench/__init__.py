"""`make bench`: how many requests a second the service handles on this machine, and what that costs.

- `merchants`: the calling merchants. `signed_requests`: their requests, written to files.
- `wrk`, `walk.lua`: the load generator. `service`: the service under load.
- `ceiling`: the same HTTP path without a database.
- `meters`: CPU, memory, disk. `rows`: one measurement. `stages`: all of them. `goals`: their targets.
- `report`: table and file. `__main__`: the command line.

Rules: the service imports nothing from here. Nothing here is a test that can fail because of time.
"""
