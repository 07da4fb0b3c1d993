#include "physics/system_walk.h"

#include <ATen/ATen.h>

#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "physics/stepping.h"
#include "physics/walk.h"
#include "physics/walk_function.h"

namespace lcp::physics {
namespace {

using at::Tensor;

// The places of what a walk depends on.
enum Place : std::size_t { kParameters, kState, kInputs };

Tensor joined(const Tensors& parts, at::ScalarType dtype) {
  Shape shape;
  for (const Tensor& part : parts) shape = common_shape({shape, leading(part)});
  Tensors whole;
  whole.reserve(parts.size());
  for (const Tensor& part : parts) whole.push_back(expanded(part.to(dtype), shape, {part.size(-1)}));
  return at::cat(whole, -1);
}

class SystemWalk : public WalkFunction {
 public:
  SystemWalk(FormulaSystem system, at::ScalarType dtype, const SolveOptions& options)
      : system_(std::move(system)), options_(options) {
    system_.D = system_.D.to(dtype);
    system_.parameters.clear();  // they are inputs of the walk
  }

  std::size_t differentiable() const override { return 2; }
  std::size_t core_dims(std::size_t place) const override { return place == kInputs ? 2 : 1; }

  Tensors run(at::TensorList x, bool with_gradient) const override {
    using Results = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;
    static const auto walk =
        operator_named<Results(const Tensor& parameters, const Tensor& D, const Tensor& state, const Tensor& u,
                               std::string_view system, std::optional<double> tolerance, bool with_basis)>(
            "lcp::_system_walk");
    return listed(
        walk.call(x[kParameters], system_.D, x[kState], x[kInputs], system_.name, options_.tolerance, with_gradient));
  }

  Tensors adjoint(const Tensors& x, const Tensors& path, const Tensors& g, std::int64_t wanted) const override {
    using Results = std::tuple<Tensor, Tensor, Tensor>;
    static const auto adjoint =
        operator_named<Results(const Tensor& parameters, const Tensor& D, const Tensor& state, const Tensor& u,
                               const Tensor& x_next, const Tensor& z, const Tensor& w, const Tensor& status,
                               const Tensor& basis, const Tensor& g_x_next, const Tensor& g_z, std::string_view system,
                               std::string_view ties, std::int64_t wanted)>("lcp::_system_walk_adjoint");
    const Tensor &x_next = path[0], &z = path[1], &w = path[2], &status = path[4], &basis = path[5];
    return listed(adjoint.call(x[kParameters], system_.D, x[kState], x[kInputs], x_next, z, w, status, basis, g[0],
                               g[1], system_.name, options_.ties, wanted));
  }

  Tensors tangent(const Tensors& x, const Tensors& path, const Tensors& change) const override {
    using Results = std::tuple<Tensor, Tensor>;
    static const auto tangent =
        operator_named<Results(const Tensor& parameters, const Tensor& D, const Tensor& state, const Tensor& u,
                               const Tensor& x_next, const Tensor& z, const Tensor& w, const Tensor& status,
                               const Tensor& basis, const Tensor& d_parameters, const Tensor& d_x, const Tensor& d_u,
                               std::string_view system, std::string_view ties)>("lcp::_system_walk_tangent");
    const Tensor &x_next = path[0], &z = path[1], &w = path[2], &status = path[4], &basis = path[5];
    return listed(tangent.call(x[kParameters], system_.D, x[kState], x[kInputs], x_next, z, w, status, basis,
                               change[kParameters], change[kState], change[kInputs], system_.name, options_.ties));
  }

  Tensors by_tensors(const Tensors& x) const override {
    Tensors all = system_.by_tensors(x[kParameters], x[kState], x[kInputs].movedim(-2, 0));
    for (Tensor& result : all) result = result.movedim(0, -2);
    return all;
  }

 private:
  FormulaSystem system_;
  SolveOptions options_;
};

}  // namespace

bool can_walk(const FormulaSystem& system, const Tensor& x, const Tensor& u, const SolveOptions& options) {
  Tensors all = system.parameters;
  all.insert(all.end(), {x, u});
  return can_walk(options) && can_walk(all, /*forward_mode=*/true);
}

SystemSteps walk(const FormulaSystem& system, const Tensor& x, const Tensor& u, const SolveOptions& options) {
  const Tensors results = walk({joined(system.parameters, x.scalar_type()), x, u.movedim(0, -2)},
                               c10::make_intrusive<SystemWalk>(system, x.scalar_type(), options));
  // [..., T, k], then with the residual and the status [..., T].
  return {results[0].movedim(-2, 0), results[1].movedim(-2, 0), results[3].movedim(-1, 0), results[4].movedim(-1, 0)};
}

}  // namespace lcp::physics
