"""What all other rooms stand on: money, ids, codes, signing, settings, the database, worker loops.

Rules: nothing here imports another room. Modules without SQL and clock are pure; `db`, `workers` and
`config` are not.
"""
