-- The planner knows how many chains there are. The new type of these columns has left them without statistics.
alter table withdrawal alter column chain set (n_distinct = 3);
alter table deposit alter column chain set (n_distinct = 3);
