#include "storage/sqlite/migrations.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace ablate::storage {
namespace {

// Numbers of states: experiments 0 active, 1 ended, 2 cancelled; runs and analyses in the order of
// RunState and AnalysisState. Times are microseconds since 1970, 0 where not yet. "change" is a
// number from store.change: one order over everything that happens to runs, so that a row group or
// checkpoint is later than a resume state exactly if its number is larger.
constexpr char kVersion1[] = R"sql(
CREATE TABLE store (
  generation TEXT NOT NULL,       -- identity of this file
  change INTEGER NOT NULL         -- last change number given out
) STRICT;
INSERT INTO store VALUES (lower(hex(randomblob(8))), 0);

CREATE TABLE datasets (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  display_name TEXT NOT NULL,
  sha256 TEXT NOT NULL UNIQUE,
  bytes INTEGER NOT NULL,
  documents INTEGER NOT NULL,
  characters INTEGER NOT NULL,
  create_time INTEGER NOT NULL
) STRICT;
CREATE INDEX datasets_display_name ON datasets (display_name);

CREATE TABLE experiments (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,      -- the title plus four random characters
  title TEXT NOT NULL,
  owner TEXT NOT NULL,
  request_id TEXT UNIQUE,
  request_hash BLOB NOT NULL,
  spec BLOB NOT NULL,
  priority INTEGER NOT NULL,
  state INTEGER NOT NULL,
  deleted INTEGER NOT NULL DEFAULT 0,
  queued INTEGER NOT NULL DEFAULT 0,   -- cells by the state of their run
  leased INTEGER NOT NULL DEFAULT 0,
  done INTEGER NOT NULL DEFAULT 0,
  diverged INTEGER NOT NULL DEFAULT 0,
  failed INTEGER NOT NULL DEFAULT 0,
  cancelled INTEGER NOT NULL DEFAULT 0,
  create_time INTEGER NOT NULL,
  end_time INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX experiments_deleted ON experiments (id) WHERE deleted = 1;

CREATE TABLE runs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,      -- the fingerprint, with .2, .3, … for later generations
  fingerprint TEXT NOT NULL,
  generation INTEGER NOT NULL,
  trajectory TEXT NOT NULL,
  seed INTEGER NOT NULL,
  steps INTEGER NOT NULL,
  parameters INTEGER NOT NULL,
  device_kind TEXT NOT NULL,
  shape TEXT NOT NULL,
  dataset INTEGER,
  state INTEGER NOT NULL,
  priority INTEGER NOT NULL,      -- the best of its live experiments
  place INTEGER NOT NULL,         -- in the queue: the change number at which it was submitted
  lease INTEGER,                  -- while leased
  step INTEGER NOT NULL DEFAULT 0,
  failures INTEGER NOT NULL DEFAULT 0,
  losses INTEGER NOT NULL DEFAULT 0,
  failure TEXT NOT NULL DEFAULT '',
  trainer TEXT NOT NULL DEFAULT '',
  device TEXT NOT NULL DEFAULT '',
  build TEXT NOT NULL DEFAULT '',
  worker TEXT NOT NULL DEFAULT '',
  device_time INTEGER NOT NULL DEFAULT 0,
  create_time INTEGER NOT NULL,
  start_time INTEGER NOT NULL DEFAULT 0,
  end_time INTEGER NOT NULL DEFAULT 0,
  change INTEGER NOT NULL,
  UNIQUE (fingerprint, generation)
) STRICT;
CREATE INDEX runs_queue ON runs (device_kind, priority, place) WHERE state = 0;
CREATE INDEX runs_lease ON runs (lease) WHERE lease IS NOT NULL;
CREATE INDEX runs_trajectory ON runs (trajectory);
CREATE INDEX runs_dataset ON runs (dataset) WHERE dataset IS NOT NULL;

-- Apart from runs, whose rows are rewritten with every flush.
CREATE TABLE run_specs (run INTEGER PRIMARY KEY, spec BLOB NOT NULL) STRICT;

CREATE TABLE cells (
  experiment INTEGER NOT NULL,
  place INTEGER NOT NULL,         -- in grid order
  name TEXT NOT NULL,
  labels BLOB NOT NULL,
  seed INTEGER NOT NULL,
  run INTEGER NOT NULL,
  reused INTEGER NOT NULL,
  change INTEGER NOT NULL,        -- the run's
  PRIMARY KEY (experiment, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX cells_run ON cells (run);
CREATE INDEX cells_change ON cells (experiment, change);

CREATE TABLE run_events (
  id INTEGER PRIMARY KEY,
  run INTEGER NOT NULL,
  time INTEGER NOT NULL,
  kind TEXT NOT NULL,
  step INTEGER NOT NULL,
  worker TEXT NOT NULL,
  message TEXT NOT NULL
) STRICT;
CREATE INDEX run_events_run ON run_events (run);

CREATE TABLE leases (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  worker TEXT NOT NULL,
  incarnation TEXT NOT NULL,
  device TEXT NOT NULL,
  build TEXT NOT NULL,
  trainer TEXT NOT NULL,
  acked INTEGER NOT NULL DEFAULT 0,    -- last event applied
  touched INTEGER NOT NULL             -- when it was
) STRICT;
CREATE INDEX leases_worker ON leases (worker);

CREATE TABLE resume_states (
  run INTEGER PRIMARY KEY,
  step INTEGER NOT NULL,
  blob TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  change INTEGER NOT NULL,             -- its place in the order of events
  device_time INTEGER NOT NULL,
  summaries BLOB NOT NULL              -- as they were then
) STRICT;
CREATE INDEX resume_states_blob ON resume_states (blob);

CREATE TABLE artifacts (
  id INTEGER PRIMARY KEY,
  run INTEGER NOT NULL,
  kind TEXT NOT NULL,
  step INTEGER NOT NULL,
  blob TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  change INTEGER NOT NULL,
  UNIQUE (run, kind, step)
) STRICT;
CREATE INDEX artifacts_blob ON artifacts (blob);

-- A run's metric keys, in the order of their numbers, each with its summary.
CREATE TABLE summaries (run INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT;

-- One a flush; the id is its change number.
CREATE TABLE row_groups (
  id INTEGER PRIMARY KEY,
  run INTEGER NOT NULL,
  first_step INTEGER NOT NULL,
  last_step INTEGER NOT NULL,
  data BLOB NOT NULL
) STRICT;
CREATE INDEX row_groups_run ON row_groups (run);

-- Points of one key of an ended run.
CREATE TABLE chunks (
  id INTEGER PRIMARY KEY,
  run INTEGER NOT NULL,
  key INTEGER NOT NULL,
  first_step INTEGER NOT NULL,
  last_step INTEGER NOT NULL,
  data BLOB NOT NULL,
  UNIQUE (run, key, first_step)
) STRICT;

-- What finished runs of a shape took; outlives them.
CREATE TABLE step_times (
  shape TEXT PRIMARY KEY,
  device_time INTEGER NOT NULL,
  steps INTEGER NOT NULL
) STRICT;

-- Work for the background: ended runs with row groups, runs whose rows are to go, blobs that lost a
-- name.
CREATE TABLE uncompacted (run INTEGER PRIMARY KEY) STRICT;
CREATE TABLE dead_runs (run INTEGER PRIMARY KEY) STRICT;
CREATE TABLE loose_blobs (sha256 TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
)sql";

// What became known of a run's time: how much of it the core was shared, and for how many tokens.
constexpr char kVersion2[] = R"sql(
ALTER TABLE runs ADD COLUMN contended_time INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE resume_states ADD COLUMN contended_time INTEGER NOT NULL DEFAULT 0;
ALTER TABLE resume_states ADD COLUMN tokens INTEGER NOT NULL DEFAULT 0;
)sql";

// Which blobs that lost a name are not worth keeping for a while: superseded resume states. In what
// environment numbers are made, so that a state is continued in the same one, and in which version
// of the numerics a fingerprint was made: runs of earlier files in version 2. A lease that no run
// is left under stays for its answers only: nothing but its age is ever looked for among those.
// How long the documents of data sets are; '' before anyone has counted.
constexpr char kVersion3[] = R"sql(
ALTER TABLE loose_blobs ADD COLUMN superseded INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN environment TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN numerics INTEGER NOT NULL DEFAULT 2;
ALTER TABLE resume_states ADD COLUMN environment TEXT NOT NULL DEFAULT '';
ALTER TABLE leases ADD COLUMN settled INTEGER;  -- when its last run left it
UPDATE leases SET settled = touched WHERE NOT EXISTS (SELECT 1 FROM runs WHERE lease = leases.id);
ALTER TABLE leases DROP COLUMN touched;
DROP INDEX leases_worker;
CREATE INDEX leases_settled ON leases (settled) WHERE settled IS NOT NULL;
ALTER TABLE datasets ADD COLUMN document_lengths TEXT NOT NULL DEFAULT '';
)sql";

// Nothing but what is written from now on: points and summaries are sealed in their place
// (bytes.h). Programs that can't read them have to refuse the file.
constexpr char kVersion4[] = "";

// What a data set has as one text; 0 code points before anyone has counted.
constexpr char kVersion5[] = R"sql(
ALTER TABLE datasets ADD COLUMN code_points INTEGER NOT NULL DEFAULT 0;
ALTER TABLE datasets ADD COLUMN line_ends INTEGER NOT NULL DEFAULT 0;
)sql";

// Runs that differ in their steps alone have one growth; '' of a run that can't grow, and in
// earlier files. The last state of one that is done is kept for a while, and a longer one begins
// from it.
constexpr char kVersion6[] = R"sql(
ALTER TABLE runs ADD COLUMN growth TEXT NOT NULL DEFAULT '';
ALTER TABLE store ADD COLUMN last_state_bytes INTEGER NOT NULL DEFAULT 0;  -- of all together
CREATE TABLE last_states (
  id INTEGER PRIMARY KEY,              -- change number at the run's end: the oldest goes first
  run INTEGER NOT NULL UNIQUE,
  growth TEXT NOT NULL,                -- the run's
  step INTEGER NOT NULL,
  blob TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  environment TEXT NOT NULL
) STRICT;
CREATE INDEX last_states_growth ON last_states (growth, step);
CREATE INDEX last_states_blob ON last_states (blob);

CREATE TABLE origins (
  run INTEGER PRIMARY KEY,
  origin INTEGER NOT NULL,             -- the shorter run that it begins from, which may be gone
  name TEXT NOT NULL,                  -- of that
  step INTEGER NOT NULL,               -- that it begins at
  taken INTEGER NOT NULL DEFAULT 0     -- it has begun from there
) STRICT;
CREATE INDEX origins_origin ON origins (origin) WHERE taken = 0;
)sql";

// From here on a run has its trainer when it is created. Before there was one.
constexpr char kVersion7[] = R"sql(
UPDATE runs SET trainer = 'torch' WHERE trainer = '';
)sql";

// What is computed of runs at their checkpoints.
constexpr char kVersion8[] = R"sql(
CREATE TABLE analyses (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,           -- the fingerprint of all that is asked
  signature TEXT NOT NULL,             -- that of all but the subjects
  request BLOB NOT NULL,
  state INTEGER NOT NULL DEFAULT 0,
  progress REAL NOT NULL DEFAULT 0,
  device_time INTEGER NOT NULL DEFAULT 0,
  state_blob TEXT,                     -- to go on from; of one that has not ended
  state_bytes INTEGER NOT NULL DEFAULT 0,
  artifact TEXT,                       -- blob of its arrays
  artifact_bytes INTEGER NOT NULL DEFAULT 0,
  failure TEXT NOT NULL DEFAULT '',
  create_time INTEGER NOT NULL,
  start_time INTEGER NOT NULL DEFAULT 0,
  end_time INTEGER NOT NULL DEFAULT 0,
  result BLOB NOT NULL DEFAULT x''
) STRICT;
CREATE INDEX analyses_open ON analyses (id) WHERE state < 2;
CREATE INDEX analyses_state_blob ON analyses (state_blob) WHERE state_blob IS NOT NULL;
CREATE INDEX analyses_artifact ON analyses (artifact) WHERE artifact IS NOT NULL;

-- Goes as a whole when one of the runs goes.
CREATE TABLE analysis_subjects (
  analysis INTEGER NOT NULL,
  place INTEGER NOT NULL,              -- in the order in which they are asked for
  run INTEGER NOT NULL,
  step INTEGER NOT NULL,
  PRIMARY KEY (analysis, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX analysis_subjects_run ON analysis_subjects (run);

-- What experiments call analyses of a signature, as metrics of theirs.
CREATE TABLE analysis_labels (
  experiment INTEGER NOT NULL,
  label TEXT NOT NULL,
  signature TEXT NOT NULL,
  PRIMARY KEY (experiment, label)
) STRICT, WITHOUT ROWID;
)sql";

// What an experiment's file asks to have computed.
constexpr char kVersion9[] = R"sql(
-- 0: it asks for nothing; 1: nothing is asked for yet; 2: all is; 3: all has ended.
ALTER TABLE experiments ADD COLUMN analyses INTEGER NOT NULL DEFAULT 0;
ALTER TABLE experiments ADD COLUMN analyses_failure TEXT NOT NULL DEFAULT '';
CREATE INDEX experiments_to_analyze ON experiments (id) WHERE analyses = 1;
CREATE TABLE experiment_analyses (
  experiment INTEGER NOT NULL,
  label TEXT NOT NULL,
  analysis INTEGER NOT NULL,
  PRIMARY KEY (experiment, label, analysis)
) STRICT, WITHOUT ROWID;
CREATE INDEX experiment_analyses_analysis ON experiment_analyses (analysis);
)sql";

// An analysis that somebody waits for goes on when an experiment that asks for it, too, is
// cancelled.
constexpr char kVersion10[] = R"sql(
ALTER TABLE analyses ADD COLUMN by_hand INTEGER NOT NULL DEFAULT 0;
UPDATE analyses SET by_hand = 1 WHERE id NOT IN (SELECT analysis FROM experiment_analyses);
)sql";

// Whose data sets and analyses are, as experiments have had from the first version on. What is
// there already is nobody's: only admins may change it.
constexpr char kVersion11[] = R"sql(
ALTER TABLE datasets ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE analyses ADD COLUMN owner TEXT NOT NULL DEFAULT '';
)sql";

// To whom things are private; '' of what is everybody's, as all was before. The bytes of a data set
// may be private to some and everybody's beside that. Request ids are their owners'.
constexpr char kVersion12[] = R"sql(
ALTER TABLE experiments ADD COLUMN private_to TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN private_to TEXT NOT NULL DEFAULT '';
ALTER TABLE analyses ADD COLUMN private_to TEXT NOT NULL DEFAULT '';
UPDATE experiments SET request_id = owner || '/' || request_id WHERE request_id IS NOT NULL;
CREATE TABLE new_datasets (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  display_name TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  documents INTEGER NOT NULL,
  characters INTEGER NOT NULL,
  create_time INTEGER NOT NULL,
  document_lengths TEXT NOT NULL DEFAULT '',
  code_points INTEGER NOT NULL DEFAULT 0,
  line_ends INTEGER NOT NULL DEFAULT 0,
  owner TEXT NOT NULL DEFAULT '',
  private_to TEXT NOT NULL DEFAULT ''
) STRICT;
INSERT INTO new_datasets SELECT id, name, display_name, sha256, bytes, documents, characters,
  create_time, document_lengths, code_points, line_ends, owner, '' FROM datasets;
DROP TABLE datasets;
ALTER TABLE new_datasets RENAME TO datasets;
CREATE UNIQUE INDEX datasets_sha256 ON datasets (sha256, private_to);
CREATE INDEX datasets_display_name ON datasets (display_name);
)sql";

// Who is charged for a run: of the experiments that keep it alive the first one's owner. What users
// have had of the devices, so that those come first who have had the least.
constexpr char kVersion13[] = R"sql(
ALTER TABLE runs ADD COLUMN charged TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN expected_bytes INTEGER NOT NULL DEFAULT 0;  -- that it leaves for good
UPDATE runs SET charged = coalesce((SELECT owner FROM experiments JOIN cells
  ON cells.experiment = experiments.id WHERE cells.run = runs.id AND deleted = 0
  ORDER BY experiments.state != 0, experiments.id LIMIT 1), '');
DROP INDEX runs_queue;
CREATE INDEX runs_queue ON runs (device_kind, charged, priority, place) WHERE state = 0;
CREATE INDEX runs_charged ON runs (charged);
CREATE TABLE shares (
  user TEXT PRIMARY KEY,
  device_time REAL NOT NULL,           -- in microseconds; what is older counts less
  time INTEGER NOT NULL                -- as of when
) STRICT, WITHOUT ROWID;
)sql";

// Adds times of analyses, by which later ones are estimated.
constexpr char kVersion14[] = R"sql(
ALTER TABLE analyses ADD COLUMN time_group TEXT NOT NULL DEFAULT '';
ALTER TABLE analyses ADD COLUMN guessed_time REAL NOT NULL DEFAULT 0;  -- in microseconds
CREATE TABLE analysis_times (
  time_group TEXT PRIMARY KEY,
  analyses INTEGER NOT NULL,
  device_time REAL NOT NULL,           -- of all together, in microseconds
  guessed_time REAL NOT NULL,          -- likewise
  largest REAL NOT NULL                -- guess
) STRICT, WITHOUT ROWID;
)sql";

constexpr const char* kMigrations[] = {kVersion1,  kVersion2,  kVersion3,  kVersion4, kVersion5,
                                       kVersion6,  kVersion7,  kVersion8,  kVersion9, kVersion10,
                                       kVersion11, kVersion12, kVersion13, kVersion14};

int64_t ReadNumber(Connection& db, const char* sql) {
  Statement read(db, sql);
  return read.Row() ? read.Int(0) : 0;
}

absl::Status CheckOwner(Connection& db, int64_t application) {
  const int64_t owner = ReadNumber(db, "PRAGMA application_id");
  const int64_t tables = ReadNumber(db, "SELECT count(*) FROM sqlite_schema");
  if (!db.error().ok()) return db.error();
  if (owner == application || (owner == 0 && tables == 0)) return absl::OkStatus();
  return absl::FailedPreconditionError("the database belongs to another program");
}

}  // namespace

absl::Span<const char* const> Migrations() { return kMigrations; }

absl::Status CheckSchema(Connection& db, absl::Span<const char* const> migrations,
                         int64_t application) {
  const absl::Status owner = CheckOwner(db, application);
  if (!owner.ok()) return owner;
  const int64_t version = ReadNumber(db, "PRAGMA user_version");
  const int64_t newest = static_cast<int64_t>(migrations.size());
  if (version <= newest) return db.error();
  return absl::FailedPreconditionError(absl::StrCat("the database has schema version ", version,
                                                    "; this program knows versions ", "up to ",
                                                    newest, ": use a newer ablate"));
}

bool IsEmpty(Connection& db) { return ReadNumber(db, "PRAGMA user_version") == 0; }

absl::Status Migrate(Connection& db, absl::Span<const char* const> migrations,
                     int64_t application) {
  const absl::Status accepted = CheckSchema(db, migrations, application);
  if (!accepted.ok()) return accepted;
  const int64_t newest = static_cast<int64_t>(migrations.size());
  for (int64_t next = ReadNumber(db, "PRAGMA user_version"); next < newest; ++next) {
    db.Execute("BEGIN IMMEDIATE");
    db.Execute(migrations[static_cast<size_t>(next)]);
    db.Execute(
        absl::StrCat("PRAGMA user_version = ", next + 1, "; PRAGMA application_id = ", application)
            .c_str());
    db.Execute("COMMIT");
    if (db.error().ok()) continue;
    const absl::Status error = db.error();
    db.ClearError();
    if (db.in_transaction()) db.Execute("ROLLBACK");
    return error;
  }
  return db.error();
}

}  // namespace ablate::storage
