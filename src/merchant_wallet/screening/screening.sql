-- Screenings and their questions, in home: what people look at and decide. `store.py` runs these.

-- fragment: columns
-- A screening, in the order of its fields.
s.screening_no, s.merchant_id, s.order_id, s.chain, s.tx_hash, s.log_index, s.address, s.amount, s.facts, s.state, s.reasons,
       s.round_no, s.begun_ms, s.changed_ms, s.decided_by, s.decided_ms, s.proposal_no

-- name: find_order
-- The screening of an order.
select {columns} from screening s where s.merchant_id = %(merchant_id)s::bigint and s.order_id = %(order_id)s::bigint;

-- name: find_deposit
-- The screening of a deposit.
select {columns} from screening s
 where s.chain = %(chain)s::text and s.tx_hash = %(tx_hash)s::text and s.log_index = %(log_index)s::int;

-- name: find_one
-- A screening by its number.
select {columns} from screening s where s.screening_no = %(screening_no)s::bigint;

-- name: lock_one
-- The same, locked until the end of the transaction.
select {columns} from screening s where s.screening_no = %(screening_no)s::bigint for update of s;

-- name: begin_round
-- Another round: the facts are others, or a person asks again. What was decided is forgotten. No row if it has changed meanwhile.
update screening as s
   set round_no = s.round_no + 1, state = 'open', reasons = '[]', facts = %(facts)s::text, merchant_id = %(merchant_id)s::bigint,
       address = %(address)s::bytea, amount = %(amount)s::bigint, changed_ms = %(now_ms)s::bigint, cleared_ms = null,
       decided_by = null, decided_ms = null, proposal_no = null, applied_ms = null
 where s.screening_no = %(screening_no)s::bigint and s.round_no = %(round_no)s::int and s.state = %(from_state)s::text
returning {columns};

-- name: move
-- One step of a screening. No row if it is in another state or round by now.
update screening as s
   set state = %(state)s::text, reasons = %(reasons)s::jsonb, changed_ms = %(now_ms)s::bigint,
       cleared_ms = case when %(is_cleared)s::boolean then %(now_ms)s::bigint end, decided_by = %(decided_by)s::text,
       decided_ms = case when %(decided_by)s::text is not null then %(now_ms)s::bigint end, proposal_no = %(proposal_no)s::bigint,
       applied_ms = null
 where s.screening_no = %(screening_no)s::bigint and s.round_no = %(round_no)s::int and s.state = %(from_state)s::text
returning {columns};

-- name: list_questions
-- The questions of a screening, newest first.
select round_no, request_id, body, asked_ms, attempts, error, answered_ms, verdict, reason, reference
  from screening_question where screening_no = %(screening_no)s::bigint order by round_no desc;

-- name: list_waiting
-- Screenings that wait for a person or an answer, oldest first.
select {columns} from screening s
 where s.state in ('open', 'held') and s.screening_no > %(after_no)s::bigint
   and (%(merchant_id)s::bigint is null or s.merchant_id = %(merchant_id)s::bigint)
   and (%(state)s::text is null or s.state = %(state)s::text)
 order by s.screening_no limit %(limit)s::int;

-- name: list_all
-- All screenings before a number, newest first.
select {columns} from screening s
 where s.screening_no < %(before_no)s::bigint
   and (%(merchant_id)s::bigint is null or s.merchant_id = %(merchant_id)s::bigint)
   and (%(state)s::text is null or s.state = %(state)s::text)
 order by s.screening_no desc limit %(limit)s::int;

-- name: count_held
-- How many wait for a person, counted up to a bound, and since when.
select count(*), min(begun_ms) from (
       select begun_ms from screening where state in ('open', 'held') and state = 'held' limit %(most)s::int) held;

-- name: read_last_question
-- When the screening URL was asked last, and what came of it.
select asked_ms, answered_ms, error from screening_question order by asked_ms desc limit 1;
