"""The archive: closed months of books in files, and what stays of them in the database.

Rules:
- What is archived is the beginning of a journal. Its last entry in the archive is older than the last one in
  the tables, so the end of each journal, unfinished orders and the last checkpoint are always in the tables.
- A file is written, forced to the disk, read again and checked before the database knows it. Rows are removed
  only after that, in short transactions.
- `archived_month.removed_id` is the border. Entries up to it are in files alone, all others in the tables
  alone. So a run that was killed can be continued or taken back from where it stopped.
- Order ids and references of removed entries stay in `archived_order`, with what answers a repeat.
- Nobody rewrites a file that the database knows.

Modules:
- files: the form of files and manifests, and reading them
- writing: writes one file
- months: what the database knows of the archive
- archived_journal: reads removed entries, for verification and reports
- checks: compares a file with its manifest, the database, the chain and the checkpoints
- closing: writes the closed months of a book
- removal: removes rows that are in files, and restores them
"""
