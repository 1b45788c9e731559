// Fixture of the access store's tests: a store on a file, with a first admin, at a given time.
#ifndef ABLATE_TESTS_STORAGE_ACCESS_FIXTURE_H_
#define ABLATE_TESTS_STORAGE_ACCESS_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "storage/access_store.h"
#include "tests/storage/failing_disk.h"
#include "tests/storage/store_fixture.h"

namespace ablate::storage {

// 2026-01-02 03:04:05 UTC.
inline const absl::Time kStart =
    absl::FromCivil(absl::CivilSecond(2026, 1, 2, 3, 4, 5), absl::UTCTimeZone());
inline absl::Time After(absl::Duration time) { return kStart + time; }

class AccessTest : public ::testing::Test {
 protected:
  AccessTest() {
    Reopen();
    Value(store().Initialize("root", kStart));
  }

  AccessStore& store() { return *store_; }
  const std::string& folder() const { return folder_.path(); }
  std::string File() const { return folder() + "/access.db"; }
  AccessOptions Options() {
    AccessOptions options;
    options.path = File();
    options.audit_rows = audit_rows_;
    options.on_end = [this](const auto& tokens) { ended_.push_back(tokens); };
    return options;
  }
  void Close() { store_.reset(); }
  void Reopen() {
    Close();
    store_ = Value(AccessStore::Open(Options()));
  }
  void Adopt(std::unique_ptr<AccessStore> store) { store_ = std::move(store); }
  // Closes the store and runs statements in its file.
  void Tamper(const char* sql);
  // Takes effect at the next Reopen.
  void KeepAudits(int64_t rows) { audit_rows_ = rows; }

  void Create(const std::string& name, Role role = Role::kMember) {
    Value(store().CreateUser(name, role, {}, kRoot, kStart));
  }
  IssuedToken Issue(const std::string& user, std::optional<absl::Duration> lifetime = std::nullopt,
                    absl::Time now = kStart) {
    return Value(store().IssueToken(user, "laptop", lifetime, kRoot, now));
  }
  // Returns the newest rows of the audit log, as "user token method resource outcome".
  std::vector<std::string> Log(const AuditQuery& query = {}, int64_t limit = 1000);

  static inline const Actor kRoot = {"root", "feedbeef"};
  FailingDisk disk_;  // under every database; fails on request
  // The arguments of on_end's calls.
  std::vector<std::vector<std::string>> ended_;

 private:
  TestFolder folder_;
  int64_t audit_rows_ = 1000;
  std::unique_ptr<AccessStore> store_;
};

}  // namespace ablate::storage

#endif  // ABLATE_TESTS_STORAGE_ACCESS_FIXTURE_H_
