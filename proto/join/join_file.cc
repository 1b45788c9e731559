#include "proto/join/join_file.h"

#include <google/protobuf/util/json_util.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/host.h"
#include "base/private_file.h"
#include "base/status_macros.h"

namespace ablate::join {
namespace {

constexpr size_t kMaxShown = 80;
constexpr size_t kMaxMessage = 200;
constexpr size_t kMaxCertificate = 16 << 10;
constexpr size_t kMaxUser = 64;
constexpr size_t kMinToken = 20;  // a shorter one could be guessed
constexpr size_t kMaxToken = 512;
constexpr int64_t kEndOfYears = 253402300800;  // the year 10000, in seconds since 1970
constexpr absl::string_view kBegin = "-----BEGIN CERTIFICATE-----";
constexpr absl::string_view kEnd = "-----END CERTIFICATE-----";

// Returns the beginning of a value, on one line.
std::string Shown(absl::string_view value) {
  return absl::StrCat("\"", absl::CHexEscape(value.substr(0, kMaxShown)), "\"",
                      value.size() > kMaxShown ? "…" : "");
}

absl::Status Wrong(absl::string_view field, absl::string_view value, absl::string_view allowed) {
  return absl::InvalidArgumentError(absl::StrCat(field, " is ", value, ": ", allowed));
}

bool AllOf(absl::string_view text, absl::string_view others) {
  return std::all_of(text.begin(), text.end(), [others](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains(others, c);
  });
}

absl::Status CheckAddress(const v1::JoinFile& file) {
  const auto address = text::ParseHostPort(file.address());
  if (address.ok()) return absl::OkStatus();
  return Wrong("address", Shown(file.address()), address.status().message());
}

absl::Status CheckServerName(const v1::JoinFile& file) {
  const auto name = text::ParseHost(file.server_name());
  if (name.ok() && !absl::StartsWith(file.server_name(), "[")) return absl::OkStatus();
  return Wrong("server_name", Shown(file.server_name()),
               name.ok() ? "an IPv6 address without a port is written without brackets"
                         : name.status().message());
}

// Returns true if the bytes are exactly one DER element, as a certificate is. Only TLS reads its
// contents.
bool IsOneElement(absl::string_view der) {
  constexpr unsigned char kSequence = 0x30;
  if (der.size() < 2 || static_cast<unsigned char>(der[0]) != kSequence) return false;
  const auto first = static_cast<unsigned char>(der[1]);
  const size_t more = first < 0x80 ? 0 : first & 0x7F;  // further bytes of the length
  if (more > 3 || first == 0x80 || der.size() < 2 + more) return false;
  size_t length = more == 0 ? first : 0;
  for (size_t i = 0; i < more; ++i) length = length << 8 | static_cast<unsigned char>(der[2 + i]);
  return der.size() == 2 + more + length;
}

absl::Status CheckAuthority(const v1::JoinFile& file) {
  const std::string& pem = file.certificate_authority();
  // It may be a private key: show no more than its first line.
  const std::string shown = absl::StrCat(
      pem.size(), " bytes that begin with ",
      Shown(absl::string_view(pem).substr(0, std::min(pem.find('\n'), kBegin.size()))));
  absl::string_view body = absl::StripAsciiWhitespace(pem);
  if (pem.size() > kMaxCertificate) {
    return Wrong("certificate_authority", shown, "at most 16,384 are allowed");
  }
  if (!absl::ConsumePrefix(&body, kBegin) || !absl::ConsumeSuffix(&body, kEnd) ||
      absl::StrContains(body, "-")) {
    return Wrong("certificate_authority", shown,
                 absl::StrCat("it must be one certificate in PEM, from ", kBegin, " to ", kEnd));
  }
  std::string der;
  if (!absl::Base64Unescape(body, &der) || !IsOneElement(der)) {
    return Wrong("certificate_authority", shown,
                 "between its first and last line there isn't a certificate in base64");
  }
  return absl::OkStatus();
}

absl::Status CheckUser(const v1::JoinFile& file) {
  const std::string& user = file.user();
  const bool fine = !user.empty() && user.size() <= kMaxUser && AllOf(user, "._@-") &&
                    absl::ascii_isalnum(static_cast<unsigned char>(user.front()));
  if (fine) return absl::OkStatus();
  return Wrong(
      "user", Shown(user),
      "it must be 1 to 64 of A-Z, a-z, 0-9 and . _ @ -, beginning with a letter or a digit");
}

absl::Status CheckToken(const v1::JoinFile& file) {
  const std::string& token = file.token();
  if (token.size() >= kMinToken && token.size() <= kMaxToken && AllOf(token, "-._~+/=")) {
    return absl::OkStatus();
  }
  return Wrong("token", absl::StrCat("of ", token.size(), " characters"),
               "it must be 20 to 512 of A-Z, a-z, 0-9 and - . _ ~ + / =");
}

absl::Status CheckExpireTime(const v1::JoinFile& file) {
  constexpr absl::string_view kAllowed =
      "it must be a time of the years 1970 to 9999, such as \"2027-01-31T00:00:00Z\"";
  if (!file.has_expire_time()) return Wrong("expire_time", "missing", kAllowed);
  const auto& time = file.expire_time();
  if (time.seconds() >= 0 && time.seconds() < kEndOfYears && time.nanos() >= 0 &&
      time.nanos() < 1'000'000'000) {
    return absl::OkStatus();
  }
  return Wrong("expire_time", absl::StrCat(time.seconds(), " seconds since 1970"), kAllowed);
}

// Returns protobuf's error for a text that it can't parse, without the excerpt of the text.
std::string JsonProblem(absl::string_view message) {
  // Further lines are an excerpt, which may contain the token.
  const absl::string_view first = message.substr(0, message.find('\n'));
  if (absl::StrContains(first, "(token)")) return "token is not a string";
  return absl::CHexEscape(first.substr(0, kMaxMessage));
}

using Check = absl::Status (*)(const v1::JoinFile&);
constexpr Check kChecks[] = {CheckAddress, CheckServerName, CheckAuthority,
                             CheckUser,    CheckToken,      CheckExpireTime};

}  // namespace

absl::Status CheckJoinFile(const v1::JoinFile& file) {
  for (const Check check : kChecks) {
    if (absl::Status fine = check(file); !fine.ok()) return fine;
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::JoinFile> ParseJoinFile(absl::string_view text) {
  if (text.size() > kMaxJoinFileBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a join file has ", text.size(), " bytes, at most ", kMaxJoinFileBytes, " are allowed"));
  }
  v1::JoinFile file;
  const auto parsed = google::protobuf::util::JsonStringToMessage(
      google::protobuf::StringPiece(text.data(), text.size()), &file);
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("not the JSON of a join file: ", JsonProblem(parsed.message().ToString())));
  }
  RETURN_IF_ERROR(CheckJoinFile(file));
  return file;
}

absl::StatusOr<v1::JoinFile> ReadJoinFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text,
                   process::ReadBoundedFile(path, kMaxJoinFileBytes, process::Readers::kOwner));
  absl::StatusOr<v1::JoinFile> file = ParseJoinFile(text);
  if (file.ok()) return file;
  return absl::Status(file.status().code(), absl::StrCat(path, ": ", file.status().message()));
}

absl::Status CheckNewFile(const std::string& path, bool replace) {
  std::error_code error;
  if (path.empty()) return absl::OkStatus();
  if (!replace && std::filesystem::exists(path, error)) {
    return absl::AlreadyExistsError(absl::StrCat(path, " exists already: --force replaces it"));
  }
  const std::filesystem::path folder = std::filesystem::absolute(path, error).parent_path();
  if (std::filesystem::is_directory(folder, error)) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("there is no folder ", folder.string()));
}

absl::Status WriteJoinFile(const std::string& path, const v1::JoinFile& file, bool replace) {
  RETURN_IF_ERROR(CheckJoinFile(file));
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  std::string json;
  const auto printed = google::protobuf::util::MessageToJsonString(file, &json, options);
  if (!printed.ok()) return absl::InternalError("cannot write a join file as JSON");
  if (!replace) return process::CreateFile(path, json, process::Readers::kOwner);
  const std::string part = absl::StrCat(path, ".", getpid(), ".part");
  RETURN_IF_ERROR(process::CreateFile(part, json, process::Readers::kOwner));
  if (std::rename(part.c_str(), path.c_str()) == 0) return absl::OkStatus();
  const int reason = errno;
  std::remove(part.c_str());
  return absl::FailedPreconditionError(absl::StrCat(path, ": ", std::strerror(reason)));
}

}  // namespace ablate::join
