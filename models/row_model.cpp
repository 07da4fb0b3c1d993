#include <torch/types.h>

#include "models/formulas.h"
#include "models/traditional_models.h"

namespace lcp::nn {
namespace {

using torch::Tensor;

class RowModel : public TraditionalModelImpl {
 public:
  explicit RowModel(const TraditionalModelOptions& options_) : TraditionalModelImpl(options_) {
    TORCH_CHECK(!options.affine_matrix() || !(options.monotone() || options.relu_pairs()),
                "affine_matrix must be false for a monotone M and for relu_pairs");
    learned_ = register_parameter("learned", torch::randn({3, 6}));
    if (options.affine_matrix()) slopes_ = register_parameter("slopes", torch::randn({3, 3, 2}));
    if (!options.relu_pairs()) return;
    const torch::NoGradGuard no_grad;
    negative_ = register_parameter("negative", (-learned_.slice(1, 0, 3)).relu());
    learned_.slice(1, 0, 3).relu_();
  }

  Tensor rows(const Tensor& theta) const override {
    const Tensor negative = negative_.defined() ? theta.slice(-1, 18).unflatten(-1, {3, 3}) : Tensor();
    return learned_rows(theta.slice(-1, 0, 18).unflatten(-1, {3, 6}), negative, held, values, options.monotone(),
                        revive);
  }

  Tensor G_of(const Tensor& v, const Tensor& u, const Tensor& theta) const override {
    if (!slopes_.defined()) return TraditionalModelImpl::G_of(v, u, theta);
    return affine_matrix(rows(theta), theta.slice(-1, 18).unflatten(-1, {3, 3, 2}), held, v, u,
                         {options.mass(), options.dt(), options.force_unit()});
  }

  Tensor nonlinear(const Tensor& theta) const override {
    return slopes_.defined() ? theta.slice(-1, 18) : TraditionalModelImpl::nonlinear(theta);
  }

  Tensor projected(const Tensor& theta) const override {
    return options.monotone() && !options.relu_pairs() ? rows(theta).flatten(-2) : theta;
  }

  Tensor overlap() const override {
    return negative_.defined() ? rows_overlap(learned_, negative_, held, revive) : TraditionalModelImpl::overlap();
  }

  void start(double mu, double noise) override {
    assign(learned_, rows_of(mu), noise);
    if (slopes_.defined()) assign(slopes_, torch::zeros_like(slopes_), noise);
    if (!negative_.defined()) return;
    assign(negative_, (-positive()).relu(), 0);
    const torch::NoGradGuard no_grad;
    positive().relu_();
  }

 private:
  Tensor positive() const { return learned_.slice(1, 0, 3); }

  Tensor learned_;   // [3, 6]: [M|W], without a meaning where an entry is held; with relu pairs [P|W]
  Tensor negative_;  // [3, 3]: N; undefined without relu pairs
  Tensor slopes_;    // [3, 3, 2]: the derivatives of G in v and u; undefined without affine_matrix
};

}  // namespace

std::shared_ptr<TraditionalModelImpl> make_row_model(const TraditionalModelOptions& options) {
  return std::make_shared<RowModel>(options);
}

}  // namespace lcp::nn
