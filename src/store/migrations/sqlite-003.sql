-- When named tokens were last used: kept beside the log, which would grow with every minute otherwise.
CREATE TABLE token_uses (
  id TEXT NOT NULL PRIMARY KEY,
  time TEXT NOT NULL,
  address TEXT
) STRICT, WITHOUT ROWID;
