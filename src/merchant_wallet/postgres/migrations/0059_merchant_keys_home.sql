-- kind: expand
-- Several keys for each merchant. Key 1 is the merchant's first appKey: `merchant` and `merchant_secret` have it, as before. Its row
-- here is made when it gets a name or limits. An empty list means: all operations, all source networks.
create table if not exists merchant_key (
    merchant_id bigint not null references merchant,
    key_no int not null check (key_no > 0),
    app_key text unique check (length(app_key) between 1 and 20),
    name text not null,
    operations text[] not null default '{}',
    networks text[] not null default '{}',
    created_ms bigint not null,
    created_by text not null,
    revoked_ms bigint,
    primary key (merchant_id, key_no),
    check ((key_no = 1) = (app_key is null)),
    check (key_no > 1 or revoked_ms is null)
);
alter table merchant_key alter column merchant_id set (n_distinct = 1);

-- The secrets of further keys, sealed as those in `merchant_secret`. After `expires_ms` a secret signs nothing any more.
create table if not exists merchant_key_secret (
    merchant_id bigint not null,
    key_no int not null check (key_no > 1),
    secret_no int not null check (secret_no > 0),
    sealed bytea not null,
    created_ms bigint not null,
    expires_ms bigint,
    retired_ms bigint,
    primary key (merchant_id, key_no, secret_no),
    foreign key (merchant_id, key_no) references merchant_key
);
alter table merchant_key_secret alter column merchant_id set (n_distinct = 1);

-- The first key's older secret, when it is rolled with an overlap.
alter table merchant_secret add column if not exists expires_ms bigint;

-- The minute in which each key was used last. Web processes write it now and then, for all keys at once.
create table if not exists merchant_key_use (
    merchant_id bigint not null,
    key_no int not null,
    used_ms bigint not null,
    primary key (merchant_id, key_no)
);
alter table merchant_key_use alter column merchant_id set (n_distinct = 1);
