-- Transfers between hot and cold wallets. To prevent deadlocks the transfer's row is locked before the wallet's. Every
-- change of a worker names its fencing token, `version`. Wallets and nonces are in `hot_wallet/`.

-- fragment: columns
-- A transfer as `store.ColdTransfer` has it.
t.chain, t.transfer_id, t.direction, t.way, t.hot, t.cold, t.amount, t.step, t.version, t.nonce, t.reserved_ms, t.ended_no,
       t.unsigned, t.unsigned_at_block, t.unsigned_until_ms, t.tx_hash, t.obstacle, t.cause, t.approved_by, t.proposal_no,
       t.drop_asked_by, t.opened_ms, t.ended_ms

-- name: open_transfer
-- A transfer that two people approved, unless one of the chain is under way or the database was rolled back.
insert into cold_transfer (chain, direction, way, hot, cold, amount, tx_hash, proposal_no, approved_by, opened_ms)
select %(chain)s::text, %(direction)s::text, %(way)s::text, %(hot)s::bytea, %(cold)s::bytea, %(amount)s::bigint,
       %(tx_hash)s::text, %(proposal_no)s::bigint, %(approved_by)s::text, %(now_ms)s::bigint
 where not exists (select from rollback_evidence)
on conflict do nothing
returning transfer_id;

-- name: list_due
-- Open transfers of a chain that no worker has claimed. After a rollback of the database none is advanced.
select {columns} from cold_transfer t
 where t.chain = %(chain)s::text and t.ended_ms is null and t.claimed_until_ms <= %(now_ms)s::bigint
   and not exists (select from rollback_evidence);

-- name: list_open
-- All transfers under way.
select {columns} from cold_transfer t where t.ended_ms is null order by t.transfer_id;

-- name: list_transfers
-- Transfers before an id, newest first.
select {columns} from cold_transfer t
 where (%(chain)s::text is null or t.chain = %(chain)s::text) and t.transfer_id < %(before_id)s::bigint
 order by t.transfer_id desc limit %(limit)s::int;

-- name: read_transfer
-- One transfer.
select {columns} from cold_transfer t where t.transfer_id = %(transfer_id)s::bigint;

-- name: find_open
-- The transfer of a chain that is under way.
select transfer_id from cold_transfer where chain = %(chain)s::text and ended_ms is null;

-- name: claim
-- A worker's exclusive right for some time. The new version locks out everybody who has an older one.
update cold_transfer set version = version + 1, claimed_until_ms = %(until_ms)s::bigint
 where chain = %(chain)s::text and transfer_id = %(transfer_id)s::bigint and version = %(version)s::int and ended_ms is null
   and not exists (select from rollback_evidence)
returning version;

-- name: unclaim
-- The attempt is over: anybody may claim the transfer.
update cold_transfer set claimed_until_ms = 0
 where chain = %(chain)s::text and transfer_id = %(transfer_id)s::bigint and version = %(version)s::int;

-- name: hold_fence
-- Locks the transfer until the end of the transaction. No row if the claim was lost.
update cold_transfer set version = version
 where chain = %(chain)s::text and transfer_id = %(transfer_id)s::bigint and version = %(version)s::int and ended_ms is null
   and not exists (select from rollback_evidence);

-- name: reserve
-- The amount, and the nonce if the chain has nonces, are the transfer's.
update cold_transfer set nonce = %(nonce)s::bigint, reserved_ms = %(now_ms)s::bigint
 where chain = %(chain)s::text and transfer_id = %(transfer_id)s::bigint;

-- name: release
-- Nothing was signed, and nobody elsewhere can sign with the nonce. So the reservation ends. Returns its nonce, which is free then.
update cold_transfer t set nonce = null, reserved_ms = null, unsigned = null, unsigned_until_ms = null, step = 'open'
  from (select chain, transfer_id, nonce from cold_transfer
         where chain = %(chain)s::text and transfer_id = %(transfer_id)s::bigint) before
 where t.chain = before.chain and t.transfer_id = before.transfer_id and t.ended_no is null
   and (t.unsigned is null or t.nonce is null)
   and not exists (select from cold_signed g where g.chain = t.chain and g.transfer_id = t.transfer_id)
returning before.nonce;

-- name: end_reservation
-- The money has left the wallet, or never will. It no longer counts after the next request for the balance.
with counted as (
    update hot_wallet h set ended_payouts = h.ended_payouts + 1
     where h.chain = (select t.chain from cold_transfer t
                       where t.chain = %(chain)s::text and t.transfer_id = %(transfer_id)s::bigint
                         and t.reserved_ms is not null and t.ended_no is null)
    returning h.ended_payouts)
update cold_transfer t set ended_no = counted.ended_payouts
  from counted
 where t.chain = %(chain)s::text and t.transfer_id = %(transfer_id)s::bigint and t.ended_no is null;

-- name: read_signed
-- Everything that was signed for a transfer, oldest first.
select raw, tx_hash, built_at_block, signed_ms from cold_signed
 where chain = %(chain)s::text and transfer_id = %(transfer_id)s::bigint order by attempt_no;

-- name: store_signed
-- The signed bytes, before anybody broadcasts them.
insert into cold_signed (chain, transfer_id, attempt_no, raw, tx_hash, built_at_block, signed_ms)
values (%(chain)s::text, %(transfer_id)s::bigint, %(attempt_no)s::int, %(raw)s::bytea, %(tx_hash)s::text,
        %(built_at_block)s::bigint, %(now_ms)s::bigint);

-- name: set_signed
-- From here on the bytes are sent until the chain's record is final.
update cold_transfer set step = 'signed', tx_hash = %(tx_hash)s::text, obstacle = null
 where chain = %(chain)s::text and transfer_id = %(transfer_id)s::bigint;

-- name: set_unsigned
-- The bytes that somebody signs elsewhere.
update cold_transfer
   set step = 'unsigned', unsigned = %(unsigned)s::bytea, unsigned_at_block = %(built_at_block)s::bigint,
       unsigned_until_ms = %(until_ms)s::bigint, obstacle = null
 where chain = %(chain)s::text and transfer_id = %(transfer_id)s::bigint;

-- name: take_signature
-- Somebody brings the signature of the bytes that are waiting for it. The new version locks out a worker.
update cold_transfer
   set version = version + 1, step = 'signed', tx_hash = %(tx_hash)s::text, obstacle = null
 where chain = %(chain)s::text and transfer_id = %(transfer_id)s::bigint and step = 'unsigned'
   and unsigned = %(unsigned)s::bytea and drop_asked_by is null and not exists (select from rollback_evidence);

-- name: ask_drop
-- Somebody gives a transfer up. A worker ends it, unless money may leave the hot wallet already.
update cold_transfer set drop_asked_by = %(actor)s::text
 where chain = %(chain)s::text and transfer_id = %(transfer_id)s::bigint and ended_ms is null and drop_asked_by is null
   and (step <> 'signed' or direction = 'to_hot');

-- name: ask_drop_unsigned
-- A worker drops a transfer that nobody has signed. A signature that was taken meanwhile has a new version, and stays.
update cold_transfer set drop_asked_by = %(actor)s::text
 where chain = %(chain)s::text and transfer_id = %(transfer_id)s::bigint and version = %(version)s::int
   and ended_ms is null and drop_asked_by is null and step = 'unsigned';

-- name: end_transfer
-- How a transfer ended.
update cold_transfer
   set step = %(step)s::text, cause = %(cause)s::text, tx_hash = coalesce(%(tx_hash)s::text, tx_hash), obstacle = null,
       ended_ms = %(now_ms)s::bigint, claimed_until_ms = 0
 where chain = %(chain)s::text and transfer_id = %(transfer_id)s::bigint;

-- name: note_obstacle
-- Why a transfer waits. Null if it does not.
update cold_transfer set obstacle = %(obstacle)s::text
 where chain = %(chain)s::text and transfer_id = %(transfer_id)s::bigint and version = %(version)s::int
   and ended_ms is null and obstacle is distinct from %(obstacle)s::text;

-- name: find_cancellation
-- Whether a transaction was signed here to cancel a nonce.
select tx_hash from cancel_signed
 where chain = %(chain)s::text and wallet = %(hot)s::bytea and nonce = %(nonce)s::bigint and tx_hash = %(tx_hash)s::text;
