// The formulas of the models as operators, for Python.
#include <torch/library.h>

#include <string>

#include "lcp/nn/relu_pair.h"
#include "models/formulas.h"
#include "ops/composite.h"

namespace lcp::nn {

LCP_MEMBERS_BY(StateMapTensors, "affine_weight, affine_bias?, hidden_in_weight?, hidden_in_bias?, hidden_out_weight?",
               [](auto& x) {
                 return std::tie(x.affine_weight, x.affine_bias, x.hidden_in_weight, x.hidden_in_bias,
                                 x.hidden_out_weight);
               })
LCP_MEMBERS(BlockUnits, mass, dt, force_unit)
LCP_MEMBERS(ModelStep, v_next, force, status)
LCP_MEMBERS(TraditionalTensors, v_next, friction, gamma, force, status)

namespace {

using at::Tensor;
using ops::define;

LCP_LIBRARY_FRAGMENT(library) {
  define<state_map>(library, "_state_map(v, u, weights, *, velocity_scale, force_scale)");
  define<structured_bases>(library, "_structured_bases(n, basis) -> (A, S)");
  define<structured_matrix>(library, "_structured_matrix(phi, beta, alpha?, A, S?)");
  define<direct_f>(library, "_direct_f(map, velocity_scale)");
  define<direct_G>(library, "_direct_G(map, velocity_scale, force_scale)");
  define<affine>(library, "_affine(G, p, f)");
  define<direct_forces>(library, "_direct_forces(friction, max_friction, slack)");
  define<direct_step>(library, "_direct_step(v, u, f, G, *, max_friction, slack, mass, dt)");
  define(library, "_direct_nonlinearity(weight, f_weight?, G_weight?)",
         [](const Tensor& weight, const Tensor& f_weight, const Tensor& G_weight) {
           return direct_nonlinearity(f_weight, G_weight, weight.options());
         });
  define<relu_pair>(library, "_relu_pair(P, N, *, revive)");
  define<relu_pair_overlap>(library, "_relu_pair_overlap(P, N, *, revive)");
  define<rows_overlap>(library, "_rows_overlap(learned, negative, held, *, revive)");
  define<missed_entries>(library, "_missed_entries(G, held, values)");
  define<true_rows>(library, "_true_rows(limit)");
  define<friction_rows>(library, "_friction_rows(frictionless_rows, mu, factor)");
  define<learned_rows>(library, "_learned_rows(learned, negative?, held, values, *, monotone, revive)");
  define<affine_matrix>(library, "_affine_matrix(rows, slopes, held, v, u, *, units)");
  define<structured_rows>(library, "_structured_rows(M, learned, held, values)");
  define<f_of_rows>(library, "_f_of_rows(rows, v, u, *, units)");
  define<network_matrix>(library, "_network_matrix(phi, upper)");
  define<solution_sticks>(library, "_solution_sticks(friction, gamma)");
  define<traditional_step>(library,
                           "_traditional_step(v, u, G, f, dynamics, *, units, rests_by_gamma, exact_rest, options=)");
}

}  // namespace
}  // namespace lcp::nn
