-- Works with programs from version: 1
-- Rows beside the log, by kind and key, of which the newest stays. Uses of tokens keep their own table, which programs of
-- earlier versions go on reading and writing, and which readers may have been granted. Rows are replaced in their page.
CREATE TABLE flux_resourceset.notes (
  kind  text COLLATE "C" NOT NULL,
  key   text COLLATE "C" NOT NULL,
  time  text COLLATE "C" NOT NULL,
  value text COLLATE "C",
  PRIMARY KEY (kind, key)
) WITH (fillfactor = 70);
