// Names and labels: what they may look like, and the labels of plain values.
#ifndef ABLATE_SERVER_SPEC_LABELS_H_
#define ABLATE_SERVER_SPEC_LABELS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/struct.pb.h"
#include "server/spec/problems.h"
#include "text/decimal.h"

namespace ablate::spec {

inline constexpr size_t kMaxLabelLength = 40;  // and name
inline constexpr char kNameGrammar[] =
    "lower-case letters, digits and hyphens, beginning with a letter, 1 to 40 characters";
inline constexpr char kLabelGrammar[] = "letters, digits and . _ + -, 1 to 40 characters";

bool IsLabel(absl::string_view text);

// A problem at `field` unless `text` is a name.
void CheckName(const std::string& field, absl::string_view text, Problems* problems);

// Whether a value has a label: numbers, text and booleans do.
bool HasLabel(const google::protobuf::Value& value);

// Numbers as their shortest decimal (text::ShortestDecimal: 0.01, 5e-05, 16), true and false,
// text as it is.
std::string ValueLabel(const google::protobuf::Value& value);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_SPEC_LABELS_H_
