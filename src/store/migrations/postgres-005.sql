-- Works with programs from version: 1
-- Programs that know less than version 5 serve neither the open waves of rollouts nor holds: beside newer ones, a cluster
-- would be answered with one thing and then with another. So they are shut out while there is any of these, and none
-- begins while such a program is connected. Readers may have been granted the tables they know, so these stay as they are.
ALTER TABLE flux_resourceset.migrations ADD COLUMN IF NOT EXISTS works_from_alone integer;

CREATE OR REPLACE FUNCTION flux_resourceset.needed_version() RETURNS integer
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN EXISTS (
    SELECT FROM flux_resourceset.documents WHERE type IN ('rollout_plans', 'holds')
  ) THEN 5 ELSE 1 END
$$;

-- What a migration says counts for what it leaves, and no less than what is stored needs.
CREATE OR REPLACE FUNCTION flux_resourceset.note_migration() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  NEW.works_from_alone := NEW.works_from;
  NEW.works_from := greatest(NEW.works_from, flux_resourceset.needed_version());
  RETURN NEW;
END
$$;
CREATE OR REPLACE TRIGGER note_migration BEFORE INSERT ON flux_resourceset.migrations
  FOR EACH ROW EXECUTE FUNCTION flux_resourceset.note_migration();

-- Programs before version 5 call their connections flux-resourceset, later ones add their version.
CREATE OR REPLACE FUNCTION flux_resourceset.follow_needed_version() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  needed integer := flux_resourceset.needed_version();
  known integer;
BEGIN
  SELECT works_from INTO known FROM flux_resourceset.migrations ORDER BY version DESC LIMIT 1;
  IF needed > known AND EXISTS (
    SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'flux-resourceset'
  ) THEN
    RAISE EXCEPTION 'a program of an earlier version is connected' USING ERRCODE = 'FR001';
  END IF;
  UPDATE flux_resourceset.migrations SET works_from = greatest(works_from_alone, needed)
    WHERE version = (SELECT max(version) FROM flux_resourceset.migrations)
      AND works_from <> greatest(works_from_alone, needed);
  RETURN NULL;
END
$$;
CREATE OR REPLACE TRIGGER staging_begins AFTER INSERT ON flux_resourceset.documents
  FOR EACH ROW WHEN (NEW.type IN ('rollout_plans', 'holds'))
  EXECUTE FUNCTION flux_resourceset.follow_needed_version();
CREATE OR REPLACE TRIGGER staging_ends AFTER DELETE ON flux_resourceset.documents
  FOR EACH ROW WHEN (OLD.type IN ('rollout_plans', 'holds'))
  EXECUTE FUNCTION flux_resourceset.follow_needed_version();
