-- Each step of a move of a book that opens or closes a copy has a higher number than the one before. A copy takes on higher numbers
-- only, so a mover that wakes up late opens and closes nothing.
alter table book add column move_version bigint not null default 0;
