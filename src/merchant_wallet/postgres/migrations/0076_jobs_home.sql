-- kind: expand
-- Long jobs that rewrite or copy books: who has which, since when. Two that touch the same book never run at once.

-- One row for each job, while its command runs. A scope is a set of numbers cell_id * 2^40 + merchant_id: one book, all numbers of a
-- cell, or everything. The session of the command holds an advisory lock of this number: without it the row is that of a dead one.
create table if not exists job (
    job_id int generated always as identity primary key,
    kind text not null,
    scope int8multirange not null check (not isempty(scope)),
    subject text not null,
    actor text not null,
    began_ms bigint not null,
    constraint job_alone exclude using gist (scope with &&)
);
