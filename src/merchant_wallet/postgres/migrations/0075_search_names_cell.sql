-- kind: expand
-- What the console's search looks up besides: a part from the middle of a sub-user's name. No extension is needed.

-- step: transaction
-- Every three characters in a row, ASCII letters in small, and every one or two of which one is beyond ASCII: a Chinese name
-- has two or three characters in all. A text that has a part has all of the part's pieces.
create or replace function name_grams(word text) returns text[] language sql immutable parallel safe
return array(
    select distinct substr(lower(word collate "C"), n, size)
      from generate_series(1, 3) size cross join generate_series(1, length(word) - size + 1) n
     where size = 3 or octet_length(substr(word, n, size)) > size);

-- step: concurrently
create index concurrently if not exists sub_user_by_name_part on sub_user using gin (name_grams(username));
