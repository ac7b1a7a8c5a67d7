-- Rows beside the log, by kind and key, of which the newest stays. Uses of tokens keep their own table.
CREATE TABLE notes (
  kind  TEXT NOT NULL,
  key   TEXT NOT NULL,
  time  TEXT NOT NULL,
  value TEXT,
  PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;
