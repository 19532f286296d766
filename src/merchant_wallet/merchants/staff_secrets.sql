-- Who made secrets of merchants. `staff_secrets.py` runs this.

-- name: note
-- A person of the platform made a secret of a merchant. The person waits, unless nobody else could approve.
insert into staff_secret (merchant_id, made_ms, key_no, person, eligible_ms)
select %(merchant_id)s::bigint, %(at_ms)s::bigint, %(key_no)s::int, person_of(%(actor)s::text),
       %(at_ms)s::bigint + case when exists (
           select 1 from operator o
            where o.status = 'active' and o.role in ('owner', 'operator')
              and lower(o.name collate "C") <> person_of(%(actor)s::text)) then %(wait_ms)s::bigint else 0 end
    on conflict do nothing;
