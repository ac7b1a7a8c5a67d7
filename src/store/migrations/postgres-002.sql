-- Works with programs from version: 1
-- Who has the right to do what one process at a time may do.
CREATE TABLE flux_resourceset.leases (
  name    text COLLATE "C" PRIMARY KEY,
  holder  text        NOT NULL,
  term    bigint      NOT NULL,
  expires timestamptz NOT NULL
);
