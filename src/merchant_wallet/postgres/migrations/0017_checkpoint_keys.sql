-- The public key that checkpoints are verified with. The private one is in no database, and only workers have it.

-- Rows are only inserted; the newest is the present key. The same key is in a file beside the checkpoints, so that who
-- can write to one of the two can't pass checkpoints of his own off as the service's.
create table checkpoint_key (
    key_no bigint primary key generated always as identity,
    public_key bytea not null check (length(public_key) = 32),
    since_ms bigint not null
);
