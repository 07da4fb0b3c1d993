#include "tosses/script_model.h"

#include <ATen/ATen.h>
#include <torch/csrc/jit/serialization/import.h>

#include <array>
#include <sstream>
#include <vector>

#include "run/error.h"

namespace lcp::training {

using torch::Tensor;

ScriptModel::ScriptModel(const std::filesystem::path& file) : file_(file) {
  if (!std::filesystem::exists(file)) throw UsageError("cannot read " + file.string() + ": there is no such file");
  try {
    script_ = torch::jit::load(file.string());
  } catch (const c10::Error&) {
    throw UsageError("cannot read " + file.string() + ": it is no TorchScript file");
  }
  rate();
  gravity();
  center();
  if (!script_.find_method("forward")) throw UsageError(file.string() + ": has no method forward");
}

Tensor ScriptModel::center() const {
  if (!script_.hasattr("center") || !script_.attr("center").isTensor() ||
      script_.attr("center").toTensor().numel() != 3) {
    throw UsageError(file_.string() + ": has no tensor `center` of three numbers, which a model of tosses has");
  }
  return script_.attr("center").toTensor().to(at::kDouble);
}

double ScriptModel::number(const char* attribute) const {
  if (!script_.hasattr(attribute) || !script_.attr(attribute).isDouble()) {
    throw UsageError(file_.string() + ": has no number `" + attribute + "`, which a model of tosses has");
  }
  return script_.attr(attribute).toDouble();
}

physics::RigidSolution ScriptModel::roll_out(const physics::RigidState& start, std::int64_t steps) const {
  torch::jit::Module script = script_;
  std::vector<c10::IValue> arguments = {start.position.squeeze(-2), start.orientation.squeeze(-2),
                                        start.velocity.squeeze(-2), start.angular_velocity.squeeze(-2), steps};
  c10::IValue result;
  try {
    result = script.forward(std::move(arguments));
  } catch (const c10::Error& error) {
    throw UsageError(file_.string() + ": cannot roll a toss out: " + error.what_without_backtrace());
  } catch (const std::exception& error) {
    throw UsageError(file_.string() + ": cannot roll a toss out: " + error.what());
  }
  const auto fail = [&] {
    return UsageError(file_.string() +
                      ": forward must return five tensors: position [steps, ..., 3], orientation [steps, ..., 4], "
                      "velocity [steps, ..., 3], angular_velocity [steps, ..., 3] and status [steps, ...]");
  };
  if (!result.isTuple() || result.toTupleRef().elements().size() != 5) throw fail();
  std::vector<Tensor> found;
  for (const c10::IValue& value : result.toTupleRef().elements()) {
    constexpr std::array<std::int64_t, 4> kSizes = {3, 4, 3, 3};
    std::vector<std::int64_t> shape = {steps, start.position.size(0)};
    if (found.size() < kSizes.size()) shape.push_back(kSizes[found.size()]);
    if (!value.isTensor() || value.toTensor().sizes() != at::IntArrayRef(shape)) throw fail();
    found.push_back(value.toTensor());
  }
  physics::RigidSolution solution;
  solution.next = {found[0].unsqueeze(-2), found[1].unsqueeze(-2), found[2].unsqueeze(-2), found[3].unsqueeze(-2)};
  solution.status = found[4];
  return solution;
}

std::string ScriptModel::torchscript_bytes() const {
  std::ostringstream stream;
  script_.save(stream);
  return stream.str();
}

}  // namespace lcp::training
