#include <torch/types.h>

#include <vector>

#include "lcp/nn/relu_pair.h"
#include "models/traditional_models.h"

namespace lcp::nn {
namespace {

using torch::Tensor;

class RowModel : public TraditionalModelImpl {
 public:
  explicit RowModel(const TraditionalModelOptions& options_) : TraditionalModelImpl(options_) {
    learned_ = register_parameter("learned", torch::randn({3, 6}));
    if (!options.relu_pairs()) return;
    const torch::NoGradGuard no_grad;
    negative_ = register_parameter("negative", (-learned_.slice(1, 0, 3)).relu());
    learned_.slice(1, 0, 3).relu_();
  }

  Tensor rows(const Tensor& theta) const override {
    Tensor learned = theta.slice(-1, 0, 18).unflatten(-1, {3, 6});
    if (negative_.defined()) {
      const Tensor M = relu_pair(learned.slice(-1, 0, 3), theta.slice(-1, 18).unflatten(-1, {3, 3}), revive);
      learned = at::cat({M, learned.slice(-1, 3)}, -1);
    }
    const Tensor rows = at::where(held != 0, values, learned);
    return options.monotone() ? monotone(rows) : rows;
  }

  Tensor projected(const Tensor& theta) const override {
    return options.monotone() && !options.relu_pairs() ? rows(theta).flatten(-2) : theta;
  }

  Tensor overlap() const override {
    if (!negative_.defined()) return TraditionalModelImpl::overlap();
    const Tensor free = 1 - held.slice(1, 0, 3);
    return relu_pair_overlap(positive() * free, negative_ * free, revive);
  }

  void start(double mu, double noise) override {
    assign(learned_, rows_of(mu), noise);
    if (!negative_.defined()) return;
    assign(negative_, (-positive()).relu(), 0);
    const torch::NoGradGuard no_grad;
    positive().relu_();
  }

 private:
  // See TraditionalModelOptions::monotone.
  Tensor monotone(const Tensor& rows) const {
    const auto entry = [](const Tensor& x, std::int64_t i, std::int64_t j) { return x.select(-2, i).select(-1, j); };
    const auto unless_held = [&](std::int64_t i, std::int64_t j, const Tensor& value) {
      return at::where(entry(held, i, j) != 0, entry(rows, i, j), value);
    };
    const Tensor least = (entry(rows, 0, 1) + entry(rows, 1, 0)).abs() / 2;
    std::vector<Tensor> M;
    M.reserve(9);
    for (std::int64_t i = 0; i < 3; ++i) {
      for (std::int64_t j = 0; j < 3; ++j) {
        const Tensor own = entry(rows, i, j), other = -entry(rows, j, i);
        if (i == 2 && j == 2) {
          M.push_back(unless_held(i, j, at::zeros_like(own)));
        } else if (i == j) {
          M.push_back(unless_held(i, j, at::where(own >= least, own, least)));
        } else if (i == 2 || j == 2) {
          M.push_back(unless_held(i, j, at::where(entry(held, j, i) != 0, other, (own + other) / 2)));
        } else {
          M.push_back(own);
        }
      }
    }
    return at::cat({at::stack(M, -1).unflatten(-1, {3, 3}), rows.slice(-1, 3)}, -1);
  }

  Tensor positive() const { return learned_.slice(1, 0, 3); }

  Tensor learned_;   // [3, 6]: [M|W], without a meaning where an entry is held; with relu pairs [P|W]
  Tensor negative_;  // [3, 3]: N; undefined without relu pairs
};

}  // namespace

std::shared_ptr<TraditionalModelImpl> make_row_model(const TraditionalModelOptions& options) {
  return std::make_shared<RowModel>(options);
}

}  // namespace lcp::nn
