// What a client may send or hold, in one place; an error that a limit causes names it.
#ifndef ABLATE_SERVER_SERVICE_LIMITS_H_
#define ABLATE_SERVER_SERVICE_LIMITS_H_

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace ablate::service {

// Messages, in bytes.
inline constexpr int kMostRequestBytes = 4 << 20;
inline constexpr size_t kMostSpecBytes = 1 << 20;                 // of a whole CreateExperiment
inline constexpr size_t kMostSpecBytesAtOnce = size_t{64} << 20;  // of all that are here
inline constexpr size_t kLargeRequestBytes = 64 << 10;  // what it took is given back at once
inline constexpr int kMostWorkerMessageBytes = 16 << 20;
inline constexpr size_t kPageBytes = 3 << 20;        // of rows in one answer: below gRPC's 4 MiB
inline constexpr size_t kSeriesPoints = 40'000;      // in one message: at most 512 kB
inline constexpr size_t kBatchBytes = 512 << 10;     // of messages made at once for a stream
inline constexpr uint64_t kChunkBytes = 1 << 20;     // of a file, in one message
inline constexpr size_t kErrorDetailBytes = 4'000;   // larger ones are lost on the way
inline constexpr size_t kErrorMessageBytes = 1'500;  // as encoded in the trailer

// Requests.
inline constexpr uint32_t kMostPageSize = 1'000;
inline constexpr size_t kMostPageTokenBytes = 1'000;
inline constexpr size_t kMostRequestIdCharacters = 64;
inline constexpr int kMostQueryRuns = 10'000;
inline constexpr int kMostQueryKeys = 1'000;
inline constexpr uint32_t kLeastMaxPoints = 4;
inline constexpr uint32_t kMostMaxPoints = 1'000'000;
inline constexpr int kMostReportExperiments = 20;
inline constexpr int kMostWatchKeys = 20;
inline constexpr size_t kMostNameBytes = 200;
inline constexpr size_t kMostDisplayNameBytes = 100;
inline constexpr size_t kMostCurvePoints = 10'000'000;  // of a setting's curves in a figure: 120 MB
inline constexpr uint64_t kMostDatasetBytes = uint64_t{1} << 30;
inline constexpr uint64_t kMostBlobBytes = uint64_t{16} << 30;

// Streams: what a client must take or bring, and how far it may fall behind that.
inline constexpr double kLeastBytesPerSecond = 6'553.6;  // 64 KiB in 10 s
inline constexpr absl::Duration kStreamPatience = absl::Minutes(1);

// Calls at once.
inline constexpr size_t kMostWaitingCalls = 1'024;
inline constexpr size_t kMostWatches = 64;
inline constexpr size_t kMostReads = 64;
// With figures; fewer than the pool's threads, which they hold.
inline constexpr size_t kMostReports = 4;
inline constexpr size_t kMostGenerations = 32;  // more than run or wait: slow clients keep theirs
inline constexpr size_t kMostUploads = 8;
inline constexpr size_t kMostWorkerStreams = 64;
inline constexpr size_t kMostWorkerTransfers = 1'024;
inline constexpr size_t kMostUnsentBytes = 64 << 20;  // to one worker

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_LIMITS_H_
