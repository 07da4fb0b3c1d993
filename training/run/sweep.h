// Many independent tasks of a run, which any number of processes may do and continue.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "run/checkpoint.h"
#include "run/command_line.h"
#include "run/output_folder.h"
#include "run/tasks.h"

namespace lcp::training {

/// Tasks whose results are kept in checkpoint.pt of the folder --out. They are dealt to all processes of the group, and
/// written every few seconds: a run that was killed loses no more than that, and with --resume any number of processes
/// ends with the results of an unbroken run.
class Sweep {
 public:
  /// earlier: the result of `resume`. fingerprint: that of the data, by which a resumed run recognises them. Throws a
  /// UsageError where `earlier` is of other data.
  Sweep(OutputFolder& out, const RunFlags& run, const std::optional<Checkpoint>& earlier, std::int64_t fingerprint = 0);

  /// Does the tasks 0, ..., count - 1 that are missing. Returns an exit status where a signal ended it; the results are
  /// then up to date. Collective.
  ///   work: called by several threads. unit: what a task is, for the progress.
  std::optional<int> run(std::int64_t count, const char* unit, const std::function<Checkpoint(std::int64_t k)>& work);

  const TaskResults& results() const { return results_; }

 private:
  void save();

  OutputFolder& out_;
  const RunFlags& run_;
  const std::int64_t fingerprint_;
  TaskResults results_;
};

}  // namespace lcp::training
