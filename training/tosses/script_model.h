// A model of tosses that a file holds.
#pragma once

#include <torch/csrc/jit/api/module.h>

#include <filesystem>

#include "tosses/model.h"

namespace lcp::training {

/// What TossModel::torchscript_bytes wrote, or any TorchScript file with the same `forward` and attributes.
class ScriptModel : public TossModel {
 public:
  /// Throws a UsageError that names the file where it is none.
  explicit ScriptModel(const std::filesystem::path& file);

  double rate() const { return number("rate"); }
  double gravity() const { return number("gravity"); }
  torch::Tensor center() const override;
  physics::RigidSolution roll_out(const physics::RigidState& start, std::int64_t steps) const override;
  std::string torchscript_bytes() const override;

 private:
  double number(const char* attribute) const;

  std::filesystem::path file_;
  torch::jit::Module script_;
};

}  // namespace lcp::training
