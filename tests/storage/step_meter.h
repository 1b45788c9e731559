// Measures the work of SQLite in steps of its virtual machine.
#ifndef ABLATE_TESTS_STORAGE_STEP_METER_H_
#define ABLATE_TESTS_STORAGE_STEP_METER_H_

#include <sqlite3.h>

#include <cstdint>

namespace ablate::storage {

// Counts the steps of SQLite's virtual machine on every connection opened while it exists: a
// measure of work that is the same each time.
class StepMeter {
 public:
  StepMeter() {
    steps = 0;
    sqlite3_auto_extension(reinterpret_cast<void (*)()>(Attach));
  }
  ~StepMeter() { sqlite3_cancel_auto_extension(reinterpret_cast<void (*)()>(Attach)); }
  StepMeter(const StepMeter&) = delete;
  StepMeter& operator=(const StepMeter&) = delete;

  template <typename Work>
  int64_t StepsOf(const Work& work) {
    const int64_t before = steps;
    work();
    return steps - before;
  }

 private:
  static int Attach(sqlite3* db, char** /*error*/, const sqlite3_api_routines* /*unused*/) {
    return sqlite3_trace_v2(db, SQLITE_TRACE_PROFILE, Count, nullptr);
  }
  static int Count(unsigned /*event*/, void* /*context*/, void* statement, void* /*time*/) {
    steps += sqlite3_stmt_status(static_cast<sqlite3_stmt*>(statement), SQLITE_STMTSTATUS_VM_STEP,
                                 /*resetFlg=*/1);
    return 0;
  }

  inline static int64_t steps = 0;  // static: an extension gets no argument of ours
};

}  // namespace ablate::storage

#endif  // ABLATE_TESTS_STORAGE_STEP_METER_H_
