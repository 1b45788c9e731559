// Points of an experiment as bytes of a file format that other programs read.
#ifndef ABLATE_SERVER_REPORT_EXPORT_ENCODER_H_
#define ABLATE_SERVER_REPORT_EXPORT_ENCODER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace ablate::report {

struct ExportedCell {
  uint32_t index = 0;  // in grid order
  std::string name;
  std::vector<std::string> labels;  // one an axis
  uint32_t seed = 0;
  std::string run;        // `runs/{id}`
  double start_time = 0;  // of the run, in seconds since the Unix epoch; 0 if unknown
};

// Appends to `bytes`; keeps nothing but what describes the current cell. One thread.
class Encoder {
 public:
  virtual ~Encoder() = default;
  // What the output begins with where all cells share one file, even if there is no cell.
  virtual std::string Head() const { return ""; }
  // Where the points of `cell` go, relative to the output; "" where all cells share one file.
  virtual std::string Path(const ExportedCell&) const { return ""; }
  // The points that follow are this cell's.
  virtual void Begin(const ExportedCell& cell, std::string* bytes) = 0;
  // `steps` and `values` have one length.
  virtual void Add(absl::string_view key, absl::Span<const uint32_t> steps,
                   absl::Span<const double> values, std::string* bytes) = 0;
};

// Comma-separated values (RFC 4180 with line feeds): a head line, then a line a point with the
// columns cell, one an axis, seed, run, key, step, value. Values are the shortest decimals that
// read back as the same double, or nan, inf, -inf.
std::unique_ptr<Encoder> MakeCsvEncoder(const std::vector<std::string>& axes);

// One JSON object a line and point with the same names; a value that is not finite is the string
// "NaN", "Infinity" or "-Infinity".
std::unique_ptr<Encoder> MakeJsonLinesEncoder(const std::vector<std::string>& axes);

// TensorBoard's event files, one a cell: CELL/events.out.tfevents.SECONDS.ablate; a cell's name
// that is too long for a folder is cut and ends in the cell's index. Every event has the time at
// which its run started: times of single points are not recorded. Values are rounded to float32,
// the format's scalars.
std::unique_ptr<Encoder> MakeTensorBoardEncoder();

// CRC-32C (Castagnoli) of `bytes`, as RFC 3720 has it.
uint32_t Crc32c(absl::string_view bytes);

// A checksum rotated and offset, so that the checksum of bytes that contain it is not degenerate.
uint32_t Masked(uint32_t crc);

// Appends one record of an event file: length (8 bytes), its masked checksum (4), `data`, its
// masked checksum (4); little endian.
void AppendRecord(absl::string_view data, std::string* bytes);

// The columns' names. An axis that is named like another column is called "axis_NAME".
std::vector<std::string> ColumnNames(const std::vector<std::string>& axes);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_EXPORT_ENCODER_H_
