#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "base/shared_bytes.h"
#include "server/engine/analyze/analysis_context.h"
#include "tests/engine/analyze/drawn_subjects.h"
#include "tests/test_folder.h"

namespace ablate::engine {
namespace {

// Returns true if a tensor's elements are among the bytes.
bool IsIn(const at::Tensor& tensor, absl::string_view bytes) {
  const char* const first = static_cast<const char*>(tensor.const_data_ptr());
  return first >= bytes.data() && first + tensor.nbytes() <= bytes.data() + bytes.size();
}

TEST(SubjectTest, StaysInTheMemoryOfItsFile) {
  const TestFolder folder;
  const std::string file = folder.path() + "/checkpoint";
  const AnalysisSubject from = ModelM();
  std::ofstream(file) << from.checkpoint.view();
  const auto read = [&] {
    const SharedBytes bytes = *SharedBytes::OfFile(file);
    SubjectModel subject = *ReadSubject(from.config, bytes);
    EXPECT_TRUE(IsIn(subject.values, bytes.view()));
    return subject;
  };
  const SubjectModel mapped = read();
  std::remove(file.c_str());
  const SubjectModel copied = *ReadSubject(from.config, from.checkpoint);
  EXPECT_FALSE(IsIn(copied.values, from.checkpoint.view()));
  EXPECT_TRUE(at::equal(mapped.values, copied.values));
  EXPECT_TRUE(at::equal(mapped.parameters.head.weight, copied.parameters.head.weight));
}

TEST(SubjectTest, IsCopiedFromAFileOfAnotherOrder) {
  const TestFolder folder;
  const AnalysisSubject from = ModelM();
  const SubjectModel subject = *ReadSubject(from.config, from.checkpoint);
  const SafetensorsFile parsed = *ParseSafetensors(from.checkpoint.view());
  std::vector<TensorView> reversed(parsed.tensors.rbegin(), parsed.tensors.rend());
  const std::string file = folder.path() + "/checkpoint";
  std::ofstream(file) << *WriteSafetensors(reversed, parsed.metadata);
  const SharedBytes bytes = *SharedBytes::OfFile(file);
  const SubjectModel read = *ReadSubject(from.config, bytes);
  EXPECT_FALSE(IsIn(read.values, bytes.view()));
  EXPECT_TRUE(at::equal(read.values, subject.values));
}

}  // namespace
}  // namespace ablate::engine
