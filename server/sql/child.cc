#include "server/sql/child.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "ablate/v1/analysis.pb.h"
#include "ablate/v1/metric.pb.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "proto/reflect/text.h"
#include "server/experiment/analysis.h"
#include "server/lookup/limits.h"
#include "storage/sql_query.h"

namespace ablate::sql {
namespace {

// Rows are sent when they have so many bytes.
constexpr size_t kFlushBytes = 64 << 10;

// Sanitizers reserve terabytes of addresses, and open a pipe to look at an address.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

template <typename Resource>
void SetResourceLimit(Resource resource, rlim_t value) {
  const rlimit limit{value, value};
  setrlimit(resource, &limit);
}

void LimitTime(absl::Duration processor_time) {
  const auto seconds = static_cast<rlim_t>(absl::ToInt64Seconds(processor_time));
  // The first limit sends a signal that the server recognises.
  const rlimit processor{seconds, seconds + 1};
  setrlimit(RLIMIT_CPU, &processor);
  alarm(static_cast<unsigned>(absl::ToInt64Seconds(WholeTime(processor_time))));
}

void LimitRoom() {
  if (!kSanitized) SetResourceLimit(RLIMIT_AS, lookup::kMaxSqlProcessBytes);
  SetResourceLimit(RLIMIT_FSIZE, 0);
  SetResourceLimit(RLIMIT_CORE, 0);
  signal(SIGXFSZ, SIG_IGN);  // a write then fails
}

// No more files, sockets or processes.
void LimitDescriptors() {
  if (!kSanitized) SetResourceLimit(RLIMIT_NOFILE, 0);
  SetResourceLimit(RLIMIT_NPROC, 0);
}

std::string ReadToEnd(int file) {
  std::string all;
  std::vector<char> buffer(1 << 16);
  while (true) {
    const ssize_t size = read(file, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return all;
    all.append(buffer.data(), static_cast<size_t>(size));
  }
}

void WriteFrame(FrameKind kind, absl::string_view bytes) {
  const FrameHeader header{kind, static_cast<uint32_t>(bytes.size())};
  std::string frame(reinterpret_cast<const char*>(&header), sizeof(header));
  frame.append(bytes.data(), bytes.size());
  // Without a reader this process has nothing to do.
  if (!process::WriteAll(STDOUT_FILENO, frame)) _exit(1);
}

std::string AnalysisKind(absl::string_view request) {
  v1::Analysis analysis;
  if (!analysis.ParseFromArray(request.data(), static_cast<int>(request.size()))) return "";
  return spec::KindName(analysis.analysis());
}

// Sends rows within the limits of a result.
class RowSender final : public storage::SqlSink {
 public:
  absl::Status Columns(const std::vector<std::string>& names) override {
    size_t bytes = 0;
    for (const std::string& name : names) {
      rows_.add_columns(name);
      bytes += name.size();
    }
    if (bytes > lookup::kMaxSqlRowBytes) {
      return TooLarge(absl::StrCat("the names of its columns have ", bytes, " bytes, more than ",
                                   lookup::kMaxSqlRowBytes));
    }
    Flush();
    return absl::OkStatus();
  }

  absl::Status Row(const std::vector<storage::SqlValue>& values) override {
    v1::SqlRow* row = rows_.add_rows();
    size_t bytes = 0;
    for (const storage::SqlValue& value : values) {
      Set(value, row->add_values());
      bytes += row->values().rbegin()->ByteSizeLong() + 4;
      if (bytes > lookup::kMaxSqlRowBytes) {
        return TooLarge(absl::StrCat("a row has more than ", lookup::kMaxSqlRowBytes, " bytes"));
      }
    }
    pending_ += bytes;
    bytes_ += bytes;
    if (++count_ > lookup::kMaxSqlRows) {
      return TooLarge(
          absl::StrCat("the result has more than ", lookup::kMaxSqlRows, " rows. Add LIMIT"));
    }
    if (bytes_ > lookup::kMaxSqlResultBytes) {
      return TooLarge(absl::StrCat("the result has more than ", lookup::kMaxSqlResultBytes,
                                   " bytes. Add LIMIT, or name fewer columns"));
    }
    if (pending_ >= kFlushBytes) Flush();
    return absl::OkStatus();
  }

  void Flush() {
    WriteFrame(FrameKind::kRows, rows_.SerializeAsString());
    rows_.Clear();
    pending_ = 0;
  }

 private:
  static absl::Status TooLarge(const std::string& message) {
    return absl::ResourceExhaustedError(message);
  }

  static void Set(const storage::SqlValue& value, v1::SqlValue* message) {
    if (const auto* integer = std::get_if<int64_t>(&value)) {
      message->set_integer(*integer);
    } else if (const auto* real = std::get_if<double>(&value)) {
      message->set_real(*real);
    } else if (const auto* text = std::get_if<absl::string_view>(&value)) {
      message->set_text(text->data(), text->size());
    } else if (const auto* blob = std::get_if<storage::SqlBlob>(&value)) {
      message->set_blob(blob->bytes.data(), blob->bytes.size());
    }
  }

  v1::SqlRows rows_;
  size_t pending_ = 0, bytes_ = 0, count_ = 0;
};

absl::Status Answer(const std::string& request) {
  const std::vector<std::string> parts = absl::StrSplit(request, absl::MaxSplits('\0', 4));
  int64_t seconds = 0;
  if (parts.size() != 5 || !absl::SimpleAtoi(parts[3], &seconds) || seconds < 1) {
    return absl::InternalError("the request is malformed");
  }
  LimitTime(absl::Seconds(seconds));
  LimitRoom();
  storage::SqlQuery query;
  query.folder = parts[0];
  query.viewer = {parts[1], parts[2] == "1"};
  query.statement = parts[4];
  query.analysis_kind = AnalysisKind;
  RowSender sender;
  RETURN_IF_ERROR(storage::AnswerSql(query, LimitDescriptors, &sender));
  sender.Flush();
  return absl::OkStatus();
}

// Returns "; did you mean X?" for SQLite's error about an unknown view, column or function.
std::string HintFor(absl::string_view error) {
  std::vector<std::string> known;
  const bool is_table = absl::ConsumePrefix(&error, "no such table: ");
  if (is_table) {
    for (const storage::SqlView& view : storage::SqlViews()) {
      const absl::string_view name = view.name;
      known.emplace_back(name.substr(0, name.find('(')));
    }
  } else if (absl::ConsumePrefix(&error, "no such column: ")) {
    for (const storage::SqlView& view : storage::SqlViews()) {
      for (const storage::SqlColumn& column : view.columns) known.emplace_back(column.name);
    }
  } else if (absl::ConsumePrefix(&error, "no such function: ")) {
    for (const absl::string_view function : storage::SqlFunctions()) known.emplace_back(function);
  }
  const absl::string_view whole = error.substr(0, error.find(" in line "));
  const absl::string_view name = whole.substr(whole.rfind('.') + 1);
  const auto same = [name](const std::string& one) { return absl::EqualsIgnoreCase(one, name); };
  const auto exact = std::find_if(known.begin(), known.end(), same);
  if (exact == known.end()) return reflect::DidYouMean(name, known);
  // It is known if its database was before it, as in main.runs, or if it is another view's column.
  const bool has_database = is_table || absl::StartsWith(whole, "main.");
  return has_database ? absl::StrCat("; did you mean ", *exact, ", without main. before it?") : "";
}

}  // namespace

std::string EncodeRequest(const ChildRequest& request) {
  const std::string seconds = absl::StrCat(absl::ToInt64Seconds(request.processor_time));
  return absl::StrJoin(
      {request.folder, request.viewer.user, std::string(request.viewer.sees_all ? "1" : "0"),
       seconds, request.statement},
      absl::string_view("\0", 1));
}

int RunSqlChild() {
  const absl::Status answered = Answer(ReadToEnd(STDIN_FILENO));
  if (answered.ok()) {
    WriteFrame(FrameKind::kEnd, "");
  } else {
    // SQLite's messages may quote a long statement.
    constexpr size_t kMessageBytes = 1'000;
    WriteFrame(FrameKind::kError, absl::StrCat(std::string(1, static_cast<char>(answered.code())),
                                               answered.message().substr(0, kMessageBytes),
                                               HintFor(answered.message())));
  }
  return 0;
}

}  // namespace ablate::sql
