-- kind: expand
-- What the console's search looks up besides whole names: a part of an extUserId, and the amount of a deposit. No extension is
-- needed, so every PostgreSQL has it.

-- step: transaction
-- Every three characters in a row, ASCII letters in small. A text that has a part has all of the part's threes.
create or replace function search_grams(word text) returns text[] language sql immutable parallel safe
return array(select distinct substr(lower(word collate "C"), n, 3) from generate_series(1, length(word) - 2) n);

-- step: concurrently
create index concurrently if not exists sub_user_by_part on sub_user using gin (search_grams(ext_user_id));

-- step: concurrently
create index concurrently if not exists deposit_by_amount on deposit (amount, seen_ms);
