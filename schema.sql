CREATE DOMAIN public.account_kind AS text
	CONSTRAINT account_kind_check CHECK ((VALUE = ANY (ARRAY['merchant'::text, 'subuser'::text, 'hold'::text, 'fees'::text, 'exchange'::text, 'chain:ERC20'::text, 'chain:TRC20'::text, 'adjustment'::text])));

CREATE DOMAIN public.currency AS text
	CONSTRAINT currency_check CHECK ((VALUE = ANY (ARRAY['USDT'::text, 'KFB'::text])));

CREATE DOMAIN public.entry_kind AS text
	CONSTRAINT entry_kind_check CHECK ((VALUE = ANY (ARRAY['user_to_merchant'::text, 'merchant_to_user'::text, 'exchange'::text, 'register'::text, 'withdraw'::text, 'settle'::text, 'refund'::text, 'cancel'::text, 'expire'::text, 'adjust'::text, 'fee_withdraw'::text])));

CREATE DOMAIN public.id_count AS bigint
	CONSTRAINT id_count_check CHECK (((VALUE >= 0) AND (VALUE <= '8589934591'::bigint)));

CREATE DOMAIN public.order_name AS text
	CONSTRAINT order_name_check CHECK (((length(VALUE) >= 1) AND (length(VALUE) <= 64)));

CREATE DOMAIN public.positive_units AS bigint
	CONSTRAINT positive_units_check CHECK ((VALUE > 0));

CREATE DOMAIN public.range_number AS integer
	CONSTRAINT range_number_check CHECK (((VALUE >= 1) AND (VALUE <= 1048575)));

CREATE TABLE public.account (
    merchant_id bigint NOT NULL,
    account_id bigint NOT NULL,
    kind public.account_kind NOT NULL,
    currency public.currency NOT NULL,
    floor bigint GENERATED ALWAYS AS (
CASE
    WHEN ((kind)::text = ANY (ARRAY['exchange'::text, 'chain:ERC20'::text, 'chain:TRC20'::text, 'adjustment'::text])) THEN '-4611686018427387904'::bigint
    ELSE (0)::bigint
END) STORED NOT NULL,
    balance bigint DEFAULT 0 NOT NULL,
    day integer DEFAULT 0 NOT NULL,
    day_debited bigint DEFAULT 0 NOT NULL,
    CONSTRAINT account_floor CHECK ((balance >= floor))
)
WITH (fillfactor='50');
ALTER TABLE ONLY public.account ALTER COLUMN merchant_id SET (n_distinct=1);

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
    withdrawn_units bigint DEFAULT 0 NOT NULL
)
WITH (fillfactor='20');

CREATE TABLE public.callback (
    merchant_id bigint NOT NULL,
    order_id bigint NOT NULL,
    status smallint NOT NULL,
    event_id text NOT NULL,
    created_ms bigint NOT NULL,
    CONSTRAINT callback_status_check CHECK ((status = ANY (ARRAY[2, 3, 4, 5, 6])))
);
ALTER TABLE ONLY public.callback ALTER COLUMN merchant_id SET (n_distinct=1);

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

CREATE TABLE public.given_address (
    address bytea NOT NULL,
    merchant_id bigint NOT NULL,
    CONSTRAINT given_address_address_check CHECK ((length(address) = 20))
);

CREATE TABLE public.id_range (
    range_no public.range_number NOT NULL,
    merchant_id bigint NOT NULL
);

CREATE TABLE public.merchant (
    merchant_id bigint NOT NULL,
    name text NOT NULL,
    app_key text NOT NULL,
    status text DEFAULT 'active'::text NOT NULL,
    currency_mode text NOT NULL,
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
    CONSTRAINT merchant_app_key_check CHECK (((length(app_key) >= 1) AND (length(app_key) <= 20))),
    CONSTRAINT merchant_approval_limit_units_check CHECK ((approval_limit_units >= 0)),
    CONSTRAINT merchant_currency_mode_check CHECK ((currency_mode = ANY (ARRAY['KFB'::text, 'USDT'::text]))),
    CONSTRAINT merchant_daily_limit_units_check CHECK ((daily_limit_units >= 0)),
    CONSTRAINT merchant_name_check CHECK ((name <> ''::text)),
    CONSTRAINT merchant_next_address_index_check CHECK ((next_address_index >= 0)),
    CONSTRAINT merchant_rate_limit_check CHECK ((rate_limit >= 0)),
    CONSTRAINT merchant_sign_method_check CHECK ((sign_method = ANY (ARRAY['HMAC'::text, 'MD5'::text]))),
    CONSTRAINT merchant_status_check CHECK ((status = ANY (ARRAY['active'::text, 'suspended'::text]))),
    CONSTRAINT merchant_transfer_fee_rate_e8_check CHECK (((transfer_fee_rate_e8 >= 0) AND (transfer_fee_rate_e8 <= 100000000))),
    CONSTRAINT merchant_withdraw_fee_min_units_check CHECK ((withdraw_fee_min_units >= 0)),
    CONSTRAINT merchant_withdraw_fee_rate_e8_check CHECK (((withdraw_fee_rate_e8 >= 0) AND (withdraw_fee_rate_e8 <= 100000000)))
);

ALTER TABLE public.merchant ALTER COLUMN merchant_id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.merchant_merchant_id_seq
    START WITH 1001
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.merchant_secret (
    merchant_id bigint NOT NULL,
    secret_no integer NOT NULL,
    purpose text NOT NULL,
    sealed bytea NOT NULL,
    created_ms bigint NOT NULL,
    retired_ms bigint,
    CONSTRAINT merchant_secret_purpose_check CHECK ((purpose = ANY (ARRAY['app'::text, 'callback'::text]))),
    CONSTRAINT merchant_secret_secret_no_check CHECK ((secret_no > 0))
);

CREATE TABLE public.nonce (
    merchant_id bigint NOT NULL,
    nonce text NOT NULL COLLATE pg_catalog."C",
    day integer NOT NULL
)
PARTITION BY LIST (day);

CREATE TABLE public.payout (
    merchant_id bigint NOT NULL,
    order_id bigint NOT NULL,
    fence bigint NOT NULL,
    claimed_by text NOT NULL,
    claimed_until_ms bigint NOT NULL,
    failures integer DEFAULT 0 NOT NULL,
    raw bytea,
    tx_hash text,
    unpayable_cause text,
    decided_ms bigint,
    frozen_cause text,
    frozen_ms bigint,
    freezes_wallet boolean DEFAULT false NOT NULL,
    CONSTRAINT payout_claimed_by_check CHECK ((claimed_by <> ''::text)),
    CONSTRAINT payout_failures_check CHECK ((failures >= 0)),
    CONSTRAINT payout_fence_check CHECK ((fence > 0)),
    CONSTRAINT payout_frozen CHECK ((((frozen_cause IS NULL) = (frozen_ms IS NULL)) AND ((frozen_ms IS NOT NULL) OR (NOT freezes_wallet)))),
    CONSTRAINT payout_frozen_cause_check CHECK ((frozen_cause <> ''::text)),
    CONSTRAINT payout_raw_check CHECK ((length(raw) > 0)),
    CONSTRAINT payout_signed_or_unpayable CHECK ((((raw IS NULL) = (tx_hash IS NULL)) AND ((raw IS NULL) OR (unpayable_cause IS NULL)) AND ((decided_ms IS NULL) = ((raw IS NULL) AND (unpayable_cause IS NULL))))),
    CONSTRAINT payout_tx_hash_check CHECK ((tx_hash <> ''::text)),
    CONSTRAINT payout_unpayable_cause_check CHECK ((unpayable_cause <> ''::text))
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
    CONSTRAINT rate_history_direction_check CHECK ((direction = ANY (ARRAY['USDT:KFB'::text, 'KFB:USDT'::text])))
);

ALTER TABLE public.rate_history ALTER COLUMN rate_history_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.rate_history_rate_history_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.sandbox_transfer (
    tx_hash text NOT NULL,
    chain text NOT NULL,
    token text NOT NULL,
    recipient bytea NOT NULL,
    amount_units bigint NOT NULL,
    accepted_ms bigint NOT NULL,
    final_ms bigint NOT NULL,
    verdict text NOT NULL,
    CONSTRAINT sandbox_transfer_amount_units_check CHECK ((amount_units > 0)),
    CONSTRAINT sandbox_transfer_chain_check CHECK ((chain = ANY (ARRAY['ERC20'::text, 'TRC20'::text]))),
    CONSTRAINT sandbox_transfer_check CHECK ((final_ms >= accepted_ms)),
    CONSTRAINT sandbox_transfer_recipient_check CHECK ((length(recipient) = 20)),
    CONSTRAINT sandbox_transfer_token_check CHECK ((token <> ''::text)),
    CONSTRAINT sandbox_transfer_tx_hash_check CHECK ((tx_hash <> ''::text)),
    CONSTRAINT sandbox_transfer_verdict_check CHECK ((verdict = ANY (ARRAY['paid'::text, 'failed'::text])))
);

CREATE TABLE public.schema_migration (
    version integer NOT NULL,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_ms bigint NOT NULL
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
    CONSTRAINT sub_user_address_index_check CHECK ((address_index >= 0)),
    CONSTRAINT sub_user_evm_address_check CHECK ((length(evm_address) = 20)),
    CONSTRAINT sub_user_ext_user_id_check CHECK (((length(ext_user_id) >= 1) AND (length(ext_user_id) <= 20))),
    CONSTRAINT sub_user_limit_day_units_check CHECK ((limit_day_units >= 0)),
    CONSTRAINT sub_user_limit_debit_units_check CHECK ((limit_debit_units >= 0)),
    CONSTRAINT sub_user_tron_address_check CHECK ((length(tron_address) = 20)),
    CONSTRAINT sub_user_username_check CHECK (((length(username) >= 1) AND (length(username) <= 128)))
);
ALTER TABLE ONLY public.sub_user ALTER COLUMN merchant_id SET (n_distinct=1);

CREATE TABLE public.wallet_address (
    merchant_id bigint NOT NULL,
    address bytea NOT NULL,
    user_id bigint NOT NULL,
    CONSTRAINT wallet_address_address_check CHECK ((length(address) = 20))
);
ALTER TABLE ONLY public.wallet_address ALTER COLUMN merchant_id SET (n_distinct=1);

CREATE TABLE public.withdrawal (
    merchant_id bigint NOT NULL,
    order_id bigint NOT NULL,
    mc_order_id text NOT NULL,
    amount bigint NOT NULL,
    fee bigint NOT NULL,
    rate_e8 bigint NOT NULL,
    chain text NOT NULL,
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
    CONSTRAINT withdrawal_address_check CHECK (((length(address) >= 1) AND (length(address) <= 64))),
    CONSTRAINT withdrawal_amount_check CHECK ((amount > 0)),
    CONSTRAINT withdrawal_chain_check CHECK ((chain = ANY (ARRAY['ERC20'::text, 'TRC20'::text]))),
    CONSTRAINT withdrawal_check CHECK ((fee < amount)),
    CONSTRAINT withdrawal_fee_check CHECK ((fee >= 0)),
    CONSTRAINT withdrawal_mc_order_id_check CHECK (((length(mc_order_id) >= 1) AND (length(mc_order_id) <= 20))),
    CONSTRAINT withdrawal_notify_url_check CHECK (((length(notify_url) >= 1) AND (length(notify_url) <= 100))),
    CONSTRAINT withdrawal_rate_e8_check CHECK ((rate_e8 >= 0))
);
ALTER TABLE ONLY public.withdrawal ALTER COLUMN merchant_id SET (n_distinct=1);

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

ALTER TABLE ONLY public.account
    ADD CONSTRAINT account_pkey PRIMARY KEY (merchant_id, account_id);

ALTER TABLE ONLY public.book
    ADD CONSTRAINT book_pkey PRIMARY KEY (merchant_id);

ALTER TABLE ONLY public.callback
    ADD CONSTRAINT callback_merchant_id_event_id_key UNIQUE (merchant_id, event_id);

ALTER TABLE ONLY public.callback
    ADD CONSTRAINT callback_pkey PRIMARY KEY (merchant_id, order_id, status);

ALTER TABLE ONLY public.entry
    ADD CONSTRAINT entry_pkey PRIMARY KEY (merchant_id, entry_id);

ALTER TABLE ONLY public.given_address
    ADD CONSTRAINT given_address_pkey PRIMARY KEY (address);

ALTER TABLE ONLY public.id_range
    ADD CONSTRAINT id_range_pkey PRIMARY KEY (range_no);

ALTER TABLE ONLY public.merchant
    ADD CONSTRAINT merchant_app_key_key UNIQUE (app_key);

ALTER TABLE ONLY public.merchant
    ADD CONSTRAINT merchant_pkey PRIMARY KEY (merchant_id);

ALTER TABLE ONLY public.merchant_secret
    ADD CONSTRAINT merchant_secret_pkey PRIMARY KEY (merchant_id, purpose, secret_no);

ALTER TABLE ONLY public.nonce
    ADD CONSTRAINT nonce_pkey PRIMARY KEY (merchant_id, nonce, day);

ALTER TABLE ONLY public.payout
    ADD CONSTRAINT payout_merchant_id_tx_hash_key UNIQUE (merchant_id, tx_hash);

ALTER TABLE ONLY public.payout
    ADD CONSTRAINT payout_pkey PRIMARY KEY (merchant_id, order_id);

ALTER TABLE ONLY public.posting
    ADD CONSTRAINT posting_pkey PRIMARY KEY (merchant_id, entry_id, posting_no);

ALTER TABLE ONLY public.rate_history
    ADD CONSTRAINT rate_history_pkey PRIMARY KEY (rate_history_id);

ALTER TABLE ONLY public.rate
    ADD CONSTRAINT rate_pkey PRIMARY KEY (merchant_id);

ALTER TABLE ONLY public.sandbox_transfer
    ADD CONSTRAINT sandbox_transfer_pkey PRIMARY KEY (tx_hash);

ALTER TABLE ONLY public.schema_migration
    ADD CONSTRAINT schema_migration_pkey PRIMARY KEY (version);

ALTER TABLE ONLY public.sub_user
    ADD CONSTRAINT sub_user_merchant_id_address_index_key UNIQUE (merchant_id, address_index);

ALTER TABLE ONLY public.sub_user
    ADD CONSTRAINT sub_user_merchant_id_ext_user_id_key UNIQUE (merchant_id, ext_user_id);

ALTER TABLE ONLY public.sub_user
    ADD CONSTRAINT sub_user_pkey PRIMARY KEY (merchant_id, user_id);

ALTER TABLE ONLY public.wallet_address
    ADD CONSTRAINT wallet_address_pkey PRIMARY KEY (merchant_id, address);

ALTER TABLE ONLY public.withdrawal
    ADD CONSTRAINT withdrawal_merchant_id_mc_order_id_key UNIQUE (merchant_id, mc_order_id);

ALTER TABLE ONLY public.withdrawal
    ADD CONSTRAINT withdrawal_pkey PRIMARY KEY (merchant_id, order_id);

ALTER TABLE ONLY public.withdrawal_step
    ADD CONSTRAINT withdrawal_step_merchant_id_order_id_step_no_to_status_key UNIQUE (merchant_id, order_id, step_no, to_status);

ALTER TABLE ONLY public.withdrawal_step
    ADD CONSTRAINT withdrawal_step_pkey PRIMARY KEY (merchant_id, order_id, step_no);

CREATE UNIQUE INDEX entry_order ON public.entry USING btree (merchant_id, mc_order_id, kind) WHERE (mc_order_id IS NOT NULL);

CREATE INDEX payout_frozen_open ON public.payout USING btree (frozen_ms) WHERE (frozen_ms IS NOT NULL);

CREATE INDEX posting_source ON public.posting USING btree (merchant_id, source_id, entry_id);

CREATE INDEX posting_target ON public.posting USING btree (merchant_id, target_id, entry_id);

CREATE INDEX withdrawal_open ON public.withdrawal USING btree (status, created_ms) WHERE (status = ANY (ARRAY[0, 1, 3]));

ALTER TABLE ONLY public.account
    ADD CONSTRAINT account_merchant_id_fkey FOREIGN KEY (merchant_id) REFERENCES public.book(merchant_id);

ALTER TABLE ONLY public.book
    ADD CONSTRAINT book_merchant_id_fkey FOREIGN KEY (merchant_id) REFERENCES public.merchant(merchant_id);

ALTER TABLE ONLY public.callback
    ADD CONSTRAINT callback_merchant_id_order_id_fkey FOREIGN KEY (merchant_id, order_id) REFERENCES public.withdrawal(merchant_id, order_id);

ALTER TABLE ONLY public.id_range
    ADD CONSTRAINT id_range_merchant_id_fkey FOREIGN KEY (merchant_id) REFERENCES public.merchant(merchant_id);

ALTER TABLE ONLY public.merchant_secret
    ADD CONSTRAINT merchant_secret_merchant_id_fkey FOREIGN KEY (merchant_id) REFERENCES public.merchant(merchant_id);

ALTER TABLE ONLY public.payout
    ADD CONSTRAINT payout_merchant_id_order_id_fkey FOREIGN KEY (merchant_id, order_id) REFERENCES public.withdrawal(merchant_id, order_id);

ALTER TABLE ONLY public.sub_user
    ADD CONSTRAINT sub_user_merchant_id_user_id_fkey FOREIGN KEY (merchant_id, user_id) REFERENCES public.account(merchant_id, account_id);

ALTER TABLE ONLY public.wallet_address
    ADD CONSTRAINT wallet_address_merchant_id_user_id_fkey FOREIGN KEY (merchant_id, user_id) REFERENCES public.sub_user(merchant_id, user_id);

ALTER TABLE ONLY public.withdrawal
    ADD CONSTRAINT withdrawal_merchant_id_order_id_step_no_status_fkey FOREIGN KEY (merchant_id, order_id, step_no, status) REFERENCES public.withdrawal_step(merchant_id, order_id, step_no, to_status);

ALTER TABLE ONLY public.withdrawal_step
    ADD CONSTRAINT withdrawal_step_merchant_id_order_id_previous_no_from_stat_fkey FOREIGN KEY (merchant_id, order_id, previous_no, from_status) REFERENCES public.withdrawal_step(merchant_id, order_id, step_no, to_status);
