-- Notes of a kind from a time on are read without those before it.
CREATE INDEX notes_by_time ON notes (kind, time, key);
