// Encodes an experiment's points as bytes of file formats that other programs read.
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
  std::vector<std::string> labels;  // one per axis
  uint32_t seed = 0;
  std::string run;        // `runs/{id}`
  double start_time = 0;  // start of the run in seconds since the Unix epoch; 0 if unknown
};

// Interface of an encoder. Appends to `bytes`; keeps only the description of the current cell. For
// one thread.
class Encoder {
 public:
  virtual ~Encoder() = default;
  // Returns the beginning of the output if all cells share one file, even if there is no cell.
  virtual std::string Head() const { return ""; }
  // Returns the file for the points of `cell`, relative to the output; "" if all cells share one
  // file.
  virtual std::string Path(const ExportedCell&) const { return ""; }
  // Starts a cell: the following points are its.
  virtual void Begin(const ExportedCell& cell, std::string* bytes) = 0;
  // Adds points; `steps` and `values` have equal lengths.
  virtual void Add(absl::string_view key, absl::Span<const uint32_t> steps,
                   absl::Span<const double> values, std::string* bytes) = 0;
};

// Makes an encoder of comma-separated values (RFC 4180 with line feeds): a head line, then a line
// per point with the columns cell, one per axis, seed, run, key, step, value. Values are the
// shortest decimals that read back as the same double, or nan, inf, -inf.
std::unique_ptr<Encoder> MakeCsvEncoder(const std::vector<std::string>& axes);

// Makes an encoder with one JSON object per point and line, with the same names; a non-finite value
// is the string "NaN", "Infinity" or "-Infinity".
std::unique_ptr<Encoder> MakeJsonLinesEncoder(const std::vector<std::string>& axes);

// Makes an encoder of TensorBoard's event files, one per cell:
// CELL/events.out.tfevents.SECONDS.ablate; a cell's name that is too long for a folder is cut and
// ends in the cell's index. Every event has the start time of its run, because times of single
// points aren't recorded. Values are rounded to float32, the format's scalars.
std::unique_ptr<Encoder> MakeTensorBoardEncoder();

// Returns CRC-32C (Castagnoli) of `bytes`, as in RFC 3720.
uint32_t Crc32c(absl::string_view bytes);

// Rotates a checksum and adds an offset, so that the checksum of bytes that contain it isn't
// degenerate.
uint32_t Masked(uint32_t crc);

// Appends one record of an event file: length (8 bytes), its masked checksum (4), `data`, its
// masked checksum (4); little endian.
void AppendRecord(absl::string_view data, std::string* bytes);

// Returns the columns' names. An axis with the name of another column becomes "axis_NAME".
std::vector<std::string> ColumnNames(const std::vector<std::string>& axes);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_EXPORT_ENCODER_H_
