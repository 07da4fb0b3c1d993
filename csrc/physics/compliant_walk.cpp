#include "physics/compliant_walk.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "physics/walk_function.h"

namespace lcp::physics {
namespace {

using at::Tensor;

// The places of what a walk depends on.
enum Place : std::size_t { kParameters, kState, kForces };

class CompliantWalk : public WalkFunction {
 public:
  CompliantWalk(CompliantBody body, ContactOptions options) : body_(std::move(body)), options_(std::move(options)) {
    body_.parameters.clear();  // they are inputs of the walk
  }

  std::size_t differentiable() const override { return 2; }
  std::size_t core_dims(std::size_t place) const override { return place == kForces ? 2 : 1; }

  Tensors run(at::TensorList x, bool) const override {
    using Results = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;
    static const auto walk =
        operator_named<Results(const Tensor& parameters, const Tensor& state, const Tensor& u, std::string_view body,
                               std::int64_t contacts, double dt, double sigma, double beta,
                               std::optional<double> tolerance, std::optional<std::int64_t> max_iterations)>(
            "lcp::_compliant_walk");
    return listed(walk.call(x[kParameters], x[kState], x[kForces], body_.name, body_.contacts, body_.dt,
                            body_.regularization.sigma, body_.regularization.beta, options_.tolerance,
                            options_.max_iterations));
  }

  Tensors adjoint(const Tensors& x, const Tensors& path, const Tensors& g, std::int64_t wanted) const override {
    using Results = std::tuple<Tensor, Tensor, Tensor>;
    static const auto adjoint = operator_named<Results(
        const Tensor& parameters, const Tensor& state, const Tensor& u, const Tensor& x_next, const Tensor& gamma,
        const Tensor& y, const Tensor& status, const Tensor& g_x_next, const Tensor& g_gamma, std::string_view body,
        double dt, double sigma, double beta, std::int64_t wanted)>("lcp::_compliant_walk_adjoint");
    const Tensor &x_next = path[0], &gamma = path[1], &y = path[2], &status = path[3];
    return listed(adjoint.call(x[kParameters], x[kState], x[kForces], x_next, gamma, y, status, g[0], g[1], body_.name,
                               body_.dt, body_.regularization.sigma, body_.regularization.beta, wanted));
  }

  Tensors by_tensors(const Tensors& x) const override {
    CompliantBody body = body_;
    body.parameters = x[kParameters].unbind(-1);
    const CompliantStep all =
        step_by_step({x[kState].slice(-1, 0, 3), x[kState].slice(-1, 3)}, x[kForces].movedim(-2, 0), body, options_)
            .step;
    return {at::cat({all.next.position, all.next.velocity}, -1).movedim(0, -2), all.gamma.movedim(0, -2)};
  }

 private:
  CompliantBody body_;
  ContactOptions options_;
};

}  // namespace

bool can_walk(const CompliantState& first, const Tensor& u, const CompliantBody& body, const ContactOptions& options) {
  Tensors all = body.parameters;
  all.insert(all.end(), {first.position, first.velocity, u});
  return !options.sizes && can_walk(all);
}

CompliantSolution walk(const CompliantState& first, const Tensor& u, const CompliantBody& body,
                       const ContactOptions& options) {
  const auto number = [](const Tensor& x) { return x.to(at::kDouble); };
  const Tensors results = walk({number(at::stack(at::broadcast_tensors(body.parameters), -1)),
                                number(at::cat({first.position, first.velocity}, -1)), number(u).movedim(0, -2)},
                               c10::make_intrusive<CompliantWalk>(body, options));
  const auto of_steps = [&](const Tensor& x) { return x.to(first.velocity.scalar_type()).movedim(-2, 0); };
  const Tensor next = of_steps(results[0]);
  return {{{next.slice(-1, 0, 3), next.slice(-1, 3)}, of_steps(results[1])},
          results[3].movedim(-1, 0),
          results[4].movedim(-1, 0)};
}

}  // namespace lcp::physics
