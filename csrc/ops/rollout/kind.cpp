#include "ops/rollout/kind.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace lcp::ops {
namespace {

Argument as_argument(const Result& result) {
  return {.kind = Argument::Kind::kTensor, .declaration = result.name, .sizes = result.sizes, .dtype = result.dtype};
}

Result as_result(const Argument& argument) {
  return {argument.name, argument.sizes, argument.dtype, argument.sizes.size[0].letter == 'T'};
}

}  // namespace

RolloutKind::RolloutKind(std::string_view name, std::vector<Argument> inputs, std::size_t differentiable_inputs,
                         std::vector<Result> results, std::size_t differentiable_results)
    : name_(name),
      inputs_(std::move(inputs)),
      tangents_(inputs_.begin(), inputs_.begin() + static_cast<std::ptrdiff_t>(differentiable_inputs)),
      results_(std::move(results)),
      tangents_of_results_(results_.begin(), results_.begin() + static_cast<std::ptrdiff_t>(differentiable_results)) {
  std::transform(results_.begin(), results_.end(), std::back_inserter(path_), as_argument);
  gradients_.assign(path_.begin(), path_.begin() + static_cast<std::ptrdiff_t>(differentiable_results));
  std::transform(tangents_.begin(), tangents_.end(), std::back_inserter(gradients_of_inputs_), as_result);
}

void RolloutKind::check_ties(const StepText& step) {
  TORCH_CHECK(step.number_if("kappa").value_or(0) == 0 || step.word("ties") == "inactive",
              "ties must be \"inactive\" where kappa > 0, since a smoothed gradient has no ties; got \"",
              step.word("ties"), "\"");
}

void RolloutKind::check_saved(const Call& call, const c10::SymInt& all) {
  const c10::SymInt& found = call.size('s');
  const bool is_run = call.arguments().back().kind == Argument::Kind::kFlag && call.arguments().size() == 3;
  TORCH_CHECK(found == all || (is_run && found == 0), "saved must be ", all, is_run ? " or 0" : "", "; got ", found);
}

void RolloutKind::linearize(const StepText& /*step*/, at::TensorList /*x*/, at::TensorList /*path*/,
                            at::TensorList /*results*/) const {
  TORCH_CHECK(false, "rollouts of ", name_, " have no linearization");
}

void RolloutKind::certify(const StepText& /*step*/, at::TensorList /*x*/, at::TensorList /*path*/,
                          at::TensorList /*results*/) const {
  TORCH_CHECK(false, "rollouts of ", name_, " have no certificate");
}

solver::Settings settings_of(const StepText& step, bool single_precision) {
  return {.method = Method::kAuto,
          .tolerance = step.number_if("tolerance").value_or(solver::default_tolerance(single_precision)),
          .max_pivots = {},
          .single_precision = single_precision};
}

const RolloutKind* find_library_kind(std::string_view name) {
  if (name == rigid_kind().name()) return &rigid_kind();
  if (name == lcs_kind().name()) return &lcs_kind();
  if (const RolloutKind* const kind = find_compliant_kind(name)) return kind;
  return find_system_kind(name);
}

const RolloutKind& kind_of(std::string_view step) {
  const std::string_view name = kind_in(step);
  if (const RolloutKind* const kind = find_library_kind(name)) return *kind;
  if (const RolloutKind* const kind = find_closed_loop(step)) return *kind;
  const RolloutKind* const kind = find_registered_kind(name);
  TORCH_CHECK(kind != nullptr, "there is no step ", name);
  return *kind;
}

namespace {

// A library that is loaded later may add to it while others read.
struct AllByTensors {
  std::mutex mutex;
  std::map<std::string, ByTensors, std::less<>> functions;
};

AllByTensors& all_by_tensors() {
  static AllByTensors all;
  return all;
}

}  // namespace

ByTensors by_tensors(std::string_view kind) {
  AllByTensors& all = all_by_tensors();
  const std::lock_guard lock(all.mutex);
  const auto found = all.functions.find(kind);
  TORCH_CHECK(found != all.functions.end(), "rollouts of ", kind, " have no derivatives of higher order");
  return found->second;
}

RegisterByTensors::RegisterByTensors(std::string_view kind, ByTensors function) {
  AllByTensors& all = all_by_tensors();
  const std::lock_guard lock(all.mutex);
  all.functions.emplace(kind, function);
}

}  // namespace lcp::ops
