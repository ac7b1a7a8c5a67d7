-- Works with programs from version: 1
-- Notes of a kind from a time on are read without those before it.
CREATE INDEX notes_by_time ON flux_resourceset.notes (kind, time, key);
