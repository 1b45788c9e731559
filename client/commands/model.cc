// `ablate model ls | show NAME | rm NAME`: the imported models of the server.
#include <google/protobuf/empty.pb.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/decimal.h"
#include "base/status_macros.h"
#include "client/command_table.h"
#include "client/names.h"
#include "client/output/format.h"
#include "client/output/model_text.h"
#include "client/output/owners.h"
#include "client/output/table.h"
#include "client/output/terminal_text.h"

namespace ablate::client {
namespace {

constexpr char kModelHelp[] = "Model: models/NAME or its name";

struct ModelOptions {
  std::string name;
  bool json = false;
};

absl::StatusOr<int> LsModels(const ModelOptions& options, const Context& context,
                             Connection* connection) {
  ASSIGN_OR_RETURN(const v1::ListModelsResponse list,
                   ListAll(connection, kListModels, &v1::ListModelsResponse::mutable_models));
  if (options.json) return PrintJson(context, list);
  const bool owners = ShowsOwners(*connection, list.models());
  Table table({{"model"},
               {"owner", false, !owners},
               {"layers", true},
               {"width", true},
               {"heads", true},
               {"context", true},
               {"vocabulary", true},
               {"norms"},
               {"parameters", true},
               {"size", true},
               {"created"}});
  for (const v1::Model& model : list.models()) {
    const v1::ModelSpec& spec = model.model();
    table.Add({Id(model.name()), owners ? OwnerText(model) : "", text::Grouped(spec.layers()),
               text::Grouped(spec.width()), text::Grouped(spec.heads()),
               text::Grouped(spec.context()), text::Grouped(model.vocabulary()), NormText(spec),
               text::Grouped(model.parameters()), Bytes(model.bytes()),
               Ago(model.create_time(), context.now())});
  }
  return PrintTable(context, table);
}

absl::StatusOr<v1::Model> FindModel(const std::string& name, Connection* connection) {
  v1::GetModelRequest request;
  request.set_name(ModelName(name));
  return connection->Call(kGetModel, request);
}

absl::StatusOr<int> ShowModel(const ModelOptions& options, const Context& context,
                              Connection* connection) {
  ASSIGN_OR_RETURN(const v1::Model model, FindModel(options.name, connection));
  if (options.json) return PrintJson(context, model);
  std::ostream& out = *context.console.out;
  const bool owner = connection->is_elsewhere() || model.private_();
  out << Printable(model.name()) << "   " << Count(model.parameters(), "parameter") << "   "
      << Bytes(model.bytes()) << "   created " << Ago(model.create_time(), context.now())
      << (owner ? absl::StrCat("   by ", Printable(OwnerText(model))) : "") << "\n"
      << ModelText(model) << "sha256 " << Printable(model.sha256()) << "\n";
  for (const std::string& note : model.notes()) out << "- " << Printable(note) << "\n";
  return kSuccess;
}

absl::StatusOr<int> RmModel(const ModelOptions& options, const Context& context,
                            Connection* connection) {
  v1::DeleteModelRequest request;
  request.set_name(options.name);
  // A whole name is used without a lookup, so that a command that runs twice removes one model.
  if (Id(options.name) == options.name) {
    ASSIGN_OR_RETURN(const v1::Model model, FindModel(options.name, connection));
    request.set_name(model.name());
  }
  RETURN_IF_ERROR(connection->Call(kDeleteModel, request).status());
  if (options.json) return PrintJson(context, google::protobuf::Empty());
  context.console.Info(absl::StrCat("removed ", Id(request.name())));
  return kSuccess;
}

}  // namespace

Action DefineModelLs(Command* command) {
  auto options = std::make_shared<ModelOptions>();
  command->Flag(&options->json, "--json", kJsonHelp);
  command->Footer("Example:\n  ablate model ls");
  return WithServer(options, LsModels);
}

Action DefineModelShow(Command* command) {
  auto options = std::make_shared<ModelOptions>();
  command->Argument(&options->name, "NAME", kModelHelp);
  command->Flag(&options->json, "--json", kJsonHelp);
  command->Footer("Example:\n  ablate model show gpt2");
  return WithServer(options, ShowModel);
}

Action DefineModelRm(Command* command) {
  auto options = std::make_shared<ModelOptions>();
  command->Argument(&options->name, "NAME", kModelHelp);
  command->Flag(&options->json, "--json", kJsonHelp);
  command->Footer(
      "Runs that begin with the model keep its parameters.\n\n"
      "Example:\n  ablate model rm gpt2");
  return WithServer(options, RmModel);
}

}  // namespace ablate::client
