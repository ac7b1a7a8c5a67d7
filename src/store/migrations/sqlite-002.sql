-- A log that can be searched, verified and cut short, and answers that can be given again.
ALTER TABLE revisions ADD COLUMN client_address TEXT;
ALTER TABLE revisions ADD COLUMN operation TEXT NOT NULL DEFAULT '';
-- The types of the documents it changed, each between commas.
ALTER TABLE revisions ADD COLUMN types TEXT NOT NULL DEFAULT '';
-- Filled by the program, which has the hash function.
ALTER TABLE revisions ADD COLUMN hash TEXT NOT NULL DEFAULT '';
UPDATE revisions SET types = ',' || coalesce((
  SELECT group_concat(type) FROM (SELECT DISTINCT type FROM changes WHERE changes.revision = revisions.revision)
), '') || ',';
CREATE INDEX revisions_by_time ON revisions (time, revision);

-- The revision that had made a document what it was before; 0 when there was none.
ALTER TABLE changes ADD COLUMN before_revision INTEGER NOT NULL DEFAULT 0;
UPDATE changes SET before_revision = coalesce((
  SELECT max(earlier.revision) FROM changes AS earlier
  WHERE earlier.type = changes.type AND earlier.id = changes.id AND earlier.revision < changes.revision
), 0) WHERE before IS NOT NULL;

-- At most one row: where the log begins once its older part was given up.
CREATE TABLE anchor (
  revision INTEGER NOT NULL,
  time     TEXT    NOT NULL,
  hash     TEXT    NOT NULL,
  state    TEXT    NOT NULL
) STRICT;

CREATE TABLE answers (
  key         TEXT PRIMARY KEY,
  fingerprint TEXT NOT NULL,
  time        TEXT NOT NULL,
  answer      TEXT NOT NULL
) STRICT;
CREATE INDEX answers_by_time ON answers (time);
