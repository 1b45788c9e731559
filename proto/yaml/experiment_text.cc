#include "proto/yaml/experiment_text.h"

#include <utility>

#include "google/protobuf/struct.pb.h"
#include "proto/reflect/from_value.h"
#include "proto/yaml/document.h"
#include "proto/yaml/shorthands.h"

namespace ablate::yaml {
namespace {

using google::protobuf::Value;

// The typed message of a tree of values, with the problems of both.
void Convert(Document document, ExperimentText* read) {
  read->positions = std::move(document.positions);
  read->problems = std::move(document.problems);
  read->unread = std::move(document.unread);
  if (document.syntax_error) return;
  if (document.root.kind_case() != Value::kStructValue) {
    const bool empty = document.root.kind_case() == Value::kNullValue ||
                       document.root.kind_case() == Value::KIND_NOT_SET;
    read->problems.push_back({{},
                              empty ? "the file is empty: an experiment has at least name and base"
                                    : "an experiment is a mapping: name, base, axes, seeds, …"});
    return;
  }
  std::vector<reflect::FieldProblem> problems;
  ExpandShorthands(&document.root, &problems);
  reflect::FromValue(document.root, "", &read->spec, &problems);
  for (reflect::FieldProblem& problem : problems) {
    read->unread.push_back(ParseFieldPath(problem.field));
    read->problems.push_back({read->positions.Find(problem.field), std::move(problem.message), "",
                              std::move(problem.field)});
  }
  read->readable = true;
}

// A message that nests too deeply can be sent but not received.
void CheckDepth(ExperimentText* read) {
  v1::ExperimentSpec received;
  if (received.ParseFromString(read->spec.SerializeAsString())) return;
  read->readable = false;
  if (!read->problems.empty()) return;
  read->problems.push_back({{}, "nested deeper than a request can carry"});
}

}  // namespace

ExperimentText ReadExperiment(std::string text) {
  ExperimentText read;
  const SourceText source(std::move(text));
  read.problems = source.Check();
  if (read.problems.empty()) Convert(ParseYaml(source), &read);
  CheckDepth(&read);
  return read;
}

}  // namespace ablate::yaml
