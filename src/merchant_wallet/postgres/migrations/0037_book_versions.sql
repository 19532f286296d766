-- Books are written in groups: one transaction over many books. Every transaction that changes anything that a rule may look
-- at raises its book's version. A group claims only books whose version is the one that it was judged on.
alter table book add column version bigint not null default 1;

-- The group that wrote the book last. The group's later statements join on it.
alter table book add column group_id uuid;

-- The group that claimed the nonce, so that a lost COMMIT can be answered truly. Each book in a group has at least one such row.
-- It has no default: a process of an older version, which would not raise book versions, can't write any more.
alter table nonce add column group_id uuid not null default '00000000-0000-0000-0000-000000000000';
alter table nonce alter column group_id drop default;
