-- Who has the right to do what one process at a time may do. Expiry is in milliseconds of this host's clock.
CREATE TABLE leases (
  name    TEXT    NOT NULL PRIMARY KEY,
  holder  TEXT    NOT NULL,
  term    INTEGER NOT NULL,
  expires INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
