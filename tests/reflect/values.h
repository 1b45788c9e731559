// Makes plain values from JSON, for tests.
#ifndef ABLATE_TESTS_REFLECT_VALUES_H_
#define ABLATE_TESTS_REFLECT_VALUES_H_

#include <string>

#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"

namespace ablate::reflect {

inline google::protobuf::Value FromJson(const std::string& json) {
  google::protobuf::Value value;
  const auto status = google::protobuf::util::JsonStringToMessage(json, &value);
  EXPECT_TRUE(status.ok()) << json << ": " << status.ToString();
  return value;
}

}  // namespace ablate::reflect

#endif  // ABLATE_TESTS_REFLECT_VALUES_H_
