#include "learning/network/checks.h"

#include <torch/types.h>

#include <cmath>

namespace lcp::learning::fitting {
namespace {

using torch::Tensor;

Tensor checked_rows(const Tensor& rows, const std::string& name, const char* columns) {
  TORCH_CHECK(rows.dim() == 2 && rows.size(1) > 0, name, " must be [samples, ", columns, "]; got ", rows.sizes());
  TORCH_CHECK(rows.is_floating_point(), name, " must be floating-point numbers; got ", rows.scalar_type());
  Tensor numbers = rows.detach().to(torch::kCPU, torch::kDouble);
  if (numbers.is_inference()) numbers = numbers.clone();  // which autograd may save
  const Tensor strange = (~numbers.isfinite()).any(1).nonzero();
  if (strange.numel() > 0) {
    const auto row = strange[0].item<std::int64_t>();
    const Tensor values = numbers[row];
    TORCH_CHECK(false, name, " must be finite; got ", values.masked_select(~values.isfinite())[0].item<double>(),
                " in row ", row);
  }
  return numbers;
}

void check_at_least(const char* name, std::int64_t value, std::int64_t least) {
  TORCH_CHECK(value >= least, name, " must be >= ", least, "; got ", value);
}

void check_nonnegative(const char* name, double value) {
  TORCH_CHECK(std::isfinite(value) && value >= 0, name, " must be finite and >= 0; got ", value);
}

}  // namespace

Samples checked_samples(const Tensor& x, const Tensor& y, const std::string& x_name, const std::string& y_name) {
  const Samples samples{checked_rows(x, x_name, "inputs"), checked_rows(y, y_name, "outputs")};
  TORCH_CHECK(x.size(0) == y.size(0), y_name, " must have a row for each of the ", x.size(0), " of ", x_name, "; got ",
              y.size(0));
  return samples;
}

void check_options(const NetworkSearchOptions& options, const Samples& samples) {
  check_at_least("unknowns", options.unknowns, 0);
  check_at_least("starts", options.starts, 1);
  check_at_least("threads", options.threads, 1);
  check_at_least("iterations", options.iterations, 1);
  check_at_least("batch_size", options.batch_size, 1);
  check_at_least("finishing_iterations", options.finishing_iterations, 0);
  TORCH_CHECK(options.seed >= 0 && options.seed < std::int64_t{1} << 32, "seed must be in [0, 2^32); got ",
              options.seed);
  TORCH_CHECK(std::isfinite(options.learning_rate) && options.learning_rate > 0,
              "learning_rate must be finite and > 0; got ", options.learning_rate);
  check_nonnegative("kappa", options.kappa);
  check_nonnegative("coupling_penalty", options.coupling_penalty);
  check_nonnegative("rest_penalty", options.rest_penalty);
  check_nonnegative("rest_below", options.rest_below);
  TORCH_CHECK(options.affine || options.network, "q must be affine or a network; got neither");
  const std::int64_t p = samples.x.size(1), d = samples.y.size(1);
  if (options.first_velocity) {
    TORCH_CHECK(*options.first_velocity >= 0 && *options.first_velocity + d <= p, "first_velocity must be that of ", d,
                " of the ", p, " inputs, from 0 on; got ", *options.first_velocity);
  }
  TORCH_CHECK(options.finishing_iterations > 0 || options.loss != NetworkLoss::kPrediction || options.kappa > 0,
              "finishing_iterations = 0 leaves nothing that minimises the loss; give another loss, or kappa > 0");
  if (options.loss == NetworkLoss::kOneSided) {
    TORCH_CHECK(options.unknowns == 0, "unknowns must be found by the search with the one-sided loss, which needs two ",
                "for each output at first; got ", options.unknowns);
    TORCH_CHECK(options.parts.f() == nn::Dependence::kAbsent && options.parts.G() == nn::Dependence::kConstant,
                "f must be absent and G constant with the one-sided loss");
  }
}

}  // namespace lcp::learning::fitting
