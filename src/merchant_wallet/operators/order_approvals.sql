-- Who may approve a merchant's orders. `order_approvals.py` runs these.

-- name: list_order_eligible_ms
-- The time from which a person's approvals of each merchant's orders count; 0 if always.
select m.merchant_id, greatest(
    coalesce((select max(eligible_ms) from operator_wait where person = person_of(%(actor)s::text)), 0),
    coalesce((select max(eligible_ms) from staff_secret s
               where s.merchant_id = m.merchant_id and person in (person_of(%(actor)s::text), '*')), 0))
  from unnest(%(merchant_ids)s::bigint[]) m (merchant_id);

-- name: count_approval
-- Adds an approval to the person's sum of the day, and returns the sum. Earlier days go.
with gone as (
    delete from approved_sum where person = person_of(%(actor)s::text) and day < %(kept_day)s::bigint)
insert into approved_sum as s (person, day, units)
values (person_of(%(actor)s::text), %(day)s::bigint, %(units)s::bigint)
    on conflict (person, day) do update set units = s.units + excluded.units
returning units;
