-- The tables of an apart cell: those that commit with a book, and copies of some of home's tables under the same names. A test
-- compares them with home's. Why a table is as it is stands in 0001_baseline_home.sql, too.

-- The chains that the program knows. Whether one is on is the settings' affair.
create function chain_codes() returns text[]
    language sql immutable parallel safe
    return array['ERC20', 'TRC20', 'BEP20'];

create domain account_kind as text
    constraint account_kind_check check (((value in ('merchant', 'subuser', 'hold', 'fees', 'exchange', 'adjustment')) or ((value like 'chain:%') and (substr(value, 7) = any (chain_codes())))));

create domain chain_code as text
    constraint chain_code_check check ((value = any (chain_codes())));

create function currency_codes() returns text[]
    language sql immutable parallel safe
    return array['USDT', 'KFB'];

-- Rules about one value are domains rather than CHECKs of the table: PostgreSQL reads a table's CHECKs anew for every
-- statement that writes to it, which at one transfer a batch cost more than the writing, but keeps a domain's. The
-- tables that every transfer writes to have those that guard money and no others; forms are `verify`'s affair there.
create domain currency as text
    constraint currency_check check ((value = any (currency_codes())));

create domain entry_kind as text
    constraint entry_kind_check check ((value in ('user_to_merchant', 'merchant_to_user', 'exchange', 'register', 'withdraw', 'settle', 'refund', 'cancel', 'expire', 'adjust', 'fee_withdraw', 'deposit')));

create domain id_count as bigint
    constraint id_count_check check (value between 0 and 8589934591);

create domain order_name as text
    constraint order_name_check check (length(value) between 1 and 64);

create domain positive_units as bigint
    constraint positive_units_check check ((value > 0));

create domain range_number as integer
    constraint range_number_check check (value between 1 and 1048575);

-- Makes the missing partitions of nonces from one day to another, and gives the days that are new. Only the owner of a
-- table can make a partition, so this runs with its owner's rights. A side needs yesterday to tomorrow by its own machine's
-- clock. That clock may differ from the database's by a week at most; further days are refused. The owner may make any day.
create function add_nonce_days(first_day integer, last_day integer) returns integer[]
    language plpgsql security definer
    set search_path to 'pg_catalog', 'pg_temp'
    as $$
declare
    today bigint := floor(extract(epoch from clock_timestamp()) / 86400);
    made int[] := '{}';
    wanted int;
begin
    if last_day::bigint - first_day > 31 then
        raise exception 'at most 32 days at once' using errcode = 'invalid_parameter_value';
    end if;
    if (first_day < today - 8 or last_day > today + 8) and not pg_has_role(session_user, current_user, 'member') then
        raise exception 'nonces of days % to % are too far from the database''s day %: compare the clocks',
            first_day, last_day, today using errcode = 'invalid_parameter_value';
    end if;
    -- One maker at a time. Requests go on meanwhile: neither this lock nor attaching a table hinders them, while
    -- CREATE TABLE ... PARTITION OF would wait for all of them and make all others wait behind it.
    lock table {schema}.nonce in share update exclusive mode;
    for wanted in
        select d from generate_series(first_day, last_day) d
         where not exists (select from pg_inherits i join pg_class c on c.oid = i.inhrelid
                            where i.inhparent = '{schema}.nonce'::regclass and c.relname = format('nonce_%s', d))
         order by d
    loop
        execute format('create table {schema}.%I (like {schema}.nonce including all)', format('nonce_%s', wanted));
        execute format('alter table {schema}.nonce attach partition {schema}.%I for values in (%s)',
                       format('nonce_%s', wanted), wanted);
        made := made || wanted;
    end loop;
    return made;
end
$$;

-- Drops a past day's partition of nonces. Not yesterday's and not today's by the database's clock, whatever the caller's
-- clock says: a request of an older day is refused for its age.
create function drop_nonce_day(old_day integer) returns void
    language plpgsql security definer
    set search_path to 'pg_catalog', 'pg_temp'
    as $$
begin
    if old_day >= floor(extract(epoch from clock_timestamp()) / 86400) - 1 then
        raise exception 'nonces of day % are still needed', old_day using errcode = 'invalid_parameter_value';
    end if;
    execute format('drop table if exists {schema}.%I', format('nonce_%s', old_day));
end
$$;

-- Every three characters in a row, ASCII letters in small, and every one or two of which one is beyond ASCII: a Chinese name
-- has two or three characters in all. A text that has a part has all of the part's pieces.
create function name_grams(word text) returns text[]
    language sql immutable parallel safe
    return array(
        select distinct substr(lower(word collate "C"), n, size)
          from generate_series(1, 3) size cross join generate_series(1, length(word) - size + 1) n
         where size = 3 or octet_length(substr(word, n, size)) > size);

-- Two people are two names, by whichever door they came in: `cli:ann` is `operator:Ann`.
create function person_of(actor text) returns text
    language sql immutable parallel safe
    return lower(substr(actor, strpos(actor, ':') + 1) collate "C");

-- Every three characters in a row, ASCII letters in small. A text that has a part has all of the part's threes.
create function search_grams(word text) returns text[]
    language sql immutable parallel safe
    return array(select distinct substr(lower(word collate "C"), n, 3) from generate_series(1, length(word) - 2) n);

create table merchant (
    merchant_id bigint not null,
    name text not null,
    status text not null,
    currency_mode currency not null,
    -- Where the merchant is told of deposits; null is nowhere.
    deposit_notify_url text,
    require_pin boolean not null,
    -- Origins whose pages may show the wallet page in a frame. They end up in a header, so nothing but the characters of an
    -- origin gets in here.
    frame_origins text[] not null,
    constraint merchant_pkey primary key (merchant_id)
);

-- One row per merchant: its lock, its clock, its id counter and the head of its chain.
create table book (
    merchant_id bigint not null,
    id_range range_number not null,
    id_counter id_count default 0 not null,
    next_range range_number,
    entry_count bigint default 0 not null,
    head_hash bytea not null,
    last_ms bigint not null,
    settings_version bigint default 1 not null,
    withdrawn_day integer default 0 not null,
    withdrawn_units bigint default 0 not null,
    -- Books are written in groups: one transaction over many books. Every transaction that changes anything that a rule may look
    -- at gives its book a new version. A group claims only books whose version is the one that it was judged on. A group's version
    -- is its id, so its later statements find the books that it claimed. A version is never used again, not even after a failover
    -- that lost transactions: there a count could come to the same number with other content.
    version uuid default gen_random_uuid() not null,
    -- A book that is closed here is being moved, or has been moved.
    is_open boolean default true not null,
    -- Each step of a move of a book that opens or closes a copy has a higher number than the one before. A copy takes on higher numbers
    -- only, so a mover that wakes up late opens and closes nothing.
    move_version bigint default 0 not null,
    -- The end of that month. A book's clock is never before it.
    closed_ms bigint default 0 not null,
    constraint book_pkey primary key (merchant_id),
    constraint book_merchant_id_fkey foreign key (merchant_id) references merchant(merchant_id)
) with (fillfactor='20');
create index book_closed on book (merchant_id) where (not is_open);

-- floor is 0, but for the kinds whose balance is a signed sum: what came in from outside, the exchange desk's
-- position and an operator's own entries. Only the floor is judged at each posting; what it may be is judged once.
create table account (
    merchant_id bigint not null,
    account_id bigint not null,
    kind account_kind not null,
    currency currency not null,
    balance bigint default 0 not null,
    day integer default 0 not null,
    day_debited bigint default 0 not null,
    floor bigint generated always as (case when ((kind in ('exchange', 'adjustment')) or (kind like 'chain:%')) then -4611686018427387904 else 0 end) stored not null,
    constraint account_floor check (balance >= floor),
    constraint account_pkey primary key (merchant_id, account_id),
    constraint account_merchant_id_fkey foreign key (merchant_id) references book(merchant_id)
) with (fillfactor='50');
alter table account alter column merchant_id set (n_distinct=1);

create table sub_user (
    merchant_id bigint not null,
    user_id bigint not null,
    ext_user_id text not null,
    username text not null,
    address_index integer not null,
    evm_address bytea not null,
    tron_address bytea not null,
    paused boolean default false not null,
    limit_debit_units bigint,
    limit_day_units bigint,
    pin_hash text,
    created_ms bigint not null,
    -- `pin_failures` counts wrong PINs since the last right one; before `pin_locked_until_ms` none is compared at all. Where
    -- there is no PIN there is nothing to count.
    pin_set_ms bigint,
    pin_failures integer default 0 not null,
    pin_locked_until_ms bigint default 0 not null,
    language text,
    -- A reset of a sub-user's PIN ends what was let in before it. Sessions are rows and are deleted; links are kept nowhere,
    -- so the row says until when links were made that no longer open the wallet.
    links_void_until_ms bigint default 0 not null,
    constraint sub_user_address_index_check check (address_index >= 0),
    constraint sub_user_evm_address_check check (length(evm_address) = 20),
    constraint sub_user_ext_user_id_check check (length(ext_user_id) between 1 and 20),
    constraint sub_user_language_check check (language in ('en', 'zh-CN')),
    constraint sub_user_limit_day_units_check check (limit_day_units >= 0),
    constraint sub_user_limit_debit_units_check check (limit_debit_units >= 0),
    constraint sub_user_pin check ((pin_hash is not null) or ((pin_set_ms is null) and (pin_failures = 0) and (pin_locked_until_ms = 0))),
    constraint sub_user_pin_failures_check check (pin_failures >= 0),
    constraint sub_user_pin_locked_until_ms_check check (pin_locked_until_ms >= 0),
    constraint sub_user_tron_address_check check (length(tron_address) = 20),
    constraint sub_user_username_check check (length(username) between 1 and 128),
    constraint sub_user_merchant_id_address_index_key unique (merchant_id, address_index),
    constraint sub_user_merchant_id_ext_user_id_key unique (merchant_id, ext_user_id),
    constraint sub_user_pkey primary key (merchant_id, user_id),
    constraint sub_user_merchant_id_user_id_fkey foreign key (merchant_id, user_id) references account(merchant_id, account_id)
);
alter table sub_user alter column merchant_id set (n_distinct=1);
-- Sub-users by the beginning of a name. In byte order whatever the database's own is: only so is a beginning a range.
create index sub_user_by_ext on sub_user (merchant_id, ext_user_id collate "C");
create index sub_user_by_name on sub_user (merchant_id, lower(username) collate "C", user_id);
create index sub_user_by_name_part on sub_user using gin (name_grams(username));
create index sub_user_by_part on sub_user using gin (search_grams(ext_user_id));

-- The wallet addresses of one book, for the transfer that names an address.
create table wallet_address (
    merchant_id bigint not null,
    address bytea not null,
    user_id bigint not null,
    constraint wallet_address_address_check check (length(address) = 20),
    constraint wallet_address_pkey primary key (merchant_id, address),
    constraint wallet_address_merchant_id_user_id_fkey foreign key (merchant_id, user_id) references sub_user(merchant_id, user_id)
);
alter table wallet_address alter column merchant_id set (n_distinct=1);

-- The journal. An entry is one command's postings; hash chains it to the entry before.
create table entry (
    merchant_id bigint not null,
    entry_id bigint not null,
    kind entry_kind not null,
    mc_order_id order_name,
    at_ms bigint not null,
    rate_e8 bigint default 0 not null,
    facts text default '' not null,
    hash bytea not null,
    constraint entry_pkey primary key (merchant_id, entry_id)
);
alter table entry alter column merchant_id set (n_distinct=1);
create unique index entry_order on entry (merchant_id, mc_order_id, kind) where (mc_order_id is not null);
-- Entries that are neither transfers nor exchanges, by kind.
create index entry_rare on entry (merchant_id, kind, entry_id) where (kind not in ('user_to_merchant', 'merchant_to_user', 'exchange'));
-- The index on order ids allows a name once for each kind of entry; a reference is one over both kinds.
create unique index entry_reference on entry (merchant_id, mc_order_id) where ((mc_order_id is not null) and (kind in ('adjust', 'fee_withdraw')));

create table posting (
    merchant_id bigint not null,
    entry_id bigint not null,
    posting_no smallint not null,
    source_id bigint not null,
    target_id bigint not null,
    currency text not null,
    amount positive_units not null,
    source_balance bigint not null,
    target_balance bigint not null,
    constraint posting_moves check (source_id <> target_id),
    constraint posting_pkey primary key (merchant_id, entry_id, posting_no)
);
alter table posting alter column merchant_id set (n_distinct=1);
create index posting_source on posting (merchant_id, source_id, entry_id);
create index posting_target on posting (merchant_id, target_id, entry_id);

-- A nonce is used once per merchant. A day's nonces are one partition, dropped whole; a batch claims its own
-- id here too (it begins with '!', which no client's nonce can), so that a lost COMMIT can be answered truly.
create table nonce (
    merchant_id bigint not null,
    nonce text not null collate "C",
    day integer not null,
    -- The group that claimed the nonce, so that a lost COMMIT can be answered truly. Each book in a group has at least one such row.
    group_id uuid not null,
    constraint nonce_pkey primary key (merchant_id, nonce, day)
) partition by list (day);

-- Every step of an order's life, appended only. The foreign keys chain each step to the one before, the check
-- lists the legal steps: an illegal one can't be written down.
create table withdrawal_step (
    merchant_id bigint not null,
    order_id bigint not null,
    step_no smallint not null,
    previous_no smallint generated always as (case when (step_no = 0) then null::integer else (step_no - 1) end) stored,
    from_status smallint,
    to_status smallint not null,
    at_ms bigint not null,
    cause text not null,
    constraint withdrawal_step_cause_check check (cause <> ''),
    constraint withdrawal_step_legal check (
        (step_no = 0 and from_status is null and to_status = 0)
        or (step_no > 0 and from_status is not null and (from_status, to_status) in ((0, 1), (0, 4), (0, 5), (1, 2), (1, 3), (3, 6)))),
    constraint withdrawal_step_step_no_check check (step_no >= 0),
    constraint withdrawal_step_merchant_id_order_id_step_no_to_status_key unique (merchant_id, order_id, step_no, to_status),
    constraint withdrawal_step_pkey primary key (merchant_id, order_id, step_no),
    constraint withdrawal_step_merchant_id_order_id_previous_no_from_stat_fkey foreign key (merchant_id, order_id, previous_no, from_status) references withdrawal_step(merchant_id, order_id, step_no, to_status)
);
alter table withdrawal_step alter column merchant_id set (n_distinct=1);

create table withdrawal (
    merchant_id bigint not null,
    order_id bigint not null,
    mc_order_id text not null,
    amount bigint not null,
    fee bigint not null,
    rate_e8 bigint not null,
    chain chain_code not null,
    address text not null,
    notify_url text not null,
    status smallint not null,
    step_no smallint not null,
    approved_ms bigint,
    approved_by text,
    deadline_ms bigint not null,
    created_ms bigint not null,
    finished_ms bigint,
    notified_ms bigint,
    tx_hash text,
    -- The limit as it was when the order was created; and the first of two approvals.
    second_limit_units bigint,
    first_approved_by text,
    -- When the first of two people approved, and from when each person's word counted, as the rule judged it.
    first_approved_ms bigint,
    first_eligible_ms bigint,
    approved_eligible_ms bigint,
    -- Whether the payer's queue, which is in home, has the order. It is set after the queue has it.
    is_queued boolean default false not null,
    -- When the order was frozen, for the rules of its book. Why it was is in home, at its payout.
    frozen_ms bigint,
    constraint withdrawal_address_check check (length(address) between 1 and 64),
    constraint withdrawal_amount_check check (amount > 0),
    constraint withdrawal_approved_eligible check ((approved_eligible_ms is null) or ((approved_ms is not null) and (approved_ms >= approved_eligible_ms))),
    constraint withdrawal_check check (fee < amount),
    constraint withdrawal_fee_check check (fee >= 0),
    constraint withdrawal_first_approved_by_check check (first_approved_by <> ''),
    constraint withdrawal_first_eligible check ((first_eligible_ms is null) or ((first_approved_ms is not null) and (first_approved_ms >= first_eligible_ms))),
    constraint withdrawal_first_moment check ((first_approved_ms is null) or (first_approved_by is not null)),
    constraint withdrawal_first_of_two check ((first_approved_by is null) or ((second_limit_units is not null) and (amount > second_limit_units))),
    constraint withdrawal_mc_order_id_check check (length(mc_order_id) between 1 and 20),
    constraint withdrawal_notify_url_check check (length(notify_url) between 1 and 100),
    constraint withdrawal_rate_e8_check check (rate_e8 >= 0),
    constraint withdrawal_second_limit check ((approved_ms is null) or (second_limit_units is null) or (amount <= second_limit_units) or ((first_approved_by is not null) and (approved_by is not null) and (approved_by <> 'limit'))),
    constraint withdrawal_second_limit_units_check check (second_limit_units >= 0),
    constraint withdrawal_two_people check ((first_approved_by is null) or (approved_by is null) or (person_of(first_approved_by) <> person_of(approved_by))),
    constraint withdrawal_merchant_id_mc_order_id_key unique (merchant_id, mc_order_id),
    constraint withdrawal_pkey primary key (merchant_id, order_id),
    constraint withdrawal_merchant_id_order_id_step_no_status_fkey foreign key (merchant_id, order_id, step_no, status) references withdrawal_step(merchant_id, order_id, step_no, to_status)
);
alter table withdrawal alter column merchant_id set (n_distinct=1);
alter table withdrawal alter column chain set (n_distinct=3);
alter table withdrawal alter column status set (n_distinct=7);
create index withdrawal_by_address on withdrawal (merchant_id, lower(address), created_ms, order_id);
create index withdrawal_by_amount on withdrawal (status, chain, amount, order_id);
-- Orders: by status and chain, of all merchants and of one, newest or largest first; what was paid to an address; what
-- waits for a word. An address on ERC20 may be written with capitals or without.
create index withdrawal_by_moment on withdrawal (status, chain, created_ms, order_id);
create index withdrawal_frozen on withdrawal (merchant_id, order_id) where ((frozen_ms is not null) and (status in (0, 1, 3)));
create index withdrawal_of_merchant_by_amount on withdrawal (merchant_id, status, chain, amount, order_id);
create index withdrawal_of_merchant_by_moment on withdrawal (merchant_id, status, chain, created_ms, order_id);
-- The queues of the payer and of expiry look only at orders that still move.
create index withdrawal_open on withdrawal (status, created_ms) where (status in (0, 1, 3));
create index withdrawal_unapproved on withdrawal (created_ms, order_id) where ((status = 0) and (approved_ms is null));
create index withdrawal_unqueued on withdrawal (approved_ms, merchant_id, order_id) where ((not is_queued) and (approved_ms is not null) and (status in (0, 1, 3)));

-- What is to be told to the merchant; the row is written in the commit of the status it tells of.
create table callback (
    merchant_id bigint not null,
    order_id bigint not null,
    status smallint not null,
    event_id text not null,
    created_ms bigint not null,
    event_type text default 'withdrawal' not null,
    withdrawal_id bigint generated always as (case when (event_type = 'withdrawal') then order_id else null::bigint end) stored,
    state text default 'due' not null,
    -- All attempts ever begun; the number is the claim too: a later one takes the right to say what comes next.
    attempt_no integer default 0 not null,
    -- The place in the schedule of repeats, which begins anew when an operator has a callback sent again.
    retry_no integer default 0 not null,
    -- Nothing is sent before this moment: the next repeat's, or the end of the claim while an attempt is under way.
    next_ms bigint default 0 not null,
    claimed_by text,
    delivered_ms bigint,
    constraint callback_attempt_no_check check (attempt_no >= 0),
    constraint callback_claimed_by_check check (claimed_by <> ''),
    constraint callback_delivered check ((state <> 'delivered') or (delivered_ms is not null)),
    constraint callback_event_status check (((event_type = 'withdrawal') and (status in (2, 3, 4, 5, 6))) or ((event_type = 'deposit') and (status = 0))),
    constraint callback_next_ms_check check (next_ms >= 0),
    constraint callback_retry_no_check check (retry_no >= 0),
    constraint callback_state_check check (state in ('due', 'delivered', 'dead_letter', 'paused')),
    constraint callback_merchant_id_event_id_key unique (merchant_id, event_id),
    constraint callback_pkey primary key (merchant_id, order_id, status),
    constraint callback_merchant_id_withdrawal_id_fkey foreign key (merchant_id, withdrawal_id) references withdrawal(merchant_id, order_id)
);
alter table callback alter column merchant_id set (n_distinct=1);
alter table callback alter column event_type set (n_distinct=2);
alter table callback alter column state set (n_distinct=4);
-- Callbacks: by state and kind of event, of all merchants and of one.
create index callback_by_moment on callback (state, event_type, created_ms, order_id, status);
-- The messenger's queue, merchant by merchant, so that one with much to be told hides no other.
create index callback_due on callback (merchant_id, next_ms, created_ms) where (state = 'due');
create index callback_of_merchant_by_moment on callback (merchant_id, state, event_type, created_ms, order_id, status);
create index callback_stopped on callback (merchant_id, order_id) where (state in ('dead_letter', 'paused'));

-- One row per scope: 0 is the platform, a merchant's row overrides it direction by direction. A pair whose
-- product exceeds one would let a loop of exchanges make money.
create table rate (
    merchant_id bigint not null,
    usdt_kfb_e8 bigint,
    usdt_kfb_paused boolean default false not null,
    usdt_kfb_set_ms bigint,
    usdt_kfb_max_age_ms bigint,
    kfb_usdt_e8 bigint,
    kfb_usdt_paused boolean default false not null,
    kfb_usdt_set_ms bigint,
    kfb_usdt_max_age_ms bigint,
    constraint rate_kfb_usdt_e8_check check (kfb_usdt_e8 > 0),
    constraint rate_kfb_usdt_max_age_ms_check check (kfb_usdt_max_age_ms > 0),
    constraint rate_merchant_id_check check (merchant_id >= 0),
    constraint rate_never_pumps check (((usdt_kfb_e8)::numeric * (kfb_usdt_e8)::numeric) <= (10000000000000000)::numeric),
    constraint rate_usdt_kfb_e8_check check (usdt_kfb_e8 > 0),
    constraint rate_usdt_kfb_max_age_ms_check check (usdt_kfb_max_age_ms > 0),
    constraint rate_pkey primary key (merchant_id)
);

-- The merchant's own deposit addresses, one for each chain.
create table merchant_address (
    merchant_id bigint not null,
    chain chain_code not null,
    address bytea not null,
    constraint merchant_address_address_check check (length(address) = 20),
    constraint merchant_address_merchant_id_address_key unique (merchant_id, address),
    constraint merchant_address_pkey primary key (merchant_id, chain),
    constraint merchant_address_merchant_id_fkey foreign key (merchant_id) references merchant(merchant_id)
);
alter table merchant_address alter column merchant_id set (n_distinct=1);

-- A transfer of our token to an address of ours; without a user_id it is the merchant's own. `seen`: its block is not
-- final yet. `undone`: its block has left the chain. `pending`: final and about to be credited. `dust`: final, but too
-- little until more has come. `cause` says why a pending one could not be credited the last time.
create table deposit (
    merchant_id bigint not null,
    chain chain_code not null,
    tx_hash text not null,
    log_index integer not null,
    block_number bigint not null,
    block_hash text not null,
    sender bytea not null,
    address bytea not null,
    user_id bigint,
    amount bigint not null,
    status text not null,
    seen_ms bigint not null,
    final_ms bigint,
    next_ms bigint default 0 not null,
    cause text,
    block_log_index integer,
    decided_by text,
    decided_ms bigint,
    constraint deposit_address_check check (length(address) = 20),
    constraint deposit_amount_check check (amount > 0),
    constraint deposit_block_hash_check check (block_hash <> ''),
    constraint deposit_block_log_index_check check (block_log_index >= 0),
    constraint deposit_block_number_check check (block_number >= 0),
    constraint deposit_cause_check check (cause <> ''),
    constraint deposit_decided check (((decided_by is null) = (decided_ms is null)) and ((status <> 'dropped') or (decided_by is not null)) and ((status not in ('seen', 'undone', 'dust', 'held')) or (decided_by is null))),
    constraint deposit_decided_by_check check (decided_by <> ''),
    constraint deposit_final check ((final_ms is null) = (status in ('seen', 'undone'))),
    constraint deposit_log_index_check check (log_index >= 0),
    constraint deposit_next_ms_check check (next_ms >= 0),
    constraint deposit_sender_check check (length(sender) = 20),
    constraint deposit_status_check check (status in ('seen', 'undone', 'pending', 'dust', 'held', 'dropped', 'credited')),
    constraint deposit_tx_hash_check check (length(tx_hash) between 1 and 80),
    constraint deposit_pkey primary key (merchant_id, chain, tx_hash, log_index),
    constraint deposit_merchant_id_fkey foreign key (merchant_id) references merchant(merchant_id),
    constraint deposit_merchant_id_user_id_fkey foreign key (merchant_id, user_id) references sub_user(merchant_id, user_id)
);
alter table deposit alter column merchant_id set (n_distinct=1);
alter table deposit alter column chain set (n_distinct=3);
alter table deposit alter column status set (n_distinct=7);
create index deposit_by_address on deposit (address, seen_ms, chain, tx_hash, log_index);
create index deposit_by_amount on deposit (amount, seen_ms);
-- What a block that is read again held.
create index deposit_by_block on deposit (chain, block_number) where (final_ms is not null);
-- Lists, newest first: of a merchant, and of one wallet.
create index deposit_by_merchant on deposit (merchant_id, seen_ms, chain, tx_hash, log_index);
-- Deposits: by status and chain, of all merchants and of one, and what came to an address.
create index deposit_by_moment on deposit (status, chain, seen_ms, tx_hash, log_index);
create index deposit_by_wallet on deposit (merchant_id, user_id, seen_ms, chain, tx_hash, log_index);
create index deposit_dust on deposit (merchant_id, chain, address) where (status = 'dust');
create index deposit_held on deposit (seen_ms) where (status = 'held');
create unique index deposit_log on deposit (chain, block_hash, block_log_index) where ((block_log_index is not null) and (final_ms is not null));
create index deposit_of_merchant_by_moment on deposit (merchant_id, status, chain, seen_ms, tx_hash, log_index);
create index deposit_pending on deposit (next_ms, merchant_id) where (status = 'pending');
-- What a reorganisation may still undo, what is to be credited, and what waits for more.
create index deposit_seen on deposit (chain, block_number) where (status = 'seen');
-- What a transfer is belongs to its chain: no two books have the same one.
create unique index deposit_transfer on deposit (chain, tx_hash, log_index);

-- The one entry that a transfer was credited by, and with what. Only inserted.
create table deposit_credit (
    merchant_id bigint not null,
    chain chain_code not null,
    tx_hash text not null,
    log_index integer not null,
    entry_id bigint not null,
    currency currency not null,
    amount positive_units not null,
    rate_e8 bigint not null,
    -- Which block a credit is from; none where a person released the deposit, who is named then.
    block_hash text,
    released_by text,
    constraint deposit_credit_block_hash_check check (block_hash <> ''),
    constraint deposit_credit_from check ((block_hash is null) = (released_by is not null)),
    constraint deposit_credit_rate_e8_check check (rate_e8 >= 0),
    constraint deposit_credit_released_by_check check (released_by <> ''),
    constraint deposit_credit_merchant_id_entry_id_key unique (merchant_id, entry_id),
    constraint deposit_credit_pkey primary key (merchant_id, chain, tx_hash, log_index),
    constraint deposit_credit_merchant_id_chain_tx_hash_log_index_fkey foreign key (merchant_id, chain, tx_hash, log_index) references deposit(merchant_id, chain, tx_hash, log_index)
);
alter table deposit_credit alter column merchant_id set (n_distinct=1);

-- One attempt: `answer` is the beginning of what came back, `error` why it was no success. Only inserted, and
-- completed once.
create table callback_attempt (
    merchant_id bigint not null,
    order_id bigint not null,
    status smallint not null,
    attempt_no integer not null,
    at_ms bigint not null,
    address text,
    http_status smallint,
    error text,
    answer bytea,
    latency_ms integer,
    constraint callback_attempt_address_check check (address <> ''),
    constraint callback_attempt_attempt_no_check check (attempt_no > 0),
    constraint callback_attempt_error_check check (error <> ''),
    constraint callback_attempt_latency_ms_check check (latency_ms >= 0),
    constraint callback_attempt_pkey primary key (merchant_id, order_id, status, attempt_no),
    constraint callback_attempt_merchant_id_order_id_status_fkey foreign key (merchant_id, order_id, status) references callback(merchant_id, order_id, status)
);
alter table callback_attempt alter column merchant_id set (n_distinct=1);

-- Merchants that nothing is sent to until an operator says so.
create table callback_pause (
    merchant_id bigint not null,
    since_ms bigint not null,
    paused_by text not null,
    constraint callback_pause_paused_by_check check (paused_by <> ''),
    constraint callback_pause_pkey primary key (merchant_id),
    constraint callback_pause_merchant_id_fkey foreign key (merchant_id) references merchant(merchant_id)
);

-- A browser that a link let in. Only the hash of its token is kept, so that nobody can use what is read here; the token
-- names its merchant, so that a session is found by its whole key.
create table wallet_session (
    merchant_id bigint not null,
    token_hash bytea not null,
    user_id bigint not null,
    is_framed boolean not null,
    created_ms bigint not null,
    seen_ms bigint not null,
    expires_ms bigint not null,
    constraint wallet_session_times check ((created_ms <= seen_ms) and (created_ms < expires_ms)),
    constraint wallet_session_token_hash_check check (length(token_hash) = 32),
    constraint wallet_session_pkey primary key (merchant_id, token_hash),
    constraint wallet_session_merchant_id_user_id_fkey foreign key (merchant_id, user_id) references sub_user(merchant_id, user_id)
);
alter table wallet_session alter column merchant_id set (n_distinct=1);
create index wallet_session_end on wallet_session (expires_ms);
-- A sub-user's own sessions, and those that upkeep clears away.
create index wallet_session_user on wallet_session (merchant_id, user_id, created_ms);

-- What a book's entries of one UTC day, kind and currency add up to; merchant 0 is all of them together. `fee` is what
-- went to the platform's fees, `amount` what moved otherwise. An exchange counts in both its currencies. A day's sum
-- may be more than any balance.
create table daily_figure (
    merchant_id bigint not null,
    day integer not null,
    kind entry_kind not null,
    currency currency not null,
    entries bigint not null,
    amount numeric(40,0) not null,
    fee numeric(40,0) not null,
    constraint daily_figure_amount_check check (amount >= (0)::numeric),
    constraint daily_figure_day_check check (day >= 0),
    constraint daily_figure_entries_check check (entries > 0),
    constraint daily_figure_fee_check check (fee >= (0)::numeric),
    constraint daily_figure_merchant_id_check check (merchant_id >= 0),
    constraint daily_figure_pkey primary key (merchant_id, day, kind, currency)
);

-- How far a book's entries are in the figures. Moves in the same commit as they do, so that each entry is in them once.
create table figure_cursor (
    merchant_id bigint not null,
    entry_id bigint default 0 not null,
    entries bigint default 0 not null,
    sub_users bigint default 0 not null,
    moved_ms bigint default 0 not null,
    constraint figure_cursor_check check ((sub_users >= 0) and (sub_users <= entries)),
    constraint figure_cursor_entries_check check (entries >= 0),
    constraint figure_cursor_entry_id_check check (entry_id >= 0),
    constraint figure_cursor_pkey primary key (merchant_id),
    constraint figure_cursor_merchant_id_fkey foreign key (merchant_id) references book(merchant_id)
);

-- The comparison of checkpoints and signer's record with the database writes signs; a person accepts them.
create table rollback_evidence (
    merchant_id bigint not null,
    subject text not null,
    kind text not null,
    cause text not null,
    since_ms bigint not null,
    constraint rollback_evidence_cause_check check (cause <> ''),
    constraint rollback_evidence_kind_check check (kind in ('behind', 'diverged', 'unreadable')),
    constraint rollback_evidence_merchant_id_check check (merchant_id >= 0),
    constraint rollback_evidence_of_book check ((merchant_id > 0) = (subject = 'book')),
    constraint rollback_evidence_subject_check check (subject in ('book', 'audit', 'signer', 'key', 'home')),
    constraint rollback_evidence_pkey primary key (merchant_id, subject)
);

-- The block that a transaction was credited from. Only inserted.
create table credited_transaction (
    chain chain_code not null,
    tx_hash text not null,
    block_hash text not null,
    constraint credited_transaction_block_hash_check check (block_hash <> ''),
    constraint credited_transaction_tx_hash_check check (length(tx_hash) between 1 and 80),
    constraint credited_transaction_chain_tx_hash_block_hash_key unique (chain, tx_hash, block_hash),
    constraint credited_transaction_pkey primary key (chain, tx_hash)
);

-- The role that each side connects as. `migrate` grants again to the roles that stand here, whenever tables change.
create table side_role (
    side text not null,
    role_name text not null,
    granted_ms bigint not null,
    constraint side_role_side_check check (side in ('web', 'worker')),
    constraint side_role_pkey primary key (side),
    constraint side_role_role_name_key unique (role_name)
);

-- The cell itself: which one this schema is, and whether it takes commands. It has one row, whose version is the one that
-- home's directory must know. Each move of the cell raises it.
create table cell_state (
    cell_id integer not null,
    version bigint not null,
    is_open boolean not null,
    -- The highest number of home's that the cell was told.
    home_no bigint default 0 not null,
    constraint cell_state_cell_id_check check (cell_id >= 0),
    constraint cell_state_version_check check (version > 0),
    constraint cell_state_pkey primary key (cell_id)
);
create unique index cell_state_one_row on cell_state ((true));

-- How far a cell has taken in home's final transfers of a chain, and the last rewind of home's cursor that it has followed.
create table chain_position (
    chain chain_code not null,
    final_number bigint not null,
    rewind_no integer not null,
    constraint chain_position_final_number_check check (final_number >= 0),
    constraint chain_position_rewind_no_check check (rewind_no >= 0),
    constraint chain_position_pkey primary key (chain)
);

-- `change_no` and `changed_ms` are of the newest change of a rate that was copied; `checked_ms` is when it was compared last.
create table reference_state (
    row_no integer default 1 not null,
    change_no bigint not null,
    changed_ms bigint not null,
    checked_ms bigint not null,
    constraint reference_state_row_no_check check (row_no = 1),
    constraint reference_state_pkey primary key (row_no)
);

-- One row for each month of a book that was written to a file and checked. Rows of entry and posting up to `removed_id` are gone:
-- the file alone has them. It moves up when rows are removed, and down when they are restored.
create table archived_month (
    merchant_id bigint not null,
    month text not null,
    first_id bigint not null,
    last_id bigint not null,
    entries bigint not null,
    postings bigint not null,
    first_ms bigint not null,
    last_ms bigint not null,
    previous_hash bytea not null,
    last_hash bytea not null,
    digest bytea not null,
    removed_id bigint not null,
    written_ms bigint not null,
    constraint archived_month_check check (last_ms >= first_ms),
    constraint archived_month_check1 check ((first_id > 0) and (last_id >= first_id) and ((removed_id >= (first_id - 1)) and (removed_id <= last_id))),
    constraint archived_month_entries_check check (entries > 0),
    constraint archived_month_month_check check (month ~ '^[0-9]{4}-(0[1-9]|1[0-2])$'),
    constraint archived_month_postings_check check (postings >= 0),
    constraint archived_month_pkey primary key (merchant_id, month)
);
alter table archived_month alter column merchant_id set (n_distinct=1);

-- The order ids and references of entries whose rows are gone, with what answers a repeat. The balances are those of operators'
-- entries alone.
create table archived_order (
    merchant_id bigint not null,
    entry_id bigint not null,
    at_ms bigint not null,
    source_id bigint not null,
    target_id bigint not null,
    amount bigint not null,
    rate_e8 bigint not null,
    second_amount bigint,
    source_balance bigint,
    target_balance bigint,
    kind entry_kind not null,
    mc_order_id order_name not null,
    currency text not null,
    second_currency text,
    facts text not null,
    constraint archived_order_pkey primary key (merchant_id, mc_order_id, kind)
);
alter table archived_order alter column merchant_id set (n_distinct=1);

-- Account 0 stands for all sub-users' wallets. Merchant 0 stands for all merchants of the cell.
create table daily_movement (
    merchant_id bigint not null,
    day integer not null,
    account_id integer not null,
    currency currency not null,
    kind entry_kind not null,
    in_units numeric(40,0) not null,
    out_units numeric(40,0) not null,
    postings bigint not null,
    constraint daily_movement_account_id_check check (account_id >= 0),
    constraint daily_movement_day_check check (day >= 0),
    constraint daily_movement_in_units_check check (in_units >= (0)::numeric),
    constraint daily_movement_merchant_id_check check (merchant_id >= 0),
    constraint daily_movement_out_units_check check (out_units >= (0)::numeric),
    constraint daily_movement_postings_check check (postings > 0),
    constraint daily_movement_pkey primary key (merchant_id, day, account_id, currency, kind)
);
alter table daily_movement alter column merchant_id set (n_distinct=1);

alter table deposit_credit add constraint deposit_credit_one_block foreign key (chain, tx_hash, block_hash) references credited_transaction(chain, tx_hash, block_hash);

revoke execute on function add_nonce_days(integer, integer), drop_nonce_day(integer) from public;
