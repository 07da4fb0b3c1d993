// The formulas of the models as operators, for Python.
#include <torch/library.h>

#include <optional>
#include <string>
#include <tuple>

#include "lcp/nn/relu_pair.h"
#include "models/formulas.h"
#include "ops/composite.h"

namespace lcp::nn {
namespace {

using at::Tensor;
using MaybeTensor = std::optional<Tensor>;

Tensor tensor_or_undefined(const MaybeTensor& x) { return x.value_or(Tensor()); }

Tensor state_map_of(const Tensor& v, const Tensor& u, const Tensor& affine_weight, const MaybeTensor& affine_bias,
                    const MaybeTensor& hidden_in_weight, const MaybeTensor& hidden_in_bias,
                    const MaybeTensor& hidden_out_weight, double velocity_scale, double force_scale) {
  return state_map(v, u,
                   {affine_weight, tensor_or_undefined(affine_bias), tensor_or_undefined(hidden_in_weight),
                    tensor_or_undefined(hidden_in_bias), tensor_or_undefined(hidden_out_weight)},
                   velocity_scale, force_scale);
}

std::tuple<Tensor, Tensor> structured_bases_of(std::int64_t n, const std::string& basis) {
  return structured_bases(n, basis);
}

Tensor structured_matrix_of(const Tensor& phi, const Tensor& beta, const MaybeTensor& alpha, const Tensor& A,
                            const MaybeTensor& S) {
  return structured_matrix(phi, beta, tensor_or_undefined(alpha), A, tensor_or_undefined(S));
}

std::tuple<Tensor, Tensor, Tensor> direct_step_of(const Tensor& v, const Tensor& u, const Tensor& f, const Tensor& G,
                                                  double max_friction, bool slack, double mass, double dt) {
  const ModelStep step = direct_step(v, u, f, G, max_friction, slack, mass, dt);
  return {step.v_next, step.force, step.status};
}

Tensor direct_nonlinearity_of(const Tensor& weight, const MaybeTensor& f_weight, const MaybeTensor& G_weight) {
  return direct_nonlinearity(tensor_or_undefined(f_weight), tensor_or_undefined(G_weight), weight.options());
}

Tensor learned_rows_of(const Tensor& learned, const MaybeTensor& negative, const Tensor& held, const Tensor& values,
                       bool monotone, bool revive) {
  return learned_rows(learned, tensor_or_undefined(negative), held, values, monotone, revive);
}

Tensor f_of_rows_in(const Tensor& rows, const Tensor& v, const Tensor& u, double mass, double dt, double force_unit) {
  return f_of_rows(rows, v, u, {mass, dt, force_unit});
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> traditional_step_of(
    const Tensor& v, const Tensor& u, const Tensor& G, const Tensor& f, const Tensor& dynamics, double mass, double dt,
    double force_unit, bool rests_by_gamma, bool exact_rest, const std::string& method, const std::string& ties,
    double kappa, std::optional<double> tolerance, std::optional<std::int64_t> max_pivots) {
  const TraditionalTensors step =
      traditional_step(v, u, G, f, dynamics, {mass, dt, force_unit}, rests_by_gamma, exact_rest,
                       ops::solve_options(method, ties, kappa, tolerance, max_pivots));
  return {step.v_next, step.lambda, step.gamma, step.force, step.status};
}

LCP_LIBRARY_FRAGMENT(library) {
  const auto define = [&](const std::string& schema, auto function) {
    ops::define_composite(library, schema, function);
  };
  define(
      "_state_map(Tensor v, Tensor u, Tensor affine_weight, Tensor? affine_bias, Tensor? hidden_in_weight, "
      "Tensor? hidden_in_bias, Tensor? hidden_out_weight, *, float velocity_scale, float force_scale) -> Tensor",
      TORCH_FN(state_map_of));
  define("_structured_bases(int n, str basis) -> (Tensor A, Tensor S)", TORCH_FN(structured_bases_of));
  define("_structured_matrix(Tensor phi, Tensor beta, Tensor? alpha, Tensor A, Tensor? S) -> Tensor",
         TORCH_FN(structured_matrix_of));
  define("_direct_f(Tensor map, float velocity_scale) -> Tensor", TORCH_FN(direct_f));
  define("_direct_G(Tensor map, float velocity_scale, float force_scale) -> Tensor", TORCH_FN(direct_G));
  define("_affine(Tensor G, Tensor p, Tensor f) -> Tensor", TORCH_FN(affine));
  define("_direct_forces(Tensor friction, float max_friction, bool slack) -> Tensor", TORCH_FN(direct_forces));
  define(
      "_direct_step(Tensor v, Tensor u, Tensor f, Tensor G, *, float max_friction, bool slack, float mass, float dt) "
      "-> "
      "(Tensor v_next, Tensor force, Tensor status)",
      TORCH_FN(direct_step_of));
  define("_direct_nonlinearity(Tensor weight, Tensor? f_weight, Tensor? G_weight) -> Tensor",
         TORCH_FN(direct_nonlinearity_of));
  define("_relu_pair(Tensor P, Tensor N, *, bool revive) -> Tensor", TORCH_FN(relu_pair));
  define("_relu_pair_overlap(Tensor P, Tensor N, *, bool revive) -> Tensor", TORCH_FN(relu_pair_overlap));
  define("_rows_overlap(Tensor learned, Tensor negative, Tensor held, *, bool revive) -> Tensor",
         TORCH_FN(rows_overlap));
  define("_missed_entries(Tensor G, Tensor held, Tensor values) -> Tensor", TORCH_FN(missed_entries));
  define("_true_rows(float limit) -> Tensor", TORCH_FN(true_rows));
  define("_friction_rows(Tensor frictionless_rows, Tensor mu, float factor) -> Tensor", TORCH_FN(friction_rows));
  define(
      "_learned_rows(Tensor learned, Tensor? negative, Tensor held, Tensor values, *, bool monotone, bool revive) -> "
      "Tensor",
      TORCH_FN(learned_rows_of));
  define("_structured_rows(Tensor M, Tensor learned, Tensor held, Tensor values) -> Tensor", TORCH_FN(structured_rows));
  define("_f_of_rows(Tensor rows, Tensor v, Tensor u, *, float mass, float dt, float force_unit) -> Tensor",
         TORCH_FN(f_of_rows_in));
  define("_network_matrix(Tensor phi, Tensor upper) -> Tensor", TORCH_FN(network_matrix));
  define("_solution_sticks(Tensor friction, Tensor gamma) -> Tensor", TORCH_FN(solution_sticks));
  define(
      std::string("_traditional_step(Tensor v, Tensor u, Tensor G, Tensor f, Tensor dynamics, *, float mass, float dt, "
                  "float force_unit, bool rests_by_gamma, bool exact_rest, ") +
          ops::kSolveArguments + ") -> (Tensor v_next, Tensor friction, Tensor gamma, Tensor force, Tensor status)",
      TORCH_FN(traditional_step_of));
}

}  // namespace
}  // namespace lcp::nn
