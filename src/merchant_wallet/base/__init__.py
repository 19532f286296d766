"""What all other packages use: money, ids, codes, signing, settings, the database, worker loops.

Nothing here imports another package of the service. Modules are pure, except those that use SQL, files or a
clock: `db`, `pool`, `workers`, `config`, `disk`, `file_ownership`, `clock`.
"""
