-- How far a cell has taken in home's final transfers of a chain, and the last rewind of home's cursor that it has followed.
create table chain_position (
    chain chain_code primary key,
    final_number bigint not null check (final_number >= 0),
    rewind_no int not null check (rewind_no >= 0)
);
