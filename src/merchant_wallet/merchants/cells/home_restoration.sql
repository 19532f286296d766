-- Brings home up to its cells when it was rolled back without them. `home_restoration.py` runs these.

-- name: read_seen
-- The highest number of home's that a cell was told.
select home_no from cell_state;

-- name: list_books
-- The ids and the versions of settings that a cell's books use. Closed books count too: their ids are given.
select merchant_id, id_range, next_range, settings_version from book order by merchant_id;

-- name: list_addresses
-- The deposit addresses in a cell.
select merchant_id, address from wallet_address union select merchant_id, address from merchant_address;

-- name: raise_mark
-- Home's number for a cell is at least what the cell was told.
update cell set marked_no = greatest(marked_no, %(home_no)s::bigint) where cell_id = %(cell_id)s::int;

-- name: read_newest_merchant
-- The newest merchant that home knows.
select coalesce(max(merchant_id), 0) from merchant;

-- name: count_lost
-- How many merchants after home's newest one are missing, and the newest one that is known from elsewhere.
select greatest(h.highest - %(newest)s::bigint, 0)
       - (select count(*) from merchant where merchant_id > %(newest)s::bigint and merchant_id <= h.highest), h.highest
  from (select coalesce(max(u), 0) as highest from unnest(%(merchant_ids)s::bigint[]) u) h;

-- name: raise_merchant_id
-- New merchants get ids after these.
select setval('merchant_merchant_id_seq', greatest(s.last_value, (select max(m) from unnest(%(merchant_ids)s::bigint[]) m)))
  from merchant_merchant_id_seq s;

-- name: add_ranges
-- The ranges of ids that books use already.
insert into id_range (range_no, merchant_id)
select r.range_no, u.merchant_id
  from unnest(%(merchant_ids)s::bigint[], %(id_ranges)s::int[], %(next_ranges)s::int[]) u (merchant_id, id_range, next_range)
  join merchant m on m.merchant_id = u.merchant_id
 cross join lateral (values (u.id_range), (u.next_range)) r (range_no)
 where r.range_no is not null
on conflict (range_no) do nothing;

-- name: keep_ranges
-- Nobody gets the ranges of merchants that are lost. Those up to the highest one that books and checkpoints show were given out, and
-- one to each merchant that was created since.
insert into lost_range (range_no, lost_ms)
select n.range_no, (extract(epoch from clock_timestamp()) * 1000)::bigint
  from (select coalesce(max(range_no), 0) as highest from id_range) k
 cross join lateral (
       select greatest((select max(u) from unnest(%(range_nos)s::int[]) u), k.highest + %(created)s::int) as range_no) n
 where n.range_no > k.highest
on conflict (range_no) do nothing;

-- name: raise_versions
-- Settings with a version that the book has passed would never reach it. Home's settings are carried there anew. The old copies of
-- moved books don't matter.
update merchant m set settings_version = u.version + 1
  from unnest(%(merchant_ids)s::bigint[], %(versions)s::bigint[]) u (merchant_id, version)
 where m.merchant_id = u.merchant_id and m.cell_id = %(cell_id)s::int and m.settings_version < u.version;

-- name: add_addresses
-- Addresses that were issued. Deposits to an address that home does not know are not seen.
insert into issued_address (address, merchant_id)
select u.address, u.merchant_id
  from unnest(%(merchant_ids)s::bigint[], %(addresses)s::bytea[]) u (merchant_id, address)
  join merchant m on m.merchant_id = u.merchant_id
on conflict do nothing;

-- name: raise_indexes
-- No index of an address is used twice: each address has taken one.
update merchant m set next_address_index = u.taken
  from (select merchant_id, count(*)::int as taken from unnest(%(merchant_ids)s::bigint[]) o (merchant_id) group by merchant_id) u
 where m.merchant_id = u.merchant_id and m.next_address_index < u.taken;

-- name: list_unapproved
-- The merchants of a cell with orders that wait for approval.
select distinct merchant_id from withdrawal where status = 0 and approved_ms is null;

-- name: sum_approvals
-- What each person has approved in a cell since a moment. It reads all orders. The copy that a moved book left behind counts,
-- too: then the sum is too high, for this day.
select person_of(a.actor), sum(a.amount)::bigint
  from (select approved_by, amount from withdrawal where approved_ms >= %(from_ms)s::bigint and approved_by <> 'limit'
         union all
        select first_approved_by, amount from withdrawal where first_approved_ms >= %(from_ms)s::bigint) a (actor, amount)
 group by 1;

-- name: raise_approved_sums
-- A person's sum of the day is at least this.
insert into approved_sum as s (person, day, units)
select u.person, %(day)s::bigint, u.units from unnest(%(people)s::text[], %(units)s::bigint[]) u (person, units)
    on conflict (person, day) do update set units = greatest(s.units, excluded.units);
