-- Copies home's rates and evidence to an apart cell. `mirroring.py` runs these.

-- name: read_state
-- Which change of a rate the cell has. No row if nothing was ever copied.
select change_no, changed_ms from reference_state where row_no = 1;

-- name: read_references
-- What cells copy, in one snapshot, and the time before it on home's clock. Every change of a rate adds a row to the history, one
-- after the other. The rates are left out if the cell has the newest change. Normally there is no evidence.
select (extract(epoch from statement_timestamp()) * 1000)::bigint as read_ms,
       coalesce(h.rate_history_id, 0) as change_no, coalesce(h.set_ms, 0) as changed_ms,
       case when (coalesce(h.rate_history_id, 0), coalesce(h.set_ms, 0)) <> (%(change_no)s::bigint, %(changed_ms)s::bigint)
            then (select coalesce(jsonb_agg(to_jsonb(r)), '[]') from rate r) end as rates,
       (select coalesce(jsonb_agg(to_jsonb(e) order by e.merchant_id, e.subject), '[]') from rollback_evidence e) as evidence
  from (select 1) one
  left join (select rate_history_id, set_ms from rate_history order by rate_history_id desc limit 1) h on true;

-- name: begin_state
-- The first row, before any change was copied.
insert into reference_state (change_no, changed_ms, checked_ms) values (-1, 0, 0) on conflict (row_no) do nothing;

-- name: check_state
-- Notes that the copies were compared with home as of this moment, and says which change they have. No row if they were compared
-- with a later moment.
update reference_state set checked_ms = %(read_ms)s::bigint where row_no = 1 and checked_ms < %(read_ms)s::bigint
returning change_no, changed_ms;

-- name: note_change
-- The copies have this change.
update reference_state set change_no = %(change_no)s::bigint, changed_ms = %(changed_ms)s::bigint where row_no = 1;

-- name: delete_rates
-- The old copies.
delete from rate;

-- name: insert_rates
-- The new copies.
insert into rate select * from jsonb_populate_recordset(null::rate, %(rates)s::jsonb);

-- name: list_evidence
-- The cell's evidence, in the form in which home gives it.
select coalesce(jsonb_agg(to_jsonb(e) order by e.merchant_id, e.subject), '[]') as evidence from rollback_evidence e;

-- name: delete_evidence
-- The old copies.
delete from rollback_evidence;

-- name: insert_evidence
-- The new copies.
insert into rollback_evidence select * from jsonb_populate_recordset(null::rollback_evidence, %(evidence)s::jsonb);
