#include <torch/types.h>

#include <utility>
#include <vector>

#include "lcp/nn/state_map.h"
#include "models/formulas.h"
#include "models/traditional_models.h"

namespace lcp::nn {
namespace {

using torch::Tensor;

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

  Tensor G_of(const Tensor& v, const Tensor& u, const Tensor& theta) const override {
    return network_matrix(phi_->value(v, u, of_map(0, theta)), beta_->value(v, u, of_map(1, theta)));
  }

  Tensor f_of(const Tensor& v, const Tensor& u, const Tensor& theta) const override {
    return f_->value(v, u, of_map(2, theta));
  }

  Tensor nonlinear(const Tensor& theta) const override { return at::cat(nonlinear_parts(theta), -1); }

  // Random networks have a G that does not depend on v and u, and an affine f.
  Tensor random(std::int64_t count, at::Generator generator) const override {
    Tensor theta = TraditionalModelImpl::random(count, std::move(generator));
    for (const Tensor& part : nonlinear_parts(theta)) part.zero_();
    return theta;
  }

  void start(double mu, double noise) override {
    const Tensor rows = rows_of(mu);
    const Tensor none = torch::zeros({3, 2});
    assign_affine(phi_, none, numbers({1, -1, 0}), noise);
    assign_affine(beta_, none, numbers({0, 1, 1}), noise);
    assign_affine(f_, rows.slice(1, 3, 5), rows.select(1, 5), noise);
  }

 private:
  static constexpr std::int64_t kWeights = 6;  // the affine part of a map, the first of its parameters

  // The parameters of phi, beta or f, with which they share memory.
  Tensor of_map(std::int64_t map, const Tensor& theta) const {
    return theta.slice(-1, map * f_->size(), (map + 1) * f_->size());
  }

  std::vector<Tensor> nonlinear_parts(const Tensor& theta) const {
    std::vector<Tensor> parts;
    parts.reserve(5);
    for (const std::int64_t map : {0, 1}) parts.push_back(of_map(map, theta).slice(-1, 0, kWeights));
    for (const std::int64_t map : {0, 1, 2}) {  // the weights of the hidden layers' outputs, which come last
      parts.push_back(of_map(map, theta).slice(-1, f_->size() - 3 * options.hidden()));
    }
    return parts;
  }

  StateMap phi_{nullptr}, beta_{nullptr}, f_{nullptr};  // each with 3 outputs
};

}  // namespace

std::shared_ptr<TraditionalModelImpl> make_network_model(const TraditionalModelOptions& options) {
  return std::make_shared<NetworkModel>(options);
}

}  // namespace lcp::nn
