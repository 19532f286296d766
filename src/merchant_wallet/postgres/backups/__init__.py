"""Back-ups of the own PostgreSQL: base back-ups and all WAL, encrypted and signed, in a folder or in S3.

Rules:
- WAL is read from `pg_wal` up to the flushed position every two seconds. A replication slot keeps it in
  `pg_wal` until the store has confirmed it. So nothing is removed that is not stored.
- Each object is one age file. Its first line names it, so no object can take another one's place. Whoever
  writes objects needs only the recipient, which reads nothing, and the installation's key, which signs.
- A restore uses nothing that the installation has not signed. Settings never come from a back-up.
- A base back-up is complete when its `complete` object exists. It contains the WAL of its own time, so it can
  be restored without any other object.
- Keys of the service are never in a back-up.

Modules:
- names: names of objects, and positions in the WAL. Pure
- encryption: the key file; how an object is sealed, signed, opened and authenticated
- stores, s3_store: where objects lie
- catalogue: what there is: base back-ups, WAL without gaps, what is no longer needed
- base: makes a base back-up
- shipping: stores the WAL of a running server
- queries: the SQL
- errors: what can go wrong
- fetching: gets a base back-up and WAL
- recovery: lets PostgreSQL replay them
"""
