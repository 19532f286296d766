-- The tables of home: who may call, the books, and everything that pays, watches and reports.
-- Rules of this schema: keys begin with merchant_id so that it can be distributed by it; no trigger, no sequence shared by
-- books; amounts are whole millionths (bigint); moments are milliseconds since the epoch; what must never be is refused by a
-- constraint, not only by the program.

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
    lock table public.nonce in share update exclusive mode;
    for wanted in
        select d from generate_series(first_day, last_day) d
         where not exists (select from pg_inherits i join pg_class c on c.oid = i.inhrelid
                            where i.inhparent = 'public.nonce'::regclass and c.relname = format('nonce_%s', d))
         order by d
    loop
        execute format('create table public.%I (like public.nonce including all)', format('nonce_%s', wanted));
        execute format('alter table public.nonce attach partition public.%I for values in (%s)',
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
    execute format('drop table if exists public.%I', format('nonce_%s', old_day));
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
    app_key text not null,
    status text default 'active' not null,
    currency_mode currency not null,
    sign_method text default 'HMAC' not null,
    networks text[] default '{}'::text[] not null,
    disabled_operations text[] default '{}'::text[] not null,
    transfer_fee_rate_e8 bigint default 0 not null,
    withdraw_fee_rate_e8 bigint default 0 not null,
    withdraw_fee_min_units bigint default 0 not null,
    approval_limit_units bigint default 1000000000 not null,
    daily_limit_units bigint,
    allowed_addresses text[] default '{}'::text[] not null,
    auto_register boolean default true not null,
    require_pin boolean default false not null,
    rate_limit integer,
    account_xpubs jsonb default '{}'::jsonb not null,
    next_address_index integer default 0 not null,
    created_ms bigint not null,
    -- Where the merchant is told of deposits; null is nowhere.
    deposit_notify_url text,
    -- Origins whose pages may show the wallet page in a frame. They end up in a header, so nothing but the characters of an
    -- origin gets in here.
    frame_origins text[] default '{}'::text[] not null,
    -- Above this two people must approve.
    second_approval_limit_units bigint default 100000000000 not null,
    -- The version of a merchant's settings is the merchant's own. The book keeps a copy, which commands are compared with.
    settings_version bigint default 1 not null,
    cell_id integer default 0 not null,
    -- The version of the settings that the cell of a merchant's book has. 0: the book is not open yet. The default cell always has the
    -- newest one, as both change in one transaction.
    carried_version bigint default 1 not null,
    -- Raised by each step of a move that opens or closes a copy of the book. Whoever raised it last may go on.
    move_version bigint default 0 not null,
    -- The rules for a merchant's payouts. Null: no such rule.
    payout_limit_units bigint,
    payout_limit_count integer,
    payout_window_h integer default 24 not null,
    first_payout_limit_units bigint,
    payout_hours text,
    -- How a merchant's wallet pages look: its colour, its logo, and the page where its customers open their wallets. Null: the platform's
    -- own look, and no such page. The values stand in styles and links, so nothing else gets in here.
    brand_colour text,
    brand_logo text,
    customer_url text,
    -- What the next invoices say of the merchant.
    billing_address text,
    tax_id text,
    constraint merchant_app_key_check check (length(app_key) between 1 and 20),
    constraint merchant_approval_limit_units_check check (approval_limit_units >= 0),
    constraint merchant_billing_address check (length(billing_address) between 1 and 300),
    constraint merchant_brand_colour check (brand_colour ~ '^#[0-9a-f]{6}$'),
    constraint merchant_brand_logo check (brand_logo ~ '^[0-9a-f]{64}$'),
    constraint merchant_carried check ((carried_version >= 0) and (carried_version <= settings_version) and ((cell_id > 0) or (carried_version = settings_version))),
    constraint merchant_customer_url check ((customer_url ~ '^https?://') and (length(customer_url) <= 100)),
    constraint merchant_daily_limit_units_check check (daily_limit_units >= 0),
    constraint merchant_deposit_notify_url_check check (length(deposit_notify_url) between 1 and 100),
    constraint merchant_first_payout_limit check (first_payout_limit_units >= 0),
    constraint merchant_frame_origins_check check (array_to_string(frame_origins, ' ', '*') ~ '^[]a-z0-9:/.[ -]*$'),
    constraint merchant_move_version_check check (move_version >= 0),
    constraint merchant_name_check check (name <> ''),
    constraint merchant_next_address_index_check check (next_address_index >= 0),
    constraint merchant_payout_count check (payout_limit_count >= 0),
    constraint merchant_payout_hours check (length(payout_hours) between 1 and 100),
    constraint merchant_payout_limit check (payout_limit_units >= 0),
    constraint merchant_payout_window check (payout_window_h between 1 and 168),
    constraint merchant_rate_limit_check check (rate_limit >= 0),
    constraint merchant_second_approval_limit_units_check check (second_approval_limit_units >= 0),
    constraint merchant_sign_method_check check (sign_method in ('HMAC', 'MD5')),
    constraint merchant_status_check check (status in ('active', 'suspended')),
    constraint merchant_tax_id check (length(tax_id) between 1 and 64),
    constraint merchant_transfer_fee_rate_e8_check check (transfer_fee_rate_e8 between 0 and 100000000),
    constraint merchant_withdraw_fee_min_units_check check (withdraw_fee_min_units >= 0),
    constraint merchant_withdraw_fee_rate_e8_check check (withdraw_fee_rate_e8 between 0 and 100000000),
    constraint merchant_app_key_key unique (app_key),
    constraint merchant_pkey primary key (merchant_id)
);
alter table merchant alter column merchant_id add generated by default as identity (sequence name merchant_merchant_id_seq start with 1001);
create index merchant_by_name on merchant (name collate "C", merchant_id);
create index merchant_to_carry on merchant (merchant_id) where (carried_version < settings_version);

-- Secrets are sealed under the master key; a retired one stays for the record. purpose 'app' signs requests,
-- 'callback' signs what we send.
create table merchant_secret (
    merchant_id bigint not null,
    secret_no integer not null,
    purpose text not null,
    sealed bytea not null,
    created_ms bigint not null,
    retired_ms bigint,
    -- The first key's older secret, when it is rolled with an overlap.
    expires_ms bigint,
    constraint merchant_secret_purpose_check check (purpose in ('app', 'callback')),
    constraint merchant_secret_secret_no_check check (secret_no > 0),
    constraint merchant_secret_pkey primary key (merchant_id, purpose, secret_no),
    constraint merchant_secret_merchant_id_fkey foreign key (merchant_id) references merchant(merchant_id)
);

-- A range of ids belongs to one book for ever: an id tells its book. 20 bits of range, 33 of counter.
create table id_range (
    range_no range_number not null,
    merchant_id bigint not null,
    constraint id_range_pkey primary key (range_no),
    constraint id_range_merchant_id_fkey foreign key (merchant_id) references merchant(merchant_id)
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

-- Every address that the platform ever gave out, once, whichever book it belongs to.
create table issued_address (
    address bytea not null,
    merchant_id bigint not null,
    constraint issued_address_address_check check (length(address) = 20),
    constraint issued_address_pkey primary key (address)
);

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

create table rate_history (
    rate_history_id bigint not null,
    merchant_id bigint not null,
    direction text not null,
    rate_e8 bigint,
    paused boolean not null,
    max_age_ms bigint,
    set_ms bigint not null,
    constraint rate_history_direction_check check ((split_part(direction, ':', 1) = any (currency_codes())) and (split_part(direction, ':', 2) = any (currency_codes())) and (split_part(direction, ':', 1) <> split_part(direction, ':', 2)) and (direction = ((split_part(direction, ':', 1) || ':') || split_part(direction, ':', 2)))),
    constraint rate_history_pkey primary key (rate_history_id)
);
alter table rate_history alter column rate_history_id add generated always as identity (sequence name rate_history_rate_history_id_seq);

-- One order's payout. Whoever holds the highest fence has the claim; a verdict on what to do with the order, its
-- signed bytes or the reason why nothing can be signed, is written down once and stays.
create table payout (
    merchant_id bigint not null,
    order_id bigint not null,
    fence bigint not null,
    claimed_by text,
    claimed_until_ms bigint not null,
    failures integer default 0 not null,
    frozen_cause text,
    frozen_ms bigint,
    -- An order is given up once for ever, with a cause: nothing can be signed for it, or what was signed is proven dead.
    -- `signed_no` counts what was signed; that it stays what it was when the order was given up is held by the database.
    signed_no integer default 0 not null,
    given_up_cause text,
    given_up_ms bigint,
    given_up_signed_no integer,
    obstacle_kind text,
    obstacle_cause text,
    obstacle_ms bigint,
    -- The payer's queue. A payout says itself what the payer has to do next, so that the queue needs no look at the orders. They may
    -- be in another database.
    chain chain_code not null,
    phase text default 'queued' not null,
    constraint payout_claimed check ((fence >= 0) and ((fence = 0) = (claimed_by is null))),
    constraint payout_claimed_by_check check (claimed_by <> ''),
    constraint payout_failures_check check (failures >= 0),
    constraint payout_frozen check ((frozen_cause is null) = (frozen_ms is null)),
    constraint payout_frozen_cause_check check (frozen_cause <> ''),
    constraint payout_given_up check (((given_up_cause is null) = (given_up_ms is null)) and ((given_up_cause is null) = (given_up_signed_no is null)) and ((given_up_signed_no is null) or (given_up_signed_no = signed_no))),
    constraint payout_given_up_cause_check check (given_up_cause <> ''),
    constraint payout_obstacle check (((obstacle_kind is null) = (obstacle_cause is null)) and ((obstacle_kind is null) = (obstacle_ms is null))),
    constraint payout_obstacle_cause_check check (obstacle_cause <> ''),
    constraint payout_obstacle_kind_check check (obstacle_kind <> ''),
    constraint payout_phase check (phase in ('waiting', 'queued', 'taken_up', 'failed', 'closed')),
    constraint payout_signed_no_check check (signed_no >= 0),
    constraint payout_pkey primary key (merchant_id, order_id)
);
-- What waits, and why.
create index payout_blocked on payout (obstacle_ms) where (obstacle_ms is not null);
-- The few that wait for an operator.
create index payout_frozen_open on payout (frozen_ms) where (frozen_ms is not null);
create index payout_open on payout (claimed_until_ms, merchant_id, order_id) where (phase <> 'closed');

-- The sandbox's two chains: every transfer they ever accepted. No merchant is known on a chain.
create table sandbox_transfer (
    tx_hash text not null,
    chain chain_code not null,
    token text not null,
    recipient bytea not null,
    amount_units bigint not null,
    accepted_ms bigint not null,
    final_ms bigint not null,
    verdict text not null,
    constraint sandbox_transfer_amount_units_check check (amount_units > 0),
    constraint sandbox_transfer_check check (final_ms >= accepted_ms),
    constraint sandbox_transfer_recipient_check check (length(recipient) = 20),
    constraint sandbox_transfer_token_check check (token <> ''),
    constraint sandbox_transfer_tx_hash_check check (tx_hash <> ''),
    constraint sandbox_transfer_verdict_check check (verdict in ('paid', 'failed')),
    constraint sandbox_transfer_pkey primary key (tx_hash)
);
-- The sandbox's chains are held against its books too, by the moment from which a transfer counts.
create index sandbox_transfer_final on sandbox_transfer (chain, final_ms);

-- The wallet that pays on a chain; its row is the lock under which nonces and funds are given out. `next_nonce` is the
-- first that was never given out (null: the chain has to be asked first). `ended_payouts` counts the payouts that have
-- ended; `funds_ended_payouts` is what it was before the chain was asked for `funds`, so that a payout which ended later
-- still counts against them.
create table hot_wallet (
    chain chain_code not null,
    address bytea not null,
    next_nonce bigint,
    ended_payouts bigint default 0 not null,
    funds bigint,
    funds_ended_payouts bigint,
    checked_ms bigint,
    frozen_cause text,
    frozen_ms bigint,
    constraint hot_wallet_address_check check (length(address) = 20),
    constraint hot_wallet_ended_payouts_check check (ended_payouts >= 0),
    constraint hot_wallet_frozen check ((frozen_cause is null) = (frozen_ms is null)),
    constraint hot_wallet_frozen_cause_check check (frozen_cause <> ''),
    constraint hot_wallet_funds check (((funds is null) = (checked_ms is null)) and ((funds is null) = (funds_ended_payouts is null)) and ((funds_ended_payouts is null) or (funds_ended_payouts <= ended_payouts))),
    constraint hot_wallet_funds_check check (funds >= 0),
    constraint hot_wallet_next_nonce_check check (next_nonce >= 0),
    constraint hot_wallet_pkey primary key (chain)
);

-- Who stopped all new payouts on a chain, and why. Several may; payouts go on when the last has taken it back.
create table payout_stop (
    chain chain_code not null,
    actor text not null,
    cause text not null,
    since_ms bigint not null,
    constraint payout_stop_actor_check check (actor <> ''),
    constraint payout_stop_cause_check check (cause <> ''),
    constraint payout_stop_pkey primary key (chain, actor)
);

-- Every nonce of a wallet that was ever given out, where a chain numbers transactions: to an order's payout, to its
-- cancellation, to coin for a deposit address, to a cold transfer; or given back and free, or lost to a stranger. A nonce
-- belongs to one of them for as long as anything is signed for it: the foreign keys below see to that.
create table wallet_nonce (
    chain chain_code not null,
    wallet bytea not null,
    nonce bigint not null,
    purpose text not null,
    merchant_id bigint,
    order_id bigint,
    -- Since when it is what it is now.
    since_ms bigint not null,
    -- When the cancellation was not needed any more, or had gone through.
    cancelled_ms bigint,
    -- When the chain was asked what the cancellation of a nonce has cost.
    fee_read_ms bigint,
    constraint wallet_nonce_cancelled check ((cancelled_ms is null) or (purpose = 'cancel')),
    constraint wallet_nonce_nonce_check check (nonce >= 0),
    constraint wallet_nonce_owner check (((purpose = 'payout') = (order_id is not null)) and ((merchant_id is null) = (order_id is null))),
    constraint wallet_nonce_purpose_check check (purpose in ('payout', 'free', 'cancel', 'top_up', 'cold', 'lost')),
    constraint wallet_nonce_wallet_check check (length(wallet) = 20),
    constraint wallet_nonce_chain_wallet_nonce_merchant_id_order_id_key unique (chain, wallet, nonce, merchant_id, order_id),
    constraint wallet_nonce_merchant_id_order_id_key unique (merchant_id, order_id),
    constraint wallet_nonce_pkey primary key (chain, wallet, nonce)
);
create index wallet_nonce_fee on wallet_nonce (chain, wallet, nonce) where ((cancelled_ms is not null) and (fee_read_ms is null));
create index wallet_nonce_open on wallet_nonce (chain, wallet, nonce) where ((purpose = 'free') or ((purpose = 'cancel') and (cancelled_ms is null)));

-- What an order has of its hot wallet: so much money, and a nonce where there are nonces. Nothing is signed without it,
-- and while anything is signed it stays. `ended_no` is set when the order's transfer is final or proven dead.
create table payout_reservation (
    merchant_id bigint not null,
    order_id bigint not null,
    chain chain_code not null,
    wallet bytea not null,
    nonce bigint,
    amount bigint not null,
    reserved_ms bigint not null,
    ended_no bigint,
    -- Who gets the money.
    recipient bytea not null,
    constraint payout_reservation_amount_check check (amount > 0),
    constraint payout_reservation_ended_no_check check (ended_no >= 0),
    constraint payout_reservation_recipient check (length(recipient) = 20),
    constraint payout_reservation_wallet_check check (length(wallet) = 20),
    constraint payout_reservation_chain_wallet_nonce_key unique (chain, wallet, nonce),
    constraint payout_reservation_pkey primary key (merchant_id, order_id),
    constraint payout_reservation_chain_wallet_nonce_merchant_id_order_id_fkey foreign key (chain, wallet, nonce, merchant_id, order_id) references wallet_nonce(chain, wallet, nonce, merchant_id, order_id),
    constraint payout_reservation_merchant_id_order_id_fkey foreign key (merchant_id, order_id) references payout(merchant_id, order_id)
);
create index payout_reservation_ended on payout_reservation (chain, ended_no) where (ended_no is not null);
-- What still counts against a wallet's funds, and what has counted until a short while ago.
create index payout_reservation_open on payout_reservation (chain) where (ended_no is null);
create index payout_reservation_paid_to on payout_reservation (recipient);

-- Everything that was ever signed for an order, before anybody sent it. Rows are only inserted; `broadcast_ms` is filled
-- in once, when a node first took the bytes.
create table payout_signed (
    merchant_id bigint not null,
    order_id bigint not null,
    attempt_no integer not null,
    raw bytea not null,
    tx_hash text not null,
    built_at_block bigint not null,
    signed_ms bigint not null,
    broadcast_ms bigint,
    constraint payout_signed_attempt_no_check check (attempt_no > 0),
    constraint payout_signed_built_at_block_check check (built_at_block >= 0),
    constraint payout_signed_raw_check check (length(raw) > 0),
    constraint payout_signed_tx_hash_check check (tx_hash <> ''),
    constraint payout_signed_pkey primary key (merchant_id, order_id, attempt_no),
    constraint payout_signed_merchant_id_order_id_fkey foreign key (merchant_id, order_id) references payout_reservation(merchant_id, order_id)
);
-- A hash names one transaction on its chain, whosever it is.
create unique index payout_signed_hash on payout_signed (tx_hash);

-- Everything that was ever signed to cancel a nonce, before anybody sent it. Rows are only inserted.
create table cancel_signed (
    chain chain_code not null,
    wallet bytea not null,
    nonce bigint not null,
    attempt_no integer not null,
    raw bytea not null,
    tx_hash text not null,
    built_at_block bigint not null,
    signed_ms bigint not null,
    constraint cancel_signed_attempt_no_check check (attempt_no > 0),
    constraint cancel_signed_built_at_block_check check (built_at_block >= 0),
    constraint cancel_signed_raw_check check (length(raw) > 0),
    constraint cancel_signed_tx_hash_check check (tx_hash <> ''),
    constraint cancel_signed_pkey primary key (chain, wallet, nonce, attempt_no),
    constraint cancel_signed_tx_hash_key unique (tx_hash),
    constraint cancel_signed_chain_wallet_nonce_fkey foreign key (chain, wallet, nonce) references wallet_nonce(chain, wallet, nonce)
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

-- How far a chain was read. Up to the final block its transfers are settled; from there to the head they are a preview,
-- which a reorganisation may undo. `alert` is what keeps the chain from being read on, if something does.
create table chain_cursor (
    chain chain_code not null,
    final_number bigint not null,
    final_hash text not null,
    head_number bigint not null,
    head_hash text not null,
    alert text,
    moved_ms bigint not null,
    constraint chain_cursor_ahead check (head_number >= final_number),
    constraint chain_cursor_alert_check check (alert <> ''),
    constraint chain_cursor_final_hash_check check (final_hash <> ''),
    constraint chain_cursor_final_number_check check (final_number >= 0),
    constraint chain_cursor_head_hash_check check (head_hash <> ''),
    constraint chain_cursor_pkey primary key (chain)
);

-- The blocks of the preview, to find where a reorganisation began.
create table chain_block (
    chain chain_code not null,
    block_number bigint not null,
    block_hash text not null,
    constraint chain_block_block_hash_check check (block_hash <> ''),
    constraint chain_block_pkey primary key (chain, block_number)
);

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

-- What arrives on the sandbox's chains, each transfer in a block of its own. No merchant is known on a chain.
create table sandbox_deposit (
    chain chain_code not null,
    block_number bigint not null,
    sender bytea not null,
    recipient bytea not null,
    amount_units bigint not null,
    at_ms bigint not null,
    -- A deposit that was confirmed keeps the transaction that it had before. Others have one made of their block's number.
    tx_hash text,
    constraint sandbox_deposit_amount_units_check check (amount_units > 0),
    constraint sandbox_deposit_block_number_check check (block_number > 0),
    constraint sandbox_deposit_recipient_check check (length(recipient) = 20),
    constraint sandbox_deposit_sender_check check (length(sender) = 20),
    constraint sandbox_deposit_pkey primary key (chain, block_number)
);

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

create table xpub_pool (
    account_no integer not null,
    xpubs jsonb not null,
    merchant_id bigint,
    constraint xpub_pool_account_no_check check (account_no >= 0),
    constraint xpub_pool_xpubs_check check ((xpubs ? 'ERC20') and (xpubs ? 'TRC20')),
    constraint xpub_pool_merchant_id_key unique (merchant_id),
    constraint xpub_pool_pkey primary key (account_no),
    constraint xpub_pool_merchant_id_fkey foreign key (merchant_id) references merchant(merchant_id)
);
-- Who needs an account takes the lowest that nobody has.
create index xpub_pool_free on xpub_pool (account_no) where (merchant_id is null);

-- An operator's own movement of the platform's money: into custody, or out of it. Only inserted; a mistake is corrected
-- by one the other way round.
create table treasury_movement (
    chain chain_code not null,
    movement_no bigint not null,
    direction text not null,
    amount positive_units not null,
    tx_hash text not null,
    reason text not null,
    actor text not null,
    recorded_ms bigint not null,
    -- `corrects`: the record that this one takes back. `corrects_direction`: that record's direction, so that one key compares all of it.
    -- `replaces`: the corrected record that this one repeats.
    corrects bigint,
    corrects_direction text,
    replaces bigint,
    constraint treasury_movement_actor_check check (actor <> ''),
    constraint treasury_movement_direction_check check (direction in ('IN', 'OUT')),
    constraint treasury_movement_opposite check (((corrects is null) = (corrects_direction is null)) and (corrects_direction <> direction) and ((corrects is null) or (replaces is null))),
    constraint treasury_movement_reason_check check (reason <> ''),
    constraint treasury_movement_tx_hash_check check (length(tx_hash) between 1 and 80),
    constraint treasury_movement_pkey primary key (chain, movement_no)
);
alter table treasury_movement alter column movement_no add generated always as identity (sequence name treasury_movement_movement_no_seq);
-- A record is corrected once.
create unique index treasury_movement_corrects on treasury_movement (chain, corrects);
-- The same movement counts once: it may be repeated only instead of a corrected record, once for each.
create unique index treasury_movement_once on treasury_movement (chain, tx_hash, direction, amount, coalesce(replaces, 0)) where (corrects is null);
create unique index treasury_movement_whole on treasury_movement (chain, movement_no, tx_hash, amount, direction);
-- The corrected record has the same transaction and amount.
alter table treasury_movement add constraint treasury_movement_corrected foreign key (chain, corrects, tx_hash, amount, corrects_direction) references treasury_movement(chain, movement_no, tx_hash, amount, direction);
-- It is the same movement.
alter table treasury_movement add constraint treasury_movement_repeated foreign key (chain, replaces, tx_hash, amount, direction) references treasury_movement(chain, movement_no, tx_hash, amount, direction);
-- What is repeated was corrected.
alter table treasury_movement add constraint treasury_movement_replaced foreign key (chain, replaces) references treasury_movement(chain, corrects);

-- Every address of ours that may hold something: hot wallets, the present one and those before it, and deposit addresses
-- from the first transfer to them on.
create table custody_address (
    chain chain_code not null,
    address bytea not null,
    purpose text not null,
    since_ms bigint not null,
    constraint custody_address_address_check check (length(address) = 20),
    constraint custody_address_purpose_check check (purpose in ('hot', 'deposit', 'cold')),
    constraint custody_address_pkey primary key (chain, address)
);
-- The few wallets among many deposit addresses.
create index custody_address_wallet on custody_address (address) where (purpose <> 'deposit');

-- Up to which block a chain was searched for movements at these addresses.
create table custody_cursor (
    chain chain_code not null,
    block_number bigint not null,
    moved_ms bigint not null,
    constraint custody_cursor_block_number_check check (block_number >= 0),
    constraint custody_cursor_pkey primary key (chain)
);

-- A transfer at an address of ours, in a final block, that no book contained when it was found; `is_out` tells which end
-- of it is ours. `explained_ms` is set once, when a comparison first found it in the books.
create table custody_movement (
    chain chain_code not null,
    tx_hash text not null,
    log_index integer not null,
    is_out boolean not null,
    block_number bigint not null,
    sender bytea not null,
    recipient bytea not null,
    amount positive_units not null,
    found_ms bigint not null,
    explained_ms bigint,
    constraint custody_movement_block_number_check check (block_number >= 0),
    constraint custody_movement_log_index_check check (log_index >= 0),
    constraint custody_movement_recipient_check check (length(recipient) = 20),
    constraint custody_movement_sender_check check (length(sender) = 20),
    constraint custody_movement_tx_hash_check check (length(tx_hash) between 1 and 80),
    constraint custody_movement_pkey primary key (chain, tx_hash, log_index, is_out)
);
create index custody_movement_open on custody_movement (chain, block_number) where (explained_ms is null);

-- One comparison of one chain, with all that explains its differences. Without numbers it could not be made, and the
-- cause says why. `is_sound` is false when an operator must look.
create table reconciliation (
    chain chain_code not null,
    reconciliation_no bigint not null,
    at_ms bigint not null,
    block_number bigint,
    books_units bigint,
    chain_units bigint,
    unexplained_units bigint,
    is_sound boolean not null,
    explanation jsonb not null,
    cause text,
    constraint reconciliation_block_number_check check (block_number >= 0),
    constraint reconciliation_cause_check check (cause <> ''),
    constraint reconciliation_made check (((cause is null) = (block_number is not null)) and ((cause is null) = (books_units is not null)) and ((cause is null) = (chain_units is not null)) and ((cause is null) = (unexplained_units is not null)) and ((cause is null) or (not is_sound))),
    constraint reconciliation_pkey primary key (chain, reconciliation_no)
);
alter table reconciliation alter column reconciliation_no add generated always as identity (sequence name reconciliation_reconciliation_no_seq);

-- `step` is what is being done: coin is sent (top_up), the token is moved (token); then how it ended. `dropped`: nothing was
-- ever signed. `amount` is in units of the token; everything named top_up, fee or fee_limit is the chain's coin in its
-- smallest unit; `coin_price` is what a whole coin cost in units when it was planned.
create table sweep (
    chain chain_code not null,
    sweep_id bigint not null,
    address bytea not null,
    merchant_id bigint not null,
    account_no integer not null,
    branch integer not null,
    address_index integer not null,
    wallet bytea not null,
    amount bigint not null,
    coin_price bigint not null,
    top_up bigint not null,
    top_up_fee_limit bigint not null,
    token_fee_limit bigint not null,
    actor text not null,
    opened_ms bigint not null,
    step text not null,
    version integer default 0 not null,
    top_up_nonce bigint,
    token_nonce bigint,
    top_up_tx_hash text,
    top_up_fee bigint,
    token_tx_hash text,
    token_fee bigint,
    obstacle text,
    cause text,
    ended_ms bigint,
    -- `stalled_ms`: since when the present transaction can't be signed. `budget`: the most coin that the sweep and what continues it
    -- may burn. `continues`: the sweep whose place it took.
    stalled_ms bigint,
    budget bigint not null,
    continues bigint,
    -- Null: a worker ended it.
    ended_by text,
    -- A sweep that carries a rescue out moves no USDT, and needs no price. It has a last step of its own.
    rescue_no bigint,
    rescued numeric(78,0),
    constraint sweep_account_no_check check (account_no >= 0),
    constraint sweep_actor_check check (actor <> ''),
    constraint sweep_address_check check (length(address) = 20),
    constraint sweep_address_index_check check (address_index >= 0),
    constraint sweep_amount_check check (case when (rescue_no is null) then (amount > 0) else (amount = 0) end),
    constraint sweep_branch_check check (branch in (0, 1)),
    constraint sweep_budget check ((top_up_fee_limit + token_fee_limit) <= budget),
    constraint sweep_cause check ((cause is null) = (step not in ('continued', 'failed', 'dropped'))),
    constraint sweep_cause_check check (cause <> ''),
    constraint sweep_coin_price_check check (case when (rescue_no is null) then (coin_price > 0) else (coin_price = 0) end),
    constraint sweep_continued check ((step <> 'continued') or ((token_tx_hash is null) and (token_fee is null))),
    constraint sweep_done check ((step <> 'done') or ((token_tx_hash is not null) and ((top_up = 0) or (top_up_tx_hash is not null)))),
    constraint sweep_ended check ((ended_ms is null) = (step in ('top_up', 'token', 'rescue'))),
    constraint sweep_ended_by check ((ended_by is null) or ((ended_by <> '') and (step = 'failed'))),
    constraint sweep_obstacle_check check (obstacle <> ''),
    constraint sweep_rescue_step check (case when (rescue_no is null) then (step <> 'rescue') else (step <> 'token') end),
    constraint sweep_rescued check (((rescue_no is null) = (rescued is null)) and ((rescued is null) or (rescued > (0)::numeric))),
    constraint sweep_step_check check (step in ('top_up', 'token', 'rescue', 'done', 'continued', 'failed', 'dropped')),
    constraint sweep_token_fee_check check (token_fee >= 0),
    constraint sweep_token_fee_limit_check check (token_fee_limit > 0),
    constraint sweep_token_nonce_check check (token_nonce >= 0),
    constraint sweep_token_tx_hash_check check (token_tx_hash <> ''),
    constraint sweep_top_up_check check (top_up >= 0),
    constraint sweep_top_up_fee_check check (top_up_fee >= 0),
    constraint sweep_top_up_fee_limit_check check (top_up_fee_limit >= 0),
    constraint sweep_top_up_nonce_check check (top_up_nonce >= 0),
    constraint sweep_top_up_tx_hash_check check (top_up_tx_hash <> ''),
    constraint sweep_topped_up check ((step <> 'top_up') or (top_up > 0)),
    constraint sweep_version_check check (version >= 0),
    constraint sweep_wallet_check check (length(wallet) = 20),
    constraint sweep_chain_wallet_top_up_nonce_key unique (chain, wallet, top_up_nonce),
    constraint sweep_pkey primary key (chain, sweep_id),
    constraint sweep_chain_wallet_top_up_nonce_fkey foreign key (chain, wallet, top_up_nonce) references wallet_nonce(chain, wallet, nonce),
    constraint sweep_continues foreign key (chain, continues) references sweep(chain, sweep_id),
    constraint sweep_merchant_id_fkey foreign key (merchant_id) references merchant(merchant_id)
);
alter table sweep alter column sweep_id add generated always as identity (sequence name sweep_sweep_id_seq);
-- What an address has had.
create index sweep_address on sweep (chain, address, sweep_id);
-- A sweep is continued by one.
create unique index sweep_continued_once on sweep (chain, continues) where (continues is not null);
create index sweep_ended on sweep (ended_ms) where (ended_ms is not null);
create index sweep_failed on sweep (chain, ended_ms) where ((step = 'failed') and (ended_by is null));
-- Lists, newest first.
create unique index sweep_newest on sweep (sweep_id);
-- One at a time for an address, and what is under way, the oldest first.
create unique index sweep_open on sweep (chain, address) where (ended_ms is null);
-- The sweeps of a rescue.
create index sweep_rescue on sweep (rescue_no, sweep_id) where (rescue_no is not null);
-- A rescue is carried out by one sweep, and those that continue it.
create unique index sweep_rescue_once on sweep (rescue_no) where ((rescue_no is not null) and (continues is null));
create index sweep_under_way on sweep (chain, sweep_id) where (ended_ms is null);

create table sweep_signed (
    chain chain_code not null,
    sweep_id bigint not null,
    kind text not null,
    attempt_no integer not null,
    raw bytea not null,
    tx_hash text not null,
    built_at_block bigint not null,
    signed_ms bigint not null,
    constraint sweep_signed_attempt_no_check check (attempt_no > 0),
    constraint sweep_signed_built_at_block_check check (built_at_block >= 0),
    constraint sweep_signed_kind_check check (kind in ('top_up', 'token', 'rescue')),
    constraint sweep_signed_raw_check check (length(raw) > 0),
    constraint sweep_signed_tx_hash_check check (tx_hash <> ''),
    constraint sweep_signed_pkey primary key (chain, sweep_id, kind, attempt_no),
    constraint sweep_signed_tx_hash_key unique (tx_hash),
    constraint sweep_signed_chain_sweep_id_fkey foreign key (chain, sweep_id) references sweep(chain, sweep_id)
);

-- `totp_sealed` is the second factor, sealed under the master key; it counts once `totp_confirmed_ms` says that a code of
-- it was shown. `totp_last_step` is the last 30 seconds whose code was taken: none is taken twice.
create table operator (
    operator_id bigint not null,
    name text not null,
    role text not null,
    merchant_id bigint,
    status text default 'active' not null,
    password_hash text not null,
    totp_sealed bytea,
    totp_confirmed_ms bigint,
    totp_last_step bigint,
    language text,
    theme text,
    created_ms bigint not null,
    -- When each operator was last through with both factors: failures since then are shown at the next sign-in.
    signed_in_ms bigint,
    -- Whether an operator's password was generated and handed over by somebody else. Its owner must then choose another one.
    must_change_password boolean default false not null,
    constraint operator_confirmed check ((totp_confirmed_ms is null) or ((totp_sealed is not null) and (totp_last_step is not null))),
    constraint operator_language_check check (language in ('en', 'zh-CN')),
    constraint operator_name_check check (name ~ '^[A-Za-z0-9._@-]{1,64}$'),
    constraint operator_of_merchant check ((role = 'merchant') = (merchant_id is not null)),
    constraint operator_password_hash_check check (starts_with(password_hash, '$argon2id$')),
    constraint operator_role_check check (role in ('owner', 'operator', 'auditor', 'merchant')),
    constraint operator_status_check check (status in ('active', 'disabled')),
    constraint operator_theme_check check (theme in ('light', 'dark')),
    constraint operator_pkey primary key (operator_id),
    constraint operator_merchant_id_fkey foreign key (merchant_id) references merchant(merchant_id)
);
alter table operator alter column operator_id add generated always as identity (sequence name operator_operator_id_seq);
create index operator_merchant on operator (merchant_id) where (merchant_id is not null);
-- Two names that differ in case alone would be taken for one another.
create unique index operator_name on operator (lower((name collate "C")));

-- What stands in for the second factor, each once. Only the SHA-256 is kept: the codes are random, of 80 bits.
create table operator_recovery_code (
    operator_id bigint not null,
    code_hash bytea not null,
    used_ms bigint,
    constraint operator_recovery_code_code_hash_check check (length(code_hash) = 32),
    constraint operator_recovery_code_pkey primary key (operator_id, code_hash),
    constraint operator_recovery_code_operator_id_fkey foreign key (operator_id) references operator(operator_id)
);

-- A browser that is signed in, or, until `totp_passed`, has shown the password alone.
create table operator_session (
    token_hash bytea not null,
    operator_id bigint not null,
    totp_passed boolean not null,
    created_ms bigint not null,
    seen_ms bigint not null,
    expires_ms bigint not null,
    source text not null,
    user_agent text not null,
    constraint operator_session_source_check check (length(source) between 1 and 64),
    constraint operator_session_time check ((created_ms <= seen_ms) and (created_ms < expires_ms)),
    constraint operator_session_token_hash_check check (length(token_hash) = 32),
    constraint operator_session_user_agent_check check (length(user_agent) <= 200),
    constraint operator_session_pkey primary key (token_hash),
    constraint operator_session_operator_id_fkey foreign key (operator_id) references operator(operator_id)
);
create index operator_session_expiry on operator_session (expires_ms);
create index operator_session_operator on operator_session (operator_id, created_ms);

-- Failed attempts to sign in, by name and by source address; `key` is the SHA-256 of either, since people type passwords
-- where names belong. The next attempt is not looked at before `next_ms`.
create table operator_failure (
    key bytea not null,
    failures integer not null,
    last_ms bigint not null,
    next_ms bigint not null,
    constraint operator_failure_failures_check check (failures >= 0),
    constraint operator_failure_key_check check (length(key) = 32),
    constraint operator_failure_pkey primary key (key)
);
create index operator_failure_age on operator_failure (last_ms);

-- Who changed what. `previous_no` refers to the entry before, so that none can be left out or taken from the middle; the
-- hash covers the hash before it and everything in the row. Verification looks at both.
create table audit_entry (
    audit_no bigint not null,
    previous_no bigint generated always as (nullif((audit_no - 1), 0)) stored,
    at_ms bigint not null,
    actor text not null,
    action text not null,
    subject text not null,
    merchant_id bigint,
    source text not null,
    before jsonb,
    after jsonb,
    hash bytea not null,
    constraint audit_entry_action_check check (action ~ '^[a-z_]+(\.[a-z_]+)+$'),
    constraint audit_entry_actor_check check (length(actor) between 1 and 200),
    constraint audit_entry_after_check check (jsonb_typeof(after) = 'object'),
    constraint audit_entry_audit_no_check check (audit_no > 0),
    constraint audit_entry_before_check check (jsonb_typeof(before) = 'object'),
    constraint audit_entry_hash_check check (length(hash) = 32),
    constraint audit_entry_source_check check (length(source) between 1 and 64),
    constraint audit_entry_subject_check check (length(subject) between 1 and 400),
    constraint audit_entry_pkey primary key (audit_no),
    constraint audit_entry_merchant_id_fkey foreign key (merchant_id) references merchant(merchant_id),
    constraint audit_entry_previous_no_fkey foreign key (previous_no) references audit_entry(audit_no)
);
create index audit_entry_action on audit_entry (action, audit_no);
create index audit_entry_actor on audit_entry (actor, audit_no);
-- Lists, newest first, by each of the ways of asking.
create index audit_entry_merchant on audit_entry (merchant_id, audit_no);

-- The log's end, its lock and its clock: one row.
create table audit_head (
    is_head boolean default true not null,
    entry_count bigint not null,
    head_hash bytea not null,
    last_ms bigint not null,
    constraint audit_head_entry_count_check check (entry_count >= 0),
    constraint audit_head_head_hash_check check (length(head_hash) = 32),
    constraint audit_head_is_head_check check (is_head),
    constraint audit_head_pkey primary key (is_head)
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

-- What one operator proposes and another decides. It is `accepted` before the book is asked, so that nobody decides it
-- again; `entry_id` is the book's answer, or else `outcome` says why it refused. Accepted with neither: nobody knows yet,
-- and asking the book again is safe, because the entry bears the proposal's number as its name.
create table proposal (
    merchant_id bigint,
    proposal_no bigint not null,
    currency currency,
    signed_units bigint,
    reason text not null,
    ext_user_id text,
    proposed_by text not null,
    proposed_ms bigint not null,
    state text default 'open' not null,
    decided_by text,
    decided_ms bigint,
    outcome text,
    entry_id bigint,
    kind text not null,
    subject text,
    before jsonb,
    after jsonb,
    proposer_eligible_ms bigint,
    decider_eligible_ms bigint,
    expires_ms bigint,
    constraint proposal_after_check check (jsonb_typeof(after) = 'object'),
    constraint proposal_before_check check (jsonb_typeof(before) = 'object'),
    constraint proposal_content check (case when (kind = 'adjustment') then ((merchant_id is not null) and (currency is not null) and (signed_units is not null) and (subject is null) and (before is null) and (after is null)) else ((currency is null) and (signed_units is null) and (ext_user_id is null) and (entry_id is null) and (subject is not null) and (before is not null) and (after is not null)) end),
    constraint proposal_decided check (((state = 'open') = (decided_by is null)) and ((decided_by is null) = (decided_ms is null)) and (decided_ms >= proposed_ms)),
    constraint proposal_decided_by_check check (person_of(decided_by) <> ''),
    constraint proposal_decider_eligible check ((state not in ('accepted', 'failed')) or (decided_ms >= decider_eligible_ms)),
    constraint proposal_expiry check (expires_ms > proposed_ms),
    constraint proposal_ext_user_id_check check (length(ext_user_id) between 1 and 20),
    constraint proposal_in_time check ((state not in ('accepted', 'failed')) or (decided_ms <= expires_ms)),
    constraint proposal_kind_check check (kind ~ '^[a-z_]+(\.[a-z_]+)*$'),
    constraint proposal_outcome check (((entry_id is null) or (state = 'accepted')) and ((outcome is null) = (state not in ('failed', 'refused')))),
    constraint proposal_outcome_check check (outcome <> ''),
    constraint proposal_proposed_by_check check (person_of(proposed_by) <> ''),
    constraint proposal_proposer_eligible check (proposed_ms >= proposer_eligible_ms),
    constraint proposal_reason_check check ((length(reason) <= 500) and (reason ~ '\S')),
    constraint proposal_signed_units_check check (signed_units <> 0),
    constraint proposal_state_check check (state in ('open', 'accepted', 'refused', 'withdrawn', 'failed')),
    constraint proposal_subject_check check (length(subject) between 1 and 400),
    constraint proposal_two_people check ((state not in ('accepted', 'failed')) or (person_of(decided_by) <> person_of(proposed_by))),
    constraint proposal_withdrawn check ((state <> 'withdrawn') or (person_of(decided_by) = person_of(proposed_by))),
    constraint proposal_pkey primary key (proposal_no),
    constraint proposal_merchant_id_fkey foreign key (merchant_id) references merchant(merchant_id)
);
alter table proposal alter column proposal_no add generated always as identity (sequence name proposal_proposal_no_seq);
create unique index proposal_entry on proposal (merchant_id, entry_id) where (entry_id is not null);
create index proposal_merchant on proposal (merchant_id, proposal_no);
create index proposal_open on proposal (proposal_no) where (state = 'open');
create index proposal_unfinished on proposal (proposal_no) where ((kind = 'adjustment') and (state = 'accepted') and (entry_id is null));

-- The last requests of each merchant that were refused, for whoever writes its client. Fields are kept as they were sent,
-- in their order, but for the signature, of which the beginning is kept, and what is named like a secret, which is not.
create table refused_request (
    merchant_id bigint not null,
    refused_no bigint not null,
    at_ms bigint not null,
    request_id text not null,
    path text not null,
    code integer not null,
    msg text not null,
    source text not null,
    content_type text not null,
    fields json not null,
    left_out text[] not null,
    is_signed boolean default true not null,
    constraint refused_request_pkey primary key (merchant_id, refused_no),
    constraint refused_request_merchant_id_fkey foreign key (merchant_id) references merchant(merchant_id)
);
alter table refused_request alter column merchant_id set (n_distinct=1);
alter table refused_request alter column refused_no add generated always as identity (sequence name refused_request_refused_no_seq);

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

-- From which addresses each operator has signed in with both factors: there, what others fail under his name from
-- elsewhere makes him wait no more. `key` is made of the hashes of name and address, as the failures' keys are.
create table operator_known_source (
    key bytea not null,
    operator_id bigint not null,
    seen_ms bigint not null,
    constraint operator_known_source_key_check check (length(key) = 32),
    constraint operator_known_source_pkey primary key (key),
    constraint operator_known_source_operator_id_fkey foreign key (operator_id) references operator(operator_id)
);
create index operator_known_source_operator on operator_known_source (operator_id, seen_ms);

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

-- Each time that a person said what had happened. What the signer recorded up to `signed_upto_ms` is known since then.
create table rollback_acceptance (
    acceptance_no bigint not null,
    accepted_ms bigint not null,
    actor text not null,
    reason text not null,
    signed_upto_ms bigint not null,
    constraint rollback_acceptance_actor_check check (actor <> ''),
    constraint rollback_acceptance_reason_check check (reason ~ '\S'),
    constraint rollback_acceptance_pkey primary key (acceptance_no)
);
alter table rollback_acceptance alter column acceptance_no add generated always as identity (sequence name rollback_acceptance_acceptance_no_seq);

-- Rows are only inserted; the newest is the present key. The same key is in a file beside the checkpoints, so that who
-- can write to one of the two can't pass checkpoints of his own off as the service's.
create table checkpoint_key (
    key_no bigint not null,
    public_key bytea not null,
    since_ms bigint not null,
    constraint checkpoint_key_public_key_check check (length(public_key) = 32),
    constraint checkpoint_key_pkey primary key (key_no)
);
alter table checkpoint_key alter column key_no add generated always as identity (sequence name checkpoint_key_key_no_seq);

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

-- Up to which address the balances of all addresses that were given out have been looked at, and when the last round of
-- all of them ended. One that holds something becomes a `custody_address`.
create table custody_survey (
    chain chain_code not null,
    after_address bytea not null,
    completed_ms bigint,
    constraint custody_survey_after_address_check check (length(after_address) in (0, 20)),
    constraint custody_survey_pkey primary key (chain)
);

-- When an operator's word does not count: for a while after the account was made, reset, enabled, given more rights, or
-- got its second factor. Rows are only inserted: verification compares approvals with them for ever.
-- Rule: `person` is the name in lower case, as `person_of` gives it for an actor.
create table operator_wait (
    person text not null,
    from_ms bigint not null,
    eligible_ms bigint not null,
    cause text not null,
    constraint operator_wait_cause_check check (cause in ('created', 'reset', 'enabled', 'role', 'enrolled')),
    constraint operator_wait_person_check check ((person <> '') and (person = lower((person collate "C")))),
    constraint operator_wait_time check (eligible_ms > from_ms),
    constraint operator_wait_pkey primary key (person, from_ms, cause)
);

-- Failed sign-ins, counted by minute: who was tried, with which factor, from which source address.
-- Rules: `subject` names an operator or sub-user that exists, or says that nobody has the name. What was typed is never
-- kept. `merchant_id` is 0 for the platform's own people. A minute has a bounded number of rows. When it is over, each row becomes one entry of the audit log.
create table failed_sign_in (
    merchant_id bigint not null,
    minute_ms bigint not null,
    subject text not null,
    factor text not null,
    source text not null,
    failures integer not null,
    last_ms bigint not null,
    audit_no bigint,
    constraint failed_sign_in_factor_check check (factor in ('password', 'code', 'recovery code', 'pin')),
    constraint failed_sign_in_failures_check check (failures > 0),
    constraint failed_sign_in_source_check check (length(source) between 1 and 64),
    constraint failed_sign_in_subject_check check (length(subject) between 1 and 400),
    constraint failed_sign_in_pkey primary key (merchant_id, minute_ms, subject, factor, source)
);
create index failed_sign_in_minute on failed_sign_in (minute_ms);
create index failed_sign_in_subject on failed_sign_in (merchant_id, subject, last_ms);
create index failed_sign_in_unlogged on failed_sign_in (minute_ms) where (audit_no is null);

-- The role that each side connects as. `migrate` grants again to the roles that stand here, whenever tables change.
create table side_role (
    side text not null,
    role_name text not null,
    granted_ms bigint not null,
    constraint side_role_side_check check (side in ('web', 'worker')),
    constraint side_role_pkey primary key (side),
    constraint side_role_role_name_key unique (role_name)
);

-- A token may have more decimals than the ledger (18 on BNB Smart Chain). What arrives is rounded down to whole units. The
-- rest of each transfer at an address of ours is kept here in the token's smallest units, so that books and chain can still
-- be compared to the unit: rests at one address add up to whole units that no book contains.
create table custody_remainder (
    chain chain_code not null,
    tx_hash text not null,
    log_index integer not null,
    address bytea not null,
    remainder bigint not null,
    constraint custody_remainder_address_check check (length(address) = 20),
    constraint custody_remainder_log_index_check check (log_index >= 0),
    constraint custody_remainder_remainder_check check (remainder <> 0),
    constraint custody_remainder_tx_hash_check check (length(tx_hash) between 1 and 80),
    constraint custody_remainder_pkey primary key (chain, tx_hash, log_index, address)
);
create index custody_remainder_of_address on custody_remainder (chain, address);

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

-- `version` is raised by each move of the cell, and stands in the cell's own `cell_state` too. Without an address the cell's
-- schema is in this database. `admin_address` is for changes of tables, if they must go to another server. Addresses contain no
-- passwords.
create table cell (
    cell_id integer not null,
    name text not null,
    schema_name text not null,
    address text,
    admin_address text,
    state text default 'open' not null,
    version bigint default 1 not null,
    added_ms bigint not null,
    drained_ms bigint,
    -- The beginning of the comparison, on this database's clock. Payouts of a cell begin after one.
    compared_ms bigint default 0 not null,
    -- The number that home tells each cell. It is raised here first, so a cell never has a higher one.
    marked_no bigint default 0 not null,
    constraint cell_address_check check (address <> ''),
    constraint cell_admin_address_check check (admin_address <> ''),
    constraint cell_cell_id_check check (cell_id >= 0),
    -- The default cell is home's own schema, and can't be moved.
    constraint cell_default check (((cell_id = 0) = (schema_name = 'public')) and ((cell_id > 0) or ((address is null) and (state in ('open', 'draining'))))),
    constraint cell_name_check check ((name ~ '^[a-z][a-z0-9_-]{0,30}$') and (name <> 'home')),
    constraint cell_schema_name_check check (schema_name ~ '^[a-z][a-z0-9_]{0,62}$'),
    constraint cell_state_check check (state in ('open', 'draining', 'closed', 'retired')),
    constraint cell_version_check check (version > 0),
    constraint cell_name_key unique (name),
    constraint cell_pkey primary key (cell_id)
);

-- How far a cell has taken in home's final transfers of a chain, and the last rewind of home's cursor that it has followed.
create table chain_position (
    chain chain_code not null,
    final_number bigint not null,
    rewind_no integer not null,
    constraint chain_position_final_number_check check (final_number >= 0),
    constraint chain_position_rewind_no_check check (rewind_no >= 0),
    constraint chain_position_pkey primary key (chain)
);

-- `taken_ms` says when the merchant's cell had it as a deposit. `is_gone`: its block was read again, and does not have it.
create table chain_transfer (
    chain chain_code not null,
    tx_hash text not null,
    log_index integer not null,
    block_log_index integer,
    block_number bigint not null,
    block_hash text not null,
    sender bytea not null,
    address bytea not null,
    merchant_id bigint not null,
    amount bigint not null,
    is_gone boolean default false not null,
    taken_ms bigint,
    constraint chain_transfer_address_check check (length(address) = 20),
    constraint chain_transfer_amount_check check (amount > 0),
    constraint chain_transfer_block_hash_check check (block_hash <> ''),
    constraint chain_transfer_block_log_index_check check (block_log_index >= 0),
    constraint chain_transfer_block_number_check check (block_number >= 0),
    constraint chain_transfer_log_index_check check (log_index >= 0),
    constraint chain_transfer_sender_check check (length(sender) = 20),
    constraint chain_transfer_tx_hash_check check (length(tx_hash) between 1 and 80),
    constraint chain_transfer_pkey primary key (chain, tx_hash, log_index),
    constraint chain_transfer_merchant_id_fkey foreign key (merchant_id) references merchant(merchant_id)
);
create index chain_transfer_by_block on chain_transfer (chain, block_number);
-- A log of a block is one transfer.
create unique index chain_transfer_log on chain_transfer (chain, block_hash, block_log_index) where (block_log_index is not null);
create index chain_transfer_untaken on chain_transfer (chain, block_number) where ((taken_ms is null) and (not is_gone));

-- Each time that home's cursor of a chain was set back to an earlier block. Only inserted.
create table chain_rewind (
    chain chain_code not null,
    rewind_no integer not null,
    final_number bigint not null,
    rewound_ms bigint not null,
    constraint chain_rewind_final_number_check check (final_number >= 0),
    constraint chain_rewind_rewind_no_check check (rewind_no > 0),
    constraint chain_rewind_pkey primary key (chain, rewind_no)
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

-- `move_id` marks what belongs to the move in both databases. `address` is the new place, `old_address` the old one; without it the
-- old one is this database. copying: the old place is used, and PostgreSQL copies it to the new one. switching: the cell is closed,
-- and the mover compares. reopening: the mover gave up or died, and the old place must be opened again. switched: home sends
-- everybody to the new place; the old one stays closed.
create table cell_move (
    cell_id integer not null,
    move_id uuid not null,
    state text not null,
    address text not null,
    old_address text,
    began_ms bigint not null,
    changed_ms bigint not null,
    constraint cell_move_address_check check (address <> ''),
    constraint cell_move_cell_id_check check (cell_id > 0),
    constraint cell_move_old_address_check check (old_address <> ''),
    constraint cell_move_state_check check (state in ('copying', 'switching', 'reopening', 'switched')),
    constraint cell_move_pkey primary key (cell_id),
    constraint cell_move_cell_id_fkey foreign key (cell_id) references cell(cell_id)
);

-- copying: the old copy is used, and the mover copies it. switching: the old copy is closed, and the mover compares. reopening: the
-- mover gave up or died, and the old copy must be opened again. opening: home has decided for the new copy, which must be opened.
-- switched: it is open; the old copy stays closed until it is dropped. `give_up_ms`: the switch is to be over by then.
create table merchant_move (
    merchant_id bigint not null,
    move_id uuid not null,
    state text not null,
    from_cell_id integer not null,
    to_cell_id integer not null,
    began_ms bigint not null,
    changed_ms bigint not null,
    give_up_ms bigint,
    constraint merchant_move_other_cell check (from_cell_id <> to_cell_id),
    constraint merchant_move_state_check check (state in ('copying', 'switching', 'reopening', 'opening', 'switched')),
    constraint merchant_move_pkey primary key (merchant_id),
    constraint merchant_move_from_cell_id_fkey foreign key (from_cell_id) references cell(cell_id),
    constraint merchant_move_merchant_id_fkey foreign key (merchant_id) references merchant(merchant_id),
    constraint merchant_move_to_cell_id_fkey foreign key (to_cell_id) references cell(cell_id)
);

-- The programs that run now. `migrate` asks them before a contraction, `doctor` and people read them.
create table instance (
    instance_id uuid not null,
    side text not null,
    version text not null,
    schema_version integer not null,
    host text not null,
    pid integer not null,
    started_ms bigint not null,
    seen_ms bigint not null,
    -- Positive: the program's clock is ahead. Null: not measured yet.
    clock_ahead_ms bigint,
    constraint instance_side check (side in ('web', 'worker')),
    constraint instance_pkey primary key (instance_id)
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

-- The span of the request that made an order (W3C traceparent), so that its payout and its callbacks belong to the same trace. Only
-- traced requests have a row. Nothing that moves money reads it.
create table order_trace (
    merchant_id bigint not null,
    order_id bigint not null,
    traceparent text not null,
    at_ms bigint not null,
    constraint order_trace_traceparent check (traceparent ~ '^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$'),
    constraint order_trace_pkey primary key (merchant_id, order_id)
);
create index order_trace_age on order_trace (at_ms);

-- Several keys for each merchant. Key 1 is the merchant's first appKey: `merchant` and `merchant_secret` have it. Its row
-- here is made when it gets a name or limits. An empty list means: all operations, all source networks.
create table merchant_key (
    merchant_id bigint not null,
    key_no integer not null,
    app_key text,
    name text not null,
    operations text[] default '{}'::text[] not null,
    networks text[] default '{}'::text[] not null,
    created_ms bigint not null,
    created_by text not null,
    revoked_ms bigint,
    constraint merchant_key_app_key_check check (length(app_key) between 1 and 20),
    constraint merchant_key_check check ((key_no = 1) = (app_key is null)),
    constraint merchant_key_check1 check ((key_no > 1) or (revoked_ms is null)),
    constraint merchant_key_key_no_check check (key_no > 0),
    constraint merchant_key_app_key_key unique (app_key),
    constraint merchant_key_pkey primary key (merchant_id, key_no),
    constraint merchant_key_merchant_id_fkey foreign key (merchant_id) references merchant(merchant_id)
);
alter table merchant_key alter column merchant_id set (n_distinct=1);

-- The secrets of further keys, sealed as those in `merchant_secret`. After `expires_ms` a secret signs nothing any more.
create table merchant_key_secret (
    merchant_id bigint not null,
    key_no integer not null,
    secret_no integer not null,
    sealed bytea not null,
    created_ms bigint not null,
    expires_ms bigint,
    retired_ms bigint,
    constraint merchant_key_secret_key_no_check check (key_no > 1),
    constraint merchant_key_secret_secret_no_check check (secret_no > 0),
    constraint merchant_key_secret_pkey primary key (merchant_id, key_no, secret_no),
    constraint merchant_key_secret_merchant_id_key_no_fkey foreign key (merchant_id, key_no) references merchant_key(merchant_id, key_no)
);
alter table merchant_key_secret alter column merchant_id set (n_distinct=1);

-- The minute in which each key was used last. Web processes write it now and then, for all keys at once.
create table merchant_key_use (
    merchant_id bigint not null,
    key_no integer not null,
    used_ms bigint not null,
    constraint merchant_key_use_pkey primary key (merchant_id, key_no)
);
alter table merchant_key_use alter column merchant_id set (n_distinct=1);

-- Test events: callbacks that a merchant's people ask for, to try their endpoint. The web side asks, a worker sends each once.
create table test_event (
    merchant_id bigint not null,
    event_no integer not null,
    url text not null,
    requested_ms bigint not null,
    requested_by text not null,
    claimed_ms bigint,
    ended_ms bigint,
    address text,
    http_status smallint,
    error text,
    answer bytea,
    latency_ms integer,
    constraint test_event_event_no_check check (event_no > 0),
    constraint test_event_pkey primary key (merchant_id, event_no)
);
alter table test_event alter column merchant_id set (n_distinct=1);
create index test_event_waiting on test_event (requested_ms) where (claimed_ms is null);

-- The last signed requests of each merchant, for the developers of its client. Web processes write them in batches, workers delete
-- old ones. Nothing that moves money reads them.
create table request_log (
    log_no bigint not null,
    merchant_id bigint not null,
    key_no integer not null,
    at_ms bigint not null,
    request_id text not null,
    operation text not null,
    code integer not null,
    source text not null,
    took_ms integer not null,
    fields json not null,
    left_out text[] not null,
    constraint request_log_pkey primary key (merchant_id, log_no)
);
alter table request_log alter column merchant_id set (n_distinct=1);
alter table request_log alter column log_no add generated always as identity (sequence name request_log_log_no_seq);
create index request_log_age on request_log (at_ms);

-- How many requests each merchant made, by hour, key, operation and code.
create table request_usage (
    merchant_id bigint not null,
    hour_ms bigint not null,
    key_no integer not null,
    operation text not null,
    code integer not null,
    requests bigint not null,
    constraint request_usage_pkey primary key (merchant_id, hour_ms, key_no, operation, code)
);
alter table request_usage alter column merchant_id set (n_distinct=1);
create index request_usage_age on request_usage (hour_ms);

-- How many requests each merchant made in each minute, to compare with its rate limit.
create table request_minute (
    merchant_id bigint not null,
    minute_ms bigint not null,
    requests bigint not null,
    constraint request_minute_pkey primary key (merchant_id, minute_ms)
);
alter table request_minute alter column merchant_id set (n_distinct=1);
create index request_minute_age on request_minute (minute_ms);

-- How often a merchant used a test value that acts a number of times, and how many control actions it had on a day.
create table sandbox_count (
    merchant_id bigint not null,
    name text not null,
    day integer not null,
    times bigint not null,
    constraint sandbox_count_times check (times > 0),
    constraint sandbox_count_pkey primary key (merchant_id, name)
);

-- The latest attempts at callbacks of each merchant, as they were sent, for `listenCallbacks`.
create table sandbox_callback (
    merchant_id bigint not null,
    attempt_no bigint not null,
    event_id text not null,
    url text not null,
    headers text not null,
    body text not null,
    at_ms bigint not null,
    constraint sandbox_callback_pkey primary key (merchant_id, attempt_no)
);
create index sandbox_callback_event on sandbox_callback (merchant_id, event_id, attempt_no);

-- Deposits whose blocks become final only when a test says so. `is_gone`: the block has left the chain.
create table sandbox_unconfirmed (
    chain chain_code not null,
    deposit_no bigint not null,
    merchant_id bigint not null,
    tx_hash text not null,
    sender bytea not null,
    recipient bytea not null,
    amount_units bigint not null,
    at_ms bigint not null,
    is_gone boolean default false not null,
    constraint sandbox_unconfirmed_amount check (amount_units > 0),
    constraint sandbox_unconfirmed_recipient check (length(recipient) = 20),
    constraint sandbox_unconfirmed_sender check (length(sender) = 20),
    constraint sandbox_unconfirmed_pkey primary key (chain, deposit_no),
    constraint sandbox_unconfirmed_tx_hash unique (tx_hash)
);

-- Whether the refund of a failed order is held, as a test asked.
create table sandbox_refund (
    merchant_id bigint not null,
    order_id bigint not null,
    is_held boolean not null,
    constraint sandbox_refund_pkey primary key (merchant_id, order_id)
);

-- Acts that people ask for on a page, and that a worker carries out: web processes have no keys and reach no nodes.
create table asked_act (
    act_no bigint not null,
    kind text not null,
    subject text not null,
    merchant_id bigint,
    arguments jsonb not null,
    reason text not null,
    asked_by text not null,
    asked_ms bigint not null,
    expires_ms bigint not null,
    state text default 'waiting' not null,
    fence integer default 0 not null,
    worker text,
    begun_ms bigint,
    claimed_until_ms bigint,
    progress text default '' not null,
    result jsonb,
    cause text,
    ended_ms bigint,
    constraint asked_act_claimed check ((state <> 'running') or ((worker is not null) and (claimed_until_ms is not null))),
    constraint asked_act_ended check ((ended_ms is null) = (state in ('waiting', 'running'))),
    constraint asked_act_state check (state in ('waiting', 'running', 'done', 'failed', 'cancelled', 'lapsed')),
    constraint asked_act_pkey primary key (act_no)
);
alter table asked_act alter column act_no add generated always as identity (sequence name asked_act_act_no_seq);
create index asked_act_of on asked_act (subject, act_no desc);
-- The same is not asked twice at once: a double click asks once.
create unique index asked_act_open on asked_act (kind, subject) where (ended_ms is null);

-- What workers last said about what only they can see: nodes, signer, hot wallets, checkpoints. One row for each thing.
create table worker_report (
    topic text not null,
    subject text not null,
    report jsonb not null,
    worker text not null,
    reported_ms bigint not null,
    constraint worker_report_pkey primary key (topic, subject)
);

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

-- One row for each month that was prepared. `figures` is the report of all books together, and `digest` covers it and the digests of
-- all books. A month is prepared, then accepted by two people (in the sandbox by one), then signed.
create table month_report (
    month text not null,
    figures text not null,
    books integer not null,
    digest bytea not null,
    prepared_ms bigint not null,
    problem text,
    accepted_ms bigint,
    proposal_no bigint,
    lone_actor text,
    closed_ms bigint,
    manifest text,
    signature text,
    -- `restate_ms`: two people have decided that the month, which is closed, gets another version. A worker prepares it.
    version integer default 1 not null,
    restate_ms bigint,
    restate_reason text,
    constraint month_report_accepted check (((accepted_ms is null) and (proposal_no is null) and (lone_actor is null)) or ((accepted_ms is not null) and ((proposal_no is null) <> (lone_actor is null)))),
    constraint month_report_books_check check (books >= 0),
    constraint month_report_closed check (((closed_ms is null) and (manifest is null) and (signature is null)) or ((closed_ms is not null) and (manifest is not null) and (signature is not null) and (accepted_ms is not null))),
    constraint month_report_digest_check check (length(digest) = 32),
    constraint month_report_lone_actor_check check (lone_actor <> ''),
    constraint month_report_month_check check (month ~ '^[0-9]{4}-(0[1-9]|1[0-2])$'),
    constraint month_report_problem_check check (problem <> ''),
    constraint month_report_restate check ((version > 0) and ((restate_ms is null) = (restate_reason is null)) and ((restate_ms is null) or (closed_ms is not null))),
    constraint month_report_pkey primary key (month),
    constraint month_report_proposal_no_fkey foreign key (proposal_no) references proposal(proposal_no)
);

-- The report of each book in a month.
create table month_book (
    merchant_id bigint not null,
    month text not null,
    figures text not null,
    digest bytea not null,
    constraint month_book_digest_check check (length(digest) = 32),
    constraint month_book_pkey primary key (merchant_id, month),
    constraint month_book_month_fkey foreign key (month) references month_report(month)
);
alter table month_book alter column merchant_id set (n_distinct=1);
create index month_book_month on month_book (month, merchant_id);

-- Invoices of fees, numbered by year without gaps: each names the one before it.
create table invoice (
    year integer not null,
    number integer not null,
    previous_number integer,
    merchant_id bigint not null,
    month text not null,
    merchant_name text not null,
    issuer text not null,
    lines text not null,
    issued_ms bigint not null,
    -- An invoice of a later version has what the earlier ones of its month do not ask for, or asks for less.
    version integer default 1 not null,
    -- As they were when the invoice was issued. Null: nothing was set.
    issuer_tax_id text,
    merchant_address text,
    merchant_tax_id text,
    due_days integer,
    constraint invoice_due_days check (due_days between 0 and 365),
    constraint invoice_follows check (((number = 1) and (previous_number is null)) or ((previous_number is not null) and (previous_number = (number - 1)))),
    constraint invoice_issuer_tax_id check (issuer_tax_id <> ''),
    constraint invoice_merchant_address check (merchant_address <> ''),
    constraint invoice_merchant_tax_id check (merchant_tax_id <> ''),
    constraint invoice_number_check check (number > 0),
    constraint invoice_year_check check (year between 1970 and 9999),
    constraint invoice_pkey primary key (year, number),
    constraint invoice_month_fkey foreign key (month) references month_report(month),
    constraint invoice_year_previous_number_fkey foreign key (year, previous_number) references invoice(year, number)
);
create index invoice_month on invoice (month, number);
-- One invoice for each book and version of a month.
create unique index invoice_of_version on invoice (merchant_id, month, version);

-- Cold wallets, each registered by two people. One of a chain is current; the others are retired and still counted.
-- `opening`: what it held at `opening_block`, from which on reconciliation counts it. `balance`: what it held at the last
-- comparison.
create table cold_wallet (
    chain chain_code not null,
    address bytea not null,
    registered_ms bigint not null,
    retired_ms bigint,
    opening bigint,
    opening_block bigint,
    balance bigint,
    balance_block bigint,
    balance_ms bigint,
    constraint cold_wallet_address check (length(address) = 20),
    constraint cold_wallet_balance check (balance >= 0),
    constraint cold_wallet_opening check (opening >= 0),
    constraint cold_wallet_retired check (retired_ms >= registered_ms),
    constraint cold_wallet_pkey primary key (chain, address)
);
create unique index cold_wallet_current on cold_wallet (chain) where (retired_ms is null);

-- What may stay hot: above `most` it goes to the cold wallet, below `least` it comes back, each time up to `target`.
create table cold_limit (
    chain chain_code not null,
    "least" bigint not null,
    target bigint not null,
    most bigint not null,
    changed_ms bigint not null,
    -- Since when the hot wallet is outside. The worker notes it.
    outside_ms bigint,
    constraint cold_limit_order check ((0 <= "least") and ("least" <= target) and (target <= most)),
    constraint cold_limit_pkey primary key (chain)
);

-- A transfer that two people approved. `way`: the worker's signer signs it, its bytes are signed elsewhere, or it was made
-- elsewhere and is only recorded. `step`: the worker has the next step (open), somebody signs it elsewhere (unsigned), it is
-- sent until the chain's record is final (signed); then how it ended. `version` is a fencing token.
create table cold_transfer (
    chain chain_code not null,
    transfer_id bigint not null,
    direction text not null,
    way text not null,
    hot bytea not null,
    cold bytea not null,
    amount positive_units not null,
    proposal_no bigint,
    approved_by text not null,
    opened_ms bigint not null,
    step text default 'open' not null,
    version integer default 0 not null,
    claimed_until_ms bigint default 0 not null,
    nonce bigint,
    reserved_ms bigint,
    ended_no bigint,
    unsigned bytea,
    unsigned_at_block bigint,
    unsigned_until_ms bigint,
    tx_hash text,
    obstacle text,
    cause text,
    drop_asked_by text,
    ended_ms bigint,
    constraint cold_transfer_approved check (approved_by <> ''),
    constraint cold_transfer_cause check (cause <> ''),
    constraint cold_transfer_cold check (length(cold) = 20),
    constraint cold_transfer_direction check (direction in ('to_cold', 'to_hot')),
    constraint cold_transfer_done check ((step <> 'done') or (tx_hash is not null)),
    constraint cold_transfer_ended check ((ended_ms is null) = (step in ('open', 'unsigned', 'signed'))),
    constraint cold_transfer_hot check (length(hot) = 20),
    constraint cold_transfer_nonce check (nonce >= 0),
    constraint cold_transfer_obstacle check (obstacle <> ''),
    constraint cold_transfer_recorded check ((way <> 'recorded') or (tx_hash is not null)),
    constraint cold_transfer_refill check ((direction = 'to_cold') or (way <> 'signer')),
    constraint cold_transfer_reserved check ((reserved_ms is not null) or ((nonce is null) and (ended_no is null))),
    constraint cold_transfer_step check (step in ('open', 'unsigned', 'signed', 'done', 'failed', 'dropped')),
    constraint cold_transfer_tx_hash check (tx_hash <> ''),
    constraint cold_transfer_unsigned check ((step <> 'unsigned') or (unsigned is not null)),
    constraint cold_transfer_way check (way in ('signer', 'elsewhere', 'recorded')),
    constraint cold_transfer_pkey primary key (chain, transfer_id),
    constraint cold_transfer_chain_cold_fkey foreign key (chain, cold) references cold_wallet(chain, address),
    constraint cold_transfer_chain_hot_nonce_fkey foreign key (chain, hot, nonce) references wallet_nonce(chain, wallet, nonce)
);
alter table cold_transfer alter column transfer_id add generated always as identity (sequence name cold_transfer_transfer_id_seq);
create unique index cold_transfer_nonce_once on cold_transfer (chain, hot, nonce);
-- One at a time for a chain.
create unique index cold_transfer_open on cold_transfer (chain) where (ended_ms is null);
-- Reserved funds that count until the wallet's balance was read after their end.
create index cold_transfer_reserved on cold_transfer (chain, ended_no) where (reserved_ms is not null);
-- One transaction is one transfer. What came to nothing may be recorded again.
create unique index cold_transfer_tx on cold_transfer (chain, tx_hash) where (step not in ('failed', 'dropped'));

-- Everything that was signed for a transfer. It is only inserted, before anybody sends it.
create table cold_signed (
    chain chain_code not null,
    transfer_id bigint not null,
    attempt_no integer not null,
    raw bytea not null,
    tx_hash text not null,
    built_at_block bigint not null,
    signed_ms bigint not null,
    constraint cold_signed_attempt check (attempt_no > 0),
    constraint cold_signed_raw check (length(raw) > 0),
    constraint cold_signed_hash unique (tx_hash),
    constraint cold_signed_pkey primary key (chain, transfer_id, attempt_no),
    constraint cold_signed_chain_transfer_id_fkey foreign key (chain, transfer_id) references cold_transfer(chain, transfer_id)
);

-- The fee of a final payout's transaction, in the smallest unit of the chain's coin. Sweeps have theirs in `sweep`.
create table network_fee (
    chain chain_code not null,
    tx_hash text not null,
    purpose text not null,
    fee numeric not null,
    at_ms bigint not null,
    constraint network_fee_fee_check check (fee >= (0)::numeric),
    constraint network_fee_purpose_check check (purpose in ('payout', 'cancel', 'cold', 'refill')),
    constraint network_fee_pkey primary key (chain, tx_hash)
);
create index network_fee_moment on network_fee (at_ms);

-- Up to which ended payout the fees of a chain are known.
create table network_fee_cursor (
    chain chain_code not null,
    ended_no bigint default 0 not null,
    -- Up to which ended cold transfer the fees of a chain are known. One of a chain is open at a time, so they end in order.
    cold_transfer_id bigint default 0 not null,
    constraint network_fee_cursor_cold check (cold_transfer_id >= 0),
    constraint network_fee_cursor_ended_no_check check (ended_no >= 0),
    constraint network_fee_cursor_pkey primary key (chain)
);

-- One row for each order or deposit that was screened. `address` is the other side: who is paid, or who sent.
create table screening (
    screening_no bigint not null,
    merchant_id bigint not null,
    order_id bigint,
    chain chain_code not null,
    tx_hash text,
    log_index integer,
    address bytea not null,
    amount bigint not null,
    facts text not null,
    state text default 'open' not null,
    reasons jsonb default '[]'::jsonb not null,
    round_no integer default 1 not null,
    begun_ms bigint not null,
    changed_ms bigint not null,
    cleared_ms bigint,
    decided_by text,
    decided_ms bigint,
    proposal_no bigint,
    applied_ms bigint,
    constraint screening_address check (length(address) = 20),
    constraint screening_amount check (amount > 0),
    -- What is cleared may be paid or credited: by itself, or because a person said so.
    constraint screening_cleared check ((cleared_ms is null) = (state not in ('passed', 'released'))),
    constraint screening_decided check (((decided_by is null) = (decided_ms is null)) and ((state <> 'released') or (decided_by is not null)) and ((state in ('refused', 'released')) or (decided_by is null)) and ((proposal_no is null) or (decided_by is not null)) and ((applied_ms is null) or (decided_by is not null))),
    constraint screening_decided_by check (decided_by <> ''),
    constraint screening_reasons check (jsonb_typeof(reasons) = 'array'),
    constraint screening_round check (round_no > 0),
    constraint screening_state check (state in ('open', 'passed', 'held', 'refused', 'released')),
    constraint screening_subject check (case when (order_id is null) then ((tx_hash is not null) and (log_index is not null)) else ((tx_hash is null) and (log_index is null)) end),
    constraint screening_pkey primary key (screening_no)
);
alter table screening alter column screening_no add generated always as identity (sequence name screening_screening_no_seq);
-- Sums what of a merchant's money was cleared within a window.
create index screening_cleared_orders on screening (merchant_id, cleared_ms) include (amount) where ((order_id is not null) and (cleared_ms is not null));
create unique index screening_deposit on screening (chain, tx_hash, log_index) where (tx_hash is not null);
create index screening_of_merchant on screening (merchant_id, screening_no);
create unique index screening_order on screening (merchant_id, order_id) where (order_id is not null);
create index screening_unapplied on screening (decided_ms) where ((decided_ms is not null) and (applied_ms is null));
create index screening_waiting on screening (screening_no) where (state in ('open', 'held'));

-- A question to the screening URL, one for each round, and its answer. An answer never changes.
create table screening_question (
    screening_no bigint not null,
    round_no integer not null,
    request_id text not null,
    body text not null,
    asked_ms bigint not null,
    attempts integer not null,
    error text,
    answered_ms bigint,
    verdict text,
    reason text,
    reference text,
    constraint screening_question_answered check ((answered_ms is null) = (verdict is null)),
    constraint screening_question_attempts check (attempts > 0),
    constraint screening_question_verdict check (verdict in ('pass', 'hold', 'refuse')),
    constraint screening_question_pkey primary key (screening_no, round_no),
    constraint screening_question_request_id unique (request_id)
);
create index screening_question_asked on screening_question (asked_ms);

-- Logos that were uploaded, as PNG files that we have encoded ourselves, by the SHA-256 of the file. One that no merchant uses is inert.
create table brand_logo (
    digest text not null,
    merchant_id bigint not null,
    content bytea not null,
    uploaded_ms bigint not null,
    uploaded_by text not null,
    constraint brand_logo_digest check (digest ~ '^[0-9a-f]{64}$'),
    constraint brand_logo_size check (length(content) between 1 and 262144),
    constraint brand_logo_pkey primary key (digest)
);
create index brand_logo_of on brand_logo (merchant_id, uploaded_ms);

-- Where an operator is reached, and when not. An address is used once its owner has entered the code that was sent to it.
create table notification_contact (
    operator_id bigint not null,
    email text,
    email_asked_ms bigint,
    email_tries smallint default 0 not null,
    email_confirmed_ms bigint,
    webhook_url text,
    webhook_sealed bytea,
    time_zone text not null,
    quiet_from_min smallint,
    quiet_to_min smallint,
    constraint notification_contact_code check ((email is null) = (email_asked_ms is null)),
    constraint notification_contact_confirmed check ((email_confirmed_ms is null) or (email is not null)),
    constraint notification_contact_email check (length(email) between 3 and 254),
    constraint notification_contact_quiet check (((quiet_from_min is null) = (quiet_to_min is null)) and (quiet_from_min <> quiet_to_min) and ((quiet_from_min >= 0) and (quiet_from_min <= 1439)) and ((quiet_to_min >= 0) and (quiet_to_min <= 1439))),
    constraint notification_contact_secret check ((webhook_url is null) = (webhook_sealed is null)),
    constraint notification_contact_url check (length(webhook_url) between 1 and 500),
    constraint notification_contact_zone check (length(time_zone) between 1 and 64),
    constraint notification_contact_pkey primary key (operator_id),
    constraint notification_contact_operator_id_fkey foreign key (operator_id) references operator(operator_id)
);

-- The kinds of items that an operator wants to be told of. `wakes`: in quiet hours too.
create table notification_choice (
    operator_id bigint not null,
    kind text not null,
    by_email boolean not null,
    by_webhook boolean not null,
    wakes boolean not null,
    constraint notification_choice_kind check (kind ~ '^[a-z-]{1,40}$'),
    constraint notification_choice_some check (by_email or by_webhook),
    constraint notification_choice_pkey primary key (operator_id, kind),
    constraint notification_choice_operator_id_fkey foreign key (operator_id) references operator(operator_id)
);

-- The order in which people are told, and after how long the next one is.
create table escalation_step (
    operator_id bigint not null,
    step_no integer not null,
    constraint escalation_step_step_no_check check (step_no > 0),
    constraint escalation_step_no unique (step_no),
    constraint escalation_step_pkey primary key (operator_id),
    constraint escalation_step_operator_id_fkey foreign key (operator_id) references operator(operator_id)
);

create table escalation_time (
    kind text not null,
    after_s integer not null,
    constraint escalation_time_after check (after_s between 60 and 604800),
    constraint escalation_time_kind check (kind ~ '^[a-z-]{1,40}$'),
    constraint escalation_time_pkey primary key (kind)
);

-- Each message, stored before it is sent. `is_doubtful`: a worker died while it was sending, so it may have arrived twice.
create table notification (
    notification_no bigint not null,
    operator_id bigint not null,
    channel text not null,
    target text not null,
    is_test boolean not null,
    items jsonb not null,
    created_ms bigint not null,
    state text default 'waiting' not null,
    attempt_no integer default 0 not null,
    next_ms bigint not null,
    claimed_until_ms bigint,
    is_doubtful boolean default false not null,
    ended_ms bigint,
    answer text,
    constraint notification_channel check (channel in ('email', 'webhook')),
    constraint notification_ended check ((ended_ms is null) = (state = 'waiting')),
    constraint notification_state check (state in ('waiting', 'sent', 'failed', 'dropped')),
    constraint notification_pkey primary key (notification_no),
    constraint notification_operator_id_fkey foreign key (operator_id) references operator(operator_id)
);
alter table notification alter column notification_no add generated always as identity (sequence name notification_notification_no_seq);
create index notification_age on notification (created_ms);
create index notification_failed on notification (ended_ms) where (state = 'failed');
create index notification_of_operator on notification (operator_id, notification_no);
create index notification_waiting on notification (next_ms) where (state = 'waiting');

-- Whom the message of an item went to. The row goes some time after the item does.
create table notification_told (
    operator_id bigint not null,
    channel text not null,
    kind text not null,
    item_key text not null,
    notification_no bigint not null,
    told_ms bigint not null,
    gone_ms bigint,
    constraint notification_told_pkey primary key (operator_id, channel, kind, item_key),
    constraint notification_told_notification_no_fkey foreign key (notification_no) references notification(notification_no),
    constraint notification_told_operator_id_fkey foreign key (operator_id) references operator(operator_id)
);
create index notification_told_by on notification_told (notification_no);

create table failed_sign_in_seen (
    merchant_id bigint not null,
    subject text not null,
    day bigint not null,
    failures bigint not null,
    seen_by text not null,
    seen_ms bigint not null,
    constraint failed_sign_in_seen_failures check (failures > 0),
    constraint failed_sign_in_seen_subject check (length(subject) between 1 and 400),
    constraint failed_sign_in_seen_pkey primary key (merchant_id, subject, day)
);

-- One row for each job, while its command runs. A scope is a set of numbers cell_id * 2^40 + merchant_id: one book, all numbers of a
-- cell, or everything. The session of the command holds an advisory lock of this number: without it the row is that of a dead one.
create table job (
    job_id integer not null,
    kind text not null,
    scope int8multirange not null,
    subject text not null,
    actor text not null,
    began_ms bigint not null,
    constraint job_scope_check check (not isempty(scope)),
    constraint job_alone exclude using gist (scope with &&),
    constraint job_pkey primary key (job_id)
);
alter table job alter column job_id add generated always as identity (sequence name job_job_id_seq);

-- Who knows a merchant's secret can order in its name. So the approvals of that person do not count for this merchant's orders until
-- `eligible_ms`. Rows are only inserted: the payer and verification compare approvals with them for ever.
-- Rule: `person` is the name in lower case, as `person_of` gives it for an actor.
create table staff_secret (
    merchant_id bigint not null,
    made_ms bigint not null,
    key_no integer not null,
    person text not null,
    eligible_ms bigint not null,
    constraint staff_secret_person check ((person <> '') and (person = lower((person collate "C")))),
    constraint staff_secret_time check (eligible_ms >= made_ms),
    constraint staff_secret_pkey primary key (merchant_id, made_ms, key_no, person),
    constraint staff_secret_merchant_id_fkey foreign key (merchant_id) references merchant(merchant_id)
);

-- How much each person has approved on a UTC day, over all merchants. The row is locked while a book is asked.
create table approved_sum (
    person text not null,
    day bigint not null,
    units bigint not null,
    constraint approved_sum_person check ((person <> '') and (person = lower((person collate "C")))),
    constraint approved_sum_units check (units > 0),
    constraint approved_sum_pkey primary key (person, day)
);

-- The versions that are in force no more. Rows are only inserted.
create table superseded_month (
    month text not null,
    version integer not null,
    figures text not null,
    books integer not null,
    digest bytea not null,
    prepared_ms bigint not null,
    accepted_ms bigint not null,
    proposal_no bigint,
    lone_actor text,
    closed_ms bigint not null,
    manifest text not null,
    signature text not null,
    restate_ms bigint not null,
    restate_reason text not null,
    constraint superseded_month_accepted check ((proposal_no is null) <> (lone_actor is null)),
    constraint superseded_month_books_check check (books >= 0),
    constraint superseded_month_digest_check check (length(digest) = 32),
    constraint superseded_month_lone_actor_check check (lone_actor <> ''),
    constraint superseded_month_restate_reason_check check (restate_reason <> ''),
    constraint superseded_month_version_check check (version > 0),
    constraint superseded_month_pkey primary key (month, version),
    constraint superseded_month_month_fkey foreign key (month) references month_report(month),
    constraint superseded_month_proposal_no_fkey foreign key (proposal_no) references proposal(proposal_no)
);

-- Their books.
create table superseded_book (
    merchant_id bigint not null,
    month text not null,
    version integer not null,
    figures text not null,
    digest bytea not null,
    constraint superseded_book_digest_check check (length(digest) = 32),
    constraint superseded_book_pkey primary key (merchant_id, month, version),
    constraint superseded_book_month_version_fkey foreign key (month, version) references superseded_month(month, version)
);
alter table superseded_book alter column merchant_id set (n_distinct=1);
create index superseded_book_month on superseded_book (month, version, merchant_id);

-- Accounts that left the pool of extended public keys. A merchant that comes back later takes its own again.
create table lost_xpub (
    account_no integer not null,
    xpubs jsonb not null,
    lost_ms bigint not null,
    constraint lost_xpub_account_no check (account_no >= 0),
    constraint lost_xpub_xpubs check ((xpubs ? 'ERC20') and (xpubs ? 'TRC20')),
    constraint lost_xpub_pkey primary key (account_no)
);

-- Ranges of ids up to these were given out, whether home knows to whom or not.
create table lost_range (
    range_no range_number not null,
    lost_ms bigint not null,
    constraint lost_range_pkey primary key (range_no)
);

-- Which copy of a book two people chose, until the next acceptance has placed it.
create table kept_copy (
    merchant_id bigint not null,
    cell_id integer not null,
    chosen_ms bigint not null,
    constraint kept_copy_pkey primary key (merchant_id),
    constraint kept_copy_cell_id_fkey foreign key (cell_id) references cell(cell_id),
    constraint kept_copy_merchant_id_fkey foreign key (merchant_id) references merchant(merchant_id)
);

-- What two people decided. Without `contract` it is the chain's coin, without `asked` everything that is there. Amounts are in
-- smallest units. `arrived` is what the token's log says. A rescue without a sweep may end with a cause; others end with their sweep.
create table rescue (
    rescue_no bigint not null,
    chain chain_code not null,
    address bytea not null,
    merchant_id bigint not null,
    account_no integer not null,
    branch integer not null,
    address_index integer not null,
    contract bytea,
    asked numeric(78,0),
    recipient bytea not null,
    proposal_no bigint,
    actor text not null,
    opened_ms bigint not null,
    arrived numeric(78,0),
    obstacle text,
    cause text,
    ended_ms bigint,
    -- Null: nobody. A rescue that failed without a sweep waits in the inbox until a person ends it.
    ended_by text,
    ended_by_ms bigint,
    constraint rescue_account_no check (account_no >= 0),
    constraint rescue_actor check (actor <> ''),
    constraint rescue_address check (length(address) = 20),
    constraint rescue_address_index check (address_index >= 0),
    constraint rescue_arrived check (arrived > (0)::numeric),
    constraint rescue_asked check (asked > (0)::numeric),
    constraint rescue_branch check (branch in (0, 1)),
    constraint rescue_cause check (cause <> ''),
    constraint rescue_contract check ((length(contract) = 20) and (contract <> recipient)),
    constraint rescue_ended check (((cause is null) = (ended_ms is null)) and ((ended_ms is null) or (arrived is null))),
    constraint rescue_ended_by check (((ended_by is null) = (ended_by_ms is null)) and ((ended_by is null) or ((ended_by <> '') and (ended_ms is not null)))),
    constraint rescue_obstacle check (obstacle <> ''),
    constraint rescue_recipient check ((length(recipient) = 20) and (recipient <> address)),
    constraint rescue_pkey primary key (rescue_no),
    constraint rescue_proposal_no_key unique (proposal_no),
    constraint rescue_merchant_id_fkey foreign key (merchant_id) references merchant(merchant_id)
);
alter table rescue alter column rescue_no add generated always as identity (sequence name rescue_rescue_no_seq);
create index rescue_newest on rescue (chain, address, rescue_no);

alter table merchant add constraint merchant_cell_id_fkey foreign key (cell_id) references cell(cell_id);
alter table deposit_credit add constraint deposit_credit_one_block foreign key (chain, tx_hash, block_hash) references credited_transaction(chain, tx_hash, block_hash);
alter table sweep add constraint sweep_rescue_no foreign key (rescue_no) references rescue(rescue_no);

-- The owner's functions are for the sides that `migrate` names.
revoke execute on function add_nonce_days(integer, integer), drop_nonce_day(integer) from public;

-- The head of an empty audit log, and home's own schema as the first cell.
insert into audit_head (entry_count, head_hash, last_ms) values (0, decode(repeat('00', 32), 'hex'), 0);
insert into cell (cell_id, name, schema_name, added_ms) values (0, 'main', 'public', 0);
insert into cell_state (cell_id, version, is_open) values (0, 1, true);
