-- Documents as they are now, and the log of every revision that made them so.
CREATE TABLE head (revision INTEGER NOT NULL) STRICT;
INSERT INTO head VALUES (0);

CREATE TABLE documents (
  type     TEXT    NOT NULL,
  id       TEXT    NOT NULL,
  revision INTEGER NOT NULL,
  deleted  INTEGER NOT NULL,
  document TEXT    NOT NULL,
  UNIQUE (type, id)
) STRICT;

CREATE TABLE revisions (
  revision     INTEGER PRIMARY KEY,
  time         TEXT    NOT NULL,
  actor        TEXT    NOT NULL,
  message      TEXT,
  request_id   TEXT    NOT NULL,
  change_count INTEGER NOT NULL
) STRICT;

CREATE TABLE changes (
  revision       INTEGER NOT NULL REFERENCES revisions,
  position       INTEGER NOT NULL,
  type           TEXT    NOT NULL,
  id             TEXT    NOT NULL,
  before         TEXT,
  before_deleted INTEGER NOT NULL,
  after          TEXT,
  after_deleted  INTEGER NOT NULL,
  UNIQUE (revision, position)
) STRICT;

CREATE INDEX changes_by_document ON changes (type, id, revision);
