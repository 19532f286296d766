"""`make bench`: how many requests a second the service takes on this machine, and what that costs.

supply: signed requests in files · wrk + walk.lua: the load generator · cast: the merchants that call · house:
the service under load · ceiling: the same HTTP path without a database · meters: processor, memory, disk ·
rows: one measurement · stages: which measurements · goals: what they are held against · report: table and
file · `__main__`: the command line. Rules: nothing here is imported by the service, and nothing here is a
test that can fail by time.
"""
