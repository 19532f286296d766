CREATE FUNCTION cell.chain_codes() RETURNS text[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ARRAY['ERC20'::text, 'TRC20'::text, 'BEP20'::text];

CREATE DOMAIN cell.account_kind AS text
	CONSTRAINT account_kind_check CHECK (((VALUE = ANY (ARRAY['merchant'::text, 'subuser'::text, 'hold'::text, 'fees'::text, 'exchange'::text, 'adjustment'::text])) OR ((VALUE ~~ 'chain:%'::text) AND (substr(VALUE, 7) = ANY (cell.chain_codes())))));

CREATE DOMAIN cell.chain_code AS text
	CONSTRAINT chain_code_check CHECK ((VALUE = ANY (cell.chain_codes())));

CREATE FUNCTION cell.currency_codes() RETURNS text[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ARRAY['USDT'::text, 'KFB'::text];

CREATE DOMAIN cell.currency AS text
	CONSTRAINT currency_check CHECK ((VALUE = ANY (cell.currency_codes())));

CREATE DOMAIN cell.entry_kind AS text
	CONSTRAINT entry_kind_check CHECK ((VALUE = ANY (ARRAY['user_to_merchant'::text, 'merchant_to_user'::text, 'exchange'::text, 'register'::text, 'withdraw'::text, 'settle'::text, 'refund'::text, 'cancel'::text, 'expire'::text, 'adjust'::text, 'fee_withdraw'::text, 'deposit'::text])));

CREATE DOMAIN cell.id_count AS bigint
	CONSTRAINT id_count_check CHECK (((VALUE >= 0) AND (VALUE <= '8589934591'::bigint)));

CREATE DOMAIN cell.order_name AS text
	CONSTRAINT order_name_check CHECK (((length(VALUE) >= 1) AND (length(VALUE) <= 64)));

CREATE DOMAIN cell.positive_units AS bigint
	CONSTRAINT positive_units_check CHECK ((VALUE > 0));

CREATE DOMAIN cell.range_number AS integer
	CONSTRAINT range_number_check CHECK (((VALUE >= 1) AND (VALUE <= 1048575)));

CREATE FUNCTION cell.add_nonce_days(first_day integer, last_day integer) RETURNS integer[]
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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
    lock table "cell".nonce in share update exclusive mode;
    for wanted in
        select d from generate_series(first_day, last_day) d
         where not exists (select from pg_inherits i join pg_class c on c.oid = i.inhrelid
                            where i.inhparent = '"cell".nonce'::regclass and c.relname = format('nonce_%s', d))
         order by d
    loop
        execute format('create table "cell".%I (like "cell".nonce including all)', format('nonce_%s', wanted));
        execute format('alter table "cell".nonce attach partition "cell".%I for values in (%s)',
                       format('nonce_%s', wanted), wanted);
        made := made || wanted;
    end loop;
    return made;
end
$$;

CREATE FUNCTION cell.drop_nonce_day(old_day integer) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if old_day >= floor(extract(epoch from clock_timestamp()) / 86400) - 1 then
        raise exception 'nonces of day % are still needed', old_day using errcode = 'invalid_parameter_value';
    end if;
    execute format('drop table if exists "cell".%I', format('nonce_%s', old_day));
end
$$;

CREATE FUNCTION cell.name_grams(word text) RETURNS text[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ARRAY(SELECT DISTINCT substr(lower((name_grams.word COLLATE "C")), n.n, size.size) AS substr FROM (generate_series(1, 3) size(size) CROSS JOIN LATERAL generate_series(1, ((length(name_grams.word) - size.size) + 1)) n(n)) WHERE ((size.size = 3) OR (octet_length(substr(name_grams.word, n.n, size.size)) > size.size)));

CREATE FUNCTION cell.person_of(actor text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN lower((substr(actor, (strpos(actor, ':'::text) + 1)) COLLATE "C"));

CREATE FUNCTION cell.search_grams(word text) RETURNS text[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ARRAY(SELECT DISTINCT substr(lower((search_grams.word COLLATE "C")), n.n, 3) AS substr FROM generate_series(1, (length(search_grams.word) - 2)) n(n));

CREATE TABLE cell.account (
    merchant_id bigint NOT NULL,
    account_id bigint NOT NULL,
    kind cell.account_kind NOT NULL,
    currency cell.currency NOT NULL,
    balance bigint DEFAULT 0 NOT NULL,
    day integer DEFAULT 0 NOT NULL,
    day_debited bigint DEFAULT 0 NOT NULL,
    floor bigint GENERATED ALWAYS AS (
CASE
    WHEN (((kind)::text = ANY (ARRAY['exchange'::text, 'adjustment'::text])) OR ((kind)::text ~~ 'chain:%'::text)) THEN '-4611686018427387904'::bigint
    ELSE (0)::bigint
END) STORED NOT NULL,
    CONSTRAINT account_floor CHECK ((balance >= floor))
)
WITH (fillfactor='50');
ALTER TABLE ONLY cell.account ALTER COLUMN merchant_id SET (n_distinct=1);

CREATE TABLE cell.archived_month (
    merchant_id bigint NOT NULL,
    month text NOT NULL,
    first_id bigint NOT NULL,
    last_id bigint NOT NULL,
    entries bigint NOT NULL,
    postings bigint NOT NULL,
    first_ms bigint NOT NULL,
    last_ms bigint NOT NULL,
    previous_hash bytea NOT NULL,
    last_hash bytea NOT NULL,
    digest bytea NOT NULL,
    removed_id bigint NOT NULL,
    written_ms bigint NOT NULL,
    CONSTRAINT archived_month_check CHECK ((last_ms >= first_ms)),
    CONSTRAINT archived_month_check1 CHECK (((first_id > 0) AND (last_id >= first_id) AND ((removed_id >= (first_id - 1)) AND (removed_id <= last_id)))),
    CONSTRAINT archived_month_entries_check CHECK ((entries > 0)),
    CONSTRAINT archived_month_month_check CHECK ((month ~ '^[0-9]{4}-(0[1-9]|1[0-2])$'::text)),
    CONSTRAINT archived_month_postings_check CHECK ((postings >= 0))
);
ALTER TABLE ONLY cell.archived_month ALTER COLUMN merchant_id SET (n_distinct=1);

CREATE TABLE cell.archived_order (
    merchant_id bigint NOT NULL,
    entry_id bigint NOT NULL,
    at_ms bigint NOT NULL,
    source_id bigint NOT NULL,
    target_id bigint NOT NULL,
    amount bigint NOT NULL,
    rate_e8 bigint NOT NULL,
    second_amount bigint,
    source_balance bigint,
    target_balance bigint,
    kind cell.entry_kind NOT NULL,
    mc_order_id cell.order_name NOT NULL,
    currency text NOT NULL,
    second_currency text,
    facts text NOT NULL
);
ALTER TABLE ONLY cell.archived_order ALTER COLUMN merchant_id SET (n_distinct=1);

CREATE TABLE cell.book (
    merchant_id bigint NOT NULL,
    id_range cell.range_number NOT NULL,
    id_counter cell.id_count DEFAULT 0 NOT NULL,
    next_range cell.range_number,
    entry_count bigint DEFAULT 0 NOT NULL,
    head_hash bytea NOT NULL,
    last_ms bigint NOT NULL,
    settings_version bigint DEFAULT 1 NOT NULL,
    withdrawn_day integer DEFAULT 0 NOT NULL,
    withdrawn_units bigint DEFAULT 0 NOT NULL,
    version uuid DEFAULT gen_random_uuid() NOT NULL,
    is_open boolean DEFAULT true NOT NULL,
    move_version bigint DEFAULT 0 NOT NULL,
    closed_ms bigint DEFAULT 0 NOT NULL
)
WITH (fillfactor='20');

CREATE TABLE cell.callback (
    merchant_id bigint NOT NULL,
    order_id bigint NOT NULL,
    status smallint NOT NULL,
    event_id text NOT NULL,
    created_ms bigint NOT NULL,
    event_type text DEFAULT 'withdrawal'::text NOT NULL,
    withdrawal_id bigint GENERATED ALWAYS AS (
CASE
    WHEN (event_type = 'withdrawal'::text) THEN order_id
    ELSE NULL::bigint
END) STORED,
    state text DEFAULT 'due'::text NOT NULL,
    attempt_no integer DEFAULT 0 NOT NULL,
    retry_no integer DEFAULT 0 NOT NULL,
    next_ms bigint DEFAULT 0 NOT NULL,
    claimed_by text,
    delivered_ms bigint,
    CONSTRAINT callback_attempt_no_check CHECK ((attempt_no >= 0)),
    CONSTRAINT callback_claimed_by_check CHECK ((claimed_by <> ''::text)),
    CONSTRAINT callback_delivered CHECK (((state <> 'delivered'::text) OR (delivered_ms IS NOT NULL))),
    CONSTRAINT callback_event_status CHECK ((((event_type = 'withdrawal'::text) AND (status = ANY (ARRAY[2, 3, 4, 5, 6]))) OR ((event_type = 'deposit'::text) AND (status = 0)))),
    CONSTRAINT callback_next_ms_check CHECK ((next_ms >= 0)),
    CONSTRAINT callback_retry_no_check CHECK ((retry_no >= 0)),
    CONSTRAINT callback_state_check CHECK ((state = ANY (ARRAY['due'::text, 'delivered'::text, 'dead_letter'::text, 'paused'::text])))
);
ALTER TABLE ONLY cell.callback ALTER COLUMN merchant_id SET (n_distinct=1);
ALTER TABLE ONLY cell.callback ALTER COLUMN event_type SET (n_distinct=2);
ALTER TABLE ONLY cell.callback ALTER COLUMN state SET (n_distinct=4);

CREATE TABLE cell.callback_attempt (
    merchant_id bigint NOT NULL,
    order_id bigint NOT NULL,
    status smallint NOT NULL,
    attempt_no integer NOT NULL,
    at_ms bigint NOT NULL,
    address text,
    http_status smallint,
    error text,
    answer bytea,
    latency_ms integer,
    CONSTRAINT callback_attempt_address_check CHECK ((address <> ''::text)),
    CONSTRAINT callback_attempt_attempt_no_check CHECK ((attempt_no > 0)),
    CONSTRAINT callback_attempt_error_check CHECK ((error <> ''::text)),
    CONSTRAINT callback_attempt_latency_ms_check CHECK ((latency_ms >= 0))
);
ALTER TABLE ONLY cell.callback_attempt ALTER COLUMN merchant_id SET (n_distinct=1);

CREATE TABLE cell.callback_pause (
    merchant_id bigint NOT NULL,
    since_ms bigint NOT NULL,
    paused_by text NOT NULL,
    CONSTRAINT callback_pause_paused_by_check CHECK ((paused_by <> ''::text))
);

CREATE TABLE cell.cell_state (
    cell_id integer NOT NULL,
    version bigint NOT NULL,
    is_open boolean NOT NULL,
    home_no bigint DEFAULT 0 NOT NULL,
    CONSTRAINT cell_state_cell_id_check CHECK ((cell_id >= 0)),
    CONSTRAINT cell_state_version_check CHECK ((version > 0))
);

CREATE TABLE cell.chain_position (
    chain cell.chain_code NOT NULL,
    final_number bigint NOT NULL,
    rewind_no integer NOT NULL,
    CONSTRAINT chain_position_final_number_check CHECK ((final_number >= 0)),
    CONSTRAINT chain_position_rewind_no_check CHECK ((rewind_no >= 0))
);

CREATE TABLE cell.credited_transaction (
    chain cell.chain_code NOT NULL,
    tx_hash text NOT NULL,
    block_hash text NOT NULL,
    CONSTRAINT credited_transaction_block_hash_check CHECK ((block_hash <> ''::text)),
    CONSTRAINT credited_transaction_tx_hash_check CHECK (((length(tx_hash) >= 1) AND (length(tx_hash) <= 80)))
);

CREATE TABLE cell.daily_figure (
    merchant_id bigint NOT NULL,
    day integer NOT NULL,
    kind cell.entry_kind NOT NULL,
    currency cell.currency NOT NULL,
    entries bigint NOT NULL,
    amount numeric(40,0) NOT NULL,
    fee numeric(40,0) NOT NULL,
    CONSTRAINT daily_figure_amount_check CHECK ((amount >= (0)::numeric)),
    CONSTRAINT daily_figure_day_check CHECK ((day >= 0)),
    CONSTRAINT daily_figure_entries_check CHECK ((entries > 0)),
    CONSTRAINT daily_figure_fee_check CHECK ((fee >= (0)::numeric)),
    CONSTRAINT daily_figure_merchant_id_check CHECK ((merchant_id >= 0))
);

CREATE TABLE cell.daily_movement (
    merchant_id bigint NOT NULL,
    day integer NOT NULL,
    account_id integer NOT NULL,
    currency cell.currency NOT NULL,
    kind cell.entry_kind NOT NULL,
    in_units numeric(40,0) NOT NULL,
    out_units numeric(40,0) NOT NULL,
    postings bigint NOT NULL,
    CONSTRAINT daily_movement_account_id_check CHECK ((account_id >= 0)),
    CONSTRAINT daily_movement_day_check CHECK ((day >= 0)),
    CONSTRAINT daily_movement_in_units_check CHECK ((in_units >= (0)::numeric)),
    CONSTRAINT daily_movement_merchant_id_check CHECK ((merchant_id >= 0)),
    CONSTRAINT daily_movement_out_units_check CHECK ((out_units >= (0)::numeric)),
    CONSTRAINT daily_movement_postings_check CHECK ((postings > 0))
);
ALTER TABLE ONLY cell.daily_movement ALTER COLUMN merchant_id SET (n_distinct=1);

CREATE TABLE cell.deposit (
    merchant_id bigint NOT NULL,
    chain cell.chain_code NOT NULL,
    tx_hash text NOT NULL,
    log_index integer NOT NULL,
    block_number bigint NOT NULL,
    block_hash text NOT NULL,
    sender bytea NOT NULL,
    address bytea NOT NULL,
    user_id bigint,
    amount bigint NOT NULL,
    status text NOT NULL,
    seen_ms bigint NOT NULL,
    final_ms bigint,
    next_ms bigint DEFAULT 0 NOT NULL,
    cause text,
    block_log_index integer,
    decided_by text,
    decided_ms bigint,
    CONSTRAINT deposit_address_check CHECK ((length(address) = 20)),
    CONSTRAINT deposit_amount_check CHECK ((amount > 0)),
    CONSTRAINT deposit_block_hash_check CHECK ((block_hash <> ''::text)),
    CONSTRAINT deposit_block_log_index_check CHECK ((block_log_index >= 0)),
    CONSTRAINT deposit_block_number_check CHECK ((block_number >= 0)),
    CONSTRAINT deposit_cause_check CHECK ((cause <> ''::text)),
    CONSTRAINT deposit_decided CHECK ((((decided_by IS NULL) = (decided_ms IS NULL)) AND ((status <> 'dropped'::text) OR (decided_by IS NOT NULL)) AND ((status <> ALL (ARRAY['seen'::text, 'undone'::text, 'dust'::text, 'held'::text])) OR (decided_by IS NULL)))),
    CONSTRAINT deposit_decided_by_check CHECK ((decided_by <> ''::text)),
    CONSTRAINT deposit_final CHECK (((final_ms IS NULL) = (status = ANY (ARRAY['seen'::text, 'undone'::text])))),
    CONSTRAINT deposit_log_index_check CHECK ((log_index >= 0)),
    CONSTRAINT deposit_next_ms_check CHECK ((next_ms >= 0)),
    CONSTRAINT deposit_sender_check CHECK ((length(sender) = 20)),
    CONSTRAINT deposit_status_check CHECK ((status = ANY (ARRAY['seen'::text, 'undone'::text, 'pending'::text, 'dust'::text, 'held'::text, 'dropped'::text, 'credited'::text]))),
    CONSTRAINT deposit_tx_hash_check CHECK (((length(tx_hash) >= 1) AND (length(tx_hash) <= 80)))
);
ALTER TABLE ONLY cell.deposit ALTER COLUMN merchant_id SET (n_distinct=1);
ALTER TABLE ONLY cell.deposit ALTER COLUMN chain SET (n_distinct=3);
ALTER TABLE ONLY cell.deposit ALTER COLUMN status SET (n_distinct=7);

CREATE TABLE cell.deposit_credit (
    merchant_id bigint NOT NULL,
    chain cell.chain_code NOT NULL,
    tx_hash text NOT NULL,
    log_index integer NOT NULL,
    entry_id bigint NOT NULL,
    currency cell.currency NOT NULL,
    amount cell.positive_units NOT NULL,
    rate_e8 bigint NOT NULL,
    block_hash text,
    released_by text,
    CONSTRAINT deposit_credit_block_hash_check CHECK ((block_hash <> ''::text)),
    CONSTRAINT deposit_credit_from CHECK (((block_hash IS NULL) = (released_by IS NOT NULL))),
    CONSTRAINT deposit_credit_rate_e8_check CHECK ((rate_e8 >= 0)),
    CONSTRAINT deposit_credit_released_by_check CHECK ((released_by <> ''::text))
);
ALTER TABLE ONLY cell.deposit_credit ALTER COLUMN merchant_id SET (n_distinct=1);

CREATE TABLE cell.entry (
    merchant_id bigint NOT NULL,
    entry_id bigint NOT NULL,
    kind cell.entry_kind NOT NULL,
    mc_order_id cell.order_name,
    at_ms bigint NOT NULL,
    rate_e8 bigint DEFAULT 0 NOT NULL,
    facts text DEFAULT ''::text NOT NULL,
    hash bytea NOT NULL
);
ALTER TABLE ONLY cell.entry ALTER COLUMN merchant_id SET (n_distinct=1);

CREATE TABLE cell.figure_cursor (
    merchant_id bigint NOT NULL,
    entry_id bigint DEFAULT 0 NOT NULL,
    entries bigint DEFAULT 0 NOT NULL,
    sub_users bigint DEFAULT 0 NOT NULL,
    moved_ms bigint DEFAULT 0 NOT NULL,
    CONSTRAINT figure_cursor_check CHECK (((sub_users >= 0) AND (sub_users <= entries))),
    CONSTRAINT figure_cursor_entries_check CHECK ((entries >= 0)),
    CONSTRAINT figure_cursor_entry_id_check CHECK ((entry_id >= 0))
);

CREATE TABLE cell.merchant (
    merchant_id bigint NOT NULL,
    name text NOT NULL,
    status text NOT NULL,
    currency_mode cell.currency NOT NULL,
    deposit_notify_url text,
    require_pin boolean NOT NULL,
    frame_origins text[] NOT NULL
);

CREATE TABLE cell.merchant_address (
    merchant_id bigint NOT NULL,
    chain cell.chain_code NOT NULL,
    address bytea NOT NULL,
    CONSTRAINT merchant_address_address_check CHECK ((length(address) = 20))
);
ALTER TABLE ONLY cell.merchant_address ALTER COLUMN merchant_id SET (n_distinct=1);

CREATE TABLE cell.nonce (
    merchant_id bigint NOT NULL,
    nonce text NOT NULL COLLATE pg_catalog."C",
    day integer NOT NULL,
    group_id uuid NOT NULL
)
PARTITION BY LIST (day);

CREATE TABLE cell.posting (
    merchant_id bigint NOT NULL,
    entry_id bigint NOT NULL,
    posting_no smallint NOT NULL,
    source_id bigint NOT NULL,
    target_id bigint NOT NULL,
    currency text NOT NULL,
    amount cell.positive_units NOT NULL,
    source_balance bigint NOT NULL,
    target_balance bigint NOT NULL,
    CONSTRAINT posting_moves CHECK ((source_id <> target_id))
);
ALTER TABLE ONLY cell.posting ALTER COLUMN merchant_id SET (n_distinct=1);

CREATE TABLE cell.rate (
    merchant_id bigint NOT NULL,
    usdt_kfb_e8 bigint,
    usdt_kfb_paused boolean DEFAULT false NOT NULL,
    usdt_kfb_set_ms bigint,
    usdt_kfb_max_age_ms bigint,
    kfb_usdt_e8 bigint,
    kfb_usdt_paused boolean DEFAULT false NOT NULL,
    kfb_usdt_set_ms bigint,
    kfb_usdt_max_age_ms bigint,
    CONSTRAINT rate_kfb_usdt_e8_check CHECK ((kfb_usdt_e8 > 0)),
    CONSTRAINT rate_kfb_usdt_max_age_ms_check CHECK ((kfb_usdt_max_age_ms > 0)),
    CONSTRAINT rate_merchant_id_check CHECK ((merchant_id >= 0)),
    CONSTRAINT rate_never_pumps CHECK ((((usdt_kfb_e8)::numeric * (kfb_usdt_e8)::numeric) <= ('10000000000000000'::bigint)::numeric)),
    CONSTRAINT rate_usdt_kfb_e8_check CHECK ((usdt_kfb_e8 > 0)),
    CONSTRAINT rate_usdt_kfb_max_age_ms_check CHECK ((usdt_kfb_max_age_ms > 0))
);

CREATE TABLE cell.reference_state (
    row_no integer DEFAULT 1 NOT NULL,
    change_no bigint NOT NULL,
    changed_ms bigint NOT NULL,
    checked_ms bigint NOT NULL,
    CONSTRAINT reference_state_row_no_check CHECK ((row_no = 1))
);

CREATE TABLE cell.rollback_evidence (
    merchant_id bigint NOT NULL,
    subject text NOT NULL,
    kind text NOT NULL,
    cause text NOT NULL,
    since_ms bigint NOT NULL,
    CONSTRAINT rollback_evidence_cause_check CHECK ((cause <> ''::text)),
    CONSTRAINT rollback_evidence_kind_check CHECK ((kind = ANY (ARRAY['behind'::text, 'diverged'::text, 'unreadable'::text]))),
    CONSTRAINT rollback_evidence_merchant_id_check CHECK ((merchant_id >= 0)),
    CONSTRAINT rollback_evidence_of_book CHECK (((merchant_id > 0) = (subject = 'book'::text))),
    CONSTRAINT rollback_evidence_subject_check CHECK ((subject = ANY (ARRAY['book'::text, 'audit'::text, 'signer'::text, 'key'::text, 'home'::text])))
);

CREATE TABLE cell.schema_migration (
    version integer NOT NULL,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_ms bigint NOT NULL,
    kind text NOT NULL
);

CREATE TABLE cell.side_role (
    side text NOT NULL,
    role_name text NOT NULL,
    granted_ms bigint NOT NULL,
    CONSTRAINT side_role_side_check CHECK ((side = ANY (ARRAY['web'::text, 'worker'::text])))
);

CREATE TABLE cell.sub_user (
    merchant_id bigint NOT NULL,
    user_id bigint NOT NULL,
    ext_user_id text NOT NULL,
    username text NOT NULL,
    address_index integer NOT NULL,
    evm_address bytea NOT NULL,
    tron_address bytea NOT NULL,
    paused boolean DEFAULT false NOT NULL,
    limit_debit_units bigint,
    limit_day_units bigint,
    pin_hash text,
    created_ms bigint NOT NULL,
    pin_set_ms bigint,
    pin_failures integer DEFAULT 0 NOT NULL,
    pin_locked_until_ms bigint DEFAULT 0 NOT NULL,
    language text,
    links_void_until_ms bigint DEFAULT 0 NOT NULL,
    CONSTRAINT sub_user_address_index_check CHECK ((address_index >= 0)),
    CONSTRAINT sub_user_evm_address_check CHECK ((length(evm_address) = 20)),
    CONSTRAINT sub_user_ext_user_id_check CHECK (((length(ext_user_id) >= 1) AND (length(ext_user_id) <= 20))),
    CONSTRAINT sub_user_language_check CHECK ((language = ANY (ARRAY['en'::text, 'zh-CN'::text]))),
    CONSTRAINT sub_user_limit_day_units_check CHECK ((limit_day_units >= 0)),
    CONSTRAINT sub_user_limit_debit_units_check CHECK ((limit_debit_units >= 0)),
    CONSTRAINT sub_user_pin CHECK (((pin_hash IS NOT NULL) OR ((pin_set_ms IS NULL) AND (pin_failures = 0) AND (pin_locked_until_ms = 0)))),
    CONSTRAINT sub_user_pin_failures_check CHECK ((pin_failures >= 0)),
    CONSTRAINT sub_user_pin_locked_until_ms_check CHECK ((pin_locked_until_ms >= 0)),
    CONSTRAINT sub_user_tron_address_check CHECK ((length(tron_address) = 20)),
    CONSTRAINT sub_user_username_check CHECK (((length(username) >= 1) AND (length(username) <= 128)))
);
ALTER TABLE ONLY cell.sub_user ALTER COLUMN merchant_id SET (n_distinct=1);

CREATE TABLE cell.wallet_address (
    merchant_id bigint NOT NULL,
    address bytea NOT NULL,
    user_id bigint NOT NULL,
    CONSTRAINT wallet_address_address_check CHECK ((length(address) = 20))
);
ALTER TABLE ONLY cell.wallet_address ALTER COLUMN merchant_id SET (n_distinct=1);

CREATE TABLE cell.wallet_session (
    merchant_id bigint NOT NULL,
    token_hash bytea NOT NULL,
    user_id bigint NOT NULL,
    is_framed boolean NOT NULL,
    created_ms bigint NOT NULL,
    seen_ms bigint NOT NULL,
    expires_ms bigint NOT NULL,
    CONSTRAINT wallet_session_times CHECK (((created_ms <= seen_ms) AND (created_ms < expires_ms))),
    CONSTRAINT wallet_session_token_hash_check CHECK ((length(token_hash) = 32))
);
ALTER TABLE ONLY cell.wallet_session ALTER COLUMN merchant_id SET (n_distinct=1);

CREATE TABLE cell.withdrawal (
    merchant_id bigint NOT NULL,
    order_id bigint NOT NULL,
    mc_order_id text NOT NULL,
    amount bigint NOT NULL,
    fee bigint NOT NULL,
    rate_e8 bigint NOT NULL,
    chain cell.chain_code NOT NULL,
    address text NOT NULL,
    notify_url text NOT NULL,
    status smallint NOT NULL,
    step_no smallint NOT NULL,
    approved_ms bigint,
    approved_by text,
    deadline_ms bigint NOT NULL,
    created_ms bigint NOT NULL,
    finished_ms bigint,
    notified_ms bigint,
    tx_hash text,
    second_limit_units bigint,
    first_approved_by text,
    first_approved_ms bigint,
    first_eligible_ms bigint,
    approved_eligible_ms bigint,
    is_queued boolean DEFAULT false NOT NULL,
    frozen_ms bigint,
    CONSTRAINT withdrawal_address_check CHECK (((length(address) >= 1) AND (length(address) <= 64))),
    CONSTRAINT withdrawal_amount_check CHECK ((amount > 0)),
    CONSTRAINT withdrawal_approved_eligible CHECK (((approved_eligible_ms IS NULL) OR ((approved_ms IS NOT NULL) AND (approved_ms >= approved_eligible_ms)))),
    CONSTRAINT withdrawal_check CHECK ((fee < amount)),
    CONSTRAINT withdrawal_fee_check CHECK ((fee >= 0)),
    CONSTRAINT withdrawal_first_approved_by_check CHECK ((first_approved_by <> ''::text)),
    CONSTRAINT withdrawal_first_eligible CHECK (((first_eligible_ms IS NULL) OR ((first_approved_ms IS NOT NULL) AND (first_approved_ms >= first_eligible_ms)))),
    CONSTRAINT withdrawal_first_moment CHECK (((first_approved_ms IS NULL) OR (first_approved_by IS NOT NULL))),
    CONSTRAINT withdrawal_first_of_two CHECK (((first_approved_by IS NULL) OR ((second_limit_units IS NOT NULL) AND (amount > second_limit_units)))),
    CONSTRAINT withdrawal_mc_order_id_check CHECK (((length(mc_order_id) >= 1) AND (length(mc_order_id) <= 20))),
    CONSTRAINT withdrawal_notify_url_check CHECK (((length(notify_url) >= 1) AND (length(notify_url) <= 100))),
    CONSTRAINT withdrawal_rate_e8_check CHECK ((rate_e8 >= 0)),
    CONSTRAINT withdrawal_second_limit CHECK (((approved_ms IS NULL) OR (second_limit_units IS NULL) OR (amount <= second_limit_units) OR ((first_approved_by IS NOT NULL) AND (approved_by IS NOT NULL) AND (approved_by <> 'limit'::text)))),
    CONSTRAINT withdrawal_second_limit_units_check CHECK ((second_limit_units >= 0)),
    CONSTRAINT withdrawal_two_people CHECK (((first_approved_by IS NULL) OR (approved_by IS NULL) OR (cell.person_of(first_approved_by) <> cell.person_of(approved_by))))
);
ALTER TABLE ONLY cell.withdrawal ALTER COLUMN merchant_id SET (n_distinct=1);
ALTER TABLE ONLY cell.withdrawal ALTER COLUMN chain SET (n_distinct=3);
ALTER TABLE ONLY cell.withdrawal ALTER COLUMN status SET (n_distinct=7);

CREATE TABLE cell.withdrawal_step (
    merchant_id bigint NOT NULL,
    order_id bigint NOT NULL,
    step_no smallint NOT NULL,
    previous_no smallint GENERATED ALWAYS AS (
CASE
    WHEN (step_no = 0) THEN NULL::integer
    ELSE (step_no - 1)
END) STORED,
    from_status smallint,
    to_status smallint NOT NULL,
    at_ms bigint NOT NULL,
    cause text NOT NULL,
    CONSTRAINT withdrawal_step_cause_check CHECK ((cause <> ''::text)),
    CONSTRAINT withdrawal_step_legal CHECK ((((step_no = 0) AND (from_status IS NULL) AND (to_status = 0)) OR ((step_no > 0) AND (from_status IS NOT NULL) AND (((((((from_status = 0) AND (to_status = 1)) OR ((from_status = 0) AND (to_status = 4))) OR ((from_status = 0) AND (to_status = 5))) OR ((from_status = 1) AND (to_status = 2))) OR ((from_status = 1) AND (to_status = 3))) OR ((from_status = 3) AND (to_status = 6)))))),
    CONSTRAINT withdrawal_step_step_no_check CHECK ((step_no >= 0))
);
ALTER TABLE ONLY cell.withdrawal_step ALTER COLUMN merchant_id SET (n_distinct=1);

ALTER TABLE ONLY cell.account
    ADD CONSTRAINT account_pkey PRIMARY KEY (merchant_id, account_id);

ALTER TABLE ONLY cell.archived_month
    ADD CONSTRAINT archived_month_pkey PRIMARY KEY (merchant_id, month);

ALTER TABLE ONLY cell.archived_order
    ADD CONSTRAINT archived_order_pkey PRIMARY KEY (merchant_id, mc_order_id, kind);

ALTER TABLE ONLY cell.book
    ADD CONSTRAINT book_pkey PRIMARY KEY (merchant_id);

ALTER TABLE ONLY cell.callback_attempt
    ADD CONSTRAINT callback_attempt_pkey PRIMARY KEY (merchant_id, order_id, status, attempt_no);

ALTER TABLE ONLY cell.callback
    ADD CONSTRAINT callback_merchant_id_event_id_key UNIQUE (merchant_id, event_id);

ALTER TABLE ONLY cell.callback_pause
    ADD CONSTRAINT callback_pause_pkey PRIMARY KEY (merchant_id);

ALTER TABLE ONLY cell.callback
    ADD CONSTRAINT callback_pkey PRIMARY KEY (merchant_id, order_id, status);

ALTER TABLE ONLY cell.cell_state
    ADD CONSTRAINT cell_state_pkey PRIMARY KEY (cell_id);

ALTER TABLE ONLY cell.chain_position
    ADD CONSTRAINT chain_position_pkey PRIMARY KEY (chain);

ALTER TABLE ONLY cell.credited_transaction
    ADD CONSTRAINT credited_transaction_chain_tx_hash_block_hash_key UNIQUE (chain, tx_hash, block_hash);

ALTER TABLE ONLY cell.credited_transaction
    ADD CONSTRAINT credited_transaction_pkey PRIMARY KEY (chain, tx_hash);

ALTER TABLE ONLY cell.daily_figure
    ADD CONSTRAINT daily_figure_pkey PRIMARY KEY (merchant_id, day, kind, currency);

ALTER TABLE ONLY cell.daily_movement
    ADD CONSTRAINT daily_movement_pkey PRIMARY KEY (merchant_id, day, account_id, currency, kind);

ALTER TABLE ONLY cell.deposit_credit
    ADD CONSTRAINT deposit_credit_merchant_id_entry_id_key UNIQUE (merchant_id, entry_id);

ALTER TABLE ONLY cell.deposit_credit
    ADD CONSTRAINT deposit_credit_pkey PRIMARY KEY (merchant_id, chain, tx_hash, log_index);

ALTER TABLE ONLY cell.deposit
    ADD CONSTRAINT deposit_pkey PRIMARY KEY (merchant_id, chain, tx_hash, log_index);

ALTER TABLE ONLY cell.entry
    ADD CONSTRAINT entry_pkey PRIMARY KEY (merchant_id, entry_id);

ALTER TABLE ONLY cell.figure_cursor
    ADD CONSTRAINT figure_cursor_pkey PRIMARY KEY (merchant_id);

ALTER TABLE ONLY cell.merchant_address
    ADD CONSTRAINT merchant_address_merchant_id_address_key UNIQUE (merchant_id, address);

ALTER TABLE ONLY cell.merchant_address
    ADD CONSTRAINT merchant_address_pkey PRIMARY KEY (merchant_id, chain);

ALTER TABLE ONLY cell.merchant
    ADD CONSTRAINT merchant_pkey PRIMARY KEY (merchant_id);

ALTER TABLE ONLY cell.nonce
    ADD CONSTRAINT nonce_pkey PRIMARY KEY (merchant_id, nonce, day);

ALTER TABLE ONLY cell.posting
    ADD CONSTRAINT posting_pkey PRIMARY KEY (merchant_id, entry_id, posting_no);

ALTER TABLE ONLY cell.rate
    ADD CONSTRAINT rate_pkey PRIMARY KEY (merchant_id);

ALTER TABLE ONLY cell.reference_state
    ADD CONSTRAINT reference_state_pkey PRIMARY KEY (row_no);

ALTER TABLE ONLY cell.rollback_evidence
    ADD CONSTRAINT rollback_evidence_pkey PRIMARY KEY (merchant_id, subject);

ALTER TABLE ONLY cell.schema_migration
    ADD CONSTRAINT schema_migration_pkey PRIMARY KEY (version);

ALTER TABLE ONLY cell.side_role
    ADD CONSTRAINT side_role_pkey PRIMARY KEY (side);

ALTER TABLE ONLY cell.side_role
    ADD CONSTRAINT side_role_role_name_key UNIQUE (role_name);

ALTER TABLE ONLY cell.sub_user
    ADD CONSTRAINT sub_user_merchant_id_address_index_key UNIQUE (merchant_id, address_index);

ALTER TABLE ONLY cell.sub_user
    ADD CONSTRAINT sub_user_merchant_id_ext_user_id_key UNIQUE (merchant_id, ext_user_id);

ALTER TABLE ONLY cell.sub_user
    ADD CONSTRAINT sub_user_pkey PRIMARY KEY (merchant_id, user_id);

ALTER TABLE ONLY cell.wallet_address
    ADD CONSTRAINT wallet_address_pkey PRIMARY KEY (merchant_id, address);

ALTER TABLE ONLY cell.wallet_session
    ADD CONSTRAINT wallet_session_pkey PRIMARY KEY (merchant_id, token_hash);

ALTER TABLE ONLY cell.withdrawal
    ADD CONSTRAINT withdrawal_merchant_id_mc_order_id_key UNIQUE (merchant_id, mc_order_id);

ALTER TABLE ONLY cell.withdrawal
    ADD CONSTRAINT withdrawal_pkey PRIMARY KEY (merchant_id, order_id);

ALTER TABLE ONLY cell.withdrawal_step
    ADD CONSTRAINT withdrawal_step_merchant_id_order_id_step_no_to_status_key UNIQUE (merchant_id, order_id, step_no, to_status);

ALTER TABLE ONLY cell.withdrawal_step
    ADD CONSTRAINT withdrawal_step_pkey PRIMARY KEY (merchant_id, order_id, step_no);

CREATE INDEX book_closed ON cell.book USING btree (merchant_id) WHERE (NOT is_open);

CREATE INDEX callback_by_moment ON cell.callback USING btree (state, event_type, created_ms, order_id, status);

CREATE INDEX callback_due ON cell.callback USING btree (merchant_id, next_ms, created_ms) WHERE (state = 'due'::text);

CREATE INDEX callback_of_merchant_by_moment ON cell.callback USING btree (merchant_id, state, event_type, created_ms, order_id, status);

CREATE INDEX callback_stopped ON cell.callback USING btree (merchant_id, order_id) WHERE (state = ANY (ARRAY['dead_letter'::text, 'paused'::text]));

CREATE UNIQUE INDEX cell_state_one_row ON cell.cell_state USING btree ((true));

CREATE INDEX deposit_by_address ON cell.deposit USING btree (address, seen_ms, chain, tx_hash, log_index);

CREATE INDEX deposit_by_amount ON cell.deposit USING btree (amount, seen_ms);

CREATE INDEX deposit_by_block ON cell.deposit USING btree (chain, block_number) WHERE (final_ms IS NOT NULL);

CREATE INDEX deposit_by_merchant ON cell.deposit USING btree (merchant_id, seen_ms, chain, tx_hash, log_index);

CREATE INDEX deposit_by_moment ON cell.deposit USING btree (status, chain, seen_ms, tx_hash, log_index);

CREATE INDEX deposit_by_wallet ON cell.deposit USING btree (merchant_id, user_id, seen_ms, chain, tx_hash, log_index);

CREATE INDEX deposit_dust ON cell.deposit USING btree (merchant_id, chain, address) WHERE (status = 'dust'::text);

CREATE INDEX deposit_held ON cell.deposit USING btree (seen_ms) WHERE (status = 'held'::text);

CREATE UNIQUE INDEX deposit_log ON cell.deposit USING btree (chain, block_hash, block_log_index) WHERE ((block_log_index IS NOT NULL) AND (final_ms IS NOT NULL));

CREATE INDEX deposit_of_merchant_by_moment ON cell.deposit USING btree (merchant_id, status, chain, seen_ms, tx_hash, log_index);

CREATE INDEX deposit_pending ON cell.deposit USING btree (next_ms, merchant_id) WHERE (status = 'pending'::text);

CREATE INDEX deposit_seen ON cell.deposit USING btree (chain, block_number) WHERE (status = 'seen'::text);

CREATE UNIQUE INDEX deposit_transfer ON cell.deposit USING btree (chain, tx_hash, log_index);

CREATE UNIQUE INDEX entry_order ON cell.entry USING btree (merchant_id, mc_order_id, kind) WHERE (mc_order_id IS NOT NULL);

CREATE INDEX entry_rare ON cell.entry USING btree (merchant_id, kind, entry_id) WHERE ((kind)::text <> ALL (ARRAY['user_to_merchant'::text, 'merchant_to_user'::text, 'exchange'::text]));

CREATE UNIQUE INDEX entry_reference ON cell.entry USING btree (merchant_id, mc_order_id) WHERE ((mc_order_id IS NOT NULL) AND ((kind)::text = ANY (ARRAY['adjust'::text, 'fee_withdraw'::text])));

CREATE INDEX posting_source ON cell.posting USING btree (merchant_id, source_id, entry_id);

CREATE INDEX posting_target ON cell.posting USING btree (merchant_id, target_id, entry_id);

CREATE INDEX sub_user_by_ext ON cell.sub_user USING btree (merchant_id, ext_user_id COLLATE "C");

CREATE INDEX sub_user_by_name ON cell.sub_user USING btree (merchant_id, lower(username) COLLATE "C", user_id);

CREATE INDEX sub_user_by_name_part ON cell.sub_user USING gin (cell.name_grams(username));

CREATE INDEX sub_user_by_part ON cell.sub_user USING gin (cell.search_grams(ext_user_id));

CREATE INDEX wallet_session_end ON cell.wallet_session USING btree (expires_ms);

CREATE INDEX wallet_session_user ON cell.wallet_session USING btree (merchant_id, user_id, created_ms);

CREATE INDEX withdrawal_by_address ON cell.withdrawal USING btree (merchant_id, lower(address), created_ms, order_id);

CREATE INDEX withdrawal_by_amount ON cell.withdrawal USING btree (status, chain, amount, order_id);

CREATE INDEX withdrawal_by_moment ON cell.withdrawal USING btree (status, chain, created_ms, order_id);

CREATE INDEX withdrawal_frozen ON cell.withdrawal USING btree (merchant_id, order_id) WHERE ((frozen_ms IS NOT NULL) AND (status = ANY (ARRAY[0, 1, 3])));

CREATE INDEX withdrawal_of_merchant_by_amount ON cell.withdrawal USING btree (merchant_id, status, chain, amount, order_id);

CREATE INDEX withdrawal_of_merchant_by_moment ON cell.withdrawal USING btree (merchant_id, status, chain, created_ms, order_id);

CREATE INDEX withdrawal_open ON cell.withdrawal USING btree (status, created_ms) WHERE (status = ANY (ARRAY[0, 1, 3]));

CREATE INDEX withdrawal_unapproved ON cell.withdrawal USING btree (created_ms, order_id) WHERE ((status = 0) AND (approved_ms IS NULL));

CREATE INDEX withdrawal_unqueued ON cell.withdrawal USING btree (approved_ms, merchant_id, order_id) WHERE ((NOT is_queued) AND (approved_ms IS NOT NULL) AND (status = ANY (ARRAY[0, 1, 3])));

ALTER TABLE ONLY cell.account
    ADD CONSTRAINT account_merchant_id_fkey FOREIGN KEY (merchant_id) REFERENCES cell.book(merchant_id);

ALTER TABLE ONLY cell.book
    ADD CONSTRAINT book_merchant_id_fkey FOREIGN KEY (merchant_id) REFERENCES cell.merchant(merchant_id);

ALTER TABLE ONLY cell.callback_attempt
    ADD CONSTRAINT callback_attempt_merchant_id_order_id_status_fkey FOREIGN KEY (merchant_id, order_id, status) REFERENCES cell.callback(merchant_id, order_id, status);

ALTER TABLE ONLY cell.callback
    ADD CONSTRAINT callback_merchant_id_withdrawal_id_fkey FOREIGN KEY (merchant_id, withdrawal_id) REFERENCES cell.withdrawal(merchant_id, order_id);

ALTER TABLE ONLY cell.callback_pause
    ADD CONSTRAINT callback_pause_merchant_id_fkey FOREIGN KEY (merchant_id) REFERENCES cell.merchant(merchant_id);

ALTER TABLE ONLY cell.deposit_credit
    ADD CONSTRAINT deposit_credit_merchant_id_chain_tx_hash_log_index_fkey FOREIGN KEY (merchant_id, chain, tx_hash, log_index) REFERENCES cell.deposit(merchant_id, chain, tx_hash, log_index);

ALTER TABLE ONLY cell.deposit_credit
    ADD CONSTRAINT deposit_credit_one_block FOREIGN KEY (chain, tx_hash, block_hash) REFERENCES cell.credited_transaction(chain, tx_hash, block_hash);

ALTER TABLE ONLY cell.deposit
    ADD CONSTRAINT deposit_merchant_id_fkey FOREIGN KEY (merchant_id) REFERENCES cell.merchant(merchant_id);

ALTER TABLE ONLY cell.deposit
    ADD CONSTRAINT deposit_merchant_id_user_id_fkey FOREIGN KEY (merchant_id, user_id) REFERENCES cell.sub_user(merchant_id, user_id);

ALTER TABLE ONLY cell.figure_cursor
    ADD CONSTRAINT figure_cursor_merchant_id_fkey FOREIGN KEY (merchant_id) REFERENCES cell.book(merchant_id);

ALTER TABLE ONLY cell.merchant_address
    ADD CONSTRAINT merchant_address_merchant_id_fkey FOREIGN KEY (merchant_id) REFERENCES cell.merchant(merchant_id);

ALTER TABLE ONLY cell.sub_user
    ADD CONSTRAINT sub_user_merchant_id_user_id_fkey FOREIGN KEY (merchant_id, user_id) REFERENCES cell.account(merchant_id, account_id);

ALTER TABLE ONLY cell.wallet_address
    ADD CONSTRAINT wallet_address_merchant_id_user_id_fkey FOREIGN KEY (merchant_id, user_id) REFERENCES cell.sub_user(merchant_id, user_id);

ALTER TABLE ONLY cell.wallet_session
    ADD CONSTRAINT wallet_session_merchant_id_user_id_fkey FOREIGN KEY (merchant_id, user_id) REFERENCES cell.sub_user(merchant_id, user_id);

ALTER TABLE ONLY cell.withdrawal
    ADD CONSTRAINT withdrawal_merchant_id_order_id_step_no_status_fkey FOREIGN KEY (merchant_id, order_id, step_no, status) REFERENCES cell.withdrawal_step(merchant_id, order_id, step_no, to_status);

ALTER TABLE ONLY cell.withdrawal_step
    ADD CONSTRAINT withdrawal_step_merchant_id_order_id_previous_no_from_stat_fkey FOREIGN KEY (merchant_id, order_id, previous_no, from_status) REFERENCES cell.withdrawal_step(merchant_id, order_id, step_no, to_status);
