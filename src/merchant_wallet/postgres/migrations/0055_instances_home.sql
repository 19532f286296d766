-- kind: expand
-- The programs that run now. `migrate` asks them before a contraction, `doctor` and people read them.
create table if not exists instance (
    instance_id uuid primary key,
    side text not null constraint instance_side check (side in ('web', 'worker')),
    version text not null,
    schema_version int not null,
    host text not null,
    pid int not null,
    started_ms bigint not null,
    seen_ms bigint not null
);
