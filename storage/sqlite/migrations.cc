#include "storage/sqlite/migrations.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/sqlite/final_values.h"

namespace ablate::storage {
namespace {

// Numbers of states: experiments 0 active, 1 ended, 2 cancelled; runs and analyses in the order of
// RunState and AnalysisState. Times are microseconds since 1970, 0 for not yet. "change" is a
// number from store.change: one order over everything that happens to runs, so that a row group or
// checkpoint is later than a resume state exactly if its number is larger.
constexpr char kStoreTables[] = R"sql(
CREATE TABLE store (
  generation TEXT NOT NULL,       -- identity of this file
  change INTEGER NOT NULL,        -- last change number given out
  last_state_bytes INTEGER NOT NULL DEFAULT 0  -- of all last_states
) STRICT;
INSERT INTO store VALUES (lower(hex(randomblob(8))), 0, 0);

-- The same bytes may be private to several users and everybody's besides.
CREATE TABLE datasets (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,      -- DatasetKey()
  display_name TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  documents INTEGER NOT NULL,
  characters INTEGER NOT NULL,
  create_time INTEGER NOT NULL,
  document_lengths TEXT NOT NULL DEFAULT '',   -- '' before they are counted
  code_points INTEGER NOT NULL DEFAULT 0,      -- as one text; 0 before they are counted
  line_ends INTEGER NOT NULL DEFAULT 0,
  owner TEXT NOT NULL,
  private_to TEXT NOT NULL        -- '' if it is everybody's; the same in other tables
) STRICT;
CREATE UNIQUE INDEX datasets_sha256 ON datasets (sha256, private_to);
CREATE INDEX datasets_display_name ON datasets (display_name);

CREATE TABLE experiments (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,      -- the first title plus four random characters
  title TEXT NOT NULL,            -- may be changed, unlike name
  owner TEXT NOT NULL,
  private_to TEXT NOT NULL,
  request_id TEXT UNIQUE,         -- with its owner's name
  request_hash BLOB NOT NULL,
  spec BLOB NOT NULL,
  priority INTEGER NOT NULL,
  state INTEGER NOT NULL,
  deleted INTEGER NOT NULL DEFAULT 0,
  queued INTEGER NOT NULL DEFAULT 0,   -- cells by the state of their run
  leased INTEGER NOT NULL DEFAULT 0,   -- and begun by a lane
  done INTEGER NOT NULL DEFAULT 0,
  diverged INTEGER NOT NULL DEFAULT 0,
  failed INTEGER NOT NULL DEFAULT 0,
  cancelled INTEGER NOT NULL DEFAULT 0,
  -- 0: its spec asks for no analyses; 1: none is asked for yet; 2: all are; 3: all have ended.
  analyses INTEGER NOT NULL DEFAULT 0,
  analyses_failure TEXT NOT NULL DEFAULT '',
  create_time INTEGER NOT NULL,
  end_time INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX experiments_deleted ON experiments (id) WHERE deleted = 1;
CREATE INDEX experiments_to_analyze ON experiments (id) WHERE analyses = 1;

CREATE TABLE runs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,      -- the fingerprint, with .2, .3, … for later generations
  fingerprint TEXT NOT NULL,
  generation INTEGER NOT NULL,
  trajectory TEXT NOT NULL,
  growth TEXT NOT NULL,           -- one of runs that differ in steps alone; '' if it can't grow
  seed INTEGER NOT NULL,
  steps INTEGER NOT NULL,
  parameters INTEGER NOT NULL,
  device_kind TEXT NOT NULL,
  shape TEXT NOT NULL,
  numerics INTEGER NOT NULL,      -- version in which the fingerprint was made
  dataset INTEGER,
  private_to TEXT NOT NULL,
  charged TEXT NOT NULL DEFAULT '',    -- owner of the first experiment that keeps it alive
  expected_bytes INTEGER NOT NULL,     -- that it leaves for good
  state INTEGER NOT NULL,
  priority INTEGER NOT NULL,      -- the best of its live experiments
  place INTEGER NOT NULL,         -- in the queue: the change number at which it was submitted
  lease TEXT,                     -- the one it is under, or that its last event ended
  incarnation TEXT NOT NULL DEFAULT '',        -- of the worker's process that has the lease
  acked INTEGER NOT NULL DEFAULT 0,            -- last event of the lease that was applied
  step INTEGER NOT NULL DEFAULT 0,
  failures INTEGER NOT NULL DEFAULT 0,
  losses INTEGER NOT NULL DEFAULT 0,
  failure TEXT NOT NULL DEFAULT '',
  trainer TEXT NOT NULL,
  environment TEXT NOT NULL DEFAULT '',
  device TEXT NOT NULL DEFAULT '',
  build TEXT NOT NULL DEFAULT '',
  worker TEXT NOT NULL DEFAULT '',
  device_time INTEGER NOT NULL DEFAULT 0,
  contended_time INTEGER NOT NULL DEFAULT 0,   -- of device_time, while others had the core
  tokens INTEGER NOT NULL DEFAULT 0,           -- trained on in that time
  create_time INTEGER NOT NULL,
  start_time INTEGER NOT NULL DEFAULT 0,
  end_time INTEGER NOT NULL DEFAULT 0,
  change INTEGER NOT NULL,
  UNIQUE (fingerprint, generation)
) STRICT;
CREATE INDEX runs_queue ON runs (device_kind, charged, priority, place) WHERE state = 0;
CREATE INDEX runs_charged ON runs (charged);
CREATE UNIQUE INDEX runs_lease ON runs (lease) WHERE lease IS NOT NULL;
CREATE INDEX runs_leased ON runs (id) WHERE state = 1;
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

CREATE TABLE resume_states (
  run INTEGER PRIMARY KEY,
  step INTEGER NOT NULL,
  blob TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  change INTEGER NOT NULL,             -- its place in the order of events
  environment TEXT NOT NULL,           -- it is continued in the same one only
  device_time INTEGER NOT NULL,
  contended_time INTEGER NOT NULL,
  tokens INTEGER NOT NULL,
  summaries BLOB NOT NULL              -- as they were then
) STRICT;
CREATE INDEX resume_states_blob ON resume_states (blob);

-- Last states of runs that are DONE, kept for a while: longer runs begin from them.
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

-- What users have had of the devices: those come first who have had the least.
CREATE TABLE shares (
  user TEXT PRIMARY KEY,
  device_time REAL NOT NULL,           -- in microseconds; what is older counts less
  time INTEGER NOT NULL                -- as of when
) STRICT, WITHOUT ROWID;

-- What is computed of runs at their checkpoints.
CREATE TABLE analyses (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,           -- the fingerprint of all that is asked
  signature TEXT NOT NULL,             -- that of all but the subjects
  request BLOB NOT NULL,
  owner TEXT NOT NULL,
  private_to TEXT NOT NULL,
  by_hand INTEGER NOT NULL DEFAULT 0,  -- goes on when an experiment that asks is cancelled
  state INTEGER NOT NULL DEFAULT 0,
  progress REAL NOT NULL DEFAULT 0,
  device_time INTEGER NOT NULL DEFAULT 0,
  time_group TEXT NOT NULL,
  guessed_time REAL NOT NULL,          -- in microseconds
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

-- What an experiment's file asks to have computed.
CREATE TABLE experiment_analyses (
  experiment INTEGER NOT NULL,
  label TEXT NOT NULL,
  analysis INTEGER NOT NULL,
  PRIMARY KEY (experiment, label, analysis)
) STRICT, WITHOUT ROWID;
CREATE INDEX experiment_analyses_analysis ON experiment_analyses (analysis);

-- Times of analyses, by which later ones are estimated.
CREATE TABLE analysis_times (
  time_group TEXT PRIMARY KEY,
  analyses INTEGER NOT NULL,
  device_time REAL NOT NULL,           -- of all together, in microseconds
  guessed_time REAL NOT NULL,          -- likewise
  largest REAL NOT NULL                -- guess
) STRICT, WITHOUT ROWID;

-- Work for the background: ended runs with row groups, runs whose rows are to go, blobs that lost a
-- name. Superseded resume states are not worth keeping for a while.
CREATE TABLE uncompacted (run INTEGER PRIMARY KEY) STRICT;
CREATE TABLE dead_runs (run INTEGER PRIMARY KEY) STRICT;
CREATE TABLE loose_blobs (
  sha256 TEXT PRIMARY KEY,
  superseded INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
)sql";

// Data sets that aren't plain text. Of tokens, `characters` is the size of the vocabulary and
// `code_points` the number of tokens.
constexpr char kDatasetKinds[] = R"sql(
ALTER TABLE datasets ADD COLUMN kind INTEGER NOT NULL DEFAULT 0;  -- in the order of DatasetKind
-- Of tokens that the server made of a text: the hashes of the text and of the tokenizer.
ALTER TABLE datasets ADD COLUMN encoded_from TEXT NOT NULL DEFAULT '';
CREATE INDEX datasets_encoded_from ON datasets (encoded_from) WHERE encoded_from <> '';
)sql";

// Runs that begin with the parameters of another model.
constexpr char kInitialBlobs[] = R"sql(
ALTER TABLE runs ADD COLUMN initial_blob TEXT NOT NULL DEFAULT '';  -- a checkpoint
CREATE INDEX runs_initial_blob ON runs (initial_blob) WHERE initial_blob <> '';
)sql";

// Models that were imported.
constexpr char kModels[] = R"sql(
CREATE TABLE models (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,           -- given by the user; of a private one with @ and the user
  sha256 TEXT NOT NULL,                -- blob: its checkpoint
  bytes INTEGER NOT NULL,
  parameters INTEGER NOT NULL,
  vocabulary INTEGER NOT NULL,
  spec BLOB NOT NULL,                  -- a v1.ModelSpec
  notes TEXT NOT NULL,                 -- one a line
  owner TEXT NOT NULL,
  private_to TEXT NOT NULL,            -- user who alone sees it; empty: public
  create_time INTEGER NOT NULL
) STRICT;
CREATE INDEX models_sha256 ON models (sha256);
)sql";

// Runs that several lanes train together.
constexpr char kLanes[] = R"sql(
ALTER TABLE runs ADD COLUMN lanes INTEGER NOT NULL DEFAULT 1;
)sql";

// Fields, labels and final values, by which runs are found. Older experiments have none until
// DescribeExperiment writes them.
constexpr char kRunFacts[] = R"sql(
-- Cells of an experiment with equal labels, which differ in their seeds alone, have one number.
ALTER TABLE cells ADD COLUMN variant INTEGER NOT NULL DEFAULT 0;
ALTER TABLE experiments ADD COLUMN described INTEGER NOT NULL DEFAULT 0;  -- fields are stored
CREATE INDEX experiments_undescribed ON experiments (id) WHERE described = 0;

-- Names of fields, axes and metrics. What only a user's private runs have has rows of its own, so
-- that nobody else's question reads them.
CREATE TABLE names (
  id INTEGER PRIMARY KEY,
  kind INTEGER NOT NULL,               -- 0 field of the spec, 1 axis, 2 metric
  name TEXT NOT NULL,
  private_to TEXT NOT NULL,
  UNIQUE (name, kind, private_to)
) STRICT;

-- Values of fields, and labels on axes.
CREATE TABLE cell_fields (
  name INTEGER NOT NULL,
  experiment INTEGER NOT NULL,
  variant INTEGER NOT NULL,            -- 0: all
  value TEXT NOT NULL,
  PRIMARY KEY (name, experiment, variant)
) STRICT, WITHOUT ROWID;
CREATE INDEX cell_fields_experiment ON cell_fields (experiment);

-- Metrics of ended runs, from their summaries: those with a finite value. Those of other runs
-- change with every flush and are read from the summaries themselves.
CREATE TABLE final_values (
  name INTEGER NOT NULL,
  last REAL NOT NULL,
  run INTEGER NOT NULL,
  min REAL NOT NULL,
  max REAL NOT NULL,
  PRIMARY KEY (name, last, run)
) STRICT, WITHOUT ROWID;
CREATE INDEX final_values_run ON final_values (run);

CREATE INDEX runs_ends ON runs (state, end_time, start_time, parameters);
)sql";

// Annotations of experiments, and the order in which runs were asked for.
constexpr char kAnnotations[] = R"sql(
-- Texts of a list each end with a line feed.
ALTER TABLE experiments ADD COLUMN tags TEXT NOT NULL DEFAULT '';
ALTER TABLE experiments ADD COLUMN note TEXT NOT NULL DEFAULT '';
ALTER TABLE experiments ADD COLUMN archived INTEGER NOT NULL DEFAULT 0;
ALTER TABLE experiments ADD COLUMN extends TEXT NOT NULL DEFAULT '';  -- name of another one
ALTER TABLE experiments ADD COLUMN changes TEXT NOT NULL DEFAULT '';  -- of its file
CREATE INDEX experiments_title ON experiments (title);
CREATE INDEX experiments_extends ON experiments (extends) WHERE extends <> '';
-- The experiment that first had the run, or a run of the same growth; it may be gone.
ALTER TABLE runs ADD COLUMN first_experiment INTEGER NOT NULL DEFAULT 0;
UPDATE runs SET first_experiment =
  coalesce((SELECT min(experiment) FROM cells WHERE run = runs.id), 0);
CREATE INDEX runs_growth ON runs (growth) WHERE growth <> '';
UPDATE runs SET first_experiment =
  (SELECT min(first_experiment) FROM runs AS same
   WHERE same.growth = runs.growth AND same.growth <> '' AND same.first_experiment > 0)
  WHERE growth <> '' AND first_experiment > 0;
)sql";

// The kind of device that an analysis's saved state belongs to: NULL, unknown, for older states.
constexpr char kStateDevices[] = R"sql(
ALTER TABLE analyses ADD COLUMN state_on_gpu INTEGER;
)sql";

// For statements that join views by the name of a cell. As the index is unique, the planner expects
// one row.
constexpr char kCellNames[] = R"sql(
CREATE UNIQUE INDEX cells_name ON cells (experiment, name);
)sql";

// By private_to first, so that a filter, a name or the beginning of one reads nothing that its user
// doesn't see.
constexpr char kVisible[] = R"sql(
DROP INDEX runs_ends;
CREATE INDEX runs_ends ON runs (private_to, state, end_time, start_time, parameters);
CREATE INDEX runs_visible ON runs (private_to, name);
CREATE INDEX experiments_visible ON experiments (private_to, name);
CREATE INDEX experiments_visible_title ON experiments (private_to, title);
CREATE INDEX analyses_visible ON analyses (private_to, name);
)sql";

// Uploads for experiments, which are deleted if none uses them.
constexpr char kUnusedUploads[] = R"sql(
ALTER TABLE datasets ADD COLUMN unused_until INTEGER NOT NULL DEFAULT 0;  -- 0: it stays
CREATE INDEX datasets_unused_until ON datasets (unused_until) WHERE unused_until > 0;
)sql";

// Runs that are programs: their steps aren't known before they end, and they write logs.
constexpr char kPrograms[] = R"sql(
ALTER TABLE runs ADD COLUMN open_steps INTEGER NOT NULL DEFAULT 0;
CREATE TABLE run_logs (
  run INTEGER NOT NULL,
  begin INTEGER NOT NULL,              -- bytes of the log before this part
  text BLOB NOT NULL,
  PRIMARY KEY (run, begin)
) STRICT, WITHOUT ROWID;
)sql";

// A run is shown as queued until a lane of its worker has begun it.
constexpr char kShownStates[] = R"sql(
ALTER TABLE runs ADD COLUMN shown INTEGER
  GENERATED ALWAYS AS (iif(state = 1 AND acked = 0, 0, state)) VIRTUAL;
UPDATE experiments SET (queued, leased) =
  (SELECT sum(shown = 0), sum(shown = 1) FROM cells JOIN runs ON runs.id = cells.run
   WHERE experiment = experiments.id)
  WHERE leased > 0;
)sql";

// The data set that a program only reads.
constexpr char kProgramData[] = R"sql(
ALTER TABLE runs ADD COLUMN program_data INTEGER;
CREATE INDEX runs_program_data ON runs (program_data)
  WHERE program_data IS NOT NULL;
)sql";

// Experiments that are cancelled once too many of their runs have failed.
constexpr char kMaxFailed[] = R"sql(
ALTER TABLE experiments ADD COLUMN max_failed INTEGER NOT NULL DEFAULT 0;  -- 0: no limit
ALTER TABLE experiments ADD COLUMN why_cancelled TEXT NOT NULL DEFAULT '';  -- '' if by a user
)sql";

// Paused experiments, and runs that lose their steps if their worker ends early.
constexpr char kQueueing[] = R"sql(
ALTER TABLE experiments ADD COLUMN paused INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN whole_seconds INTEGER NOT NULL DEFAULT 0;  -- as in NewRun
)sql";

constexpr SchemaStep kStoreSteps[] = {
    {kStoreTables}, {kDatasetKinds}, {kInitialBlobs},         {kModels},
    {kLanes},       {kRunFacts},     {kAnnotations},          {kStateDevices},
    {kCellNames},   {kVisible},      {"", CorrectLastValues}, {kUnusedUploads},
    {kPrograms},    {kShownStates},  {kProgramData},          {kMaxFailed},
    {kQueueing}};

// Versions 1 to 14 were never released.
constexpr Schema kStoreSchema = {0x61626c61 /* "abla" */, 15, kStoreSteps};

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

const Schema& StoreSchema() { return kStoreSchema; }

absl::Status CheckSchema(Connection& db, const Schema& schema) {
  RETURN_IF_ERROR(CheckOwner(db, schema.application));
  const int64_t version = ReadNumber(db, "PRAGMA user_version");
  if (version > schema.newest()) {
    return absl::FailedPreconditionError(absl::StrCat("the database has schema version ", version,
                                                      "; expected at most ", schema.newest(),
                                                      ". Use a newer ablate."));
  }
  if (version > 0 && version < schema.first) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the database has schema version ", version, ", from before the first release; expected ",
        "at least ", schema.first, ". Export what you need with the ablate that wrote it, then ",
        "start with another folder."));
  }
  return db.error();
}

bool IsEmpty(Connection& db) { return ReadNumber(db, "PRAGMA user_version") == 0; }

absl::Status Migrate(Connection& db, const Schema& schema) {
  RETURN_IF_ERROR(CheckSchema(db, schema));
  const int64_t version = ReadNumber(db, "PRAGMA user_version");
  for (int64_t next = std::max(version + 1, schema.first); next <= schema.newest(); ++next) {
    db.Execute("BEGIN IMMEDIATE");
    const SchemaStep& step = schema.steps[static_cast<size_t>(next - schema.first)];
    db.Execute(step.sql);
    if (step.apply != nullptr) step.apply(db);
    db.Execute(absl::StrCat("PRAGMA user_version = ", next,
                            "; PRAGMA application_id = ", schema.application)
                   .c_str());
    db.Execute("COMMIT");
    const absl::Status error = db.error();
    if (error.ok()) continue;
    db.ClearError();
    if (db.in_transaction()) db.Execute("ROLLBACK");
    return error;
  }
  return db.error();
}

}  // namespace ablate::storage
