#include <torch/types.h>

#include "models/traditional_models.h"

namespace lcp::nn {
namespace {

using torch::Tensor;

class RowModel : public TraditionalModelImpl {
 public:
  explicit RowModel(const TraditionalModelOptions& options_) : TraditionalModelImpl(options_) {
    learned_ = register_parameter("learned", torch::randn({3, 6}));
  }

  Tensor rows() override { return at::where(held != 0, values, learned_); }

  void start(double mu, double noise) override { assign(learned_, rows_of(mu), noise); }

 private:
  Tensor learned_;  // [3, 6]: [M|W], without a meaning where an entry is held
};

}  // namespace

std::shared_ptr<TraditionalModelImpl> make_row_model(const TraditionalModelOptions& options) {
  return std::make_shared<RowModel>(options);
}

}  // namespace lcp::nn
