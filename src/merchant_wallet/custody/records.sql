-- Reconciliation of books and chains. `records.py` runs these. Reads run in one snapshot of the whole database, writes
-- after it. Keys of what belongs to a chain begin with the chain.

-- name: begin_snapshot
-- From here on everything sees one moment of all books, while the chains are asked.
set transaction isolation level repeatable read, read only;

-- name: be_patient
-- Nodes are asked during the snapshot, and they may be slow.
set local idle_in_transaction_session_timeout = '15min';

-- name: sum_accounts
-- The sum of all books by kind and currency. Every account is added up, so a balance that somebody changed is noticed.
select kind::text, currency::text, sum(balance) from account
 where {open_books}
 group by kind, currency;

-- name: sum_waiting
-- Transfers to our addresses that are in no book yet, by status. Each status has an index of its own.
select k.status, coalesce(d.deposits, 0), coalesce(d.units, 0)::bigint
  from (values ('pending'), ('dust'), ('held'), ('seen')) k (status)
 cross join lateral (
       select count(*) as deposits, sum(amount) as units from deposit
        where status = k.status and chain = %(chain)s::text
          and {open_books}) d;

-- name: sum_under_way
-- Payouts that are signed and not known to be final.
select count(*), coalesce(sum(r.amount), 0)::bigint
  from payout_reservation r join payout p on p.merchant_id = r.merchant_id and p.order_id = r.order_id
 where r.chain = %(chain)s::text and r.ended_no is null and p.signed_no > 0;

-- name: sum_treasury
-- What operators have moved in, minus what they have moved out.
select coalesce(sum(case direction when 'IN' then amount else -amount end), 0)::bigint
  from treasury_movement where chain = %(chain)s::text;

-- name: sum_opening
-- What the cold wallets held when they were first counted.
select coalesce(sum(opening), 0)::bigint from cold_wallet where chain = %(chain)s::text;

-- name: read_watched
-- The block up to which the chain's transfers are deposits.
select final_number from chain_position where chain = %(chain)s::text;

-- name: read_cursor
-- The block up to which the chain was searched for movements, and when.
select block_number, moved_ms from custody_cursor where chain = %(chain)s::text;

-- name: find_first_block
-- Where the search begins: before everything that may be on the chain and in no book yet, and before the first transfer
-- to our addresses if remainders are counted.
select least((select k.final_number from chain_cursor k where k.chain = %(chain)s::text),
             (select min(s.built_at_block) from payout_reservation r
                join payout_signed s on s.merchant_id = r.merchant_id and s.order_id = r.order_id
               where r.chain = %(chain)s::text and r.ended_no is null),
             (select min(t.block_number) - 1 from chain_transfer t
               where t.chain = %(chain)s::text and t.taken_ms is null and not t.is_gone),
             case when %(has_remainders)s::boolean then
                  (select min(t.block_number) - 1 from chain_transfer t where t.chain = %(chain)s::text)
             end);

-- name: move_cursor
-- The search only moves forward, even if two search at once.
insert into custody_cursor as k (chain, block_number, moved_ms)
values (%(chain)s::text, %(block_number)s::bigint, %(now_ms)s::bigint)
on conflict (chain) do update set block_number = excluded.block_number, moved_ms = excluded.moved_ms
 where k.block_number < excluded.block_number;

-- name: list_addresses
-- Every address of ours that may hold something.
select address, purpose from custody_address where chain = %(chain)s::text order by address;

-- name: page_unsurveyed
-- The next addresses after one that were issued and are not known to hold anything.
select g.address from issued_address g
 where g.address > %(after)s::bytea
   and not exists (select from custody_address c where c.chain = %(chain)s::text and c.address = g.address)
 order by g.address limit %(limit)s::int;

-- name: move_survey
-- How far the survey has come. A null address ends a round over all addresses and starts the next.
insert into custody_survey as s (chain, after_address, completed_ms)
values (%(chain)s::text, coalesce(%(after)s::bytea, ''::bytea),
        case when %(after)s::bytea is null then %(now_ms)s::bigint end)
on conflict (chain) do update set after_address = excluded.after_address, completed_ms = coalesce(excluded.completed_ms, s.completed_ms);

-- name: read_survey_place
-- The address after which the survey continues.
select after_address from custody_survey where chain = %(chain)s::text;

-- name: read_survey
-- When the last round over all addresses ended.
select completed_ms from custody_survey where chain = %(chain)s::text;

-- name: sum_deposits
-- What came to each address in final deposits.
select address, sum(amount)::bigint from deposit
 where chain = %(chain)s::text and status in ('pending', 'dust', 'held', 'credited')
   and {open_books}
 group by address;

-- name: list_swept
-- What was swept from each deposit address, and what an open sweep moves from there.
select c.address, coalesce(w.units, 0)::bigint, coalesce(w.open_units, 0)::bigint
  from custody_address c
  left join (select address, sum(amount) filter (where step = 'done') as units,
                    sum(amount) filter (where ended_ms is null) as open_units
               from sweep where chain = %(chain)s::text group by address) w on w.address = c.address
 where c.chain = %(chain)s::text and c.purpose = 'deposit';

-- name: find_deposit_addresses
-- Addresses with a final deposit since a moment, including deposits found by reading a chain again.
select distinct d.address
  from merchant m
 cross join lateral (
       select d.address, d.status from deposit d
        where d.merchant_id = m.merchant_id and d.seen_ms >= %(since_ms)s::bigint and d.chain = %(chain)s::text) d
 where d.status in ('pending', 'dust', 'held', 'dropped', 'credited')
   and m.{open_books};

-- name: insert_addresses
-- Addresses that may hold something from now on. A known address is not changed.
insert into custody_address (chain, address, purpose, since_ms)
select %(chain)s::text, u.address, %(purpose)s::text, %(now_ms)s::bigint from unnest(%(addresses)s::bytea[]) u (address)
on conflict (chain, address) do nothing;

-- name: find_payouts
-- Which of these transactions were signed for orders.
select tx_hash from payout_signed where tx_hash = any(%(tx_hashes)s::text[]);

-- name: find_signed
-- The order that each movement's transaction was signed for, and whether an operator has recorded the movement as the treasury's.
-- Neither a correction nor the record that it takes back explains anything.
select s.merchant_id, s.order_id,
       exists (select from treasury_movement t
                where t.chain = %(chain)s::text and t.tx_hash = m.tx_hash
                  and t.direction = case when m.is_out then 'OUT' else 'IN' end
                  and t.corrects is null
                  and not exists (select from treasury_movement c
                                   where c.chain = t.chain and c.corrects = t.movement_no))
  from unnest(%(tx_hashes)s::text[], %(is_outs)s::boolean[]) with ordinality m (tx_hash, is_out, no)
  left join lateral (
       select merchant_id, order_id from payout_signed where tx_hash = m.tx_hash
        order by merchant_id, order_id limit 1) s on true
 order by m.no;

-- name: judge_movements
-- What a cell has of each movement: its order's status, whether the order was settled by exactly this transfer, and its deposit's
-- status.
select w.status, coalesce(w.status = 2 and w.tx_hash = m.tx_hash and w.amount - w.fee = m.amount, false), x.status
  from unnest(%(tx_hashes)s::text[], %(log_indexes)s::int[], %(is_outs)s::boolean[], %(amounts)s::bigint[],
              %(merchant_ids)s::bigint[], %(order_ids)s::bigint[])
       with ordinality m (tx_hash, log_index, is_out, amount, merchant_id, order_id, no)
  left join withdrawal w on w.merchant_id = m.merchant_id and w.order_id = m.order_id and w.chain = %(chain)s::text
                        and w.{open_books}
  left join lateral (
       select d.status from deposit d
        where not m.is_out and d.chain = %(chain)s::text and d.tx_hash = m.tx_hash and d.amount = m.amount
          and d.log_index = m.log_index and d.final_ms is not null and d.{open_books}
        limit 1) x on true
 order by m.no;

-- name: list_open_movements
-- Movements on the chain that are in no book yet. Those of a transaction with a corrected record are judged again each time, so no
-- clock decides whether they are back.
select tx_hash, log_index, is_out, block_number, sender, recipient, amount::bigint
  from custody_movement where chain = %(chain)s::text and explained_ms is null
union all
select m.tx_hash, m.log_index, m.is_out, m.block_number, m.sender, m.recipient, m.amount::bigint
  from (select distinct tx_hash from treasury_movement where chain = %(chain)s::text and corrects is not null) c
  join custody_movement m on m.chain = %(chain)s::text and m.tx_hash = c.tx_hash and m.explained_ms is not null
 order by block_number, tx_hash, log_index;

-- name: insert_movements
-- Movements that no book contains yet. A known movement is not changed.
insert into custody_movement (chain, tx_hash, log_index, is_out, block_number, sender, recipient, amount, found_ms)
select %(chain)s::text, u.tx_hash, u.log_index, u.is_out, u.block_number, u.sender, u.recipient, u.amount, %(now_ms)s::bigint
  from unnest(%(tx_hashes)s::text[], %(log_indexes)s::int[], %(is_outs)s::boolean[], %(block_numbers)s::bigint[],
              %(senders)s::bytea[], %(recipients)s::bytea[], %(amounts)s::bigint[])
       u (tx_hash, log_index, is_out, block_number, sender, recipient, amount)
on conflict (chain, tx_hash, log_index, is_out) do nothing;

-- name: insert_remainders
-- Remainders of transfers at our addresses, negative at the sender.
insert into custody_remainder (chain, tx_hash, log_index, address, remainder)
select %(chain)s::text, u.tx_hash, u.log_index, u.address, u.remainder
  from unnest(%(tx_hashes)s::text[], %(log_indexes)s::int[], %(addresses)s::bytea[], %(remainders)s::bigint[])
       u (tx_hash, log_index, address, remainder)
on conflict (chain, tx_hash, log_index, address) do nothing;

-- name: list_remainders
-- All remainders at each address.
select address, sum(remainder)::numeric from custody_remainder where chain = %(chain)s::text group by address;

-- name: explain_movements
-- Movements that the books contain now.
update custody_movement m set explained_ms = %(now_ms)s::bigint
  from unnest(%(tx_hashes)s::text[], %(log_indexes)s::int[], %(is_outs)s::boolean[]) u (tx_hash, log_index, is_out)
 where m.chain = %(chain)s::text and m.tx_hash = u.tx_hash and m.log_index = u.log_index and m.is_out = u.is_out
   and m.explained_ms is null;

-- name: insert_result
-- One comparison.
insert into reconciliation (chain, at_ms, block_number, books_units, chain_units, unexplained_units, is_sound, explanation, cause)
values (%(chain)s::text, %(at_ms)s::bigint, %(block_number)s::bigint, %(books_units)s::bigint, %(chain_units)s::bigint,
        %(unexplained_units)s::bigint, %(is_sound)s::boolean, %(explanation)s::jsonb, %(cause)s::text);

-- name: read_last_explanation
-- The document of the last comparison that succeeded.
select explanation from reconciliation
 where chain = %(chain)s::text and cause is null order by reconciliation_no desc limit 1;

-- name: list_results
-- The last comparisons of a chain, newest first.
select chain, at_ms, is_sound, explanation from reconciliation
 where chain = %(chain)s::text order by reconciliation_no desc limit %(limit)s::int;

-- name: page_results
-- A chain's comparisons before a number, newest first.
select reconciliation_no, at_ms, is_sound, cause, explanation from reconciliation
 where chain = %(chain)s::text and reconciliation_no < %(before_no)s::bigint order by reconciliation_no desc limit %(limit)s::int;
