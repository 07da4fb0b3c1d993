#include <torch/types.h>

#include "lcp/nn/state_map.h"
#include "models/traditional_models.h"

namespace lcp::nn {
namespace {

using torch::Tensor;

// The antisymmetric matrix [..., 3, 3] with the entries (0, 1), (0, 2), (1, 2) of its upper triangle.
Tensor antisymmetric(const Tensor& upper) {
  const Tensor a = upper.select(-1, 0), b = upper.select(-1, 1), c = upper.select(-1, 2), zero = at::zeros_like(a);
  return at::stack({zero, a, b, -a, zero, c, -b, -c, zero}, -1).unflatten(-1, {3, 3});
}

// Sets the affine part of a map, plus noise.
void assign_affine(StateMap& map, const Tensor& weight, const Tensor& bias, double noise) {
  assign(map->affine->weight, weight, noise);
  assign(map->affine->bias, bias, noise);
}

class NetworkModel : public TraditionalModelImpl {
 public:
  explicit NetworkModel(const TraditionalModelOptions& options_) : TraditionalModelImpl(options_) {
    const auto map = [&](const char* name) {
      return register_module(name, StateMap(StateMapOptions(3)
                                                .hidden(options.hidden())
                                                .velocity_scale(velocity_unit())
                                                .force_scale(options.force_unit())));
    };
    phi_ = map("phi");
    beta_ = map("beta");
    f_ = map("f");
  }

  Tensor G_of(const Tensor& v, const Tensor& u) override {
    const Tensor phi = phi_(v, u);
    return phi.unsqueeze(-1) * phi.unsqueeze(-2) + antisymmetric(beta_(v, u));
  }

  Tensor f_of(const Tensor& v, const Tensor& u) override { return f_(v, u); }

  Tensor nonlinearity() const override {
    Tensor sum = TraditionalModelImpl::nonlinearity();
    for (const StateMap& map : {phi_, beta_}) sum = sum + map->affine->weight.square().sum();
    if (options.hidden() == 0) return sum;
    for (const StateMap& map : {phi_, beta_, f_}) sum = sum + map->hidden_out->weight.square().sum();
    return sum;
  }

  void start(double mu, double noise) override {
    const Tensor rows = rows_of(mu);
    const Tensor none = torch::zeros({3, 2});
    assign_affine(phi_, none, numbers({1, -1, 0}), noise);
    assign_affine(beta_, none, numbers({0, 1, 1}), noise);
    assign_affine(f_, rows.slice(1, 3, 5), rows.select(1, 5), noise);
  }

 private:
  StateMap phi_{nullptr}, beta_{nullptr}, f_{nullptr};  // of 3 outputs each
};

}  // namespace

std::shared_ptr<TraditionalModelImpl> make_network_model(const TraditionalModelOptions& options) {
  return std::make_shared<NetworkModel>(options);
}

}  // namespace lcp::nn
