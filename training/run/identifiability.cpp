#include "run/identifiability.h"

#include <torch/autograd.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>

#include "lcp/learning/identifiability.h"
#include "run/text.h"

namespace lcp::training {
namespace {

using torch::Tensor;

// Numbers that differ by less than this part count as equal, since only rounding sets them apart.
constexpr double kEqual = 1e-6;

// A direction as text, such as "M11 + M12 - W13". The sign of the first term is +.
std::string in_words(const Tensor& direction, const std::vector<std::string>& names) {
  std::string text;
  double sign = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    double weight = direction[static_cast<std::int64_t>(i)].item<double>();
    if (std::abs(weight) < kEqual) continue;
    if (sign == 0) sign = weight < 0 ? -1 : 1;
    weight *= sign;
    const std::string size = std::abs(std::abs(weight) - 1) < kEqual ? "" : short_number(std::abs(weight)) + " ";
    text += (text.empty() ? "" : weight < 0 ? " - " : " + ") + size + names[i];
  }
  return text;
}

}  // namespace

EchelonForm reduced_echelon_form(const Tensor& given) {
  Tensor rows = given.clone();
  std::vector<std::int64_t> pivots;
  for (std::int64_t k = 0; k < rows.size(0); ++k) {
    const Tensor rest = rows.slice(0, k).abs(), largest = rest.amax(0);
    const auto column = (largest >= (1 - kEqual) * largest.max()).nonzero()[0].item<std::int64_t>();
    const std::int64_t pivot = k + rest.select(1, column).argmax().item<std::int64_t>();
    const Tensor row = rows[pivot] / rows[pivot][column];
    rows[pivot] = rows[k].clone();
    rows -= rows.select(1, column).clone().unsqueeze(-1) * row;
    rows[k] = row;
    pivots.push_back(column);
  }
  return {rows, pivots};
}

void IdentifiabilityReport::add(const Tensor& residuals, const std::vector<std::string>& names) {
  const auto known = learning::identifiability(residuals);
  parameters_ += static_cast<std::int64_t>(names.size());
  rank_ += known.rank;
  condition_ = std::max(condition_, known.condition);
  const Tensor directions = reduced_echelon_form(known.null_space.t()).rows;
  for (std::int64_t k = 0; k < directions.size(0); ++k) directions_.push_back(in_words(directions[k], names));
}

nlohmann::json IdentifiabilityReport::json() const {
  return {{"parameters", parameters_},
          {"identifiable_parameters", rank_},
          {"condition", condition_},
          {"unidentifiable_directions", directions_}};
}

Tensor jacobian(const Tensor& outputs, const std::vector<Tensor>& parameters) {
  const Tensor flat = outputs.flatten();
  std::int64_t count = 0;
  for (const Tensor& parameter : parameters) count += parameter.numel();
  std::vector<Tensor> rows = {torch::empty({0, count}, torch::kDouble)};
  for (std::int64_t k = 0; k < flat.size(0); ++k) {
    const auto gradients = torch::autograd::grad({flat[k]}, parameters, {}, /*retain_graph=*/true,
                                                 /*create_graph=*/false, /*allow_unused=*/true);
    std::vector<Tensor> row;
    row.reserve(parameters.size());
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      row.push_back((gradients[i].defined() ? gradients[i] : torch::zeros_like(parameters[i])).flatten());
    }
    rows.push_back(torch::cat(row).to(torch::kDouble).unsqueeze(0));
  }
  return torch::cat(rows);
}

std::vector<std::string> parameter_names(const torch::nn::Module& module) {
  std::vector<std::string> names;
  for (const auto& parameter : module.named_parameters()) {
    const std::int64_t count = parameter.value().numel();
    for (std::int64_t k = 0; k < count; ++k) {
      names.push_back(parameter.key() + (count > 1 ? "[" + std::to_string(k) + "]" : ""));
    }
  }
  return names;
}

}  // namespace lcp::training
