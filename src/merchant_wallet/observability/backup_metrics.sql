-- Whether, and up to when, the WAL of the own PostgreSQL is stored.

-- name: read_stored
-- Whether a slot keeps WAL for a store, and the name of the session that stores it: every role sees both.
select exists (select from pg_replication_slots where slot_name = %(slot)s),
       (select max(application_name) from pg_stat_activity where starts_with(application_name, %(session)s));

-- name: read_verified
-- When a restore of this very cluster was last rehearsed with success. After an upgrade it is another one.
select at_ms from audit_entry
where action = 'backup.verified' and after ->> 'system' = (select system_identifier::text from pg_control_system())
order by audit_no desc limit 1;
