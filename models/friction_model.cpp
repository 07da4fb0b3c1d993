#include <torch/types.h>

#include <utility>

#include "models/formulas.h"
#include "models/traditional_models.h"

namespace lcp::nn {
namespace {

using torch::Tensor;

class FrictionModel : public TraditionalModelImpl {
 public:
  explicit FrictionModel(const TraditionalModelOptions& options_) : TraditionalModelImpl(options_) {
    mu_ = register_parameter("mu", torch::ones({}));
    frictionless_rows_ = register_buffer("frictionless_rows", true_rows(0).to(torch::kFloat));
  }

  Tensor rows(const Tensor& theta) const override {
    return friction_rows(frictionless_rows_, theta.squeeze(-1),
                         options.mass() * options.gravity() / options.force_unit());
  }

  // The random mu are from about .1 to 10.
  Tensor random(std::int64_t count, at::Generator generator) const override {
    return TraditionalModelImpl::random(count, std::move(generator)).exp();
  }

  void start(double mu, double) override { assign(mu_, torch::tensor(mu, torch::kDouble), 0); }

 private:
  Tensor mu_;                 // []
  Tensor frictionless_rows_;  // [3, 6], the rows for mu = 0
};

}  // namespace

std::shared_ptr<TraditionalModelImpl> make_friction_model(const TraditionalModelOptions& options) {
  return std::make_shared<FrictionModel>(options);
}

}  // namespace lcp::nn
