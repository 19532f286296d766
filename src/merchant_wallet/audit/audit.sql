-- The audit log. `records.py`, `verify.py` and `checkpoints.py` run these.

-- name: lock_head
-- Takes the log's only lock, and returns the head.
select entry_count, head_hash, last_ms from audit_head for update;

-- name: append
-- Moves the head, only from the entry that was seen, and adds the next one.
with moved as (
    update audit_head
       set entry_count = %(audit_no)s::bigint, head_hash = %(hash)s::bytea, last_ms = %(at_ms)s::bigint
     where entry_count = %(audit_no)s::bigint - 1
    returning entry_count)
insert into audit_entry (audit_no, at_ms, actor, action, subject, merchant_id, source, before, after, hash)
select entry_count, %(at_ms)s::bigint, %(actor)s::text, %(action)s::text, %(subject)s::text, %(merchant_id)s::bigint,
       %(source)s::text, %(before)s::jsonb, %(after)s::jsonb, %(hash)s::bytea
  from moved;

-- name: read_entry
-- One entry by its number.
select audit_no, at_ms, actor, action, subject, merchant_id, source, before, after, hash
  from audit_entry where audit_no = %(audit_no)s::bigint;

-- name: list_all
-- The newest entries before a number.
select audit_no, at_ms, actor, action, subject, merchant_id, source, before, after, hash
  from audit_entry
 where audit_no < %(before_no)s::bigint
 order by audit_no desc
 limit %(limit)s::int;

-- name: list_of_merchant
-- The newest entries about one merchant.
select audit_no, at_ms, actor, action, subject, merchant_id, source, before, after, hash
  from audit_entry
 where merchant_id = %(merchant_id)s::bigint and audit_no < %(before_no)s::bigint
   and (%(actor)s::text is null or actor = %(actor)s::text) and (%(action)s::text is null or action = %(action)s::text)
 order by audit_no desc
 limit %(limit)s::int;

-- name: list_of_actor
-- The newest entries of one actor.
select audit_no, at_ms, actor, action, subject, merchant_id, source, before, after, hash
  from audit_entry
 where actor = %(actor)s::text and audit_no < %(before_no)s::bigint
   and (%(action)s::text is null or action = %(action)s::text)
 order by audit_no desc
 limit %(limit)s::int;

-- name: list_of_action
-- The newest entries of one kind.
select audit_no, at_ms, actor, action, subject, merchant_id, source, before, after, hash
  from audit_entry
 where action = %(action)s::text and audit_no < %(before_no)s::bigint
 order by audit_no desc
 limit %(limit)s::int;

-- name: list_of_subject
-- The newest entries of one kind about one thing. Of a kind that is rare: its others are read, too.
select audit_no, at_ms, actor, action, subject, merchant_id, source, before, after, hash
  from audit_entry
 where merchant_id = %(merchant_id)s::bigint and action = %(action)s::text and subject = %(subject)s::text
 order by audit_no desc
 limit %(limit)s::int;

-- name: begin_snapshot
-- The whole log is verified in one snapshot.
set transaction isolation level repeatable read, read only;

-- name: page_entries
-- The next page of the log, oldest first.
select audit_no, at_ms, actor, action, subject, merchant_id, source, before, after, hash
  from audit_entry
 where audit_no > %(after_no)s::bigint
 order by audit_no
 limit %(limit)s::int;

-- name: read_head
-- The head of the log.
select entry_count, head_hash, last_ms from audit_head;

-- name: read_hashes
-- The current hashes of the entries that checkpoints name.
select audit_no, hash from audit_entry where audit_no = any(%(audit_nos)s::bigint[]);
