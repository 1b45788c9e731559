// The views of SQL statements: their columns, meanings and SELECTs.
#include "storage/sql_query.h"

namespace ablate::storage {
namespace {

constexpr char kRunStateName[] =
    "CASE WHEN r.state = 0 OR r.state = 1 AND r.acked = 0 THEN 'QUEUED' WHEN r.state = 1 THEN "
    "'RUNNING' WHEN r.state = 2 THEN 'DONE' WHEN r.state = 3 THEN 'DIVERGED' WHEN r.state = 4 THEN "
    "'FAILED' ELSE 'CANCELLED' END";

constexpr SqlColumn kExperimentColumns[] = {
    {"experiment", "TEXT", "ID, such as names-norm-7f3k", "e.name"},
    {"name", "TEXT", "name in its file, or given later; several experiments may have it",
     "e.title"},
    {"owner", "TEXT", "user who submitted it", "e.owner"},
    {"private", "INTEGER", "1 if only its owner and admins see it, else 0", "e.private_to <> ''"},
    {"state", "TEXT", "ACTIVE, ENDED or CANCELLED",
     "CASE e.state WHEN 0 THEN 'ACTIVE' WHEN 1 THEN 'ENDED' ELSE 'CANCELLED' END"},
    {"cells", "INTEGER", "number of its cells",
     "e.queued + e.leased + e.done + e.diverged + e.failed + e.cancelled"},
    {"queued", "INTEGER", "cells whose run waits", "e.queued"},
    {"running", "INTEGER", "cells whose run a lane trains", "e.leased"},
    {"done", "INTEGER", "cells whose run is DONE", "e.done"},
    {"diverged", "INTEGER", "cells whose run is DIVERGED", "e.diverged"},
    {"failed", "INTEGER", "cells whose run FAILED", "e.failed"},
    {"cancelled", "INTEGER", "cells whose run is CANCELLED", "e.cancelled"},
    {"created", "TEXT", "time of the submit", "utc(e.create_time)"},
    {"ended", "TEXT", "time at which its last run and analysis ended", "utc(e.end_time)"},
    {"tags", "TEXT", "tags, each between spaces: ' paper lr '; NULL if there are none",
     "nullif(' ' || replace(e.tags, char(10), ' '), ' ')"},
    {"note", "TEXT", "note", "nullif(e.note, '')"},
    {"archived", "INTEGER", "1 if it is archived, else 0", "e.archived"},
    {"extends", "TEXT", "ID of the experiment that it extends", "nullif(e.extends, '')"},
};

constexpr SqlColumn kCellColumns[] = {
    {"experiment", "TEXT", "ID of its experiment", "e.name"},
    {"cell", "TEXT", "name, such as post-lr0.01-s42", "c.name"},
    {"place", "INTEGER", "position in the grid, from 0", "c.place"},
    {"seed", "INTEGER", "seed", "c.seed"},
    {"run", "TEXT", "ID of its run, which other cells may share", "r.name"},
    {"reused", "INTEGER", "1 if the run existed before the experiment, else 0", "c.reused"},
};

constexpr SqlColumn kRunColumns[] = {
    {"run", "TEXT", "ID", "r.name"},
    {"state", "TEXT", "QUEUED, RUNNING, DONE, DIVERGED, FAILED or CANCELLED", kRunStateName},
    {"seed", "INTEGER", "seed", "r.seed"},
    {"step", "INTEGER", "updates made", "r.step"},
    {"steps", "INTEGER", "updates wanted", "r.steps"},
    {"parameters", "INTEGER", "learned parameters; NULL if they are unknown",
     "nullif(r.parameters, 0)"},
    {"trainer", "TEXT", "torch, native, program or program:ENVIRONMENT", "r.trainer"},
    {"device", "TEXT", "device that trains it, in words", "nullif(r.device, '')"},
    {"device_time", "REAL", "seconds of a device that it used", "r.device_time / 1e6"},
    {"tokens", "INTEGER", "tokens trained on in that time", "r.tokens"},
    {"private", "INTEGER", "1 if it belongs to private experiments, else 0", "r.private_to <> ''"},
    {"failure", "TEXT", "why it FAILED", "nullif(r.failure, '')"},
    {"created", "TEXT", "time of its first submit", "utc(r.create_time)"},
    {"started", "TEXT", "time of its first update", "utc(r.start_time)"},
    {"ended", "TEXT", "time at which it ended", "utc(r.end_time)"},
};

constexpr SqlColumn kSettingColumns[] = {
    {"experiment", "TEXT", "ID of the cell's experiment", "e.name"},
    {"cell", "TEXT", "name of the cell", "c.name"},
    {"run", "TEXT", "ID of the cell's run", "r.name"},
    {"kind", "TEXT", "field of the resolved spec, or axis of the experiment",
     "iif(n.kind = 0, 'field', 'axis')"},
    {"name", "TEXT",
     "path of the field, such as training.learning_rate or settings.lr, or name of the axis",
     "n.name"},
    {"value", "TEXT", "value of the field, or label", "f.value"},
    {"number", "REAL", "the value if it is a number", "number(f.value)"},
};

constexpr SqlColumn kMetricColumns[] = {
    {"run", "TEXT", "ID of the run", nullptr},
    {"key", "TEXT", "key, such as eval/loss", nullptr},
    {"points", "INTEGER", "number of points", nullptr},
    {"nonfinite", "INTEGER", "points that are infinite or not a number", nullptr},
    {"first", "REAL", "first finite value", nullptr},
    {"last", "REAL", "last value; NULL if it is not finite, or the run diverged early", nullptr},
    {"min", "REAL", "least finite value", nullptr},
    {"max", "REAL", "largest finite value", nullptr},
    {"mean", "REAL", "mean of the finite values", nullptr},
    {"last_step", "INTEGER", "step of the last point", nullptr},
};

constexpr SqlColumn kAnalysisColumns[] = {
    {"analysis", "TEXT", "ID", "a.name"},
    {"kind", "TEXT", "kind, such as spectrum", "analysis_kind(a.request)"},
    {"owner", "TEXT", "user who asked for it first", "a.owner"},
    {"private", "INTEGER", "1 if only its owner and admins see it, else 0", "a.private_to <> ''"},
    {"state", "TEXT", "QUEUED, RUNNING, DONE, FAILED or CANCELLED",
     "CASE a.state WHEN 0 THEN 'QUEUED' WHEN 1 THEN 'RUNNING' WHEN 2 THEN 'DONE' WHEN 3 THEN "
     "'FAILED' ELSE 'CANCELLED' END"},
    {"run", "TEXT", "ID of a run that it is about", "r.name"},
    {"step", "INTEGER", "step of that run's checkpoint", "s.step"},
    {"device_time", "REAL", "seconds of a device that it used", "a.device_time / 1e6"},
    {"failure", "TEXT", "why it FAILED", "nullif(a.failure, '')"},
    {"created", "TEXT", "time of the first request", "utc(a.create_time)"},
    {"started", "TEXT", "time at which it began", "utc(a.start_time)"},
    {"ended", "TEXT", "time at which it ended", "utc(a.end_time)"},
};

constexpr SqlColumn kPointColumns[] = {
    {"step", "INTEGER", "step of the point", nullptr},
    {"value", "REAL", "value; NULL if it is not a number", nullptr},
};

constexpr SqlColumn kColumnColumns[] = {
    {"view", "TEXT", "name of the view", "column1"},
    {"name", "TEXT", "name of the column", "column2"},
    {"type", "TEXT", "TEXT, INTEGER or REAL", "column3"},
    {"meaning", "TEXT", "meaning of its values", "column4"},
};

// The views read a column, other than the rowid, of each table, because SQLite doesn't name the
// view to the authorizer when it reports a table of which no column is read.
constexpr SqlView kViews[] = {
    {"experiments", "One row per experiment.", kExperimentColumns,
     "$experiments e WHERE e.deleted = 0"},
    {"cells", "One row per cell of an experiment.", kCellColumns,
     "$experiments e JOIN $cells c ON c.experiment = e.id LEFT JOIN $runs r ON r.id = c.run AND "
     "r.seed >= 0 WHERE e.deleted = 0"},
    {"runs", "One row per run.", kRunColumns, "$runs r WHERE r.seed >= 0"},
    {"settings", "One row per cell and field of its resolved spec, and per cell and axis.",
     kSettingColumns,
     "$names n JOIN $experiments e JOIN $cells c ON c.experiment = e.id JOIN $cell_fields f ON "
     "f.name = n.id AND f.experiment = e.id AND f.variant IN (0, c.variant) LEFT JOIN $runs r ON "
     "r.id = c.run AND r.seed >= 0 WHERE e.deleted = 0 AND n.kind IN (0, 1)"},
    {"metrics", "One row per run and metric that was recorded, as of its last points.",
     kMetricColumns, nullptr},
    {"analyses", "One row per analysis and run that it is about; one row if it is about none.",
     kAnalysisColumns,
     "$analyses a LEFT JOIN $analysis_subjects s ON s.analysis = a.id LEFT JOIN $runs r ON r.id = "
     "s.run AND r.seed >= 0 WHERE a.create_time >= 0"},
    {"points(run, key)", "Function: one row per point of a run's metric.", kPointColumns, nullptr},
    {"columns", "One row per column of this page.", kColumnColumns, "$columns"},
};

constexpr char kOfVisibleExperiments[] =
    "experiment IN (SELECT id FROM $store.experiments WHERE deleted = 0 AND $visible)";

constexpr StoredTable kTables[] = {
    {"experiments",
     "id, name, title, owner, private_to, state, deleted, queued, leased, done, diverged, failed, "
     "cancelled, create_time, end_time, tags, note, archived, extends",
     "deleted = 0 AND $visible", "id", "name", nullptr},
    {"cells", "experiment, place, name, seed, run, reused, variant", kOfVisibleExperiments,
     "experiment, place", "experiment, name", "run"},
    {"runs",
     "id, name, state, acked, seed, step, steps, parameters, trainer, device, device_time, tokens, "
     "private_to, failure, create_time, start_time, end_time",
     "$visible", "id", "name", nullptr},
    {"names", "id, kind, name, private_to", "$visible", "id", "name, kind, private_to", nullptr},
    {"cell_fields", "name, experiment, variant, value", kOfVisibleExperiments,
     "name, experiment, variant", nullptr, "experiment"},
    {"analyses",
     "id, name, request, owner, private_to, state, device_time, failure, create_time, start_time, "
     "end_time",
     "$visible", "id", "name", nullptr},
    {"analysis_subjects", "analysis, place, run, step",
     "analysis IN (SELECT id FROM $store.analyses WHERE $visible)", "analysis, place", nullptr,
     "run"},
};

// Without functions that read files, change something, or draw random numbers.
constexpr absl::string_view kFunctions[] = {
    "abs",       "avg",          "ceil",         "char",       "coalesce",   "count",
    "cume_dist", "date",         "datetime",     "dense_rank", "exp",        "first_value",
    "floor",     "glob",         "group_concat", "hex",        "ifnull",     "iif",
    "instr",     "julianday",    "lag",          "last_value", "lead",       "length",
    "like",      "ln",           "log",          "log10",      "log2",       "lower",
    "ltrim",     "max",          "min",          "mod",        "nth_value",  "ntile",
    "nullif",    "percent_rank", "pi",           "pow",        "power",      "printf",
    "quote",     "rank",         "replace",      "round",      "row_number", "rtrim",
    "sign",      "sqrt",         "strftime",     "substr",     "substring",  "sum",
    "time",      "total",        "trim",         "typeof",     "unicode",    "unixepoch",
    "upper"};

}  // namespace

absl::Span<const SqlView> SqlViews() { return kViews; }

absl::Span<const StoredTable> StoredTables() { return kTables; }

absl::Span<const absl::string_view> SqlFunctions() { return kFunctions; }

}  // namespace ablate::storage
