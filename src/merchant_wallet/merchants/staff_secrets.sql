-- Who made secrets of merchants. `staff_secrets.py` runs this.

-- name: note
-- A person of the platform made a secret of a merchant. The person waits, unless nobody else could approve, nor could have
-- within the time of the wait.
insert into staff_secret (merchant_id, made_ms, key_no, person, eligible_ms)
select %(merchant_id)s::bigint, %(at_ms)s::bigint, %(key_no)s::int, person_of(%(actor)s::text),
       %(at_ms)s::bigint + case when exists (
           select 1 from operator o
            where o.status = 'active' and o.role in ('owner', 'operator')
              and lower(o.name collate "C") <> person_of(%(actor)s::text))
         or exists (
           select 1 from audit_entry e
            where e.action in ('operator.disable', 'operator.set_role') and e.at_ms > %(at_ms)s::bigint - %(wait_ms)s::bigint
              and (e.before->>'status' = 'active' or e.before->>'role' in ('owner', 'operator')) and e.merchant_id is null)
       then %(wait_ms)s::bigint else 0 end
    on conflict do nothing;

-- name: note_lost
-- Home may have lost who made a secret of these merchants, so everyone waits.
insert into staff_secret (merchant_id, made_ms, key_no, person, eligible_ms)
select merchant_id, %(at_ms)s::bigint, 0, %(everyone)s::text, %(at_ms)s::bigint + %(wait_ms)s::bigint
  from merchant where merchant_id = any (%(merchant_ids)s::bigint[])
    on conflict do nothing;
