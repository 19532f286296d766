CREATE FUNCTION public.chain_codes() RETURNS text[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ARRAY['ERC20'::text, 'TRC20'::text, 'BEP20'::text];

CREATE DOMAIN public.account_kind AS text
	CONSTRAINT account_kind_check CHECK (((VALUE = ANY (ARRAY['merchant'::text, 'subuser'::text, 'hold'::text, 'fees'::text, 'exchange'::text, 'adjustment'::text])) OR ((VALUE ~~ 'chain:%'::text) AND (substr(VALUE, 7) = ANY (public.chain_codes())))));

CREATE DOMAIN public.chain_code AS text
	CONSTRAINT chain_code_check CHECK ((VALUE = ANY (public.chain_codes())));

CREATE FUNCTION public.currency_codes() RETURNS text[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ARRAY['USDT'::text, 'KFB'::text];

CREATE DOMAIN public.currency AS text
	CONSTRAINT currency_check CHECK ((VALUE = ANY (public.currency_codes())));

CREATE DOMAIN public.entry_kind AS text
	CONSTRAINT entry_kind_check CHECK ((VALUE = ANY (ARRAY['user_to_merchant'::text, 'merchant_to_user'::text, 'exchange'::text, 'register'::text, 'withdraw'::text, 'settle'::text, 'refund'::text, 'cancel'::text, 'expire'::text, 'adjust'::text, 'fee_withdraw'::text, 'deposit'::text])));

CREATE DOMAIN public.id_count AS bigint
	CONSTRAINT id_count_check CHECK (((VALUE >= 0) AND (VALUE <= '8589934591'::bigint)));

CREATE DOMAIN public.order_name AS text
	CONSTRAINT order_name_check CHECK (((length(VALUE) >= 1) AND (length(VALUE) <= 64)));

CREATE DOMAIN public.positive_units AS bigint
	CONSTRAINT positive_units_check CHECK ((VALUE > 0));

CREATE DOMAIN public.range_number AS integer
	CONSTRAINT range_number_check CHECK (((VALUE >= 1) AND (VALUE <= 1048575)));

CREATE FUNCTION public.add_nonce_days(first_day integer, last_day integer) RETURNS integer[]
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

CREATE FUNCTION public.drop_nonce_day(old_day integer) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if old_day >= floor(extract(epoch from clock_timestamp()) / 86400) - 1 then
        raise exception 'nonces of day % are still needed', old_day using errcode = 'invalid_parameter_value';
    end if;
    execute format('drop table if exists public.%I', format('nonce_%s', old_day));
end
$$;

CREATE FUNCTION public.follow_cell(followed_id integer, seen_version bigint, new_address text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    update "public".cell set address = new_address, version = version + 1
     where cell_id = followed_id and version = seen_version and admin_address is not null
       and address is distinct from new_address;
    return found;
end
$$;

CREATE FUNCTION public.name_grams(word text) RETURNS text[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ARRAY(SELECT DISTINCT substr(lower((name_grams.word COLLATE "C")), n.n, size.size) AS substr FROM (generate_series(1, 3) size(size) CROSS JOIN LATERAL generate_series(1, ((length(name_grams.word) - size.size) + 1)) n(n)) WHERE ((size.size = 3) OR (octet_length(substr(name_grams.word, n.n, size.size)) > size.size)));

CREATE FUNCTION public.person_of(actor text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN lower((substr(actor, (strpos(actor, ':'::text) + 1)) COLLATE "C"));

CREATE FUNCTION public.search_grams(word text) RETURNS text[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ARRAY(SELECT DISTINCT substr(lower((search_grams.word COLLATE "C")), n.n, 3) AS substr FROM generate_series(1, (length(search_grams.word) - 2)) n(n));

CREATE TABLE public.account (
    merchant_id bigint NOT NULL,
    account_id bigint NOT NULL,
    kind public.account_kind NOT NULL,
    currency public.currency NOT NULL,
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
ALTER TABLE ONLY public.account ALTER COLUMN merchant_id SET (n_distinct=1);

CREATE TABLE public.approved_sum (
    person text NOT NULL,
    day bigint NOT NULL,
    units bigint NOT NULL,
    CONSTRAINT approved_sum_person CHECK (((person <> ''::text) AND (person = lower((person COLLATE "C"))))),
    CONSTRAINT approved_sum_units CHECK ((units > 0))
);

CREATE TABLE public.archived_month (
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
ALTER TABLE ONLY public.archived_month ALTER COLUMN merchant_id SET (n_distinct=1);

CREATE TABLE public.archived_order (
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
    kind public.entry_kind NOT NULL,
    mc_order_id public.order_name NOT NULL,
    currency text NOT NULL,
    second_currency text,
    facts text NOT NULL
);
ALTER TABLE ONLY public.archived_order ALTER COLUMN merchant_id SET (n_distinct=1);

CREATE TABLE public.asked_act (
    act_no bigint NOT NULL,
    kind text NOT NULL,
    subject text NOT NULL,
    merchant_id bigint,
    arguments jsonb NOT NULL,
    reason text NOT NULL,
    asked_by text NOT NULL,
    asked_ms bigint NOT NULL,
    expires_ms bigint NOT NULL,
    state text DEFAULT 'waiting'::text NOT NULL,
    fence integer DEFAULT 0 NOT NULL,
    worker text,
    begun_ms bigint,
    claimed_until_ms bigint,
    progress text DEFAULT ''::text NOT NULL,
    result jsonb,
    cause text,
    ended_ms bigint,
    CONSTRAINT asked_act_claimed CHECK (((state <> 'running'::text) OR ((worker IS NOT NULL) AND (claimed_until_ms IS NOT NULL)))),
    CONSTRAINT asked_act_ended CHECK (((ended_ms IS NULL) = (state = ANY (ARRAY['waiting'::text, 'running'::text])))),
    CONSTRAINT asked_act_state CHECK ((state = ANY (ARRAY['waiting'::text, 'running'::text, 'done'::text, 'failed'::text, 'cancelled'::text, 'lapsed'::text])))
);

ALTER TABLE public.asked_act ALTER COLUMN act_no ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.asked_act_act_no_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.audit_entry (
    audit_no bigint NOT NULL,
    previous_no bigint GENERATED ALWAYS AS (NULLIF((audit_no - 1), 0)) STORED,
    at_ms bigint NOT NULL,
    actor text NOT NULL,
    action text NOT NULL,
    subject text NOT NULL,
    merchant_id bigint,
    source text NOT NULL,
    before jsonb,
    after jsonb,
    hash bytea NOT NULL,
    CONSTRAINT audit_entry_action_check CHECK ((action ~ '^[a-z_]+(\.[a-z_]+)+$'::text)),
    CONSTRAINT audit_entry_actor_check CHECK (((length(actor) >= 1) AND (length(actor) <= 200))),
    CONSTRAINT audit_entry_after_check CHECK ((jsonb_typeof(after) = 'object'::text)),
    CONSTRAINT audit_entry_audit_no_check CHECK ((audit_no > 0)),
    CONSTRAINT audit_entry_before_check CHECK ((jsonb_typeof(before) = 'object'::text)),
    CONSTRAINT audit_entry_hash_check CHECK ((length(hash) = 32)),
    CONSTRAINT audit_entry_source_check CHECK (((length(source) >= 1) AND (length(source) <= 64))),
    CONSTRAINT audit_entry_subject_check CHECK (((length(subject) >= 1) AND (length(subject) <= 400)))
);

CREATE TABLE public.audit_head (
    is_head boolean DEFAULT true NOT NULL,
    entry_count bigint NOT NULL,
    head_hash bytea NOT NULL,
    last_ms bigint NOT NULL,
    CONSTRAINT audit_head_entry_count_check CHECK ((entry_count >= 0)),
    CONSTRAINT audit_head_head_hash_check CHECK ((length(head_hash) = 32)),
    CONSTRAINT audit_head_is_head_check CHECK (is_head)
);

CREATE TABLE public.book (
    merchant_id bigint NOT NULL,
    id_range public.range_number NOT NULL,
    id_counter public.id_count DEFAULT 0 NOT NULL,
    next_range public.range_number,
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

CREATE TABLE public.brand_logo (
    digest text NOT NULL,
    merchant_id bigint NOT NULL,
    content bytea NOT NULL,
    uploaded_ms bigint NOT NULL,
    uploaded_by text NOT NULL,
    CONSTRAINT brand_logo_digest CHECK ((digest ~ '^[0-9a-f]{64}$'::text)),
    CONSTRAINT brand_logo_size CHECK (((length(content) >= 1) AND (length(content) <= 262144)))
);

CREATE TABLE public.callback (
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
ALTER TABLE ONLY public.callback ALTER COLUMN merchant_id SET (n_distinct=1);
ALTER TABLE ONLY public.callback ALTER COLUMN event_type SET (n_distinct=2);
ALTER TABLE ONLY public.callback ALTER COLUMN state SET (n_distinct=4);

CREATE TABLE public.callback_attempt (
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
ALTER TABLE ONLY public.callback_attempt ALTER COLUMN merchant_id SET (n_distinct=1);

CREATE TABLE public.callback_pause (
    merchant_id bigint NOT NULL,
    since_ms bigint NOT NULL,
    paused_by text NOT NULL,
    CONSTRAINT callback_pause_paused_by_check CHECK ((paused_by <> ''::text))
);

CREATE TABLE public.cancel_signed (
    chain public.chain_code NOT NULL,
    wallet bytea NOT NULL,
    nonce bigint NOT NULL,
    attempt_no integer NOT NULL,
    raw bytea NOT NULL,
    tx_hash text NOT NULL,
    built_at_block bigint NOT NULL,
    signed_ms bigint NOT NULL,
    CONSTRAINT cancel_signed_attempt_no_check CHECK ((attempt_no > 0)),
    CONSTRAINT cancel_signed_built_at_block_check CHECK ((built_at_block >= 0)),
    CONSTRAINT cancel_signed_raw_check CHECK ((length(raw) > 0)),
    CONSTRAINT cancel_signed_tx_hash_check CHECK ((tx_hash <> ''::text))
);

CREATE TABLE public.cell (
    cell_id integer NOT NULL,
    name text NOT NULL,
    schema_name text NOT NULL,
    address text,
    admin_address text,
    state text DEFAULT 'open'::text NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    added_ms bigint NOT NULL,
    drained_ms bigint,
    compared_ms bigint DEFAULT 0 NOT NULL,
    marked_no bigint DEFAULT 0 NOT NULL,
    unfollowed_cause text,
    unfollowed_ms bigint,
    is_distributed boolean GENERATED ALWAYS AS ((admin_address IS NOT NULL)) STORED NOT NULL,
    CONSTRAINT cell_address_check CHECK ((address <> ''::text)),
    CONSTRAINT cell_admin_address_check CHECK ((admin_address <> ''::text)),
    CONSTRAINT cell_cell_id_check CHECK ((cell_id >= 0)),
    CONSTRAINT cell_default CHECK ((((cell_id = 0) = (schema_name = 'public'::text)) AND ((cell_id > 0) OR ((address IS NULL) AND (state = ANY (ARRAY['open'::text, 'draining'::text])))))),
    CONSTRAINT cell_name_check CHECK (((name ~ '^[a-z][a-z0-9_-]{0,30}$'::text) AND (name <> 'home'::text))),
    CONSTRAINT cell_schema_name_check CHECK ((schema_name ~ '^[a-z][a-z0-9_]{0,62}$'::text)),
    CONSTRAINT cell_state_check CHECK ((state = ANY (ARRAY['open'::text, 'draining'::text, 'closed'::text, 'retired'::text]))),
    CONSTRAINT cell_unfollowed CHECK ((((unfollowed_cause IS NULL) = (unfollowed_ms IS NULL)) AND (unfollowed_cause <> ''::text))),
    CONSTRAINT cell_version_check CHECK ((version > 0))
);

CREATE TABLE public.cell_move (
    cell_id integer NOT NULL,
    move_id uuid NOT NULL,
    state text NOT NULL,
    address text NOT NULL,
    old_address text,
    began_ms bigint NOT NULL,
    changed_ms bigint NOT NULL,
    is_distributed boolean DEFAULT false NOT NULL,
    CONSTRAINT cell_move_address_check CHECK ((address <> ''::text)),
    CONSTRAINT cell_move_cell_id_check CHECK ((cell_id > 0)),
    CONSTRAINT cell_move_old_address_check CHECK ((old_address <> ''::text)),
    CONSTRAINT cell_move_plain CHECK ((NOT is_distributed)),
    CONSTRAINT cell_move_state_check CHECK ((state = ANY (ARRAY['copying'::text, 'switching'::text, 'reopening'::text, 'switched'::text])))
);

CREATE TABLE public.cell_state (
    cell_id integer NOT NULL,
    version bigint NOT NULL,
    is_open boolean NOT NULL,
    home_no bigint DEFAULT 0 NOT NULL,
    CONSTRAINT cell_state_cell_id_check CHECK ((cell_id >= 0)),
    CONSTRAINT cell_state_version_check CHECK ((version > 0))
);

CREATE TABLE public.chain_block (
    chain public.chain_code NOT NULL,
    block_number bigint NOT NULL,
    block_hash text NOT NULL,
    CONSTRAINT chain_block_block_hash_check CHECK ((block_hash <> ''::text))
);

CREATE TABLE public.chain_cursor (
    chain public.chain_code NOT NULL,
    final_number bigint NOT NULL,
    final_hash text NOT NULL,
    head_number bigint NOT NULL,
    head_hash text NOT NULL,
    alert text,
    moved_ms bigint NOT NULL,
    CONSTRAINT chain_cursor_ahead CHECK ((head_number >= final_number)),
    CONSTRAINT chain_cursor_alert_check CHECK ((alert <> ''::text)),
    CONSTRAINT chain_cursor_final_hash_check CHECK ((final_hash <> ''::text)),
    CONSTRAINT chain_cursor_final_number_check CHECK ((final_number >= 0)),
    CONSTRAINT chain_cursor_head_hash_check CHECK ((head_hash <> ''::text))
);

CREATE TABLE public.chain_position (
    chain public.chain_code NOT NULL,
    final_number bigint NOT NULL,
    rewind_no integer NOT NULL,
    CONSTRAINT chain_position_final_number_check CHECK ((final_number >= 0)),
    CONSTRAINT chain_position_rewind_no_check CHECK ((rewind_no >= 0))
);

CREATE TABLE public.chain_rewind (
    chain public.chain_code NOT NULL,
    rewind_no integer NOT NULL,
    final_number bigint NOT NULL,
    rewound_ms bigint NOT NULL,
    CONSTRAINT chain_rewind_final_number_check CHECK ((final_number >= 0)),
    CONSTRAINT chain_rewind_rewind_no_check CHECK ((rewind_no > 0))
);

CREATE TABLE public.chain_transfer (
    chain public.chain_code NOT NULL,
    tx_hash text NOT NULL,
    log_index integer NOT NULL,
    block_log_index integer,
    block_number bigint NOT NULL,
    block_hash text NOT NULL,
    sender bytea NOT NULL,
    address bytea NOT NULL,
    merchant_id bigint NOT NULL,
    amount bigint NOT NULL,
    is_gone boolean DEFAULT false NOT NULL,
    taken_ms bigint,
    CONSTRAINT chain_transfer_address_check CHECK ((length(address) = 20)),
    CONSTRAINT chain_transfer_amount_check CHECK ((amount > 0)),
    CONSTRAINT chain_transfer_block_hash_check CHECK ((block_hash <> ''::text)),
    CONSTRAINT chain_transfer_block_log_index_check CHECK ((block_log_index >= 0)),
    CONSTRAINT chain_transfer_block_number_check CHECK ((block_number >= 0)),
    CONSTRAINT chain_transfer_log_index_check CHECK ((log_index >= 0)),
    CONSTRAINT chain_transfer_sender_check CHECK ((length(sender) = 20)),
    CONSTRAINT chain_transfer_tx_hash_check CHECK (((length(tx_hash) >= 1) AND (length(tx_hash) <= 80)))
);

CREATE TABLE public.checkpoint_key (
    key_no bigint NOT NULL,
    public_key bytea NOT NULL,
    since_ms bigint NOT NULL,
    CONSTRAINT checkpoint_key_public_key_check CHECK ((length(public_key) = 32))
);

ALTER TABLE public.checkpoint_key ALTER COLUMN key_no ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.checkpoint_key_key_no_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.cold_limit (
    chain public.chain_code NOT NULL,
    "least" bigint NOT NULL,
    target bigint NOT NULL,
    most bigint NOT NULL,
    changed_ms bigint NOT NULL,
    outside_ms bigint,
    CONSTRAINT cold_limit_order CHECK (((0 <= "least") AND ("least" <= target) AND (target <= most)))
);

CREATE TABLE public.cold_signed (
    chain public.chain_code NOT NULL,
    transfer_id bigint NOT NULL,
    attempt_no integer NOT NULL,
    raw bytea NOT NULL,
    tx_hash text NOT NULL,
    built_at_block bigint NOT NULL,
    signed_ms bigint NOT NULL,
    CONSTRAINT cold_signed_attempt CHECK ((attempt_no > 0)),
    CONSTRAINT cold_signed_raw CHECK ((length(raw) > 0))
);

CREATE TABLE public.cold_transfer (
    chain public.chain_code NOT NULL,
    transfer_id bigint NOT NULL,
    direction text NOT NULL,
    way text NOT NULL,
    hot bytea NOT NULL,
    cold bytea NOT NULL,
    amount public.positive_units NOT NULL,
    proposal_no bigint,
    approved_by text NOT NULL,
    opened_ms bigint NOT NULL,
    step text DEFAULT 'open'::text NOT NULL,
    version integer DEFAULT 0 NOT NULL,
    claimed_until_ms bigint DEFAULT 0 NOT NULL,
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
    CONSTRAINT cold_transfer_approved CHECK ((approved_by <> ''::text)),
    CONSTRAINT cold_transfer_cause CHECK ((cause <> ''::text)),
    CONSTRAINT cold_transfer_cold CHECK ((length(cold) = 20)),
    CONSTRAINT cold_transfer_direction CHECK ((direction = ANY (ARRAY['to_cold'::text, 'to_hot'::text]))),
    CONSTRAINT cold_transfer_done CHECK (((step <> 'done'::text) OR (tx_hash IS NOT NULL))),
    CONSTRAINT cold_transfer_ended CHECK (((ended_ms IS NULL) = (step = ANY (ARRAY['open'::text, 'unsigned'::text, 'signed'::text])))),
    CONSTRAINT cold_transfer_hot CHECK ((length(hot) = 20)),
    CONSTRAINT cold_transfer_nonce CHECK ((nonce >= 0)),
    CONSTRAINT cold_transfer_obstacle CHECK ((obstacle <> ''::text)),
    CONSTRAINT cold_transfer_recorded CHECK (((way <> 'recorded'::text) OR (tx_hash IS NOT NULL))),
    CONSTRAINT cold_transfer_refill CHECK (((direction = 'to_cold'::text) OR (way <> 'signer'::text))),
    CONSTRAINT cold_transfer_reserved CHECK (((reserved_ms IS NOT NULL) OR ((nonce IS NULL) AND (ended_no IS NULL)))),
    CONSTRAINT cold_transfer_step CHECK ((step = ANY (ARRAY['open'::text, 'unsigned'::text, 'signed'::text, 'done'::text, 'failed'::text, 'dropped'::text]))),
    CONSTRAINT cold_transfer_tx_hash CHECK ((tx_hash <> ''::text)),
    CONSTRAINT cold_transfer_unsigned CHECK (((step <> 'unsigned'::text) OR (unsigned IS NOT NULL))),
    CONSTRAINT cold_transfer_way CHECK ((way = ANY (ARRAY['signer'::text, 'elsewhere'::text, 'recorded'::text])))
);

ALTER TABLE public.cold_transfer ALTER COLUMN transfer_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.cold_transfer_transfer_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.cold_wallet (
    chain public.chain_code NOT NULL,
    address bytea NOT NULL,
    registered_ms bigint NOT NULL,
    retired_ms bigint,
    opening bigint,
    opening_block bigint,
    balance bigint,
    balance_block bigint,
    balance_ms bigint,
    CONSTRAINT cold_wallet_address CHECK ((length(address) = 20)),
    CONSTRAINT cold_wallet_balance CHECK ((balance >= 0)),
    CONSTRAINT cold_wallet_opening CHECK ((opening >= 0)),
    CONSTRAINT cold_wallet_retired CHECK ((retired_ms >= registered_ms))
);

CREATE TABLE public.credited_transaction (
    chain public.chain_code NOT NULL,
    tx_hash text NOT NULL,
    block_hash text NOT NULL,
    CONSTRAINT credited_transaction_block_hash_check CHECK ((block_hash <> ''::text)),
    CONSTRAINT credited_transaction_tx_hash_check CHECK (((length(tx_hash) >= 1) AND (length(tx_hash) <= 80)))
);

CREATE TABLE public.custody_address (
    chain public.chain_code NOT NULL,
    address bytea NOT NULL,
    purpose text NOT NULL,
    since_ms bigint NOT NULL,
    CONSTRAINT custody_address_address_check CHECK ((length(address) = 20)),
    CONSTRAINT custody_address_purpose_check CHECK ((purpose = ANY (ARRAY['hot'::text, 'deposit'::text, 'cold'::text])))
);

CREATE TABLE public.custody_cursor (
    chain public.chain_code NOT NULL,
    block_number bigint NOT NULL,
    moved_ms bigint NOT NULL,
    CONSTRAINT custody_cursor_block_number_check CHECK ((block_number >= 0))
);

CREATE TABLE public.custody_movement (
    chain public.chain_code NOT NULL,
    tx_hash text NOT NULL,
    log_index integer NOT NULL,
    is_out boolean NOT NULL,
    block_number bigint NOT NULL,
    sender bytea NOT NULL,
    recipient bytea NOT NULL,
    amount public.positive_units NOT NULL,
    found_ms bigint NOT NULL,
    explained_ms bigint,
    CONSTRAINT custody_movement_block_number_check CHECK ((block_number >= 0)),
    CONSTRAINT custody_movement_log_index_check CHECK ((log_index >= 0)),
    CONSTRAINT custody_movement_recipient_check CHECK ((length(recipient) = 20)),
    CONSTRAINT custody_movement_sender_check CHECK ((length(sender) = 20)),
    CONSTRAINT custody_movement_tx_hash_check CHECK (((length(tx_hash) >= 1) AND (length(tx_hash) <= 80)))
);

CREATE TABLE public.custody_remainder (
    chain public.chain_code NOT NULL,
    tx_hash text NOT NULL,
    log_index integer NOT NULL,
    address bytea NOT NULL,
    remainder bigint NOT NULL,
    CONSTRAINT custody_remainder_address_check CHECK ((length(address) = 20)),
    CONSTRAINT custody_remainder_log_index_check CHECK ((log_index >= 0)),
    CONSTRAINT custody_remainder_remainder_check CHECK ((remainder <> 0)),
    CONSTRAINT custody_remainder_tx_hash_check CHECK (((length(tx_hash) >= 1) AND (length(tx_hash) <= 80)))
);

CREATE TABLE public.custody_survey (
    chain public.chain_code NOT NULL,
    after_address bytea NOT NULL,
    completed_ms bigint,
    CONSTRAINT custody_survey_after_address_check CHECK ((length(after_address) = ANY (ARRAY[0, 20])))
);

CREATE TABLE public.daily_figure (
    merchant_id bigint NOT NULL,
    day integer NOT NULL,
    kind public.entry_kind NOT NULL,
    currency public.currency NOT NULL,
    entries bigint NOT NULL,
    amount numeric(40,0) NOT NULL,
    fee numeric(40,0) NOT NULL,
    CONSTRAINT daily_figure_amount_check CHECK ((amount >= (0)::numeric)),
    CONSTRAINT daily_figure_day_check CHECK ((day >= 0)),
    CONSTRAINT daily_figure_entries_check CHECK ((entries > 0)),
    CONSTRAINT daily_figure_fee_check CHECK ((fee >= (0)::numeric)),
    CONSTRAINT daily_figure_merchant_id_check CHECK ((merchant_id >= 0))
);

CREATE TABLE public.daily_movement (
    merchant_id bigint NOT NULL,
    day integer NOT NULL,
    account_id integer NOT NULL,
    currency public.currency NOT NULL,
    kind public.entry_kind NOT NULL,
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
ALTER TABLE ONLY public.daily_movement ALTER COLUMN merchant_id SET (n_distinct=1);

CREATE TABLE public.deposit (
    merchant_id bigint NOT NULL,
    chain public.chain_code NOT NULL,
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
ALTER TABLE ONLY public.deposit ALTER COLUMN merchant_id SET (n_distinct=1);
ALTER TABLE ONLY public.deposit ALTER COLUMN chain SET (n_distinct=3);
ALTER TABLE ONLY public.deposit ALTER COLUMN status SET (n_distinct=7);

CREATE TABLE public.deposit_credit (
    merchant_id bigint NOT NULL,
    chain public.chain_code NOT NULL,
    tx_hash text NOT NULL,
    log_index integer NOT NULL,
    entry_id bigint NOT NULL,
    currency public.currency NOT NULL,
    amount public.positive_units NOT NULL,
    rate_e8 bigint NOT NULL,
    block_hash text,
    released_by text,
    CONSTRAINT deposit_credit_block_hash_check CHECK ((block_hash <> ''::text)),
    CONSTRAINT deposit_credit_from CHECK (((block_hash IS NULL) = (released_by IS NOT NULL))),
    CONSTRAINT deposit_credit_rate_e8_check CHECK ((rate_e8 >= 0)),
    CONSTRAINT deposit_credit_released_by_check CHECK ((released_by <> ''::text))
);
ALTER TABLE ONLY public.deposit_credit ALTER COLUMN merchant_id SET (n_distinct=1);

CREATE TABLE public.entry (
    merchant_id bigint NOT NULL,
    entry_id bigint NOT NULL,
    kind public.entry_kind NOT NULL,
    mc_order_id public.order_name,
    at_ms bigint NOT NULL,
    rate_e8 bigint DEFAULT 0 NOT NULL,
    facts text DEFAULT ''::text NOT NULL,
    hash bytea NOT NULL
);
ALTER TABLE ONLY public.entry ALTER COLUMN merchant_id SET (n_distinct=1);

CREATE TABLE public.escalation_step (
    operator_id bigint NOT NULL,
    step_no integer NOT NULL,
    CONSTRAINT escalation_step_step_no_check CHECK ((step_no > 0))
);

CREATE TABLE public.escalation_time (
    kind text NOT NULL,
    after_s integer NOT NULL,
    CONSTRAINT escalation_time_after CHECK (((after_s >= 60) AND (after_s <= 604800))),
    CONSTRAINT escalation_time_kind CHECK ((kind ~ '^[a-z-]{1,40}$'::text))
);

CREATE TABLE public.failed_sign_in (
    merchant_id bigint NOT NULL,
    minute_ms bigint NOT NULL,
    subject text NOT NULL,
    factor text NOT NULL,
    source text NOT NULL,
    failures integer NOT NULL,
    last_ms bigint NOT NULL,
    audit_no bigint,
    CONSTRAINT failed_sign_in_factor_check CHECK ((factor = ANY (ARRAY['password'::text, 'code'::text, 'recovery code'::text, 'pin'::text]))),
    CONSTRAINT failed_sign_in_failures_check CHECK ((failures > 0)),
    CONSTRAINT failed_sign_in_source_check CHECK (((length(source) >= 1) AND (length(source) <= 64))),
    CONSTRAINT failed_sign_in_subject_check CHECK (((length(subject) >= 1) AND (length(subject) <= 400)))
);

CREATE TABLE public.failed_sign_in_seen (
    merchant_id bigint NOT NULL,
    subject text NOT NULL,
    day bigint NOT NULL,
    failures bigint NOT NULL,
    seen_by text NOT NULL,
    seen_ms bigint NOT NULL,
    CONSTRAINT failed_sign_in_seen_failures CHECK ((failures > 0)),
    CONSTRAINT failed_sign_in_seen_subject CHECK (((length(subject) >= 1) AND (length(subject) <= 400)))
);

CREATE TABLE public.figure_cursor (
    merchant_id bigint NOT NULL,
    entry_id bigint DEFAULT 0 NOT NULL,
    entries bigint DEFAULT 0 NOT NULL,
    sub_users bigint DEFAULT 0 NOT NULL,
    moved_ms bigint DEFAULT 0 NOT NULL,
    CONSTRAINT figure_cursor_check CHECK (((sub_users >= 0) AND (sub_users <= entries))),
    CONSTRAINT figure_cursor_entries_check CHECK ((entries >= 0)),
    CONSTRAINT figure_cursor_entry_id_check CHECK ((entry_id >= 0))
);

CREATE TABLE public.hot_wallet (
    chain public.chain_code NOT NULL,
    address bytea NOT NULL,
    next_nonce bigint,
    ended_payouts bigint DEFAULT 0 NOT NULL,
    funds bigint,
    funds_ended_payouts bigint,
    checked_ms bigint,
    frozen_cause text,
    frozen_ms bigint,
    CONSTRAINT hot_wallet_address_check CHECK ((length(address) = 20)),
    CONSTRAINT hot_wallet_ended_payouts_check CHECK ((ended_payouts >= 0)),
    CONSTRAINT hot_wallet_frozen CHECK (((frozen_cause IS NULL) = (frozen_ms IS NULL))),
    CONSTRAINT hot_wallet_frozen_cause_check CHECK ((frozen_cause <> ''::text)),
    CONSTRAINT hot_wallet_funds CHECK ((((funds IS NULL) = (checked_ms IS NULL)) AND ((funds IS NULL) = (funds_ended_payouts IS NULL)) AND ((funds_ended_payouts IS NULL) OR (funds_ended_payouts <= ended_payouts)))),
    CONSTRAINT hot_wallet_funds_check CHECK ((funds >= 0)),
    CONSTRAINT hot_wallet_next_nonce_check CHECK ((next_nonce >= 0))
);

CREATE TABLE public.id_range (
    range_no public.range_number NOT NULL,
    merchant_id bigint NOT NULL
);

CREATE TABLE public.instance (
    instance_id uuid NOT NULL,
    side text NOT NULL,
    version text NOT NULL,
    schema_version integer NOT NULL,
    host text NOT NULL,
    pid integer NOT NULL,
    started_ms bigint NOT NULL,
    seen_ms bigint NOT NULL,
    clock_ahead_ms bigint,
    CONSTRAINT instance_side CHECK ((side = ANY (ARRAY['web'::text, 'worker'::text])))
);

CREATE TABLE public.invoice (
    year integer NOT NULL,
    number integer NOT NULL,
    previous_number integer,
    merchant_id bigint NOT NULL,
    month text NOT NULL,
    merchant_name text NOT NULL,
    issuer text NOT NULL,
    lines text NOT NULL,
    issued_ms bigint NOT NULL,
    version integer DEFAULT 1 NOT NULL,
    issuer_tax_id text,
    merchant_address text,
    merchant_tax_id text,
    due_days integer,
    CONSTRAINT invoice_due_days CHECK (((due_days >= 0) AND (due_days <= 365))),
    CONSTRAINT invoice_follows CHECK ((((number = 1) AND (previous_number IS NULL)) OR ((previous_number IS NOT NULL) AND (previous_number = (number - 1))))),
    CONSTRAINT invoice_issuer_tax_id CHECK ((issuer_tax_id <> ''::text)),
    CONSTRAINT invoice_merchant_address CHECK ((merchant_address <> ''::text)),
    CONSTRAINT invoice_merchant_tax_id CHECK ((merchant_tax_id <> ''::text)),
    CONSTRAINT invoice_number_check CHECK ((number > 0)),
    CONSTRAINT invoice_year_check CHECK (((year >= 1970) AND (year <= 9999)))
);

CREATE TABLE public.issued_address (
    address bytea NOT NULL,
    merchant_id bigint NOT NULL,
    CONSTRAINT issued_address_address_check CHECK ((length(address) = 20))
);

CREATE TABLE public.job (
    job_id integer NOT NULL,
    kind text NOT NULL,
    scope int8multirange NOT NULL,
    subject text NOT NULL,
    actor text NOT NULL,
    began_ms bigint NOT NULL,
    CONSTRAINT job_scope_check CHECK ((NOT isempty(scope)))
);

ALTER TABLE public.job ALTER COLUMN job_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.job_job_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.kept_copy (
    merchant_id bigint NOT NULL,
    cell_id integer NOT NULL,
    chosen_ms bigint NOT NULL
);

CREATE TABLE public.lost_range (
    range_no public.range_number NOT NULL,
    lost_ms bigint NOT NULL
);

CREATE TABLE public.lost_xpub (
    account_no integer NOT NULL,
    xpubs jsonb NOT NULL,
    lost_ms bigint NOT NULL,
    CONSTRAINT lost_xpub_account_no CHECK ((account_no >= 0)),
    CONSTRAINT lost_xpub_xpubs CHECK (((xpubs ? 'ERC20'::text) AND (xpubs ? 'TRC20'::text)))
);

CREATE TABLE public.merchant (
    merchant_id bigint NOT NULL,
    name text NOT NULL,
    app_key text NOT NULL,
    status text DEFAULT 'active'::text NOT NULL,
    currency_mode public.currency NOT NULL,
    sign_method text DEFAULT 'HMAC'::text NOT NULL,
    networks text[] DEFAULT '{}'::text[] NOT NULL,
    disabled_operations text[] DEFAULT '{}'::text[] NOT NULL,
    transfer_fee_rate_e8 bigint DEFAULT 0 NOT NULL,
    withdraw_fee_rate_e8 bigint DEFAULT 0 NOT NULL,
    withdraw_fee_min_units bigint DEFAULT 0 NOT NULL,
    approval_limit_units bigint DEFAULT 1000000000 NOT NULL,
    daily_limit_units bigint,
    allowed_addresses text[] DEFAULT '{}'::text[] NOT NULL,
    auto_register boolean DEFAULT true NOT NULL,
    require_pin boolean DEFAULT false NOT NULL,
    rate_limit integer,
    account_xpubs jsonb DEFAULT '{}'::jsonb NOT NULL,
    next_address_index integer DEFAULT 0 NOT NULL,
    created_ms bigint NOT NULL,
    deposit_notify_url text,
    frame_origins text[] DEFAULT '{}'::text[] NOT NULL,
    second_approval_limit_units bigint DEFAULT '100000000000'::bigint NOT NULL,
    settings_version bigint DEFAULT 1 NOT NULL,
    cell_id integer DEFAULT 0 NOT NULL,
    carried_version bigint DEFAULT 1 NOT NULL,
    move_version bigint DEFAULT 0 NOT NULL,
    payout_limit_units bigint,
    payout_limit_count integer,
    payout_window_h integer DEFAULT 24 NOT NULL,
    first_payout_limit_units bigint,
    payout_hours text,
    brand_colour text,
    brand_logo text,
    customer_url text,
    billing_address text,
    tax_id text,
    CONSTRAINT merchant_app_key_check CHECK (((length(app_key) >= 1) AND (length(app_key) <= 20))),
    CONSTRAINT merchant_approval_limit_units_check CHECK ((approval_limit_units >= 0)),
    CONSTRAINT merchant_billing_address CHECK (((length(billing_address) >= 1) AND (length(billing_address) <= 300))),
    CONSTRAINT merchant_brand_colour CHECK ((brand_colour ~ '^#[0-9a-f]{6}$'::text)),
    CONSTRAINT merchant_brand_logo CHECK ((brand_logo ~ '^[0-9a-f]{64}$'::text)),
    CONSTRAINT merchant_carried CHECK (((carried_version >= 0) AND (carried_version <= settings_version) AND ((cell_id > 0) OR (carried_version = settings_version)))),
    CONSTRAINT merchant_customer_url CHECK (((customer_url ~ '^https?://'::text) AND (length(customer_url) <= 100))),
    CONSTRAINT merchant_daily_limit_units_check CHECK ((daily_limit_units >= 0)),
    CONSTRAINT merchant_deposit_notify_url_check CHECK (((length(deposit_notify_url) >= 1) AND (length(deposit_notify_url) <= 100))),
    CONSTRAINT merchant_first_payout_limit CHECK ((first_payout_limit_units >= 0)),
    CONSTRAINT merchant_frame_origins_check CHECK ((array_to_string(frame_origins, ' '::text, '*'::text) ~ '^[]a-z0-9:/.[ -]*$'::text)),
    CONSTRAINT merchant_move_version_check CHECK ((move_version >= 0)),
    CONSTRAINT merchant_name_check CHECK ((name <> ''::text)),
    CONSTRAINT merchant_next_address_index_check CHECK ((next_address_index >= 0)),
    CONSTRAINT merchant_payout_count CHECK ((payout_limit_count >= 0)),
    CONSTRAINT merchant_payout_hours CHECK (((length(payout_hours) >= 1) AND (length(payout_hours) <= 100))),
    CONSTRAINT merchant_payout_limit CHECK ((payout_limit_units >= 0)),
    CONSTRAINT merchant_payout_window CHECK (((payout_window_h >= 1) AND (payout_window_h <= 168))),
    CONSTRAINT merchant_rate_limit_check CHECK ((rate_limit >= 0)),
    CONSTRAINT merchant_second_approval_limit_units_check CHECK ((second_approval_limit_units >= 0)),
    CONSTRAINT merchant_sign_method_check CHECK ((sign_method = ANY (ARRAY['HMAC'::text, 'MD5'::text]))),
    CONSTRAINT merchant_status_check CHECK ((status = ANY (ARRAY['active'::text, 'suspended'::text]))),
    CONSTRAINT merchant_tax_id CHECK (((length(tax_id) >= 1) AND (length(tax_id) <= 64))),
    CONSTRAINT merchant_transfer_fee_rate_e8_check CHECK (((transfer_fee_rate_e8 >= 0) AND (transfer_fee_rate_e8 <= 100000000))),
    CONSTRAINT merchant_withdraw_fee_min_units_check CHECK ((withdraw_fee_min_units >= 0)),
    CONSTRAINT merchant_withdraw_fee_rate_e8_check CHECK (((withdraw_fee_rate_e8 >= 0) AND (withdraw_fee_rate_e8 <= 100000000)))
);

CREATE TABLE public.merchant_address (
    merchant_id bigint NOT NULL,
    chain public.chain_code NOT NULL,
    address bytea NOT NULL,
    CONSTRAINT merchant_address_address_check CHECK ((length(address) = 20))
);
ALTER TABLE ONLY public.merchant_address ALTER COLUMN merchant_id SET (n_distinct=1);

CREATE TABLE public.merchant_key (
    merchant_id bigint NOT NULL,
    key_no integer NOT NULL,
    app_key text,
    name text NOT NULL,
    operations text[] DEFAULT '{}'::text[] NOT NULL,
    networks text[] DEFAULT '{}'::text[] NOT NULL,
    created_ms bigint NOT NULL,
    created_by text NOT NULL,
    revoked_ms bigint,
    CONSTRAINT merchant_key_app_key_check CHECK (((length(app_key) >= 1) AND (length(app_key) <= 20))),
    CONSTRAINT merchant_key_check CHECK (((key_no = 1) = (app_key IS NULL))),
    CONSTRAINT merchant_key_check1 CHECK (((key_no > 1) OR (revoked_ms IS NULL))),
    CONSTRAINT merchant_key_key_no_check CHECK ((key_no > 0))
);
ALTER TABLE ONLY public.merchant_key ALTER COLUMN merchant_id SET (n_distinct=1);

CREATE TABLE public.merchant_key_secret (
    merchant_id bigint NOT NULL,
    key_no integer NOT NULL,
    secret_no integer NOT NULL,
    sealed bytea NOT NULL,
    created_ms bigint NOT NULL,
    expires_ms bigint,
    retired_ms bigint,
    CONSTRAINT merchant_key_secret_key_no_check CHECK ((key_no > 1)),
    CONSTRAINT merchant_key_secret_secret_no_check CHECK ((secret_no > 0))
);
ALTER TABLE ONLY public.merchant_key_secret ALTER COLUMN merchant_id SET (n_distinct=1);

CREATE TABLE public.merchant_key_use (
    merchant_id bigint NOT NULL,
    key_no integer NOT NULL,
    used_ms bigint NOT NULL
);
ALTER TABLE ONLY public.merchant_key_use ALTER COLUMN merchant_id SET (n_distinct=1);

ALTER TABLE public.merchant ALTER COLUMN merchant_id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.merchant_merchant_id_seq
    START WITH 1001
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.merchant_move (
    merchant_id bigint NOT NULL,
    move_id uuid NOT NULL,
    state text NOT NULL,
    from_cell_id integer NOT NULL,
    to_cell_id integer NOT NULL,
    began_ms bigint NOT NULL,
    changed_ms bigint NOT NULL,
    give_up_ms bigint,
    is_distributed boolean DEFAULT false NOT NULL,
    CONSTRAINT merchant_move_other_cell CHECK ((from_cell_id <> to_cell_id)),
    CONSTRAINT merchant_move_plain CHECK ((NOT is_distributed)),
    CONSTRAINT merchant_move_state_check CHECK ((state = ANY (ARRAY['copying'::text, 'switching'::text, 'reopening'::text, 'opening'::text, 'switched'::text])))
);

CREATE TABLE public.merchant_secret (
    merchant_id bigint NOT NULL,
    secret_no integer NOT NULL,
    purpose text NOT NULL,
    sealed bytea NOT NULL,
    created_ms bigint NOT NULL,
    retired_ms bigint,
    expires_ms bigint,
    CONSTRAINT merchant_secret_purpose_check CHECK ((purpose = ANY (ARRAY['app'::text, 'callback'::text]))),
    CONSTRAINT merchant_secret_secret_no_check CHECK ((secret_no > 0))
);

CREATE TABLE public.month_book (
    merchant_id bigint NOT NULL,
    month text NOT NULL,
    figures text NOT NULL,
    digest bytea NOT NULL,
    CONSTRAINT month_book_digest_check CHECK ((length(digest) = 32))
);
ALTER TABLE ONLY public.month_book ALTER COLUMN merchant_id SET (n_distinct=1);

CREATE TABLE public.month_report (
    month text NOT NULL,
    figures text NOT NULL,
    books integer NOT NULL,
    digest bytea NOT NULL,
    prepared_ms bigint NOT NULL,
    problem text,
    accepted_ms bigint,
    proposal_no bigint,
    lone_actor text,
    closed_ms bigint,
    manifest text,
    signature text,
    version integer DEFAULT 1 NOT NULL,
    restate_ms bigint,
    restate_reason text,
    CONSTRAINT month_report_accepted CHECK ((((accepted_ms IS NULL) AND (proposal_no IS NULL) AND (lone_actor IS NULL)) OR ((accepted_ms IS NOT NULL) AND ((proposal_no IS NULL) <> (lone_actor IS NULL))))),
    CONSTRAINT month_report_books_check CHECK ((books >= 0)),
    CONSTRAINT month_report_closed CHECK ((((closed_ms IS NULL) AND (manifest IS NULL) AND (signature IS NULL)) OR ((closed_ms IS NOT NULL) AND (manifest IS NOT NULL) AND (signature IS NOT NULL) AND (accepted_ms IS NOT NULL)))),
    CONSTRAINT month_report_digest_check CHECK ((length(digest) = 32)),
    CONSTRAINT month_report_lone_actor_check CHECK ((lone_actor <> ''::text)),
    CONSTRAINT month_report_month_check CHECK ((month ~ '^[0-9]{4}-(0[1-9]|1[0-2])$'::text)),
    CONSTRAINT month_report_problem_check CHECK ((problem <> ''::text)),
    CONSTRAINT month_report_restate CHECK (((version > 0) AND ((restate_ms IS NULL) = (restate_reason IS NULL)) AND ((restate_ms IS NULL) OR (closed_ms IS NOT NULL))))
);

CREATE TABLE public.network_fee (
    chain public.chain_code NOT NULL,
    tx_hash text NOT NULL,
    purpose text NOT NULL,
    fee numeric NOT NULL,
    at_ms bigint NOT NULL,
    CONSTRAINT network_fee_fee_check CHECK ((fee >= (0)::numeric)),
    CONSTRAINT network_fee_purpose_check CHECK ((purpose = ANY (ARRAY['payout'::text, 'cancel'::text, 'cold'::text, 'refill'::text])))
);

CREATE TABLE public.network_fee_cursor (
    chain public.chain_code NOT NULL,
    ended_no bigint DEFAULT 0 NOT NULL,
    cold_transfer_id bigint DEFAULT 0 NOT NULL,
    CONSTRAINT network_fee_cursor_cold CHECK ((cold_transfer_id >= 0)),
    CONSTRAINT network_fee_cursor_ended_no_check CHECK ((ended_no >= 0))
);

CREATE TABLE public.nonce (
    merchant_id bigint NOT NULL,
    nonce text NOT NULL COLLATE pg_catalog."C",
    day integer NOT NULL,
    group_id uuid NOT NULL
)
PARTITION BY LIST (day);

CREATE TABLE public.notification (
    notification_no bigint NOT NULL,
    operator_id bigint NOT NULL,
    channel text NOT NULL,
    target text NOT NULL,
    is_test boolean NOT NULL,
    items jsonb NOT NULL,
    created_ms bigint NOT NULL,
    state text DEFAULT 'waiting'::text NOT NULL,
    attempt_no integer DEFAULT 0 NOT NULL,
    next_ms bigint NOT NULL,
    claimed_until_ms bigint,
    is_doubtful boolean DEFAULT false NOT NULL,
    ended_ms bigint,
    answer text,
    CONSTRAINT notification_channel CHECK ((channel = ANY (ARRAY['email'::text, 'webhook'::text]))),
    CONSTRAINT notification_ended CHECK (((ended_ms IS NULL) = (state = 'waiting'::text))),
    CONSTRAINT notification_state CHECK ((state = ANY (ARRAY['waiting'::text, 'sent'::text, 'failed'::text, 'dropped'::text])))
);

CREATE TABLE public.notification_choice (
    operator_id bigint NOT NULL,
    kind text NOT NULL,
    by_email boolean NOT NULL,
    by_webhook boolean NOT NULL,
    wakes boolean NOT NULL,
    CONSTRAINT notification_choice_kind CHECK ((kind ~ '^[a-z-]{1,40}$'::text)),
    CONSTRAINT notification_choice_some CHECK ((by_email OR by_webhook))
);

CREATE TABLE public.notification_contact (
    operator_id bigint NOT NULL,
    email text,
    email_asked_ms bigint,
    email_tries smallint DEFAULT 0 NOT NULL,
    email_confirmed_ms bigint,
    webhook_url text,
    webhook_sealed bytea,
    time_zone text NOT NULL,
    quiet_from_min smallint,
    quiet_to_min smallint,
    CONSTRAINT notification_contact_code CHECK (((email IS NULL) = (email_asked_ms IS NULL))),
    CONSTRAINT notification_contact_confirmed CHECK (((email_confirmed_ms IS NULL) OR (email IS NOT NULL))),
    CONSTRAINT notification_contact_email CHECK (((length(email) >= 3) AND (length(email) <= 254))),
    CONSTRAINT notification_contact_quiet CHECK ((((quiet_from_min IS NULL) = (quiet_to_min IS NULL)) AND (quiet_from_min <> quiet_to_min) AND ((quiet_from_min >= 0) AND (quiet_from_min <= 1439)) AND ((quiet_to_min >= 0) AND (quiet_to_min <= 1439)))),
    CONSTRAINT notification_contact_secret CHECK (((webhook_url IS NULL) = (webhook_sealed IS NULL))),
    CONSTRAINT notification_contact_url CHECK (((length(webhook_url) >= 1) AND (length(webhook_url) <= 500))),
    CONSTRAINT notification_contact_zone CHECK (((length(time_zone) >= 1) AND (length(time_zone) <= 64)))
);

ALTER TABLE public.notification ALTER COLUMN notification_no ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.notification_notification_no_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.notification_told (
    operator_id bigint NOT NULL,
    channel text NOT NULL,
    kind text NOT NULL,
    item_key text NOT NULL,
    notification_no bigint NOT NULL,
    told_ms bigint NOT NULL,
    gone_ms bigint
);

CREATE TABLE public.operator (
    operator_id bigint NOT NULL,
    name text NOT NULL,
    role text NOT NULL,
    merchant_id bigint,
    status text DEFAULT 'active'::text NOT NULL,
    password_hash text NOT NULL,
    totp_sealed bytea,
    totp_confirmed_ms bigint,
    totp_last_step bigint,
    language text,
    theme text,
    created_ms bigint NOT NULL,
    signed_in_ms bigint,
    must_change_password boolean DEFAULT false NOT NULL,
    CONSTRAINT operator_confirmed CHECK (((totp_confirmed_ms IS NULL) OR ((totp_sealed IS NOT NULL) AND (totp_last_step IS NOT NULL)))),
    CONSTRAINT operator_language_check CHECK ((language = ANY (ARRAY['en'::text, 'zh-CN'::text]))),
    CONSTRAINT operator_name_check CHECK ((name ~ '^[A-Za-z0-9._@-]{1,64}$'::text)),
    CONSTRAINT operator_of_merchant CHECK (((role = 'merchant'::text) = (merchant_id IS NOT NULL))),
    CONSTRAINT operator_password_hash_check CHECK (starts_with(password_hash, '$argon2id$'::text)),
    CONSTRAINT operator_role_check CHECK ((role = ANY (ARRAY['owner'::text, 'operator'::text, 'auditor'::text, 'merchant'::text]))),
    CONSTRAINT operator_status_check CHECK ((status = ANY (ARRAY['active'::text, 'disabled'::text]))),
    CONSTRAINT operator_theme_check CHECK ((theme = ANY (ARRAY['light'::text, 'dark'::text])))
);

CREATE TABLE public.operator_failure (
    key bytea NOT NULL,
    failures integer NOT NULL,
    last_ms bigint NOT NULL,
    next_ms bigint NOT NULL,
    CONSTRAINT operator_failure_failures_check CHECK ((failures >= 0)),
    CONSTRAINT operator_failure_key_check CHECK ((length(key) = 32))
);

CREATE TABLE public.operator_known_source (
    key bytea NOT NULL,
    operator_id bigint NOT NULL,
    seen_ms bigint NOT NULL,
    CONSTRAINT operator_known_source_key_check CHECK ((length(key) = 32))
);

ALTER TABLE public.operator ALTER COLUMN operator_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.operator_operator_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.operator_recovery_code (
    operator_id bigint NOT NULL,
    code_hash bytea NOT NULL,
    used_ms bigint,
    CONSTRAINT operator_recovery_code_code_hash_check CHECK ((length(code_hash) = 32))
);

CREATE TABLE public.operator_session (
    token_hash bytea NOT NULL,
    operator_id bigint NOT NULL,
    totp_passed boolean NOT NULL,
    created_ms bigint NOT NULL,
    seen_ms bigint NOT NULL,
    expires_ms bigint NOT NULL,
    source text NOT NULL,
    user_agent text NOT NULL,
    CONSTRAINT operator_session_source_check CHECK (((length(source) >= 1) AND (length(source) <= 64))),
    CONSTRAINT operator_session_time CHECK (((created_ms <= seen_ms) AND (created_ms < expires_ms))),
    CONSTRAINT operator_session_token_hash_check CHECK ((length(token_hash) = 32)),
    CONSTRAINT operator_session_user_agent_check CHECK ((length(user_agent) <= 200))
);

CREATE TABLE public.operator_wait (
    person text NOT NULL,
    from_ms bigint NOT NULL,
    eligible_ms bigint NOT NULL,
    cause text NOT NULL,
    CONSTRAINT operator_wait_cause_check CHECK ((cause = ANY (ARRAY['created'::text, 'reset'::text, 'enabled'::text, 'role'::text, 'enrolled'::text]))),
    CONSTRAINT operator_wait_person_check CHECK (((person <> ''::text) AND (person = lower((person COLLATE "C"))))),
    CONSTRAINT operator_wait_time CHECK ((eligible_ms > from_ms))
);

CREATE TABLE public.order_trace (
    merchant_id bigint NOT NULL,
    order_id bigint NOT NULL,
    traceparent text NOT NULL,
    at_ms bigint NOT NULL,
    CONSTRAINT order_trace_traceparent CHECK ((traceparent ~ '^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$'::text))
);

CREATE TABLE public.payout (
    merchant_id bigint NOT NULL,
    order_id bigint NOT NULL,
    fence bigint NOT NULL,
    claimed_by text,
    claimed_until_ms bigint NOT NULL,
    failures integer DEFAULT 0 NOT NULL,
    frozen_cause text,
    frozen_ms bigint,
    signed_no integer DEFAULT 0 NOT NULL,
    given_up_cause text,
    given_up_ms bigint,
    given_up_signed_no integer,
    obstacle_kind text,
    obstacle_cause text,
    obstacle_ms bigint,
    chain public.chain_code NOT NULL,
    phase text DEFAULT 'queued'::text NOT NULL,
    CONSTRAINT payout_claimed CHECK (((fence >= 0) AND ((fence = 0) = (claimed_by IS NULL)))),
    CONSTRAINT payout_claimed_by_check CHECK ((claimed_by <> ''::text)),
    CONSTRAINT payout_failures_check CHECK ((failures >= 0)),
    CONSTRAINT payout_frozen CHECK (((frozen_cause IS NULL) = (frozen_ms IS NULL))),
    CONSTRAINT payout_frozen_cause_check CHECK ((frozen_cause <> ''::text)),
    CONSTRAINT payout_given_up CHECK ((((given_up_cause IS NULL) = (given_up_ms IS NULL)) AND ((given_up_cause IS NULL) = (given_up_signed_no IS NULL)) AND ((given_up_signed_no IS NULL) OR (given_up_signed_no = signed_no)))),
    CONSTRAINT payout_given_up_cause_check CHECK ((given_up_cause <> ''::text)),
    CONSTRAINT payout_obstacle CHECK ((((obstacle_kind IS NULL) = (obstacle_cause IS NULL)) AND ((obstacle_kind IS NULL) = (obstacle_ms IS NULL)))),
    CONSTRAINT payout_obstacle_cause_check CHECK ((obstacle_cause <> ''::text)),
    CONSTRAINT payout_obstacle_kind_check CHECK ((obstacle_kind <> ''::text)),
    CONSTRAINT payout_phase CHECK ((phase = ANY (ARRAY['waiting'::text, 'queued'::text, 'taken_up'::text, 'failed'::text, 'closed'::text]))),
    CONSTRAINT payout_signed_no_check CHECK ((signed_no >= 0))
);

CREATE TABLE public.payout_reservation (
    merchant_id bigint NOT NULL,
    order_id bigint NOT NULL,
    chain public.chain_code NOT NULL,
    wallet bytea NOT NULL,
    nonce bigint,
    amount bigint NOT NULL,
    reserved_ms bigint NOT NULL,
    ended_no bigint,
    recipient bytea NOT NULL,
    CONSTRAINT payout_reservation_amount_check CHECK ((amount > 0)),
    CONSTRAINT payout_reservation_ended_no_check CHECK ((ended_no >= 0)),
    CONSTRAINT payout_reservation_recipient CHECK ((length(recipient) = 20)),
    CONSTRAINT payout_reservation_wallet_check CHECK ((length(wallet) = 20))
);

CREATE TABLE public.payout_signed (
    merchant_id bigint NOT NULL,
    order_id bigint NOT NULL,
    attempt_no integer NOT NULL,
    raw bytea NOT NULL,
    tx_hash text NOT NULL,
    built_at_block bigint NOT NULL,
    signed_ms bigint NOT NULL,
    broadcast_ms bigint,
    CONSTRAINT payout_signed_attempt_no_check CHECK ((attempt_no > 0)),
    CONSTRAINT payout_signed_built_at_block_check CHECK ((built_at_block >= 0)),
    CONSTRAINT payout_signed_raw_check CHECK ((length(raw) > 0)),
    CONSTRAINT payout_signed_tx_hash_check CHECK ((tx_hash <> ''::text))
);

CREATE TABLE public.payout_stop (
    chain public.chain_code NOT NULL,
    actor text NOT NULL,
    cause text NOT NULL,
    since_ms bigint NOT NULL,
    CONSTRAINT payout_stop_actor_check CHECK ((actor <> ''::text)),
    CONSTRAINT payout_stop_cause_check CHECK ((cause <> ''::text))
);

CREATE TABLE public.posting (
    merchant_id bigint NOT NULL,
    entry_id bigint NOT NULL,
    posting_no smallint NOT NULL,
    source_id bigint NOT NULL,
    target_id bigint NOT NULL,
    currency text NOT NULL,
    amount public.positive_units NOT NULL,
    source_balance bigint NOT NULL,
    target_balance bigint NOT NULL,
    CONSTRAINT posting_moves CHECK ((source_id <> target_id))
);
ALTER TABLE ONLY public.posting ALTER COLUMN merchant_id SET (n_distinct=1);

CREATE TABLE public.proposal (
    merchant_id bigint,
    proposal_no bigint NOT NULL,
    currency public.currency,
    signed_units bigint,
    reason text NOT NULL,
    ext_user_id text,
    proposed_by text NOT NULL,
    proposed_ms bigint NOT NULL,
    state text DEFAULT 'open'::text NOT NULL,
    decided_by text,
    decided_ms bigint,
    outcome text,
    entry_id bigint,
    kind text NOT NULL,
    subject text,
    before jsonb,
    after jsonb,
    proposer_eligible_ms bigint,
    decider_eligible_ms bigint,
    expires_ms bigint,
    CONSTRAINT proposal_after_check CHECK ((jsonb_typeof(after) = 'object'::text)),
    CONSTRAINT proposal_before_check CHECK ((jsonb_typeof(before) = 'object'::text)),
    CONSTRAINT proposal_content CHECK (
CASE
    WHEN (kind = 'adjustment'::text) THEN ((merchant_id IS NOT NULL) AND (currency IS NOT NULL) AND (signed_units IS NOT NULL) AND (subject IS NULL) AND (before IS NULL) AND (after IS NULL))
    ELSE ((currency IS NULL) AND (signed_units IS NULL) AND (ext_user_id IS NULL) AND (entry_id IS NULL) AND (subject IS NOT NULL) AND (before IS NOT NULL) AND (after IS NOT NULL))
END),
    CONSTRAINT proposal_decided CHECK ((((state = 'open'::text) = (decided_by IS NULL)) AND ((decided_by IS NULL) = (decided_ms IS NULL)) AND (decided_ms >= proposed_ms))),
    CONSTRAINT proposal_decided_by_check CHECK ((public.person_of(decided_by) <> ''::text)),
    CONSTRAINT proposal_decider_eligible CHECK (((state <> ALL (ARRAY['accepted'::text, 'failed'::text])) OR (decided_ms >= decider_eligible_ms))),
    CONSTRAINT proposal_expiry CHECK ((expires_ms > proposed_ms)),
    CONSTRAINT proposal_ext_user_id_check CHECK (((length(ext_user_id) >= 1) AND (length(ext_user_id) <= 20))),
    CONSTRAINT proposal_in_time CHECK (((state <> ALL (ARRAY['accepted'::text, 'failed'::text])) OR (decided_ms <= expires_ms))),
    CONSTRAINT proposal_kind_check CHECK ((kind ~ '^[a-z_]+(\.[a-z_]+)*$'::text)),
    CONSTRAINT proposal_outcome CHECK ((((entry_id IS NULL) OR (state = 'accepted'::text)) AND ((outcome IS NULL) = (state <> ALL (ARRAY['failed'::text, 'refused'::text]))))),
    CONSTRAINT proposal_outcome_check CHECK ((outcome <> ''::text)),
    CONSTRAINT proposal_proposed_by_check CHECK ((public.person_of(proposed_by) <> ''::text)),
    CONSTRAINT proposal_proposer_eligible CHECK ((proposed_ms >= proposer_eligible_ms)),
    CONSTRAINT proposal_reason_check CHECK (((length(reason) <= 500) AND (reason ~ '\S'::text))),
    CONSTRAINT proposal_signed_units_check CHECK ((signed_units <> 0)),
    CONSTRAINT proposal_state_check CHECK ((state = ANY (ARRAY['open'::text, 'accepted'::text, 'refused'::text, 'withdrawn'::text, 'failed'::text]))),
    CONSTRAINT proposal_subject_check CHECK (((length(subject) >= 1) AND (length(subject) <= 400))),
    CONSTRAINT proposal_two_people CHECK (((state <> ALL (ARRAY['accepted'::text, 'failed'::text])) OR (public.person_of(decided_by) <> public.person_of(proposed_by)))),
    CONSTRAINT proposal_withdrawn CHECK (((state <> 'withdrawn'::text) OR (public.person_of(decided_by) = public.person_of(proposed_by))))
);

ALTER TABLE public.proposal ALTER COLUMN proposal_no ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.proposal_proposal_no_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.rate (
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

CREATE TABLE public.rate_history (
    rate_history_id bigint NOT NULL,
    merchant_id bigint NOT NULL,
    direction text NOT NULL,
    rate_e8 bigint,
    paused boolean NOT NULL,
    max_age_ms bigint,
    set_ms bigint NOT NULL,
    CONSTRAINT rate_history_direction_check CHECK (((split_part(direction, ':'::text, 1) = ANY (public.currency_codes())) AND (split_part(direction, ':'::text, 2) = ANY (public.currency_codes())) AND (split_part(direction, ':'::text, 1) <> split_part(direction, ':'::text, 2)) AND (direction = ((split_part(direction, ':'::text, 1) || ':'::text) || split_part(direction, ':'::text, 2)))))
);

ALTER TABLE public.rate_history ALTER COLUMN rate_history_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.rate_history_rate_history_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.reconciliation (
    chain public.chain_code NOT NULL,
    reconciliation_no bigint NOT NULL,
    at_ms bigint NOT NULL,
    block_number bigint,
    books_units bigint,
    chain_units bigint,
    unexplained_units bigint,
    is_sound boolean NOT NULL,
    explanation jsonb NOT NULL,
    cause text,
    CONSTRAINT reconciliation_block_number_check CHECK ((block_number >= 0)),
    CONSTRAINT reconciliation_cause_check CHECK ((cause <> ''::text)),
    CONSTRAINT reconciliation_made CHECK ((((cause IS NULL) = (block_number IS NOT NULL)) AND ((cause IS NULL) = (books_units IS NOT NULL)) AND ((cause IS NULL) = (chain_units IS NOT NULL)) AND ((cause IS NULL) = (unexplained_units IS NOT NULL)) AND ((cause IS NULL) OR (NOT is_sound))))
);

ALTER TABLE public.reconciliation ALTER COLUMN reconciliation_no ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.reconciliation_reconciliation_no_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.reference_state (
    row_no integer DEFAULT 1 NOT NULL,
    change_no bigint NOT NULL,
    changed_ms bigint NOT NULL,
    checked_ms bigint NOT NULL,
    CONSTRAINT reference_state_row_no_check CHECK ((row_no = 1))
);

CREATE TABLE public.refused_request (
    merchant_id bigint NOT NULL,
    refused_no bigint NOT NULL,
    at_ms bigint NOT NULL,
    request_id text NOT NULL,
    path text NOT NULL,
    code integer NOT NULL,
    msg text NOT NULL,
    source text NOT NULL,
    content_type text NOT NULL,
    fields json NOT NULL,
    left_out text[] NOT NULL,
    is_signed boolean DEFAULT true NOT NULL
);
ALTER TABLE ONLY public.refused_request ALTER COLUMN merchant_id SET (n_distinct=1);

ALTER TABLE public.refused_request ALTER COLUMN refused_no ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.refused_request_refused_no_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.request_log (
    log_no bigint NOT NULL,
    merchant_id bigint NOT NULL,
    key_no integer NOT NULL,
    at_ms bigint NOT NULL,
    request_id text NOT NULL,
    operation text NOT NULL,
    code integer NOT NULL,
    source text NOT NULL,
    took_ms integer NOT NULL,
    fields json NOT NULL,
    left_out text[] NOT NULL
);
ALTER TABLE ONLY public.request_log ALTER COLUMN merchant_id SET (n_distinct=1);

ALTER TABLE public.request_log ALTER COLUMN log_no ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.request_log_log_no_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.request_minute (
    merchant_id bigint NOT NULL,
    minute_ms bigint NOT NULL,
    requests bigint NOT NULL
);
ALTER TABLE ONLY public.request_minute ALTER COLUMN merchant_id SET (n_distinct=1);

CREATE TABLE public.request_usage (
    merchant_id bigint NOT NULL,
    hour_ms bigint NOT NULL,
    key_no integer NOT NULL,
    operation text NOT NULL,
    code integer NOT NULL,
    requests bigint NOT NULL
);
ALTER TABLE ONLY public.request_usage ALTER COLUMN merchant_id SET (n_distinct=1);

CREATE TABLE public.rescue (
    rescue_no bigint NOT NULL,
    chain public.chain_code NOT NULL,
    address bytea NOT NULL,
    merchant_id bigint NOT NULL,
    account_no integer NOT NULL,
    branch integer NOT NULL,
    address_index integer NOT NULL,
    contract bytea,
    asked numeric(78,0),
    recipient bytea NOT NULL,
    proposal_no bigint,
    actor text NOT NULL,
    opened_ms bigint NOT NULL,
    arrived numeric(78,0),
    obstacle text,
    cause text,
    ended_ms bigint,
    ended_by text,
    ended_by_ms bigint,
    CONSTRAINT rescue_account_no CHECK ((account_no >= 0)),
    CONSTRAINT rescue_actor CHECK ((actor <> ''::text)),
    CONSTRAINT rescue_address CHECK ((length(address) = 20)),
    CONSTRAINT rescue_address_index CHECK ((address_index >= 0)),
    CONSTRAINT rescue_arrived CHECK ((arrived > (0)::numeric)),
    CONSTRAINT rescue_asked CHECK ((asked > (0)::numeric)),
    CONSTRAINT rescue_branch CHECK ((branch = ANY (ARRAY[0, 1]))),
    CONSTRAINT rescue_cause CHECK ((cause <> ''::text)),
    CONSTRAINT rescue_contract CHECK (((length(contract) = 20) AND (contract <> recipient))),
    CONSTRAINT rescue_ended CHECK ((((cause IS NULL) = (ended_ms IS NULL)) AND ((ended_ms IS NULL) OR (arrived IS NULL)))),
    CONSTRAINT rescue_ended_by CHECK ((((ended_by IS NULL) = (ended_by_ms IS NULL)) AND ((ended_by IS NULL) OR ((ended_by <> ''::text) AND (ended_ms IS NOT NULL))))),
    CONSTRAINT rescue_obstacle CHECK ((obstacle <> ''::text)),
    CONSTRAINT rescue_recipient CHECK (((length(recipient) = 20) AND (recipient <> address)))
);

ALTER TABLE public.rescue ALTER COLUMN rescue_no ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.rescue_rescue_no_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.rollback_acceptance (
    acceptance_no bigint NOT NULL,
    accepted_ms bigint NOT NULL,
    actor text NOT NULL,
    reason text NOT NULL,
    signed_upto_ms bigint NOT NULL,
    CONSTRAINT rollback_acceptance_actor_check CHECK ((actor <> ''::text)),
    CONSTRAINT rollback_acceptance_reason_check CHECK ((reason ~ '\S'::text))
);

ALTER TABLE public.rollback_acceptance ALTER COLUMN acceptance_no ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.rollback_acceptance_acceptance_no_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.rollback_evidence (
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

CREATE TABLE public.sandbox_callback (
    merchant_id bigint NOT NULL,
    attempt_no bigint NOT NULL,
    event_id text NOT NULL,
    url text NOT NULL,
    headers text NOT NULL,
    body text NOT NULL,
    at_ms bigint NOT NULL
);

CREATE TABLE public.sandbox_count (
    merchant_id bigint NOT NULL,
    name text NOT NULL,
    day integer NOT NULL,
    times bigint NOT NULL,
    CONSTRAINT sandbox_count_times CHECK ((times > 0))
);

CREATE TABLE public.sandbox_deposit (
    chain public.chain_code NOT NULL,
    block_number bigint NOT NULL,
    sender bytea NOT NULL,
    recipient bytea NOT NULL,
    amount_units bigint NOT NULL,
    at_ms bigint NOT NULL,
    tx_hash text,
    CONSTRAINT sandbox_deposit_amount_units_check CHECK ((amount_units > 0)),
    CONSTRAINT sandbox_deposit_block_number_check CHECK ((block_number > 0)),
    CONSTRAINT sandbox_deposit_recipient_check CHECK ((length(recipient) = 20)),
    CONSTRAINT sandbox_deposit_sender_check CHECK ((length(sender) = 20))
);

CREATE TABLE public.sandbox_refund (
    merchant_id bigint NOT NULL,
    order_id bigint NOT NULL,
    is_held boolean NOT NULL
);

CREATE TABLE public.sandbox_transfer (
    tx_hash text NOT NULL,
    chain public.chain_code NOT NULL,
    token text NOT NULL,
    recipient bytea NOT NULL,
    amount_units bigint NOT NULL,
    accepted_ms bigint NOT NULL,
    final_ms bigint NOT NULL,
    verdict text NOT NULL,
    CONSTRAINT sandbox_transfer_amount_units_check CHECK ((amount_units > 0)),
    CONSTRAINT sandbox_transfer_check CHECK ((final_ms >= accepted_ms)),
    CONSTRAINT sandbox_transfer_recipient_check CHECK ((length(recipient) = 20)),
    CONSTRAINT sandbox_transfer_token_check CHECK ((token <> ''::text)),
    CONSTRAINT sandbox_transfer_tx_hash_check CHECK ((tx_hash <> ''::text)),
    CONSTRAINT sandbox_transfer_verdict_check CHECK ((verdict = ANY (ARRAY['paid'::text, 'failed'::text])))
);

CREATE TABLE public.sandbox_unconfirmed (
    chain public.chain_code NOT NULL,
    deposit_no bigint NOT NULL,
    merchant_id bigint NOT NULL,
    tx_hash text NOT NULL,
    sender bytea NOT NULL,
    recipient bytea NOT NULL,
    amount_units bigint NOT NULL,
    at_ms bigint NOT NULL,
    is_gone boolean DEFAULT false NOT NULL,
    CONSTRAINT sandbox_unconfirmed_amount CHECK ((amount_units > 0)),
    CONSTRAINT sandbox_unconfirmed_recipient CHECK ((length(recipient) = 20)),
    CONSTRAINT sandbox_unconfirmed_sender CHECK ((length(sender) = 20))
);

CREATE TABLE public.schema_migration (
    version integer NOT NULL,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_ms bigint NOT NULL,
    kind text NOT NULL
);

CREATE TABLE public.screening (
    screening_no bigint NOT NULL,
    merchant_id bigint NOT NULL,
    order_id bigint,
    chain public.chain_code NOT NULL,
    tx_hash text,
    log_index integer,
    address bytea NOT NULL,
    amount bigint NOT NULL,
    facts text NOT NULL,
    state text DEFAULT 'open'::text NOT NULL,
    reasons jsonb DEFAULT '[]'::jsonb NOT NULL,
    round_no integer DEFAULT 1 NOT NULL,
    begun_ms bigint NOT NULL,
    changed_ms bigint NOT NULL,
    cleared_ms bigint,
    decided_by text,
    decided_ms bigint,
    proposal_no bigint,
    applied_ms bigint,
    CONSTRAINT screening_address CHECK ((length(address) = 20)),
    CONSTRAINT screening_amount CHECK ((amount > 0)),
    CONSTRAINT screening_cleared CHECK (((cleared_ms IS NULL) = (state <> ALL (ARRAY['passed'::text, 'released'::text])))),
    CONSTRAINT screening_decided CHECK ((((decided_by IS NULL) = (decided_ms IS NULL)) AND ((state <> 'released'::text) OR (decided_by IS NOT NULL)) AND ((state = ANY (ARRAY['refused'::text, 'released'::text])) OR (decided_by IS NULL)) AND ((proposal_no IS NULL) OR (decided_by IS NOT NULL)) AND ((applied_ms IS NULL) OR (decided_by IS NOT NULL)))),
    CONSTRAINT screening_decided_by CHECK ((decided_by <> ''::text)),
    CONSTRAINT screening_reasons CHECK ((jsonb_typeof(reasons) = 'array'::text)),
    CONSTRAINT screening_round CHECK ((round_no > 0)),
    CONSTRAINT screening_state CHECK ((state = ANY (ARRAY['open'::text, 'passed'::text, 'held'::text, 'refused'::text, 'released'::text]))),
    CONSTRAINT screening_subject CHECK (
CASE
    WHEN (order_id IS NULL) THEN ((tx_hash IS NOT NULL) AND (log_index IS NOT NULL))
    ELSE ((tx_hash IS NULL) AND (log_index IS NULL))
END)
);

CREATE TABLE public.screening_question (
    screening_no bigint NOT NULL,
    round_no integer NOT NULL,
    request_id text NOT NULL,
    body text NOT NULL,
    asked_ms bigint NOT NULL,
    attempts integer NOT NULL,
    error text,
    answered_ms bigint,
    verdict text,
    reason text,
    reference text,
    CONSTRAINT screening_question_answered CHECK (((answered_ms IS NULL) = (verdict IS NULL))),
    CONSTRAINT screening_question_attempts CHECK ((attempts > 0)),
    CONSTRAINT screening_question_verdict CHECK ((verdict = ANY (ARRAY['pass'::text, 'hold'::text, 'refuse'::text])))
);

ALTER TABLE public.screening ALTER COLUMN screening_no ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.screening_screening_no_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.side_role (
    side text NOT NULL,
    role_name text NOT NULL,
    granted_ms bigint NOT NULL,
    CONSTRAINT side_role_side_check CHECK ((side = ANY (ARRAY['web'::text, 'worker'::text])))
);

CREATE TABLE public.staff_secret (
    merchant_id bigint NOT NULL,
    made_ms bigint NOT NULL,
    key_no integer NOT NULL,
    person text NOT NULL,
    eligible_ms bigint NOT NULL,
    CONSTRAINT staff_secret_person CHECK (((person <> ''::text) AND (person = lower((person COLLATE "C"))))),
    CONSTRAINT staff_secret_time CHECK ((eligible_ms >= made_ms))
);

CREATE TABLE public.sub_user (
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
ALTER TABLE ONLY public.sub_user ALTER COLUMN merchant_id SET (n_distinct=1);

CREATE TABLE public.superseded_book (
    merchant_id bigint NOT NULL,
    month text NOT NULL,
    version integer NOT NULL,
    figures text NOT NULL,
    digest bytea NOT NULL,
    CONSTRAINT superseded_book_digest_check CHECK ((length(digest) = 32))
);
ALTER TABLE ONLY public.superseded_book ALTER COLUMN merchant_id SET (n_distinct=1);

CREATE TABLE public.superseded_month (
    month text NOT NULL,
    version integer NOT NULL,
    figures text NOT NULL,
    books integer NOT NULL,
    digest bytea NOT NULL,
    prepared_ms bigint NOT NULL,
    accepted_ms bigint NOT NULL,
    proposal_no bigint,
    lone_actor text,
    closed_ms bigint NOT NULL,
    manifest text NOT NULL,
    signature text NOT NULL,
    restate_ms bigint NOT NULL,
    restate_reason text NOT NULL,
    CONSTRAINT superseded_month_accepted CHECK (((proposal_no IS NULL) <> (lone_actor IS NULL))),
    CONSTRAINT superseded_month_books_check CHECK ((books >= 0)),
    CONSTRAINT superseded_month_digest_check CHECK ((length(digest) = 32)),
    CONSTRAINT superseded_month_lone_actor_check CHECK ((lone_actor <> ''::text)),
    CONSTRAINT superseded_month_restate_reason_check CHECK ((restate_reason <> ''::text)),
    CONSTRAINT superseded_month_version_check CHECK ((version > 0))
);

CREATE TABLE public.sweep (
    chain public.chain_code NOT NULL,
    sweep_id bigint NOT NULL,
    address bytea NOT NULL,
    merchant_id bigint NOT NULL,
    account_no integer NOT NULL,
    branch integer NOT NULL,
    address_index integer NOT NULL,
    wallet bytea NOT NULL,
    amount bigint NOT NULL,
    coin_price bigint NOT NULL,
    top_up bigint NOT NULL,
    top_up_fee_limit bigint NOT NULL,
    token_fee_limit bigint NOT NULL,
    actor text NOT NULL,
    opened_ms bigint NOT NULL,
    step text NOT NULL,
    version integer DEFAULT 0 NOT NULL,
    top_up_nonce bigint,
    token_nonce bigint,
    top_up_tx_hash text,
    top_up_fee bigint,
    token_tx_hash text,
    token_fee bigint,
    obstacle text,
    cause text,
    ended_ms bigint,
    stalled_ms bigint,
    budget bigint NOT NULL,
    continues bigint,
    ended_by text,
    rescue_no bigint,
    rescued numeric(78,0),
    CONSTRAINT sweep_account_no_check CHECK ((account_no >= 0)),
    CONSTRAINT sweep_actor_check CHECK ((actor <> ''::text)),
    CONSTRAINT sweep_address_check CHECK ((length(address) = 20)),
    CONSTRAINT sweep_address_index_check CHECK ((address_index >= 0)),
    CONSTRAINT sweep_amount_check CHECK (
CASE
    WHEN (rescue_no IS NULL) THEN (amount > 0)
    ELSE (amount = 0)
END),
    CONSTRAINT sweep_branch_check CHECK ((branch = ANY (ARRAY[0, 1]))),
    CONSTRAINT sweep_budget CHECK (((top_up_fee_limit + token_fee_limit) <= budget)),
    CONSTRAINT sweep_cause CHECK (((cause IS NULL) = (step <> ALL (ARRAY['continued'::text, 'failed'::text, 'dropped'::text])))),
    CONSTRAINT sweep_cause_check CHECK ((cause <> ''::text)),
    CONSTRAINT sweep_coin_price_check CHECK (
CASE
    WHEN (rescue_no IS NULL) THEN (coin_price > 0)
    ELSE (coin_price = 0)
END),
    CONSTRAINT sweep_continued CHECK (((step <> 'continued'::text) OR ((token_tx_hash IS NULL) AND (token_fee IS NULL)))),
    CONSTRAINT sweep_done CHECK (((step <> 'done'::text) OR ((token_tx_hash IS NOT NULL) AND ((top_up = 0) OR (top_up_tx_hash IS NOT NULL))))),
    CONSTRAINT sweep_ended CHECK (((ended_ms IS NULL) = (step = ANY (ARRAY['top_up'::text, 'token'::text, 'rescue'::text])))),
    CONSTRAINT sweep_ended_by CHECK (((ended_by IS NULL) OR ((ended_by <> ''::text) AND (step = 'failed'::text)))),
    CONSTRAINT sweep_obstacle_check CHECK ((obstacle <> ''::text)),
    CONSTRAINT sweep_rescue_step CHECK (
CASE
    WHEN (rescue_no IS NULL) THEN (step <> 'rescue'::text)
    ELSE (step <> 'token'::text)
END),
    CONSTRAINT sweep_rescued CHECK ((((rescue_no IS NULL) = (rescued IS NULL)) AND ((rescued IS NULL) OR (rescued > (0)::numeric)))),
    CONSTRAINT sweep_step_check CHECK ((step = ANY (ARRAY['top_up'::text, 'token'::text, 'rescue'::text, 'done'::text, 'continued'::text, 'failed'::text, 'dropped'::text]))),
    CONSTRAINT sweep_token_fee_check CHECK ((token_fee >= 0)),
    CONSTRAINT sweep_token_fee_limit_check CHECK ((token_fee_limit > 0)),
    CONSTRAINT sweep_token_nonce_check CHECK ((token_nonce >= 0)),
    CONSTRAINT sweep_token_tx_hash_check CHECK ((token_tx_hash <> ''::text)),
    CONSTRAINT sweep_top_up_check CHECK ((top_up >= 0)),
    CONSTRAINT sweep_top_up_fee_check CHECK ((top_up_fee >= 0)),
    CONSTRAINT sweep_top_up_fee_limit_check CHECK ((top_up_fee_limit >= 0)),
    CONSTRAINT sweep_top_up_nonce_check CHECK ((top_up_nonce >= 0)),
    CONSTRAINT sweep_top_up_tx_hash_check CHECK ((top_up_tx_hash <> ''::text)),
    CONSTRAINT sweep_topped_up CHECK (((step <> 'top_up'::text) OR (top_up > 0))),
    CONSTRAINT sweep_version_check CHECK ((version >= 0)),
    CONSTRAINT sweep_wallet_check CHECK ((length(wallet) = 20))
);

CREATE TABLE public.sweep_signed (
    chain public.chain_code NOT NULL,
    sweep_id bigint NOT NULL,
    kind text NOT NULL,
    attempt_no integer NOT NULL,
    raw bytea NOT NULL,
    tx_hash text NOT NULL,
    built_at_block bigint NOT NULL,
    signed_ms bigint NOT NULL,
    CONSTRAINT sweep_signed_attempt_no_check CHECK ((attempt_no > 0)),
    CONSTRAINT sweep_signed_built_at_block_check CHECK ((built_at_block >= 0)),
    CONSTRAINT sweep_signed_kind_check CHECK ((kind = ANY (ARRAY['top_up'::text, 'token'::text, 'rescue'::text]))),
    CONSTRAINT sweep_signed_raw_check CHECK ((length(raw) > 0)),
    CONSTRAINT sweep_signed_tx_hash_check CHECK ((tx_hash <> ''::text))
);

ALTER TABLE public.sweep ALTER COLUMN sweep_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.sweep_sweep_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.test_event (
    merchant_id bigint NOT NULL,
    event_no integer NOT NULL,
    url text NOT NULL,
    requested_ms bigint NOT NULL,
    requested_by text NOT NULL,
    claimed_ms bigint,
    ended_ms bigint,
    address text,
    http_status smallint,
    error text,
    answer bytea,
    latency_ms integer,
    CONSTRAINT test_event_event_no_check CHECK ((event_no > 0))
);
ALTER TABLE ONLY public.test_event ALTER COLUMN merchant_id SET (n_distinct=1);

CREATE TABLE public.treasury_movement (
    chain public.chain_code NOT NULL,
    movement_no bigint NOT NULL,
    direction text NOT NULL,
    amount public.positive_units NOT NULL,
    tx_hash text NOT NULL,
    reason text NOT NULL,
    actor text NOT NULL,
    recorded_ms bigint NOT NULL,
    corrects bigint,
    corrects_direction text,
    replaces bigint,
    CONSTRAINT treasury_movement_actor_check CHECK ((actor <> ''::text)),
    CONSTRAINT treasury_movement_direction_check CHECK ((direction = ANY (ARRAY['IN'::text, 'OUT'::text]))),
    CONSTRAINT treasury_movement_opposite CHECK ((((corrects IS NULL) = (corrects_direction IS NULL)) AND (corrects_direction <> direction) AND ((corrects IS NULL) OR (replaces IS NULL)))),
    CONSTRAINT treasury_movement_reason_check CHECK ((reason <> ''::text)),
    CONSTRAINT treasury_movement_tx_hash_check CHECK (((length(tx_hash) >= 1) AND (length(tx_hash) <= 80)))
);

ALTER TABLE public.treasury_movement ALTER COLUMN movement_no ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.treasury_movement_movement_no_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.wallet_address (
    merchant_id bigint NOT NULL,
    address bytea NOT NULL,
    user_id bigint NOT NULL,
    CONSTRAINT wallet_address_address_check CHECK ((length(address) = 20))
);
ALTER TABLE ONLY public.wallet_address ALTER COLUMN merchant_id SET (n_distinct=1);

CREATE TABLE public.wallet_nonce (
    chain public.chain_code NOT NULL,
    wallet bytea NOT NULL,
    nonce bigint NOT NULL,
    purpose text NOT NULL,
    merchant_id bigint,
    order_id bigint,
    since_ms bigint NOT NULL,
    cancelled_ms bigint,
    fee_read_ms bigint,
    CONSTRAINT wallet_nonce_cancelled CHECK (((cancelled_ms IS NULL) OR (purpose = 'cancel'::text))),
    CONSTRAINT wallet_nonce_nonce_check CHECK ((nonce >= 0)),
    CONSTRAINT wallet_nonce_owner CHECK ((((purpose = 'payout'::text) = (order_id IS NOT NULL)) AND ((merchant_id IS NULL) = (order_id IS NULL)))),
    CONSTRAINT wallet_nonce_purpose_check CHECK ((purpose = ANY (ARRAY['payout'::text, 'free'::text, 'cancel'::text, 'top_up'::text, 'cold'::text, 'lost'::text]))),
    CONSTRAINT wallet_nonce_wallet_check CHECK ((length(wallet) = 20))
);

CREATE TABLE public.wallet_session (
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
ALTER TABLE ONLY public.wallet_session ALTER COLUMN merchant_id SET (n_distinct=1);

CREATE TABLE public.withdrawal (
    merchant_id bigint NOT NULL,
    order_id bigint NOT NULL,
    mc_order_id text NOT NULL,
    amount bigint NOT NULL,
    fee bigint NOT NULL,
    rate_e8 bigint NOT NULL,
    chain public.chain_code NOT NULL,
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
    CONSTRAINT withdrawal_two_people CHECK (((first_approved_by IS NULL) OR (approved_by IS NULL) OR (public.person_of(first_approved_by) <> public.person_of(approved_by))))
);
ALTER TABLE ONLY public.withdrawal ALTER COLUMN merchant_id SET (n_distinct=1);
ALTER TABLE ONLY public.withdrawal ALTER COLUMN chain SET (n_distinct=3);
ALTER TABLE ONLY public.withdrawal ALTER COLUMN status SET (n_distinct=7);

CREATE TABLE public.withdrawal_step (
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
ALTER TABLE ONLY public.withdrawal_step ALTER COLUMN merchant_id SET (n_distinct=1);

CREATE TABLE public.worker_report (
    topic text NOT NULL,
    subject text NOT NULL,
    report jsonb NOT NULL,
    worker text NOT NULL,
    reported_ms bigint NOT NULL
);

CREATE TABLE public.xpub_pool (
    account_no integer NOT NULL,
    xpubs jsonb NOT NULL,
    merchant_id bigint,
    CONSTRAINT xpub_pool_account_no_check CHECK ((account_no >= 0)),
    CONSTRAINT xpub_pool_xpubs_check CHECK (((xpubs ? 'ERC20'::text) AND (xpubs ? 'TRC20'::text)))
);

ALTER TABLE ONLY public.account
    ADD CONSTRAINT account_pkey PRIMARY KEY (merchant_id, account_id);

ALTER TABLE ONLY public.approved_sum
    ADD CONSTRAINT approved_sum_pkey PRIMARY KEY (person, day);

ALTER TABLE ONLY public.archived_month
    ADD CONSTRAINT archived_month_pkey PRIMARY KEY (merchant_id, month);

ALTER TABLE ONLY public.archived_order
    ADD CONSTRAINT archived_order_pkey PRIMARY KEY (merchant_id, mc_order_id, kind);

ALTER TABLE ONLY public.asked_act
    ADD CONSTRAINT asked_act_pkey PRIMARY KEY (act_no);

ALTER TABLE ONLY public.audit_entry
    ADD CONSTRAINT audit_entry_pkey PRIMARY KEY (audit_no);

ALTER TABLE ONLY public.audit_head
    ADD CONSTRAINT audit_head_pkey PRIMARY KEY (is_head);

ALTER TABLE ONLY public.book
    ADD CONSTRAINT book_pkey PRIMARY KEY (merchant_id);

ALTER TABLE ONLY public.brand_logo
    ADD CONSTRAINT brand_logo_pkey PRIMARY KEY (digest);

ALTER TABLE ONLY public.callback_attempt
    ADD CONSTRAINT callback_attempt_pkey PRIMARY KEY (merchant_id, order_id, status, attempt_no);

ALTER TABLE ONLY public.callback
    ADD CONSTRAINT callback_merchant_id_event_id_key UNIQUE (merchant_id, event_id);

ALTER TABLE ONLY public.callback_pause
    ADD CONSTRAINT callback_pause_pkey PRIMARY KEY (merchant_id);

ALTER TABLE ONLY public.callback
    ADD CONSTRAINT callback_pkey PRIMARY KEY (merchant_id, order_id, status);

ALTER TABLE ONLY public.cancel_signed
    ADD CONSTRAINT cancel_signed_pkey PRIMARY KEY (chain, wallet, nonce, attempt_no);

ALTER TABLE ONLY public.cancel_signed
    ADD CONSTRAINT cancel_signed_tx_hash_key UNIQUE (tx_hash);

ALTER TABLE ONLY public.cell_move
    ADD CONSTRAINT cell_move_pkey PRIMARY KEY (cell_id);

ALTER TABLE ONLY public.cell
    ADD CONSTRAINT cell_name_key UNIQUE (name);

ALTER TABLE ONLY public.cell
    ADD CONSTRAINT cell_pkey PRIMARY KEY (cell_id);

ALTER TABLE ONLY public.cell_state
    ADD CONSTRAINT cell_state_pkey PRIMARY KEY (cell_id);

ALTER TABLE ONLY public.chain_block
    ADD CONSTRAINT chain_block_pkey PRIMARY KEY (chain, block_number);

ALTER TABLE ONLY public.chain_cursor
    ADD CONSTRAINT chain_cursor_pkey PRIMARY KEY (chain);

ALTER TABLE ONLY public.chain_position
    ADD CONSTRAINT chain_position_pkey PRIMARY KEY (chain);

ALTER TABLE ONLY public.chain_rewind
    ADD CONSTRAINT chain_rewind_pkey PRIMARY KEY (chain, rewind_no);

ALTER TABLE ONLY public.chain_transfer
    ADD CONSTRAINT chain_transfer_pkey PRIMARY KEY (chain, tx_hash, log_index);

ALTER TABLE ONLY public.checkpoint_key
    ADD CONSTRAINT checkpoint_key_pkey PRIMARY KEY (key_no);

ALTER TABLE ONLY public.cold_limit
    ADD CONSTRAINT cold_limit_pkey PRIMARY KEY (chain);

ALTER TABLE ONLY public.cold_signed
    ADD CONSTRAINT cold_signed_hash UNIQUE (tx_hash);

ALTER TABLE ONLY public.cold_signed
    ADD CONSTRAINT cold_signed_pkey PRIMARY KEY (chain, transfer_id, attempt_no);

ALTER TABLE ONLY public.cold_transfer
    ADD CONSTRAINT cold_transfer_pkey PRIMARY KEY (chain, transfer_id);

ALTER TABLE ONLY public.cold_wallet
    ADD CONSTRAINT cold_wallet_pkey PRIMARY KEY (chain, address);

ALTER TABLE ONLY public.credited_transaction
    ADD CONSTRAINT credited_transaction_chain_tx_hash_block_hash_key UNIQUE (chain, tx_hash, block_hash);

ALTER TABLE ONLY public.credited_transaction
    ADD CONSTRAINT credited_transaction_pkey PRIMARY KEY (chain, tx_hash);

ALTER TABLE ONLY public.custody_address
    ADD CONSTRAINT custody_address_pkey PRIMARY KEY (chain, address);

ALTER TABLE ONLY public.custody_cursor
    ADD CONSTRAINT custody_cursor_pkey PRIMARY KEY (chain);

ALTER TABLE ONLY public.custody_movement
    ADD CONSTRAINT custody_movement_pkey PRIMARY KEY (chain, tx_hash, log_index, is_out);

ALTER TABLE ONLY public.custody_remainder
    ADD CONSTRAINT custody_remainder_pkey PRIMARY KEY (chain, tx_hash, log_index, address);

ALTER TABLE ONLY public.custody_survey
    ADD CONSTRAINT custody_survey_pkey PRIMARY KEY (chain);

ALTER TABLE ONLY public.daily_figure
    ADD CONSTRAINT daily_figure_pkey PRIMARY KEY (merchant_id, day, kind, currency);

ALTER TABLE ONLY public.daily_movement
    ADD CONSTRAINT daily_movement_pkey PRIMARY KEY (merchant_id, day, account_id, currency, kind);

ALTER TABLE ONLY public.deposit_credit
    ADD CONSTRAINT deposit_credit_merchant_id_entry_id_key UNIQUE (merchant_id, entry_id);

ALTER TABLE ONLY public.deposit_credit
    ADD CONSTRAINT deposit_credit_pkey PRIMARY KEY (merchant_id, chain, tx_hash, log_index);

ALTER TABLE ONLY public.deposit
    ADD CONSTRAINT deposit_pkey PRIMARY KEY (merchant_id, chain, tx_hash, log_index);

ALTER TABLE ONLY public.entry
    ADD CONSTRAINT entry_pkey PRIMARY KEY (merchant_id, entry_id);

ALTER TABLE ONLY public.escalation_step
    ADD CONSTRAINT escalation_step_no UNIQUE (step_no);

ALTER TABLE ONLY public.escalation_step
    ADD CONSTRAINT escalation_step_pkey PRIMARY KEY (operator_id);

ALTER TABLE ONLY public.escalation_time
    ADD CONSTRAINT escalation_time_pkey PRIMARY KEY (kind);

ALTER TABLE ONLY public.failed_sign_in
    ADD CONSTRAINT failed_sign_in_pkey PRIMARY KEY (merchant_id, minute_ms, subject, factor, source);

ALTER TABLE ONLY public.failed_sign_in_seen
    ADD CONSTRAINT failed_sign_in_seen_pkey PRIMARY KEY (merchant_id, subject, day);

ALTER TABLE ONLY public.figure_cursor
    ADD CONSTRAINT figure_cursor_pkey PRIMARY KEY (merchant_id);

ALTER TABLE ONLY public.hot_wallet
    ADD CONSTRAINT hot_wallet_pkey PRIMARY KEY (chain);

ALTER TABLE ONLY public.id_range
    ADD CONSTRAINT id_range_pkey PRIMARY KEY (range_no);

ALTER TABLE ONLY public.instance
    ADD CONSTRAINT instance_pkey PRIMARY KEY (instance_id);

ALTER TABLE ONLY public.invoice
    ADD CONSTRAINT invoice_pkey PRIMARY KEY (year, number);

ALTER TABLE ONLY public.issued_address
    ADD CONSTRAINT issued_address_pkey PRIMARY KEY (address);

ALTER TABLE ONLY public.job
    ADD CONSTRAINT job_alone EXCLUDE USING gist (scope WITH &&);

ALTER TABLE ONLY public.job
    ADD CONSTRAINT job_pkey PRIMARY KEY (job_id);

ALTER TABLE ONLY public.kept_copy
    ADD CONSTRAINT kept_copy_pkey PRIMARY KEY (merchant_id);

ALTER TABLE ONLY public.lost_range
    ADD CONSTRAINT lost_range_pkey PRIMARY KEY (range_no);

ALTER TABLE ONLY public.lost_xpub
    ADD CONSTRAINT lost_xpub_pkey PRIMARY KEY (account_no);

ALTER TABLE ONLY public.merchant_address
    ADD CONSTRAINT merchant_address_merchant_id_address_key UNIQUE (merchant_id, address);

ALTER TABLE ONLY public.merchant_address
    ADD CONSTRAINT merchant_address_pkey PRIMARY KEY (merchant_id, chain);

ALTER TABLE ONLY public.merchant
    ADD CONSTRAINT merchant_app_key_key UNIQUE (app_key);

ALTER TABLE ONLY public.merchant_key
    ADD CONSTRAINT merchant_key_app_key_key UNIQUE (app_key);

ALTER TABLE ONLY public.merchant_key
    ADD CONSTRAINT merchant_key_pkey PRIMARY KEY (merchant_id, key_no);

ALTER TABLE ONLY public.merchant_key_secret
    ADD CONSTRAINT merchant_key_secret_pkey PRIMARY KEY (merchant_id, key_no, secret_no);

ALTER TABLE ONLY public.merchant_key_use
    ADD CONSTRAINT merchant_key_use_pkey PRIMARY KEY (merchant_id, key_no);

ALTER TABLE ONLY public.merchant_move
    ADD CONSTRAINT merchant_move_pkey PRIMARY KEY (merchant_id);

ALTER TABLE ONLY public.merchant
    ADD CONSTRAINT merchant_pkey PRIMARY KEY (merchant_id);

ALTER TABLE ONLY public.merchant_secret
    ADD CONSTRAINT merchant_secret_pkey PRIMARY KEY (merchant_id, purpose, secret_no);

ALTER TABLE ONLY public.month_book
    ADD CONSTRAINT month_book_pkey PRIMARY KEY (merchant_id, month);

ALTER TABLE ONLY public.month_report
    ADD CONSTRAINT month_report_pkey PRIMARY KEY (month);

ALTER TABLE ONLY public.network_fee_cursor
    ADD CONSTRAINT network_fee_cursor_pkey PRIMARY KEY (chain);

ALTER TABLE ONLY public.network_fee
    ADD CONSTRAINT network_fee_pkey PRIMARY KEY (chain, tx_hash);

ALTER TABLE ONLY public.nonce
    ADD CONSTRAINT nonce_pkey PRIMARY KEY (merchant_id, nonce, day);

ALTER TABLE ONLY public.notification_choice
    ADD CONSTRAINT notification_choice_pkey PRIMARY KEY (operator_id, kind);

ALTER TABLE ONLY public.notification_contact
    ADD CONSTRAINT notification_contact_pkey PRIMARY KEY (operator_id);

ALTER TABLE ONLY public.notification
    ADD CONSTRAINT notification_pkey PRIMARY KEY (notification_no);

ALTER TABLE ONLY public.notification_told
    ADD CONSTRAINT notification_told_pkey PRIMARY KEY (operator_id, channel, kind, item_key);

ALTER TABLE ONLY public.operator_failure
    ADD CONSTRAINT operator_failure_pkey PRIMARY KEY (key);

ALTER TABLE ONLY public.operator_known_source
    ADD CONSTRAINT operator_known_source_pkey PRIMARY KEY (key);

ALTER TABLE ONLY public.operator
    ADD CONSTRAINT operator_pkey PRIMARY KEY (operator_id);

ALTER TABLE ONLY public.operator_recovery_code
    ADD CONSTRAINT operator_recovery_code_pkey PRIMARY KEY (operator_id, code_hash);

ALTER TABLE ONLY public.operator_session
    ADD CONSTRAINT operator_session_pkey PRIMARY KEY (token_hash);

ALTER TABLE ONLY public.operator_wait
    ADD CONSTRAINT operator_wait_pkey PRIMARY KEY (person, from_ms, cause);

ALTER TABLE ONLY public.order_trace
    ADD CONSTRAINT order_trace_pkey PRIMARY KEY (merchant_id, order_id);

ALTER TABLE ONLY public.payout
    ADD CONSTRAINT payout_pkey PRIMARY KEY (merchant_id, order_id);

ALTER TABLE ONLY public.payout_reservation
    ADD CONSTRAINT payout_reservation_chain_wallet_nonce_key UNIQUE (chain, wallet, nonce);

ALTER TABLE ONLY public.payout_reservation
    ADD CONSTRAINT payout_reservation_pkey PRIMARY KEY (merchant_id, order_id);

ALTER TABLE ONLY public.payout_signed
    ADD CONSTRAINT payout_signed_pkey PRIMARY KEY (merchant_id, order_id, attempt_no);

ALTER TABLE ONLY public.payout_stop
    ADD CONSTRAINT payout_stop_pkey PRIMARY KEY (chain, actor);

ALTER TABLE ONLY public.posting
    ADD CONSTRAINT posting_pkey PRIMARY KEY (merchant_id, entry_id, posting_no);

ALTER TABLE ONLY public.proposal
    ADD CONSTRAINT proposal_pkey PRIMARY KEY (proposal_no);

ALTER TABLE ONLY public.rate_history
    ADD CONSTRAINT rate_history_pkey PRIMARY KEY (rate_history_id);

ALTER TABLE ONLY public.rate
    ADD CONSTRAINT rate_pkey PRIMARY KEY (merchant_id);

ALTER TABLE ONLY public.reconciliation
    ADD CONSTRAINT reconciliation_pkey PRIMARY KEY (chain, reconciliation_no);

ALTER TABLE ONLY public.reference_state
    ADD CONSTRAINT reference_state_pkey PRIMARY KEY (row_no);

ALTER TABLE ONLY public.refused_request
    ADD CONSTRAINT refused_request_pkey PRIMARY KEY (merchant_id, refused_no);

ALTER TABLE ONLY public.request_log
    ADD CONSTRAINT request_log_pkey PRIMARY KEY (merchant_id, log_no);

ALTER TABLE ONLY public.request_minute
    ADD CONSTRAINT request_minute_pkey PRIMARY KEY (merchant_id, minute_ms);

ALTER TABLE ONLY public.request_usage
    ADD CONSTRAINT request_usage_pkey PRIMARY KEY (merchant_id, hour_ms, key_no, operation, code);

ALTER TABLE ONLY public.rescue
    ADD CONSTRAINT rescue_pkey PRIMARY KEY (rescue_no);

ALTER TABLE ONLY public.rescue
    ADD CONSTRAINT rescue_proposal_no_key UNIQUE (proposal_no);

ALTER TABLE ONLY public.rollback_acceptance
    ADD CONSTRAINT rollback_acceptance_pkey PRIMARY KEY (acceptance_no);

ALTER TABLE ONLY public.rollback_evidence
    ADD CONSTRAINT rollback_evidence_pkey PRIMARY KEY (merchant_id, subject);

ALTER TABLE ONLY public.sandbox_callback
    ADD CONSTRAINT sandbox_callback_pkey PRIMARY KEY (merchant_id, attempt_no);

ALTER TABLE ONLY public.sandbox_count
    ADD CONSTRAINT sandbox_count_pkey PRIMARY KEY (merchant_id, name);

ALTER TABLE ONLY public.sandbox_deposit
    ADD CONSTRAINT sandbox_deposit_pkey PRIMARY KEY (chain, block_number);

ALTER TABLE ONLY public.sandbox_refund
    ADD CONSTRAINT sandbox_refund_pkey PRIMARY KEY (merchant_id, order_id);

ALTER TABLE ONLY public.sandbox_transfer
    ADD CONSTRAINT sandbox_transfer_pkey PRIMARY KEY (tx_hash);

ALTER TABLE ONLY public.sandbox_unconfirmed
    ADD CONSTRAINT sandbox_unconfirmed_pkey PRIMARY KEY (chain, deposit_no);

ALTER TABLE ONLY public.sandbox_unconfirmed
    ADD CONSTRAINT sandbox_unconfirmed_tx_hash UNIQUE (tx_hash);

ALTER TABLE ONLY public.schema_migration
    ADD CONSTRAINT schema_migration_pkey PRIMARY KEY (version);

ALTER TABLE ONLY public.screening
    ADD CONSTRAINT screening_pkey PRIMARY KEY (screening_no);

ALTER TABLE ONLY public.screening_question
    ADD CONSTRAINT screening_question_pkey PRIMARY KEY (screening_no, round_no);

ALTER TABLE ONLY public.screening_question
    ADD CONSTRAINT screening_question_request_id UNIQUE (request_id);

ALTER TABLE ONLY public.side_role
    ADD CONSTRAINT side_role_pkey PRIMARY KEY (side);

ALTER TABLE ONLY public.side_role
    ADD CONSTRAINT side_role_role_name_key UNIQUE (role_name);

ALTER TABLE ONLY public.staff_secret
    ADD CONSTRAINT staff_secret_pkey PRIMARY KEY (merchant_id, made_ms, key_no, person);

ALTER TABLE ONLY public.sub_user
    ADD CONSTRAINT sub_user_merchant_id_address_index_key UNIQUE (merchant_id, address_index);

ALTER TABLE ONLY public.sub_user
    ADD CONSTRAINT sub_user_merchant_id_ext_user_id_key UNIQUE (merchant_id, ext_user_id);

ALTER TABLE ONLY public.sub_user
    ADD CONSTRAINT sub_user_pkey PRIMARY KEY (merchant_id, user_id);

ALTER TABLE ONLY public.superseded_book
    ADD CONSTRAINT superseded_book_pkey PRIMARY KEY (merchant_id, month, version);

ALTER TABLE ONLY public.superseded_month
    ADD CONSTRAINT superseded_month_pkey PRIMARY KEY (month, version);

ALTER TABLE ONLY public.sweep
    ADD CONSTRAINT sweep_chain_wallet_top_up_nonce_key UNIQUE (chain, wallet, top_up_nonce);

ALTER TABLE ONLY public.sweep
    ADD CONSTRAINT sweep_pkey PRIMARY KEY (chain, sweep_id);

ALTER TABLE ONLY public.sweep_signed
    ADD CONSTRAINT sweep_signed_pkey PRIMARY KEY (chain, sweep_id, kind, attempt_no);

ALTER TABLE ONLY public.sweep_signed
    ADD CONSTRAINT sweep_signed_tx_hash_key UNIQUE (tx_hash);

ALTER TABLE ONLY public.test_event
    ADD CONSTRAINT test_event_pkey PRIMARY KEY (merchant_id, event_no);

ALTER TABLE ONLY public.treasury_movement
    ADD CONSTRAINT treasury_movement_pkey PRIMARY KEY (chain, movement_no);

ALTER TABLE ONLY public.wallet_address
    ADD CONSTRAINT wallet_address_pkey PRIMARY KEY (merchant_id, address);

ALTER TABLE ONLY public.wallet_nonce
    ADD CONSTRAINT wallet_nonce_chain_wallet_nonce_merchant_id_order_id_key UNIQUE (chain, wallet, nonce, merchant_id, order_id);

ALTER TABLE ONLY public.wallet_nonce
    ADD CONSTRAINT wallet_nonce_merchant_id_order_id_key UNIQUE (merchant_id, order_id);

ALTER TABLE ONLY public.wallet_nonce
    ADD CONSTRAINT wallet_nonce_pkey PRIMARY KEY (chain, wallet, nonce);

ALTER TABLE ONLY public.wallet_session
    ADD CONSTRAINT wallet_session_pkey PRIMARY KEY (merchant_id, token_hash);

ALTER TABLE ONLY public.withdrawal
    ADD CONSTRAINT withdrawal_merchant_id_mc_order_id_key UNIQUE (merchant_id, mc_order_id);

ALTER TABLE ONLY public.withdrawal
    ADD CONSTRAINT withdrawal_pkey PRIMARY KEY (merchant_id, order_id);

ALTER TABLE ONLY public.withdrawal_step
    ADD CONSTRAINT withdrawal_step_merchant_id_order_id_step_no_to_status_key UNIQUE (merchant_id, order_id, step_no, to_status);

ALTER TABLE ONLY public.withdrawal_step
    ADD CONSTRAINT withdrawal_step_pkey PRIMARY KEY (merchant_id, order_id, step_no);

ALTER TABLE ONLY public.worker_report
    ADD CONSTRAINT worker_report_pkey PRIMARY KEY (topic, subject);

ALTER TABLE ONLY public.xpub_pool
    ADD CONSTRAINT xpub_pool_merchant_id_key UNIQUE (merchant_id);

ALTER TABLE ONLY public.xpub_pool
    ADD CONSTRAINT xpub_pool_pkey PRIMARY KEY (account_no);

CREATE INDEX asked_act_of ON public.asked_act USING btree (subject, act_no DESC);

CREATE UNIQUE INDEX asked_act_open ON public.asked_act USING btree (kind, subject) WHERE (ended_ms IS NULL);

CREATE INDEX audit_entry_action ON public.audit_entry USING btree (action, audit_no);

CREATE INDEX audit_entry_actor ON public.audit_entry USING btree (actor, audit_no);

CREATE INDEX audit_entry_merchant ON public.audit_entry USING btree (merchant_id, audit_no);

CREATE INDEX book_closed ON public.book USING btree (merchant_id) WHERE (NOT is_open);

CREATE INDEX brand_logo_of ON public.brand_logo USING btree (merchant_id, uploaded_ms);

CREATE INDEX callback_by_moment ON public.callback USING btree (state, event_type, created_ms, order_id, status);

CREATE INDEX callback_due ON public.callback USING btree (merchant_id, next_ms, created_ms) WHERE (state = 'due'::text);

CREATE INDEX callback_of_merchant_by_moment ON public.callback USING btree (merchant_id, state, event_type, created_ms, order_id, status);

CREATE INDEX callback_stopped ON public.callback USING btree (merchant_id, order_id) WHERE (state = ANY (ARRAY['dead_letter'::text, 'paused'::text]));

CREATE UNIQUE INDEX cell_is_distributed ON public.cell USING btree (cell_id, is_distributed);

CREATE UNIQUE INDEX cell_state_one_row ON public.cell_state USING btree ((true));

CREATE INDEX chain_transfer_by_block ON public.chain_transfer USING btree (chain, block_number);

CREATE UNIQUE INDEX chain_transfer_log ON public.chain_transfer USING btree (chain, block_hash, block_log_index) WHERE (block_log_index IS NOT NULL);

CREATE INDEX chain_transfer_untaken ON public.chain_transfer USING btree (chain, block_number) WHERE ((taken_ms IS NULL) AND (NOT is_gone));

CREATE UNIQUE INDEX cold_transfer_nonce_once ON public.cold_transfer USING btree (chain, hot, nonce);

CREATE UNIQUE INDEX cold_transfer_open ON public.cold_transfer USING btree (chain) WHERE (ended_ms IS NULL);

CREATE INDEX cold_transfer_reserved ON public.cold_transfer USING btree (chain, ended_no) WHERE (reserved_ms IS NOT NULL);

CREATE UNIQUE INDEX cold_transfer_tx ON public.cold_transfer USING btree (chain, tx_hash) WHERE (step <> ALL (ARRAY['failed'::text, 'dropped'::text]));

CREATE UNIQUE INDEX cold_wallet_current ON public.cold_wallet USING btree (chain) WHERE (retired_ms IS NULL);

CREATE INDEX custody_address_wallet ON public.custody_address USING btree (address) WHERE (purpose <> 'deposit'::text);

CREATE INDEX custody_movement_open ON public.custody_movement USING btree (chain, block_number) WHERE (explained_ms IS NULL);

CREATE INDEX custody_remainder_of_address ON public.custody_remainder USING btree (chain, address);

CREATE INDEX deposit_by_address ON public.deposit USING btree (address, seen_ms, chain, tx_hash, log_index);

CREATE INDEX deposit_by_amount ON public.deposit USING btree (amount, seen_ms);

CREATE INDEX deposit_by_block ON public.deposit USING btree (chain, block_number) WHERE (final_ms IS NOT NULL);

CREATE INDEX deposit_by_merchant ON public.deposit USING btree (merchant_id, seen_ms, chain, tx_hash, log_index);

CREATE INDEX deposit_by_moment ON public.deposit USING btree (status, chain, seen_ms, tx_hash, log_index);

CREATE INDEX deposit_by_wallet ON public.deposit USING btree (merchant_id, user_id, seen_ms, chain, tx_hash, log_index);

CREATE INDEX deposit_dust ON public.deposit USING btree (merchant_id, chain, address) WHERE (status = 'dust'::text);

CREATE INDEX deposit_held ON public.deposit USING btree (seen_ms) WHERE (status = 'held'::text);

CREATE UNIQUE INDEX deposit_log ON public.deposit USING btree (chain, block_hash, block_log_index) WHERE ((block_log_index IS NOT NULL) AND (final_ms IS NOT NULL));

CREATE INDEX deposit_of_merchant_by_moment ON public.deposit USING btree (merchant_id, status, chain, seen_ms, tx_hash, log_index);

CREATE INDEX deposit_pending ON public.deposit USING btree (next_ms, merchant_id) WHERE (status = 'pending'::text);

CREATE INDEX deposit_seen ON public.deposit USING btree (chain, block_number) WHERE (status = 'seen'::text);

CREATE UNIQUE INDEX deposit_transfer ON public.deposit USING btree (chain, tx_hash, log_index);

CREATE UNIQUE INDEX entry_order ON public.entry USING btree (merchant_id, mc_order_id, kind) WHERE (mc_order_id IS NOT NULL);

CREATE INDEX entry_rare ON public.entry USING btree (merchant_id, kind, entry_id) WHERE ((kind)::text <> ALL (ARRAY['user_to_merchant'::text, 'merchant_to_user'::text, 'exchange'::text]));

CREATE UNIQUE INDEX entry_reference ON public.entry USING btree (merchant_id, mc_order_id) WHERE ((mc_order_id IS NOT NULL) AND ((kind)::text = ANY (ARRAY['adjust'::text, 'fee_withdraw'::text])));

CREATE INDEX failed_sign_in_minute ON public.failed_sign_in USING btree (minute_ms);

CREATE INDEX failed_sign_in_subject ON public.failed_sign_in USING btree (merchant_id, subject, last_ms);

CREATE INDEX failed_sign_in_unlogged ON public.failed_sign_in USING btree (minute_ms) WHERE (audit_no IS NULL);

CREATE INDEX invoice_month ON public.invoice USING btree (month, number);

CREATE UNIQUE INDEX invoice_of_version ON public.invoice USING btree (merchant_id, month, version);

CREATE INDEX merchant_by_name ON public.merchant USING btree (name COLLATE "C", merchant_id);

CREATE INDEX merchant_to_carry ON public.merchant USING btree (merchant_id) WHERE (carried_version < settings_version);

CREATE INDEX month_book_month ON public.month_book USING btree (month, merchant_id);

CREATE INDEX network_fee_moment ON public.network_fee USING btree (at_ms);

CREATE INDEX notification_age ON public.notification USING btree (created_ms);

CREATE INDEX notification_failed ON public.notification USING btree (ended_ms) WHERE (state = 'failed'::text);

CREATE INDEX notification_of_operator ON public.notification USING btree (operator_id, notification_no);

CREATE INDEX notification_told_by ON public.notification_told USING btree (notification_no);

CREATE INDEX notification_waiting ON public.notification USING btree (next_ms) WHERE (state = 'waiting'::text);

CREATE INDEX operator_failure_age ON public.operator_failure USING btree (last_ms);

CREATE INDEX operator_known_source_operator ON public.operator_known_source USING btree (operator_id, seen_ms);

CREATE INDEX operator_merchant ON public.operator USING btree (merchant_id) WHERE (merchant_id IS NOT NULL);

CREATE UNIQUE INDEX operator_name ON public.operator USING btree (lower((name COLLATE "C")));

CREATE INDEX operator_session_expiry ON public.operator_session USING btree (expires_ms);

CREATE INDEX operator_session_operator ON public.operator_session USING btree (operator_id, created_ms);

CREATE INDEX order_trace_age ON public.order_trace USING btree (at_ms);

CREATE INDEX payout_blocked ON public.payout USING btree (obstacle_ms) WHERE (obstacle_ms IS NOT NULL);

CREATE INDEX payout_frozen_open ON public.payout USING btree (frozen_ms) WHERE (frozen_ms IS NOT NULL);

CREATE INDEX payout_open ON public.payout USING btree (claimed_until_ms, merchant_id, order_id) WHERE (phase <> 'closed'::text);

CREATE INDEX payout_reservation_ended ON public.payout_reservation USING btree (chain, ended_no) WHERE (ended_no IS NOT NULL);

CREATE INDEX payout_reservation_open ON public.payout_reservation USING btree (chain) WHERE (ended_no IS NULL);

CREATE INDEX payout_reservation_paid_to ON public.payout_reservation USING btree (recipient);

CREATE UNIQUE INDEX payout_signed_hash ON public.payout_signed USING btree (tx_hash);

CREATE INDEX posting_source ON public.posting USING btree (merchant_id, source_id, entry_id);

CREATE INDEX posting_target ON public.posting USING btree (merchant_id, target_id, entry_id);

CREATE UNIQUE INDEX proposal_entry ON public.proposal USING btree (merchant_id, entry_id) WHERE (entry_id IS NOT NULL);

CREATE INDEX proposal_merchant ON public.proposal USING btree (merchant_id, proposal_no);

CREATE INDEX proposal_open ON public.proposal USING btree (proposal_no) WHERE (state = 'open'::text);

CREATE INDEX proposal_unfinished ON public.proposal USING btree (proposal_no) WHERE ((kind = 'adjustment'::text) AND (state = 'accepted'::text) AND (entry_id IS NULL));

CREATE INDEX request_log_age ON public.request_log USING btree (at_ms);

CREATE INDEX request_minute_age ON public.request_minute USING btree (minute_ms);

CREATE INDEX request_usage_age ON public.request_usage USING btree (hour_ms);

CREATE INDEX rescue_newest ON public.rescue USING btree (chain, address, rescue_no);

CREATE INDEX sandbox_callback_event ON public.sandbox_callback USING btree (merchant_id, event_id, attempt_no);

CREATE INDEX sandbox_transfer_final ON public.sandbox_transfer USING btree (chain, final_ms);

CREATE INDEX screening_cleared_orders ON public.screening USING btree (merchant_id, cleared_ms) INCLUDE (amount) WHERE ((order_id IS NOT NULL) AND (cleared_ms IS NOT NULL));

CREATE UNIQUE INDEX screening_deposit ON public.screening USING btree (chain, tx_hash, log_index) WHERE (tx_hash IS NOT NULL);

CREATE INDEX screening_of_merchant ON public.screening USING btree (merchant_id, screening_no);

CREATE UNIQUE INDEX screening_order ON public.screening USING btree (merchant_id, order_id) WHERE (order_id IS NOT NULL);

CREATE INDEX screening_question_asked ON public.screening_question USING btree (asked_ms);

CREATE INDEX screening_unapplied ON public.screening USING btree (decided_ms) WHERE ((decided_ms IS NOT NULL) AND (applied_ms IS NULL));

CREATE INDEX screening_waiting ON public.screening USING btree (screening_no) WHERE (state = ANY (ARRAY['open'::text, 'held'::text]));

CREATE INDEX sub_user_by_ext ON public.sub_user USING btree (merchant_id, ext_user_id COLLATE "C");

CREATE INDEX sub_user_by_name ON public.sub_user USING btree (merchant_id, lower(username) COLLATE "C", user_id);

CREATE INDEX sub_user_by_name_part ON public.sub_user USING gin (public.name_grams(username));

CREATE INDEX sub_user_by_part ON public.sub_user USING gin (public.search_grams(ext_user_id));

CREATE INDEX superseded_book_month ON public.superseded_book USING btree (month, version, merchant_id);

CREATE INDEX sweep_address ON public.sweep USING btree (chain, address, sweep_id);

CREATE UNIQUE INDEX sweep_continued_once ON public.sweep USING btree (chain, continues) WHERE (continues IS NOT NULL);

CREATE INDEX sweep_ended ON public.sweep USING btree (ended_ms) WHERE (ended_ms IS NOT NULL);

CREATE INDEX sweep_failed ON public.sweep USING btree (chain, ended_ms) WHERE ((step = 'failed'::text) AND (ended_by IS NULL));

CREATE UNIQUE INDEX sweep_newest ON public.sweep USING btree (sweep_id);

CREATE UNIQUE INDEX sweep_open ON public.sweep USING btree (chain, address) WHERE (ended_ms IS NULL);

CREATE INDEX sweep_rescue ON public.sweep USING btree (rescue_no, sweep_id) WHERE (rescue_no IS NOT NULL);

CREATE UNIQUE INDEX sweep_rescue_once ON public.sweep USING btree (rescue_no) WHERE ((rescue_no IS NOT NULL) AND (continues IS NULL));

CREATE INDEX sweep_under_way ON public.sweep USING btree (chain, sweep_id) WHERE (ended_ms IS NULL);

CREATE INDEX test_event_waiting ON public.test_event USING btree (requested_ms) WHERE (claimed_ms IS NULL);

CREATE UNIQUE INDEX treasury_movement_corrects ON public.treasury_movement USING btree (chain, corrects);

CREATE UNIQUE INDEX treasury_movement_once ON public.treasury_movement USING btree (chain, tx_hash, direction, amount, COALESCE(replaces, (0)::bigint)) WHERE (corrects IS NULL);

CREATE UNIQUE INDEX treasury_movement_whole ON public.treasury_movement USING btree (chain, movement_no, tx_hash, amount, direction);

CREATE INDEX wallet_nonce_fee ON public.wallet_nonce USING btree (chain, wallet, nonce) WHERE ((cancelled_ms IS NOT NULL) AND (fee_read_ms IS NULL));

CREATE INDEX wallet_nonce_open ON public.wallet_nonce USING btree (chain, wallet, nonce) WHERE ((purpose = 'free'::text) OR ((purpose = 'cancel'::text) AND (cancelled_ms IS NULL)));

CREATE INDEX wallet_session_end ON public.wallet_session USING btree (expires_ms);

CREATE INDEX wallet_session_user ON public.wallet_session USING btree (merchant_id, user_id, created_ms);

CREATE INDEX withdrawal_by_address ON public.withdrawal USING btree (merchant_id, lower(address), created_ms, order_id);

CREATE INDEX withdrawal_by_amount ON public.withdrawal USING btree (status, chain, amount, order_id);

CREATE INDEX withdrawal_by_moment ON public.withdrawal USING btree (status, chain, created_ms, order_id);

CREATE INDEX withdrawal_frozen ON public.withdrawal USING btree (merchant_id, order_id) WHERE ((frozen_ms IS NOT NULL) AND (status = ANY (ARRAY[0, 1, 3])));

CREATE INDEX withdrawal_of_merchant_by_amount ON public.withdrawal USING btree (merchant_id, status, chain, amount, order_id);

CREATE INDEX withdrawal_of_merchant_by_moment ON public.withdrawal USING btree (merchant_id, status, chain, created_ms, order_id);

CREATE INDEX withdrawal_open ON public.withdrawal USING btree (status, created_ms) WHERE (status = ANY (ARRAY[0, 1, 3]));

CREATE INDEX withdrawal_unapproved ON public.withdrawal USING btree (created_ms, order_id) WHERE ((status = 0) AND (approved_ms IS NULL));

CREATE INDEX withdrawal_unqueued ON public.withdrawal USING btree (approved_ms, merchant_id, order_id) WHERE ((NOT is_queued) AND (approved_ms IS NOT NULL) AND (status = ANY (ARRAY[0, 1, 3])));

CREATE INDEX xpub_pool_free ON public.xpub_pool USING btree (account_no) WHERE (merchant_id IS NULL);

ALTER TABLE ONLY public.account
    ADD CONSTRAINT account_merchant_id_fkey FOREIGN KEY (merchant_id) REFERENCES public.book(merchant_id);

ALTER TABLE ONLY public.audit_entry
    ADD CONSTRAINT audit_entry_merchant_id_fkey FOREIGN KEY (merchant_id) REFERENCES public.merchant(merchant_id);

ALTER TABLE ONLY public.audit_entry
    ADD CONSTRAINT audit_entry_previous_no_fkey FOREIGN KEY (previous_no) REFERENCES public.audit_entry(audit_no);

ALTER TABLE ONLY public.book
    ADD CONSTRAINT book_merchant_id_fkey FOREIGN KEY (merchant_id) REFERENCES public.merchant(merchant_id);

ALTER TABLE ONLY public.callback_attempt
    ADD CONSTRAINT callback_attempt_merchant_id_order_id_status_fkey FOREIGN KEY (merchant_id, order_id, status) REFERENCES public.callback(merchant_id, order_id, status);

ALTER TABLE ONLY public.callback
    ADD CONSTRAINT callback_merchant_id_withdrawal_id_fkey FOREIGN KEY (merchant_id, withdrawal_id) REFERENCES public.withdrawal(merchant_id, order_id);

ALTER TABLE ONLY public.callback_pause
    ADD CONSTRAINT callback_pause_merchant_id_fkey FOREIGN KEY (merchant_id) REFERENCES public.merchant(merchant_id);

ALTER TABLE ONLY public.cancel_signed
    ADD CONSTRAINT cancel_signed_chain_wallet_nonce_fkey FOREIGN KEY (chain, wallet, nonce) REFERENCES public.wallet_nonce(chain, wallet, nonce);

ALTER TABLE ONLY public.cell_move
    ADD CONSTRAINT cell_move_cell_id_fkey FOREIGN KEY (cell_id) REFERENCES public.cell(cell_id);

ALTER TABLE ONLY public.cell_move
    ADD CONSTRAINT cell_move_of_plain FOREIGN KEY (cell_id, is_distributed) REFERENCES public.cell(cell_id, is_distributed);

ALTER TABLE ONLY public.chain_transfer
    ADD CONSTRAINT chain_transfer_merchant_id_fkey FOREIGN KEY (merchant_id) REFERENCES public.merchant(merchant_id);

ALTER TABLE ONLY public.cold_signed
    ADD CONSTRAINT cold_signed_chain_transfer_id_fkey FOREIGN KEY (chain, transfer_id) REFERENCES public.cold_transfer(chain, transfer_id);

ALTER TABLE ONLY public.cold_transfer
    ADD CONSTRAINT cold_transfer_chain_cold_fkey FOREIGN KEY (chain, cold) REFERENCES public.cold_wallet(chain, address);

ALTER TABLE ONLY public.cold_transfer
    ADD CONSTRAINT cold_transfer_chain_hot_nonce_fkey FOREIGN KEY (chain, hot, nonce) REFERENCES public.wallet_nonce(chain, wallet, nonce);

ALTER TABLE ONLY public.deposit_credit
    ADD CONSTRAINT deposit_credit_merchant_id_chain_tx_hash_log_index_fkey FOREIGN KEY (merchant_id, chain, tx_hash, log_index) REFERENCES public.deposit(merchant_id, chain, tx_hash, log_index);

ALTER TABLE ONLY public.deposit_credit
    ADD CONSTRAINT deposit_credit_one_block FOREIGN KEY (chain, tx_hash, block_hash) REFERENCES public.credited_transaction(chain, tx_hash, block_hash);

ALTER TABLE ONLY public.deposit
    ADD CONSTRAINT deposit_merchant_id_fkey FOREIGN KEY (merchant_id) REFERENCES public.merchant(merchant_id);

ALTER TABLE ONLY public.deposit
    ADD CONSTRAINT deposit_merchant_id_user_id_fkey FOREIGN KEY (merchant_id, user_id) REFERENCES public.sub_user(merchant_id, user_id);

ALTER TABLE ONLY public.escalation_step
    ADD CONSTRAINT escalation_step_operator_id_fkey FOREIGN KEY (operator_id) REFERENCES public.operator(operator_id);

ALTER TABLE ONLY public.figure_cursor
    ADD CONSTRAINT figure_cursor_merchant_id_fkey FOREIGN KEY (merchant_id) REFERENCES public.book(merchant_id);

ALTER TABLE ONLY public.id_range
    ADD CONSTRAINT id_range_merchant_id_fkey FOREIGN KEY (merchant_id) REFERENCES public.merchant(merchant_id);

ALTER TABLE ONLY public.invoice
    ADD CONSTRAINT invoice_month_fkey FOREIGN KEY (month) REFERENCES public.month_report(month);

ALTER TABLE ONLY public.invoice
    ADD CONSTRAINT invoice_year_previous_number_fkey FOREIGN KEY (year, previous_number) REFERENCES public.invoice(year, number);

ALTER TABLE ONLY public.kept_copy
    ADD CONSTRAINT kept_copy_cell_id_fkey FOREIGN KEY (cell_id) REFERENCES public.cell(cell_id);

ALTER TABLE ONLY public.kept_copy
    ADD CONSTRAINT kept_copy_merchant_id_fkey FOREIGN KEY (merchant_id) REFERENCES public.merchant(merchant_id);

ALTER TABLE ONLY public.merchant_address
    ADD CONSTRAINT merchant_address_merchant_id_fkey FOREIGN KEY (merchant_id) REFERENCES public.merchant(merchant_id);

ALTER TABLE ONLY public.merchant
    ADD CONSTRAINT merchant_cell_id_fkey FOREIGN KEY (cell_id) REFERENCES public.cell(cell_id);

ALTER TABLE ONLY public.merchant_key
    ADD CONSTRAINT merchant_key_merchant_id_fkey FOREIGN KEY (merchant_id) REFERENCES public.merchant(merchant_id);

ALTER TABLE ONLY public.merchant_key_secret
    ADD CONSTRAINT merchant_key_secret_merchant_id_key_no_fkey FOREIGN KEY (merchant_id, key_no) REFERENCES public.merchant_key(merchant_id, key_no);

ALTER TABLE ONLY public.merchant_move
    ADD CONSTRAINT merchant_move_from_cell_id_fkey FOREIGN KEY (from_cell_id) REFERENCES public.cell(cell_id);

ALTER TABLE ONLY public.merchant_move
    ADD CONSTRAINT merchant_move_from_plain FOREIGN KEY (from_cell_id, is_distributed) REFERENCES public.cell(cell_id, is_distributed);

ALTER TABLE ONLY public.merchant_move
    ADD CONSTRAINT merchant_move_merchant_id_fkey FOREIGN KEY (merchant_id) REFERENCES public.merchant(merchant_id);

ALTER TABLE ONLY public.merchant_move
    ADD CONSTRAINT merchant_move_to_cell_id_fkey FOREIGN KEY (to_cell_id) REFERENCES public.cell(cell_id);

ALTER TABLE ONLY public.merchant_move
    ADD CONSTRAINT merchant_move_to_plain FOREIGN KEY (to_cell_id, is_distributed) REFERENCES public.cell(cell_id, is_distributed);

ALTER TABLE ONLY public.merchant_secret
    ADD CONSTRAINT merchant_secret_merchant_id_fkey FOREIGN KEY (merchant_id) REFERENCES public.merchant(merchant_id);

ALTER TABLE ONLY public.month_book
    ADD CONSTRAINT month_book_month_fkey FOREIGN KEY (month) REFERENCES public.month_report(month);

ALTER TABLE ONLY public.month_report
    ADD CONSTRAINT month_report_proposal_no_fkey FOREIGN KEY (proposal_no) REFERENCES public.proposal(proposal_no);

ALTER TABLE ONLY public.notification_choice
    ADD CONSTRAINT notification_choice_operator_id_fkey FOREIGN KEY (operator_id) REFERENCES public.operator(operator_id);

ALTER TABLE ONLY public.notification_contact
    ADD CONSTRAINT notification_contact_operator_id_fkey FOREIGN KEY (operator_id) REFERENCES public.operator(operator_id);

ALTER TABLE ONLY public.notification
    ADD CONSTRAINT notification_operator_id_fkey FOREIGN KEY (operator_id) REFERENCES public.operator(operator_id);

ALTER TABLE ONLY public.notification_told
    ADD CONSTRAINT notification_told_notification_no_fkey FOREIGN KEY (notification_no) REFERENCES public.notification(notification_no);

ALTER TABLE ONLY public.notification_told
    ADD CONSTRAINT notification_told_operator_id_fkey FOREIGN KEY (operator_id) REFERENCES public.operator(operator_id);

ALTER TABLE ONLY public.operator_known_source
    ADD CONSTRAINT operator_known_source_operator_id_fkey FOREIGN KEY (operator_id) REFERENCES public.operator(operator_id);

ALTER TABLE ONLY public.operator
    ADD CONSTRAINT operator_merchant_id_fkey FOREIGN KEY (merchant_id) REFERENCES public.merchant(merchant_id);

ALTER TABLE ONLY public.operator_recovery_code
    ADD CONSTRAINT operator_recovery_code_operator_id_fkey FOREIGN KEY (operator_id) REFERENCES public.operator(operator_id);

ALTER TABLE ONLY public.operator_session
    ADD CONSTRAINT operator_session_operator_id_fkey FOREIGN KEY (operator_id) REFERENCES public.operator(operator_id);

ALTER TABLE ONLY public.payout_reservation
    ADD CONSTRAINT payout_reservation_chain_wallet_nonce_merchant_id_order_id_fkey FOREIGN KEY (chain, wallet, nonce, merchant_id, order_id) REFERENCES public.wallet_nonce(chain, wallet, nonce, merchant_id, order_id);

ALTER TABLE ONLY public.payout_reservation
    ADD CONSTRAINT payout_reservation_merchant_id_order_id_fkey FOREIGN KEY (merchant_id, order_id) REFERENCES public.payout(merchant_id, order_id);

ALTER TABLE ONLY public.payout_signed
    ADD CONSTRAINT payout_signed_merchant_id_order_id_fkey FOREIGN KEY (merchant_id, order_id) REFERENCES public.payout_reservation(merchant_id, order_id);

ALTER TABLE ONLY public.proposal
    ADD CONSTRAINT proposal_merchant_id_fkey FOREIGN KEY (merchant_id) REFERENCES public.merchant(merchant_id);

ALTER TABLE ONLY public.refused_request
    ADD CONSTRAINT refused_request_merchant_id_fkey FOREIGN KEY (merchant_id) REFERENCES public.merchant(merchant_id);

ALTER TABLE ONLY public.rescue
    ADD CONSTRAINT rescue_merchant_id_fkey FOREIGN KEY (merchant_id) REFERENCES public.merchant(merchant_id);

ALTER TABLE ONLY public.staff_secret
    ADD CONSTRAINT staff_secret_merchant_id_fkey FOREIGN KEY (merchant_id) REFERENCES public.merchant(merchant_id);

ALTER TABLE ONLY public.sub_user
    ADD CONSTRAINT sub_user_merchant_id_user_id_fkey FOREIGN KEY (merchant_id, user_id) REFERENCES public.account(merchant_id, account_id);

ALTER TABLE ONLY public.superseded_book
    ADD CONSTRAINT superseded_book_month_version_fkey FOREIGN KEY (month, version) REFERENCES public.superseded_month(month, version);

ALTER TABLE ONLY public.superseded_month
    ADD CONSTRAINT superseded_month_month_fkey FOREIGN KEY (month) REFERENCES public.month_report(month);

ALTER TABLE ONLY public.superseded_month
    ADD CONSTRAINT superseded_month_proposal_no_fkey FOREIGN KEY (proposal_no) REFERENCES public.proposal(proposal_no);

ALTER TABLE ONLY public.sweep
    ADD CONSTRAINT sweep_chain_wallet_top_up_nonce_fkey FOREIGN KEY (chain, wallet, top_up_nonce) REFERENCES public.wallet_nonce(chain, wallet, nonce);

ALTER TABLE ONLY public.sweep
    ADD CONSTRAINT sweep_continues FOREIGN KEY (chain, continues) REFERENCES public.sweep(chain, sweep_id);

ALTER TABLE ONLY public.sweep
    ADD CONSTRAINT sweep_merchant_id_fkey FOREIGN KEY (merchant_id) REFERENCES public.merchant(merchant_id);

ALTER TABLE ONLY public.sweep
    ADD CONSTRAINT sweep_rescue_no FOREIGN KEY (rescue_no) REFERENCES public.rescue(rescue_no);

ALTER TABLE ONLY public.sweep_signed
    ADD CONSTRAINT sweep_signed_chain_sweep_id_fkey FOREIGN KEY (chain, sweep_id) REFERENCES public.sweep(chain, sweep_id);

ALTER TABLE ONLY public.treasury_movement
    ADD CONSTRAINT treasury_movement_corrected FOREIGN KEY (chain, corrects, tx_hash, amount, corrects_direction) REFERENCES public.treasury_movement(chain, movement_no, tx_hash, amount, direction);

ALTER TABLE ONLY public.treasury_movement
    ADD CONSTRAINT treasury_movement_repeated FOREIGN KEY (chain, replaces, tx_hash, amount, direction) REFERENCES public.treasury_movement(chain, movement_no, tx_hash, amount, direction);

ALTER TABLE ONLY public.treasury_movement
    ADD CONSTRAINT treasury_movement_replaced FOREIGN KEY (chain, replaces) REFERENCES public.treasury_movement(chain, corrects);

ALTER TABLE ONLY public.wallet_address
    ADD CONSTRAINT wallet_address_merchant_id_user_id_fkey FOREIGN KEY (merchant_id, user_id) REFERENCES public.sub_user(merchant_id, user_id);

ALTER TABLE ONLY public.wallet_session
    ADD CONSTRAINT wallet_session_merchant_id_user_id_fkey FOREIGN KEY (merchant_id, user_id) REFERENCES public.sub_user(merchant_id, user_id);

ALTER TABLE ONLY public.withdrawal
    ADD CONSTRAINT withdrawal_merchant_id_order_id_step_no_status_fkey FOREIGN KEY (merchant_id, order_id, step_no, status) REFERENCES public.withdrawal_step(merchant_id, order_id, step_no, to_status);

ALTER TABLE ONLY public.withdrawal_step
    ADD CONSTRAINT withdrawal_step_merchant_id_order_id_previous_no_from_stat_fkey FOREIGN KEY (merchant_id, order_id, previous_no, from_status) REFERENCES public.withdrawal_step(merchant_id, order_id, step_no, to_status);

ALTER TABLE ONLY public.xpub_pool
    ADD CONSTRAINT xpub_pool_merchant_id_fkey FOREIGN KEY (merchant_id) REFERENCES public.merchant(merchant_id);
