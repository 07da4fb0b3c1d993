#include <torch/types.h>

#include "models/formulas.h"
#include "models/parameter_vector.h"
#include "models/traditional_models.h"

namespace lcp::nn {
namespace {

using torch::Tensor;

class StructuredModel : public TraditionalModelImpl {
 public:
  explicit StructuredModel(const TraditionalModelOptions& options_) : TraditionalModelImpl(options_) {
    matrix_ = register_module("matrix", StructuredMatrix(StructuredMatrixOptions(3).basis(options.basis())));
    learned_ = register_parameter("learned", torch::randn({3, 3}));
  }

  Tensor rows(const Tensor& theta) const override {
    ParameterReader parameters(theta);
    const Tensor learned = parameters.next(learned_), phi = parameters.next(matrix_->phi);
    const Tensor beta = parameters.next(matrix_->beta);
    const Tensor alpha = matrix_->alpha.defined() ? parameters.next(matrix_->alpha) : Tensor();
    return structured_rows(matrix_->value(phi, beta, alpha), learned, held, values);
  }

  void start(double mu, double noise) override {
    assign(matrix_->phi, numbers({1, -1, 0}).unsqueeze(-1), noise);
    assign(matrix_->beta, numbers({0, 1, 1}), noise);
    assign(learned_, rows_of(mu).slice(1, 3), noise);
  }

 private:
  StructuredMatrix matrix_{nullptr};  // M
  Tensor learned_;                    // [3, 3]: W, without a meaning where an entry is held
};

}  // namespace

std::shared_ptr<TraditionalModelImpl> make_structured_model(const TraditionalModelOptions& options) {
  return std::make_shared<StructuredModel>(options);
}

}  // namespace lcp::nn
