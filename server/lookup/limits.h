// Holds all limits on what a client may send or hold. Errors caused by a limit name it.
#ifndef ABLATE_SERVER_LOOKUP_LIMITS_H_
#define ABLATE_SERVER_LOOKUP_LIMITS_H_

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace ablate::lookup {

// Limits a resource in total and per user. Only a shared server has users; on any other, the caller
// may use the total.
struct Limit {
  constexpr Limit(size_t of_all, size_t of_user) : total(of_all), per_user(of_user) {}
  // NOLINTNEXTLINE(google-explicit-constructor): a single number limits both.
  constexpr Limit(size_t both) : Limit(both, both) {}
  size_t total;
  size_t per_user;
};

// Messages, in bytes.
inline constexpr int kMaxRequestBytes = 4 << 20;
inline constexpr size_t kMaxSpecBytes = 1 << 20;  // of a whole CreateExperiment request
// The text of such a request. Parsing takes up to 250 bytes of memory for each of its bytes, and a
// short text may be a long spec.
inline constexpr size_t kMaxTextBytes = 256 << 10;
// Total over all such requests in the server.
inline constexpr Limit kMaxSpecBytesAtOnce = {size_t{64} << 20, size_t{16} << 20};
inline constexpr size_t kLargeRequestBytes = 64 << 10;  // larger ones return their memory at once
inline constexpr int kMaxWorkerMessageBytes = 16 << 20;
inline constexpr size_t kPageBytes = 3 << 20;     // of the rows in one answer: below gRPC's 4 MiB
inline constexpr size_t kBatchBytes = 512 << 10;  // of the messages made at once for a stream
inline constexpr uint64_t kChunkBytes = 1 << 20;  // of a file in one message to the server
// Size of a message of a stream to a client. A client at the least rate takes it in 40 s, so a
// client that takes nothing exceeds kStreamTimeout.
inline constexpr size_t kMessageBytes = 256 << 10;
inline constexpr size_t kSeriesPoints = 20'000;      // in one message: at most kMessageBytes
inline constexpr size_t kErrorDetailBytes = 4'000;   // gRPC loses larger ones
inline constexpr size_t kErrorMessageBytes = 1'500;  // as encoded in the trailer

// Requests.
inline constexpr uint32_t kMaxPageSize = 1'000;
inline constexpr size_t kMaxPageTokenBytes = 1'000;
inline constexpr size_t kMaxRequestIdCharacters = 64;
inline constexpr int kMaxQueryRuns = 10'000;
inline constexpr int kMaxQueryKeys = 1'000;
inline constexpr int kMaxColumns = 50;  // of a list of runs
inline constexpr uint32_t kMinThinnedPoints = 4;
inline constexpr uint32_t kMaxThinnedPoints = 1'000'000;
inline constexpr int kMaxReportExperiments = 20;
inline constexpr int kMaxWatchKeys = 20;
inline constexpr size_t kMaxNameBytes = 200;
inline constexpr size_t kMaxDisplayNameBytes = 100;
inline constexpr size_t kMaxCurvePoints = 10'000'000;  // per setting's curves in a figure: 120 MB
inline constexpr size_t kMaxFamilyValues = 1'000'000;  // per figure over depth or levels: 64 MB
inline constexpr size_t kMaxArrayValues = 10'000'000;  // of analyses per figure: 80 MB
inline constexpr uint64_t kMaxFigureArtifactBytes = 64 << 20;  // of one analysis, all arrays
inline constexpr uint64_t kMaxDatasetBytes = uint64_t{1} << 30;
inline constexpr uint64_t kMaxModelBytes = uint64_t{2} << 30;  // of the files of an import
inline constexpr int kMaxModelFiles = 1'000;
// Total of the models that are imported or exported, which are held in memory.
inline constexpr Limit kMaxModelBytesAtOnce = kMaxModelBytes;
inline constexpr uint64_t kMaxBlobBytes = uint64_t{16} << 30;

// Streams: the least rate at which a client must read or write, and how far it may fall behind.
inline constexpr double kMinBytesPerSecond = 6'553.6;  // 64 KiB in 10 s
inline constexpr absl::Duration kStreamTimeout = absl::Minutes(1);

// SQL statements: each has a process.
inline constexpr absl::Duration kMaxSqlProcessorTime = absl::Seconds(10);
// Its time until the last row is taken, in processor times.
inline constexpr int kMaxSqlWaiting = 3;
inline constexpr uint64_t kMaxSqlProcessBytes = uint64_t{1} << 30;  // of addresses
inline constexpr uint64_t kMaxSqlRows = 1'000'000;
inline constexpr uint64_t kMaxSqlResultBytes = 64'000'000;
inline constexpr size_t kMaxSqlRowBytes = 1'000'000;

// Calls at once. A user may have a quarter of most limits, and two where a quarter would be one, so
// that a person with two windows isn't refused.
inline constexpr Limit kMaxWaitingCalls = {1'024, 256};
inline constexpr Limit kMaxWatches = {2'048, 512};
inline constexpr Limit kMaxReads = {64, 16};  // of each kind: exports, downloads, queries
// With figures; fewer than the threads of the pool that they occupy.
inline constexpr Limit kMaxReports = {4, 2};
// More than may run or wait, because a slow client still holds its call after the worker has
// answered.
inline constexpr Limit kMaxGenerations = {32, 8};
inline constexpr Limit kMaxUploads = {8, 2};
inline constexpr Limit kMaxStatements = {4, 2};  // of SQL; each may need much memory
// Saves of run states at once, each of which a cancel waits for; they occupy threads as reports do.
inline constexpr Limit kMaxSaves = 2;
// Longest duration of a user's call; a watch has no limit.
inline constexpr absl::Duration kMaxTransferTime = absl::Hours(24);
inline constexpr absl::Duration kMaxAnswerTime = absl::Hours(1);  // of computed answers
// Threads that answer, which mostly wait for commits, and how many of them one user's calls may
// occupy. The rest stays available to others, however long each call takes.
inline constexpr Limit kAnsweringThreads = {8, 6};
// Threads that compare. A comparison of a large experiment takes a core for seconds; separate
// threads keep reads from waiting for it.
inline constexpr Limit kComparingThreads = {4, 3};
// Threads that expand experiments, each up to 100,000 cells; their number bounds the memory.
inline constexpr Limit kExpandingThreads = {4, 3};
inline constexpr uint32_t kMaxOpenAnalyses = 10'000;  // running or waiting
// Most of those that may be experiments', so that a client's own request always finds room.
inline constexpr uint32_t kMaxPlannedAnalyses = 9'000;
inline constexpr Limit kMaxWorkerStreams = {4'096, 2'048};  // a cluster's join as one user
inline constexpr Limit kMaxWorkerTransfers = {1'024, 256};
inline constexpr size_t kMaxUnsentBytes = 64 << 20;  // to one worker

}  // namespace ablate::lookup

#endif  // ABLATE_SERVER_LOOKUP_LIMITS_H_
