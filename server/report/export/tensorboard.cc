// TensorBoard's event files: records of the length and the bytes, each with a masked checksum.
#include <boost/crc.hpp>
#include <cmath>
#include <limits>

#include "ablate/tensorboard/event.pb.h"
#include "absl/strings/str_cat.h"
#include "server/report/export/encoder.h"

namespace ablate::report {
namespace {

// The Castagnoli polynomial; begins and ends inverted, bits reflected.
using Castagnoli = boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true>;

template <typename Integer>
std::string LittleEndian(Integer value) {
  std::string bytes;
  for (size_t i = 0; i < sizeof value; ++i) {
    bytes.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
  }
  return bytes;
}

constexpr size_t kMaxFolderBytes = 200;  // file systems allow 255

std::string Folder(const ExportedCell& cell) {
  if (cell.name.size() <= kMaxFolderBytes) return cell.name;
  return absl::StrCat(cell.name.substr(0, kMaxFolderBytes - 12), "..", cell.index);
}

// Converts to infinity beyond the range of float, for which a cast is undefined.
float ToFloat(double value) {
  if (std::abs(value) <= std::numeric_limits<float>::max()) return static_cast<float>(value);
  if (std::isnan(value)) return std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  return value > 0 ? infinity : -infinity;
}

class TensorBoardEncoder final : public Encoder {
 public:
  std::string Path(const ExportedCell& cell) const override {
    return absl::StrCat(Folder(cell), "/events.out.tfevents.",
                        static_cast<int64_t>(std::floor(cell.start_time)), ".ablate");
  }

  void Begin(const ExportedCell& cell, std::string* bytes) override {
    start_time_ = cell.start_time;
    tensorboard::Event event;
    event.set_wall_time(start_time_);
    event.set_file_version("brain.Event:2");
    AppendRecord(event.SerializeAsString(), bytes);
  }

  void Add(absl::string_view key, absl::Span<const uint32_t> steps, absl::Span<const double> values,
           std::string* bytes) override {
    tensorboard::Event event;
    event.set_wall_time(start_time_);
    tensorboard::Summary::Value* value = event.mutable_summary()->add_value();
    value->set_tag(std::string(key));
    std::string data;
    for (size_t i = 0; i < steps.size(); ++i) {
      event.set_step(steps[i]);
      value->set_simple_value(ToFloat(values[i]));
      event.SerializeToString(&data);
      AppendRecord(data, bytes);
    }
  }

 private:
  double start_time_ = 0;
};

}  // namespace

uint32_t Crc32c(absl::string_view bytes) {
  Castagnoli crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

uint32_t Masked(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u; }

void AppendRecord(absl::string_view data, std::string* bytes) {
  const std::string length = LittleEndian(uint64_t{data.size()});
  bytes->append(length);
  bytes->append(LittleEndian(Masked(Crc32c(length))));
  bytes->append(data.data(), data.size());
  bytes->append(LittleEndian(Masked(Crc32c(data))));
}

std::unique_ptr<Encoder> MakeTensorBoardEncoder() { return std::make_unique<TensorBoardEncoder>(); }

}  // namespace ablate::report
