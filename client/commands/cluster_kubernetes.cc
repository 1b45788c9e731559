// `ablate cluster kubernetes`: manifests of a server and its workers, from deploy/kubernetes.
#include <algorithm>
#include <cctype>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "client/command_table.h"
#include "client/kubernetes_templates.h"
#include "proto/reflect/text.h"

namespace ablate::client {
namespace {

// The user of the image (deploy/Dockerfile).
constexpr char kImageUser[] = "7443";

struct KubernetesOptions {
  std::string name_space = "ablate", image = "ablate", memory = "8Gi", storage = "50Gi", queue;
  std::optional<uint32_t> max, gpus, cpus, lanes;
  bool keda = false;
};

using Placeholders = std::map<std::string, std::string>;

// Replaces ${NAME} by its value, in whose further lines the indentation of the first is repeated. A
// line that is left empty is removed.
std::string Fill(const std::string& text, const Placeholders& values) {
  std::string filled;
  for (const absl::string_view line :
       absl::StrSplit(absl::StripTrailingAsciiWhitespace(text), '\n')) {
    const std::string indent(std::min(line.find_first_not_of(' '), line.size()), ' ');
    std::string result(line);
    for (const auto& [name, value] : values) {
      const std::string lines = absl::StrReplaceAll(value, {{"\n", absl::StrCat("\n", indent)}});
      absl::StrReplaceAll({{absl::StrCat("${", name, "}"), lines}}, &result);
    }
    const bool removed = !line.empty() && absl::StripAsciiWhitespace(result).empty();
    if (!removed) absl::StrAppend(&filled, result, "\n");
  }
  return filled;
}

// Names and amounts of Kubernetes have none of the characters that mean something in YAML.
absl::Status CheckWord(absl::string_view option, const std::string& word) {
  const bool plain = std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '/' || c == ':' || c == '_' ||
           c == '@';
  });
  if (plain && word.size() <= 253) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(option, ": ", reflect::Quoted(word),
                                                 "; expected letters, digits and - . / : _ @"));
}

absl::StatusOr<Placeholders> ReadValues(const KubernetesOptions& options) {
  RETURN_IF_ERROR(CheckWord("--namespace", options.name_space));
  RETURN_IF_ERROR(CheckWord("--image", options.image));
  RETURN_IF_ERROR(CheckWord("--memory", options.memory));
  RETURN_IF_ERROR(CheckWord("--storage", options.storage));
  RETURN_IF_ERROR(CheckWord("--queue", options.queue));
  const uint32_t gpus = options.gpus.value_or(0), cpus = options.cpus.value_or(4);
  const bool on_gpu = gpus > 0;
  const uint32_t lanes = options.lanes.value_or(on_gpu ? 1 : cpus);
  if (cpus < 1 || lanes < 1 || options.max == 0u) {
    return absl::InvalidArgumentError("--cpus, --lanes, --max: must be at least 1");
  }
  std::string worker = options.keda ? " --exit-when-idle 5m" : "";
  // A node may have more cores than the pod.
  if (!on_gpu || options.lanes.has_value()) absl::StrAppend(&worker, " --lanes ", lanes);
  Placeholders values = {
      {"NAMESPACE", options.name_space},
      {"IMAGE", options.image},
      {"USER", kImageUser},
      {"MEMORY", options.memory},
      {"STORAGE", options.storage},
      {"CPUS", absl::StrCat(cpus)},
      {"GPUS", on_gpu ? absl::StrCat(", nvidia.com/gpu: \"", gpus, "\"") : ""},
      {"DEVICE", on_gpu ? "cuda" : "cpu"},
      {"LANES", absl::StrCat(lanes)},
      {"PODS", absl::StrCat(options.max.value_or(1))},
      {"WORKER", worker},
      {"LABELS", options.queue.empty()
                     ? ""
                     : absl::StrCat("labels: {kueue.x-k8s.io/queue-name: ", options.queue, "}")}};
  values["POD"] = std::string(absl::StripTrailingAsciiWhitespace(Fill(kPodTemplate, values)));
  return values;
}

int PrintManifests(const KubernetesOptions& options, const Context& context) {
  const auto values = ReadValues(options);
  if (!values.ok()) {
    context.console.Error(absl::StrCat("ablate cluster kubernetes: ", values.status().message()));
    return kUsage;
  }
  context.console.data() << Fill(kServerTemplate, *values) << "---\n"
                         << Fill(options.keda ? kKedaTemplate : kWorkersTemplate, *values);
  return kSuccess;
}

}  // namespace

Action DefineClusterKubernetes(Command* command) {
  auto options = std::make_shared<KubernetesOptions>();
  command->Option(&options->name_space, "--namespace", "NAME", "Namespace of all objects [ablate]");
  command->Option(&options->image, "--image", "IMAGE", "Image made by deploy/Dockerfile [ablate]");
  command->Option(&options->max, "--max", "N", "Pods that work at one time [1]");
  command->Option(&options->gpus, "--gpus", "N", "GPUs of a pod; 0: it trains on its cores [0]");
  command->Option(&options->cpus, "--cpus", "N", "Cores of a pod [4]");
  command->Option(&options->memory, "--memory", "SIZE", "Memory of a pod [8Gi]");
  command->Option(&options->lanes, "--lanes", "N",
                  "Runs that a pod trains at one time [its cores; on a GPU by measuring]");
  command->Option(&options->storage, "--storage", "SIZE", "Size of the server's volume [50Gi]");
  command->Option(&options->queue, "--queue", "NAME", "Local queue of Kueue that admits the pods");
  command->Flag(&options->keda, "--keda",
                "Let KEDA start pods while runs wait, and end those that have none for 5 minutes");
  command->Footer("Example:\n  ablate cluster kubernetes --max 8 --gpus 1 | kubectl apply -f -");
  return [options](const Context& context) { return PrintManifests(*options, context); };
}

}  // namespace ablate::client
