// `ablate data encode FILE`: the token ids of a text, in a file or as JSON. Asks the server only
// for a tokenizer that it stores.
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/dataset_file.h"
#include "base/status_macros.h"
#include "base/tokenizer/encoder.h"
#include "base/tokenizer/tokenizer_files.h"
#include "base/utf8.h"
#include "client/command_table.h"
#include "client/download.h"
#include "client/output/format.h"
#include "client/output/part_file.h"

namespace ablate::client {
namespace {

using tokenizer::BytePairEncoding;
using tokenizer::Encoder;

constexpr size_t kBlockBytes = 256 << 10;
constexpr uint32_t kMaxShortVocabulary = 1 << 16;  // whose ids fit uint16

struct EncodeOptions {
  std::string file;
  std::string tokenizer;
  Output output;
  std::vector<std::string> special;
  bool json = false;
};

struct EncodedSize {
  uint64_t bytes = 0;  // of the text
  uint64_t tokens = 0;
};

using WriteIds = absl::FunctionRef<absl::Status(const std::vector<uint32_t>& ids)>;

absl::Status OpenText(const std::string& path, std::ifstream* in) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is a folder; expected a file"));
  }
  errno = 0;
  in->open(path, std::ios::binary);
  if (*in) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(path, ": ", std::strerror(errno != 0 ? errno : EIO)));
}

// Encodes `in` block by block; `name` is its name in errors.
absl::StatusOr<EncodedSize> EncodeStream(std::istream* in, const std::string& name,
                                         Encoder* encoder, WriteIds write) {
  EncodedSize size;
  std::string block(kBlockBytes, '\0');
  std::vector<uint32_t> ids;
  for (bool ends = false; !ends;) {
    in->read(block.data(), static_cast<std::streamsize>(block.size()));
    const size_t bytes = static_cast<size_t>(in->gcount());
    if (in->bad()) return absl::DataLossError(absl::StrCat(name, ": reading failed"));
    ends = bytes < block.size();
    const absl::string_view read = absl::string_view(block).substr(0, bytes);
    const absl::string_view encoding = size.bytes == 0 ? text::WideEncoding(read) : "";
    if (!encoding.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(name, ": the text is in ", encoding,
                                                     "; expected UTF-8. Convert it: `iconv -f ",
                                                     encoding, " -t UTF-8 OLD > NEW`"));
    }
    ids.clear();
    encoder->Add(read, &ids);
    if (ends) encoder->Finish(&ids);
    size.bytes += bytes;
    size.tokens += ids.size();
    if (const absl::Status written = write(ids); !written.ok()) return written;
  }
  return size;
}

// Appends `id` as a little-endian integer of `bytes` bytes.
void AppendLittleEndian(uint32_t id, size_t bytes, std::string* out) {
  for (size_t i = 0; i < bytes; ++i) out->push_back(static_cast<char>(id >> (8 * i)));
}

absl::StatusOr<int> WriteFileOfIds(const EncodeOptions& options, const Context& context,
                                   std::istream* in, const std::string& name, uint32_t vocabulary,
                                   Encoder* encoder) {
  const size_t id_bytes = vocabulary <= kMaxShortVocabulary ? sizeof(uint16_t) : sizeof(uint32_t);
  PartFile file(options.output);
  RETURN_IF_ERROR(file.Open());
  std::string bytes;
  const auto write = [&](const std::vector<uint32_t>& ids) {
    bytes.clear();
    for (const uint32_t id : ids) AppendLittleEndian(id, id_bytes, &bytes);
    return file.Write(bytes);
  };
  ASSIGN_OR_RETURN(const EncodedSize size, EncodeStream(in, name, encoder, write));
  RETURN_IF_ERROR(file.Commit());
  context.console.Info(absl::StrCat(options.output.name(), ": ", Count(size.tokens, "token"),
                                    " of ", Count(size.bytes, "byte"), ", uint", 8 * id_bytes));
  return kSuccess;
}

absl::StatusOr<int> PrintIds(const Context& context, std::istream* in, const std::string& name,
                             uint32_t vocabulary, Encoder* encoder) {
  std::ostream& out = context.console.data();
  out << "{\"vocabulary\": " << vocabulary << ", \"ids\": [";
  const char* separator = "";
  const auto write = [&](const std::vector<uint32_t>& ids) {
    std::string text;
    for (const uint32_t id : ids) absl::StrAppend(&text, std::exchange(separator, ", "), id);
    out << text;
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(EncodeStream(in, name, encoder, write).status());
  out << "]}\n";
  return kSuccess;
}

using Encoding = std::shared_ptr<const BytePairEncoding>;

// Downloads a tokenizer that the server stores.
absl::StatusOr<Encoding> DownloadEncoding(const std::string& name, const Context& context) {
  ASSIGN_OR_RETURN(const auto connection, Connect(context));
  v1::GetDatasetRequest request;
  request.set_name(name);
  ASSIGN_OR_RETURN(const v1::Dataset dataset, connection->Call(kGetDataset, request));
  ASSIGN_OR_RETURN(const auto bytes, FetchTokenizer(connection.get(), dataset, context.sleep));
  ASSIGN_OR_RETURN(const DatasetFile file, ReadDatasetFile(bytes));
  return tokenizer::ParseFiles(file.tokenizer, dataset.name() + "/");
}

// Reads the tokenizer's folder, or downloads the tokenizer if no folder has this name. A name with
// a slash is a folder's, except datasets/ID.
absl::StatusOr<Encoding> FindEncoding(const std::string& name, const Context& context) {
  std::error_code error;
  const bool is_path = absl::StrContains(name, '/') && !absl::StartsWith(name, "datasets/");
  if (is_path || std::filesystem::is_directory(name, error)) {
    ASSIGN_OR_RETURN(auto folder, tokenizer::ReadTokenizerFolder(name));
    return std::move(folder.encoding);
  }
  absl::StatusOr<Encoding> encoding = DownloadEncoding(name, context);
  if (encoding.ok()) return encoding;
  return absl::Status(encoding.status().code(),
                      absl::StrCat("--tokenizer: no folder ", name,
                                   " here, and on the server: ", encoding.status().message()));
}

absl::StatusOr<int> Encode(const EncodeOptions& options, const Context& context) {
  ASSIGN_OR_RETURN(const Encoding encoding, FindEncoding(options.tokenizer, context));
  absl::StatusOr<Encoder> encoder = Encoder::WithSpecial(encoding, options.special);
  if (!encoder.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--special: ", encoder.status().message()));
  }
  std::ifstream file;
  const bool is_file = options.file != "-";
  if (is_file) {
    if (const absl::Status opened = OpenText(options.file, &file); !opened.ok()) return opened;
  }
  std::istream* const in = is_file ? &file : context.console.in;
  const std::string name = is_file ? options.file : "<stdin>";
  const uint32_t vocabulary = encoding->vocabulary();
  return options.json ? PrintIds(context, in, name, vocabulary, &*encoder)
                      : WriteFileOfIds(options, context, in, name, vocabulary, &*encoder);
}

}  // namespace

Action DefineDataEncode(Command* command) {
  auto options = std::make_shared<EncodeOptions>();
  command->Argument(&options->file, "FILE", "Text file, or - for standard input");
  command->RequiredOption(&options->tokenizer, "--tokenizer", "TOKENIZER",
                          "Tokenizer: a folder with tokenizer.json, or with vocab.json and "
                          "merges.txt, or the name of a data set of a tokenizer or of tokens");
  command->Output(&options->output, OutputKind::kFile, "OUT",
                  "Write the ids to OUT; required without --json");
  command->Options(&options->special, "--special", "TOKEN",
                   "Encode TOKEN in the text as one id, such as <|endoftext|> [none]");
  command->Flag(&options->json, "--json", "Print vocabulary and ids as JSON; write no file");
  command->Footer(
      "Encodes with byte-level byte pair encoding, on this machine. OUT has the ids "
      "as little-endian uint16 if the vocabulary has at most 65,536 ids, otherwise uint32, without "
      "a header. A tokenizer of the server is downloaded first.\n\n"
      "Examples:\n  ablate data encode notes.txt --tokenizer gpt2 -o notes.bin\n"
      "  ablate data encode - --tokenizer gpt2 --json < notes.txt\n"
      "  ablate data encode notes.txt --tokenizer gpt2-1a2b3c -o notes.bin");
  const std::string name = command->FullName();
  return [options, name](const Context& context) {
    if (options->json == options->output.given()) {
      context.console.Error(absl::StrCat(name, ": -o: ", options->json ? "given" : "missing",
                                         options->json ? " with" : " without",
                                         " --json; expected either -o OUT or --json"));
      return kUsage;
    }
    const absl::StatusOr<int> code = Encode(*options, context);
    return code.ok() ? *code : Fail(context, code.status());
  };
}

}  // namespace ablate::client
