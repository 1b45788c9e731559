#include "storage/sqlite/points.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <initializer_list>

#include "base/status_macros.h"
#include "storage/sqlite/bytes.h"

namespace ablate::storage {
namespace {

constexpr uint64_t kStride = 1;  // one stride for all steps; otherwise a difference each

// Far more than is ever written: a row group holds the points of one message, a chunk 65,536.
constexpr uint64_t kMaxPoints = 1 << 28;

void PutSteps(const std::vector<uint32_t>& steps, std::string* out) {
  PutVarint(out, steps.size());
  PutVarint(out, steps.front());
  const uint32_t stride = steps.size() > 1 ? steps[1] - steps[0] : 1;
  bool even = true;
  for (size_t i = 1; i < steps.size() && even; ++i) even = steps[i] - steps[i - 1] == stride;
  PutVarint(out, even ? kStride : 0);
  if (even) {
    PutVarint(out, stride);
    return;
  }
  for (size_t i = 1; i < steps.size(); ++i) PutVarint(out, steps[i] - steps[i - 1]);
}

// Encoded steps, decoded only on demand.
struct StepColumn {
  uint64_t count = 0;
  uint64_t first = 0;
  uint32_t stride = 0;
  std::vector<uint32_t> differences;  // if not strided: one less than count
};

StepColumn ReadSteps(ByteReader* in) {
  StepColumn column;
  column.count = in->Varint();
  column.first = in->Varint();
  if (in->Varint() == kStride) {
    column.stride = static_cast<uint32_t>(in->Varint());
  } else {
    for (uint64_t i = 1; i < column.count && in->ok(); ++i) {
      column.differences.push_back(static_cast<uint32_t>(in->Varint()));
    }
  }
  if (column.count == 0 || column.count > kMaxPoints) in->Fail();
  return column;
}

void Expand(const StepColumn& column, std::vector<uint32_t>* steps) {
  const size_t begin = steps->size();
  steps->resize(begin + column.count);
  uint32_t* place = steps->data() + begin;
  auto step = static_cast<uint32_t>(column.first);
  *place = step;
  for (size_t i = 1; i < column.count; ++i) {
    step += column.differences.empty() ? column.stride : column.differences[i - 1];
    place[i] = step;
  }
}

// Appends the values as floats if each of them is one, including all bits of a NaN; otherwise
// nothing.
bool PutFloats(const std::vector<double>& values, std::string* out) {
  const size_t begin = out->size();
  out->resize(begin + values.size() * sizeof(float));
  char* place = out->data() + begin;
  for (const double value : values) {
    const auto narrow = static_cast<float>(value);
    const auto wide = static_cast<double>(narrow);
    if (std::bit_cast<uint64_t>(wide) != std::bit_cast<uint64_t>(value)) {
      out->resize(begin);
      return false;
    }
    std::memcpy(place, &narrow, sizeof(narrow));
    place += sizeof(narrow);
  }
  return true;
}

void AppendValues(absl::string_view bytes, size_t width, std::vector<double>* values) {
  const size_t count = bytes.size() / width;
  const size_t begin = values->size();
  values->resize(begin + count);
  if (width == sizeof(double)) {
    std::memcpy(values->data() + begin, bytes.data(), bytes.size());
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    float value;
    std::memcpy(&value, bytes.data() + i * sizeof(value), sizeof(value));
    (*values)[begin + i] = value;
  }
}

struct ColumnHead {
  uint32_t key = 0;
  uint64_t steps = 0;  // number of the step column
  uint8_t width = 0;
};

struct Head {
  std::vector<StepColumn> steps;
  std::vector<ColumnHead> columns;
};

Head ReadHead(ByteReader* in) {
  Head head;
  const uint64_t step_columns = in->Varint();
  for (uint64_t i = 0; i < step_columns && in->ok(); ++i) head.steps.push_back(ReadSteps(in));
  const uint64_t columns = in->Varint();
  for (uint64_t i = 0; i < columns && in->ok(); ++i) {
    ColumnHead column;
    column.key = static_cast<uint32_t>(in->Varint());
    column.steps = in->Varint();
    column.width = in->Raw<uint8_t>();
    const bool valid = column.steps < head.steps.size() &&
                       (column.width == sizeof(float) || column.width == sizeof(double));
    if (!valid) in->Fail();
    head.columns.push_back(column);
  }
  return head;
}

absl::Status Malformed() { return absl::DataLossError("they are malformed"); }

// Removes the points outside the range from those appended since `begin`.
void Cut(size_t begin, uint32_t first_step, uint32_t last_step, std::vector<uint32_t>* steps,
         std::vector<double>* values) {
  const auto from = steps->begin() + static_cast<std::ptrdiff_t>(begin);
  const auto low = std::lower_bound(from, steps->end(), first_step) - steps->begin();
  const auto high = std::upper_bound(from, steps->end(), last_step) - steps->begin();
  steps->erase(steps->begin() + high, steps->end());
  values->erase(values->begin() + high, values->end());
  steps->erase(from, steps->begin() + low);
  values->erase(values->begin() + static_cast<std::ptrdiff_t>(begin), values->begin() + low);
}

std::string PlaceOf(absl::string_view kind, absl::string_view run,
                    std::initializer_list<uint64_t> numbers) {
  std::string place;
  PutText(&place, kind);
  PutText(&place, run);
  for (const uint64_t number : numbers) PutVarint(&place, number);
  return place;
}

}  // namespace

std::string GroupPlace(absl::string_view run, uint64_t id, uint32_t first_step,
                       uint32_t last_step) {
  return PlaceOf("row group", run, {id, first_step, last_step});
}

std::string ChunkPlace(absl::string_view run, uint32_t key, uint32_t first_step,
                       uint32_t last_step) {
  return PlaceOf("chunk", run, {key, first_step, last_step});
}

std::string EncodePoints(absl::string_view place, const std::vector<EncodedColumn>& columns) {
  std::vector<const std::vector<uint32_t>*> distinct;
  std::vector<size_t> which;
  for (const EncodedColumn& column : columns) {
    const auto same = [&](const auto* steps) { return *steps == *column.steps; };
    const auto found = std::find_if(distinct.begin(), distinct.end(), same);
    which.push_back(static_cast<size_t>(found - distinct.begin()));
    if (found == distinct.end()) distinct.push_back(column.steps);
  }
  std::string head;
  PutVarint(&head, distinct.size());
  for (const auto* steps : distinct) PutSteps(*steps, &head);
  PutVarint(&head, columns.size());
  std::string body;
  for (size_t i = 0; i < columns.size(); ++i) {
    const std::vector<double>& values = *columns[i].values;
    const bool narrow = PutFloats(values, &body);
    if (!narrow) {
      body.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double));
    }
    PutVarint(&head, columns[i].key);
    PutVarint(&head, which[i]);
    PutRaw(&head, static_cast<uint8_t>(narrow ? sizeof(float) : sizeof(double)));
  }
  return Seal(place, head + body);
}

absl::StatusOr<std::vector<DecodedColumn>> DecodePoints(absl::string_view place,
                                                        absl::string_view bytes) {
  ASSIGN_OR_RETURN(const auto content, Unseal(place, bytes));
  ByteReader in(content);
  const Head head = ReadHead(&in);
  if (!in.ok()) return Malformed();
  std::vector<DecodedColumn> columns;
  for (const ColumnHead& column : head.columns) {
    const StepColumn& steps = head.steps[column.steps];
    const absl::string_view values = in.Take(steps.count * column.width);
    if (!in.ok()) return Malformed();
    DecodedColumn& decoded = columns.emplace_back();
    decoded.key = column.key;
    Expand(steps, &decoded.steps);
    AppendValues(values, column.width, &decoded.values);
  }
  if (!in.empty()) return Malformed();
  return columns;
}

absl::Status AppendPoints(absl::string_view place, absl::string_view bytes, uint32_t key,
                          uint32_t first_step, uint32_t last_step, std::vector<uint32_t>* steps,
                          std::vector<double>* values) {
  ASSIGN_OR_RETURN(const auto content, Unseal(place, bytes));
  ByteReader in(content);
  const Head head = ReadHead(&in);
  if (!in.ok()) return Malformed();
  for (const ColumnHead& column : head.columns) {
    const StepColumn& found = head.steps[column.steps];
    const absl::string_view stored = in.Take(found.count * column.width);
    if (!in.ok()) return Malformed();
    if (column.key != key) continue;
    const size_t begin = steps->size();
    Expand(found, steps);
    AppendValues(stored, column.width, values);
    Cut(begin, first_step, last_step, steps, values);
    return absl::OkStatus();
  }
  return absl::OkStatus();
}

}  // namespace ablate::storage
