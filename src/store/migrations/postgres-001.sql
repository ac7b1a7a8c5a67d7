-- Works with programs from version: 1
-- Documents as they are now, the log of every revision that made them so, and what is kept beside it.
CREATE TABLE flux_resourceset.head (revision bigint NOT NULL);
INSERT INTO flux_resourceset.head VALUES (0);

CREATE TABLE flux_resourceset.documents (
  type     text COLLATE "C" NOT NULL,
  id       text COLLATE "C" NOT NULL,
  revision bigint  NOT NULL,
  deleted  boolean NOT NULL,
  document text    NOT NULL,
  PRIMARY KEY (type, id)
);

CREATE TABLE flux_resourceset.revisions (
  revision       bigint PRIMARY KEY,
  time           text COLLATE "C" NOT NULL,
  actor          text    NOT NULL,
  message        text,
  request_id     text    NOT NULL,
  client_address text,
  operation      text    NOT NULL,
  -- Of the documents it changed.
  types          text[]  NOT NULL,
  hash           text    NOT NULL,
  change_count   integer NOT NULL
);
CREATE INDEX revisions_by_time ON flux_resourceset.revisions (time, revision);

CREATE TABLE flux_resourceset.changes (
  revision        bigint  NOT NULL,
  position        integer NOT NULL,
  type            text COLLATE "C" NOT NULL,
  id              text COLLATE "C" NOT NULL,
  before          text,
  before_deleted  boolean NOT NULL,
  -- The revision that had made it so; 0 when there was none.
  before_revision bigint  NOT NULL,
  after           text,
  after_deleted   boolean NOT NULL,
  PRIMARY KEY (revision, position)
);
CREATE INDEX changes_by_document ON flux_resourceset.changes (type, id, revision);

-- At most one row: where the log begins once its older part was given up.
CREATE TABLE flux_resourceset.anchor (
  revision bigint NOT NULL,
  time     text   NOT NULL,
  hash     text   NOT NULL,
  state    text   NOT NULL
);

CREATE TABLE flux_resourceset.answers (
  key         text COLLATE "C" PRIMARY KEY,
  fingerprint text NOT NULL,
  time        text COLLATE "C" NOT NULL,
  answer      text NOT NULL
);
CREATE INDEX answers_by_time ON flux_resourceset.answers (time);

CREATE TABLE flux_resourceset.token_uses (
  id      text COLLATE "C" PRIMARY KEY,
  time    text COLLATE "C" NOT NULL,
  address text
);
