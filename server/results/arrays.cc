#include "server/results/arrays.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/lookup/limits.h"
#include "server/rpc/blob_streams.h"

namespace ablate::results {

absl::Status DamagedArrays(const std::string& id, absl::string_view why) {
  return absl::DataLossError(absl::StrCat("the arrays of analysis ", id, " can't be read: ", why));
}

namespace {

// Returns the blob's bytes; they are verified against its hash.
absl::StatusOr<std::string> ReadBlob(storage::Store* store, const std::string& sha256,
                                     const lookup::Cancelled& cancelled) {
  ASSIGN_OR_RETURN(auto reader, rpc::BlobReader::Open(store, sha256, 0));
  std::string bytes;
  for (;;) {
    if (cancelled()) return lookup::CallCancelled();
    auto next = reader.Next();
    if (!next.ok()) return next.status();
    if (!next->has_value()) return bytes;
    bytes.append(**next);
  }
}

// Reads the elements of a tensor as numbers.
template <class Element>
void ReadElements(const TensorView& tensor, std::vector<double>* values) {
  values->resize(tensor.bytes.size() / sizeof(Element));
  for (size_t i = 0; i < values->size(); ++i) {
    Element element = 0;
    std::memcpy(&element, tensor.bytes.data() + i * sizeof(Element), sizeof(Element));
    (*values)[i] = static_cast<double>(element);
  }
}

}  // namespace

absl::StatusOr<std::string> ReadArtifact(storage::Store* store, const std::string& id,
                                         const lookup::Cancelled& cancelled) {
  ASSIGN_OR_RETURN(const auto record, store->GetAnalysis(id));
  if (record.artifact_bytes > lookup::kMaxFigureArtifactBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("key: the arrays of analysis ", id, " have ", record.artifact_bytes,
                     " bytes; expected at most ", lookup::kMaxFigureArtifactBytes));
  }
  if (record.artifact.empty()) return DamagedArrays(id, "there are none");
  return ReadBlob(store, record.artifact, cancelled);
}

absl::Status ReadTensor(const SafetensorsFile& file, absl::string_view name, absl::string_view axes,
                        bool whole, std::vector<size_t>* shape, std::vector<double>* values) {
  const TensorView* tensor = file.Find(name);
  if (tensor == nullptr) return absl::InvalidArgumentError(absl::StrCat("there is no ", name));
  const auto named = file.metadata.find(absl::StrCat("axes.", name));
  const bool same =
      named != file.metadata.end() && named->second == axes &&
      tensor->shape.size() == static_cast<size_t>(std::count(axes.begin(), axes.end(), ',') + 1);
  if (!axes.empty() && !same) {
    return absl::InvalidArgumentError(absl::StrCat("the axes of ", name, " are not ", axes));
  }
  shape->assign(tensor->shape.begin(), tensor->shape.end());
  if (tensor->type == TensorType::kF64) {
    ReadElements<double>(*tensor, values);
  } else if (tensor->type == TensorType::kF32) {
    ReadElements<float>(*tensor, values);
  } else if (whole && tensor->type == TensorType::kI64) {
    ReadElements<int64_t>(*tensor, values);
  } else if (whole && tensor->type == TensorType::kU8) {
    ReadElements<uint8_t>(*tensor, values);
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " has no ", whole ? "numbers" : "floating-point numbers"));
  }
  if (values->empty()) return absl::InvalidArgumentError(absl::StrCat(name, " is empty"));
  return absl::OkStatus();
}

}  // namespace ablate::results
