// Writes of overrides and settings: where the user made them, and the check that no field has two
// writers.
#ifndef ABLATE_SERVER_EXPERIMENT_WRITES_H_
#define ABLATE_SERVER_EXPERIMENT_WRITES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "ablate/v1/spec.pb.h"
#include "google/protobuf/struct.pb.h"
#include "server/config/problems.h"

namespace ablate::spec {

// One assignment that an override or a setting makes.
struct Write {
  std::string path;  // below BaseSpec
  google::protobuf::Value value;
  std::string source;  // such as axes[0].settings[1].set["model.norm.placement"]
};

// Specificity of the place where a field was written; problems are reported at the greatest.
enum class Rank { kDefault, kBase, kOverride, kAxis };

struct Source {
  Rank rank = Rank::kDefault;
  std::string reported_as;
};

// Returns the source of `path` (which may end in [2]) if one of `writes` wrote it or a message
// around it; otherwise nothing.
std::string WrittenBy(const std::vector<Write>& writes, const std::string& path);

// Finds the sources of one combination's fields: overrides and one point per axis over a base. No
// two of them may write one path (CheckClaims).
class Sources {
 public:
  // Both must outlive it.
  Sources(const std::vector<Write>& overrides, const std::vector<const std::vector<Write>*>& points)
      : overrides_(overrides), points_(points) {}

  // Returns the source; `merged` shows which fields are set at all.
  Source Find(const std::string& path, const v1::BaseSpec& merged) const;

 private:
  const std::vector<Write>& overrides_;
  const std::vector<const std::vector<Write>*>& points_;
};

// Returns true if `path` names a field below BaseSpec.
bool NamesField(const std::string& path);

// Applies writes in order.
void Apply(const std::vector<Write>& writes, v1::BaseSpec* base, std::vector<Problem>* problems);

// One writer's claim to a path below BaseSpec and everything below it.
struct Claim {
  std::string path;  // a field's name
  std::string source;
  int writer = 0;
};

// A pair of claims, by their indexes.
struct Conflict {
  size_t earlier = 0;
  size_t later = 0;
};

// Returns each pair of claims by different writers to one path, to a path and its prefix, or to
// different members of a oneof.
std::vector<Conflict> FindConflicts(const std::vector<Claim>& claims);

// Adds a problem, at the later claim, for each of them.
void CheckClaims(const std::vector<Claim>& claims, Problems* problems);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_EXPERIMENT_WRITES_H_
