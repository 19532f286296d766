-- What workers write when they screen, and what a cell knows of an address. `store.py` runs these.

-- fragment: columns
-- A screening, in the order of its fields.
s.screening_no, s.merchant_id, s.order_id, s.chain, s.tx_hash, s.log_index, s.address, s.amount, s.facts, s.state, s.reasons,
       s.round_no, s.begun_ms, s.changed_ms, s.decided_by, s.decided_ms, s.proposal_no

-- name: read_order
-- A merchant's rules, and the screening of one of its orders if there is one.
select m.payout_limit_units, m.payout_limit_count, m.payout_window_h, m.first_payout_limit_units, m.payout_hours, {columns}
  from merchant m
  left join screening s on s.merchant_id = m.merchant_id and s.order_id = %(order_id)s::bigint
 where m.merchant_id = %(merchant_id)s::bigint;

-- name: begin
-- Begins a screening. No row if somebody else has begun it.
insert into screening as s (merchant_id, order_id, chain, tx_hash, log_index, address, amount, facts, begun_ms, changed_ms)
values (%(merchant_id)s::bigint, %(order_id)s::bigint, %(chain)s::text, %(tx_hash)s::text, %(log_index)s::int, %(address)s::bytea,
        %(amount)s::bigint, %(facts)s::text, %(now_ms)s::bigint, %(now_ms)s::bigint)
on conflict do nothing
returning {columns};

-- name: note_reasons
-- What was found out so far about a screening that is open.
update screening set reasons = %(reasons)s::jsonb, changed_ms = %(now_ms)s::bigint
 where screening_no = %(screening_no)s::bigint and round_no = %(round_no)s::int and state = 'open'
   and reasons <> %(reasons)s::jsonb;

-- name: begin_question
-- Records a question before it is asked. A repeat keeps the id of the first time. No row if it was answered.
insert into screening_question as q (screening_no, round_no, request_id, body, asked_ms, attempts)
values (%(screening_no)s::bigint, %(round_no)s::int, %(request_id)s::text, %(body)s::text, %(now_ms)s::bigint, 1)
on conflict (screening_no, round_no) do update set attempts = q.attempts + 1 where q.answered_ms is null
returning request_id, body;

-- name: answer_question
-- The answer to a question. The first one stays.
update screening_question
   set verdict = %(verdict)s::text, reason = %(reason)s::text, reference = %(reference)s::text, answered_ms = %(now_ms)s::bigint,
       error = null
 where screening_no = %(screening_no)s::bigint and round_no = %(round_no)s::int and answered_ms is null;

-- name: fail_question
-- Why there is no answer yet.
update screening_question set error = %(error)s::text
 where screening_no = %(screening_no)s::bigint and round_no = %(round_no)s::int and answered_ms is null;

-- name: lock_merchant
-- Lets the orders of a merchant be cleared one after the other, so that a limit holds for orders at the same time.
select pg_advisory_xact_lock(hashtext('screening'), hashtext(%(merchant_id)s::bigint::text));

-- name: sum_cleared
-- What of a merchant's orders was cleared since a moment, without one of them.
select count(*), coalesce(sum(amount), 0)::bigint from screening
 where merchant_id = %(merchant_id)s::bigint and order_id is not null and cleared_ms is not null
   and cleared_ms > %(since_ms)s::bigint and screening_no <> %(screening_no)s::bigint;

-- name: was_paid
-- Whether the merchant has paid this address before. From its cell.
select exists (select from withdrawal where merchant_id = %(merchant_id)s::bigint and lower(address) = %(address)s::text and status = 2);

-- name: list_unapplied
-- Decisions of people about the orders and deposits of one cell that nobody has carried on yet.
select {columns} from screening s
  join merchant m on m.merchant_id = s.merchant_id
 where s.decided_ms is not null and s.applied_ms is null and m.cell_id = %(cell_id)s::int
 order by s.decided_ms limit %(limit)s::int;

-- name: mark_applied
-- A decision was carried on.
update screening set applied_ms = %(now_ms)s::bigint
 where screening_no = %(screening_no)s::bigint and round_no = %(round_no)s::int and decided_ms is not null and applied_ms is null;
