// Protocol buffers' text format → a message with the position of every field.
#include "client/textproto_document.h"

#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "proto/reflect/from_value.h"

namespace ablate::client {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::TextFormat;

// `Message type "ablate.v1.ModelSpec" has no field named "with".` with the name that was meant.
std::string InOurWords(const std::string& message) {
  if (absl::EndsWith(message, "got: ")) return message + "the end of the file";
  if (!absl::StrContains(message, "has no field named")) return message;
  const std::vector<std::string> parts = absl::StrSplit(message, '"');
  if (parts.size() < 5) return message;
  const Descriptor* type =
      google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(parts[1]);
  if (type == nullptr) return message;
  std::vector<std::string> names;
  for (int i = 0; i < type->field_count(); ++i) names.push_back(type->field(i)->name());
  return absl::StrCat(type->name(), " has no field \"", parts[3], "\"",
                      reflect::DidYouMean(parts[3], names));
}

class Errors : public google::protobuf::io::ErrorCollector {
 public:
  explicit Errors(std::vector<Diagnostic>* problems) : problems_(*problems) {}

  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    problems_.push_back({{line + 1, column + 1}, InOurWords(message), ""});
  }

 private:
  std::vector<Diagnostic>& problems_;
};

struct Notes {
  FieldPath path;
  SourceMap* positions;
  std::vector<Diagnostic>* problems;
};

void Note(const Message& message, const TextFormat::ParseInfoTree& tree, Notes* notes);

// One value of a field; `index` is −1 if the field is not repeated.
void NoteValue(const Message& message, const FieldDescriptor* field, int index,
               const TextFormat::ParseInfoTree& tree, Notes* notes) {
  const TextFormat::ParseLocation location = tree.GetLocation(field, index);
  notes->positions->Add(notes->path, {location.line + 1, location.column + 1});
  if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return;
  const auto* nested = tree.GetTreeForNested(field, index);
  if (nested == nullptr) return;
  const auto* reflection = message.GetReflection();
  Note(index < 0 ? reflection->GetMessage(message, field)
                 : reflection->GetRepeatedMessage(message, field, index),
       *nested, notes);
}

// The key of entry `index` of a map, all of which have texts as keys; a second entry of a key is a
// problem, for it would silently win.
std::string MapKey(const Message& message, const FieldDescriptor* field, int index,
                   const TextFormat::ParseInfoTree& tree, std::set<std::string>* seen,
                   Notes* notes) {
  const Message& entry = message.GetReflection()->GetRepeatedMessage(message, field, index);
  std::string key = entry.GetReflection()->GetString(entry, entry.GetDescriptor()->map_key());
  if (!seen->insert(key).second) {
    const TextFormat::ParseLocation at = tree.GetLocation(field, index);
    notes->problems->push_back(
        {{at.line + 1, at.column + 1}, absl::StrCat("duplicate key \"", key, "\""), ""});
  }
  return key;
}

void Note(const Message& message, const TextFormat::ParseInfoTree& tree, Notes* notes) {
  const auto* reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    notes->path.push_back(field->name());
    std::set<std::string> keys;
    const int count = field->is_repeated() ? reflection->FieldSize(message, field) : 0;
    for (int i = 0; i < count; ++i) {
      notes->path.push_back(field->is_map() ? MapKey(message, field, i, tree, &keys, notes)
                                            : absl::StrCat(i));
      NoteValue(message, field, i, tree, notes);
      notes->path.pop_back();
    }
    if (!field->is_repeated()) NoteValue(message, field, -1, tree, notes);
    notes->path.pop_back();
  }
}

}  // namespace

std::vector<Diagnostic> ParseTextproto(const SourceText& source, Message* message,
                                       SourceMap* positions) {
  std::vector<Diagnostic> problems;
  Errors errors(&problems);
  TextFormat::ParseInfoTree tree;
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  parser.WriteLocationsTo(&tree);
  parser.SetRecursionLimit(kMaxDepth);
  message->Clear();
  if (!parser.ParseFromString(std::string(source.text()), message)) return problems;
  Notes notes{{}, positions, &problems};
  Note(*message, tree, &notes);
  return problems;
}

}  // namespace ablate::client
