#include "ops/schema.h"

#include <ATen/ExpandUtils.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace lcp::ops {
namespace {

constexpr std::array<std::string_view, 2> kMethods = {"auto", "lemke"};

void check_matrix(const Tensor& M) {
  TORCH_CHECK(M.dim() >= 2, "M must be [..., n, n]; got ", M.sym_sizes());
  TORCH_CHECK(M.sym_size(-1) == M.sym_size(-2), "M must be [..., n, n]; got ", M.sym_sizes());
  TORCH_CHECK(M.scalar_type() == at::kDouble || M.scalar_type() == at::kFloat, "M must be float32 or float64; got ",
              M.scalar_type());
}

void check_vector(const char* name, const Tensor& x, const Tensor& M) {
  TORCH_CHECK(x.dim() >= 1 && x.sym_size(-1) == M.sym_size(-1), name, " must be [..., n] with M's n = ", M.sym_size(-1),
              "; got ", x.sym_sizes());
  TORCH_CHECK(x.scalar_type() == M.scalar_type(), name, " must have M's dtype, ", M.scalar_type(), "; got ",
              x.scalar_type());
  TORCH_CHECK(x.device() == M.device(), name, " must be on M's device, ", M.device(), "; got ", x.device());
}

c10::SymDimVector broadcast(c10::SymIntArrayRef a, const char* name, const Tensor& M, const Tensor& x) {
  const c10::SymIntArrayRef b = x.sym_sizes().slice(0, x.dim() - 1);
  try {
    return at::infer_size_symdimvector(a, b);
  } catch (const c10::Error&) {
    TORCH_CHECK(false, "the batch dimensions of M ", M.sym_sizes(), " and ", name, " ", x.sym_sizes(),
                " must broadcast; got ", a, " and ", b);
  }
}

template <class Signature>
struct SignatureOf;
template <class Signature>
struct SignatureOf<c10::TypedOperatorHandle<Signature>> {
  using type = Signature;
};

template <class Handle>
Handle find(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<typename SignatureOf<Handle>::type>();
}

c10::SymIntArrayRef batch_of_matrix(const Tensor& M) { return M.sym_sizes().slice(0, M.dim() - 2); }

TORCH_LIBRARY(lcp, library) {
  const std::vector<at::Tag> tags = {at::Tag::pt2_compliant_tag};
  library.def(
      "solve(Tensor M, Tensor q, *, Tensor? guess=None, str method=\"auto\", str ties=\"inactive\", float kappa=0.0, "
      "float? tolerance=None, int? max_pivots=None) -> (Tensor z, Tensor w, Tensor status)",
      tags);
  library.def("_solve_tangent(Tensor M, Tensor z, Tensor w, Tensor r) -> (Tensor dz, Tensor dw)", tags);
  library.def("_solve_adjoint(Tensor M, Tensor z, Tensor w, Tensor g_z, Tensor g_w) -> Tensor", tags);
  library.def("_sum_outer(Tensor t, Tensor x, SymInt[] size) -> Tensor", tags);
}

}  // namespace

void check_layout(const Tensor& M, const Tensor& q) {
  TORCH_CHECK(M.layout() == at::kStrided, "M must be a dense tensor; got layout ", M.layout());
  TORCH_CHECK(q.layout() == at::kStrided, "q must be a dense tensor; got layout ", q.layout());
}

c10::SymDimVector check_solve(const Tensor& M, const Tensor& q, const SolveArguments& arguments) {
  check_matrix(M);
  check_vector("q", q, M);
  TORCH_CHECK(std::find(kMethods.begin(), kMethods.end(), arguments.method) != kMethods.end(),
              "method must be \"auto\" or \"lemke\"; got \"", arguments.method, "\"");
  TORCH_CHECK(arguments.ties == "inactive", "ties must be \"inactive\", the one rule of this version; got \"",
              arguments.ties, "\"");
  TORCH_CHECK(arguments.kappa == 0.0, "kappa must be 0: this version does not smooth gradients; got ", arguments.kappa);
  TORCH_CHECK(!arguments.guess.has_value(), "guess must be None: this version takes no proposal; got a tensor of ",
              arguments.guess.value_or(Tensor()).sym_sizes());
  TORCH_CHECK(!arguments.tolerance || (*arguments.tolerance > 0 && std::isfinite(*arguments.tolerance)),
              "tolerance must be finite and > 0; got ", arguments.tolerance.value_or(0));
  TORCH_CHECK(!arguments.max_pivots || *arguments.max_pivots >= 0, "max_pivots must be >= 0; got ",
              arguments.max_pivots.value_or(0));
  return broadcast(batch_of_matrix(M), "q", M, q);
}

c10::SymDimVector check_derivative(const Tensor& M, std::initializer_list<const Tensor*> vectors) {
  check_matrix(M);
  c10::SymDimVector batch(batch_of_matrix(M));
  for (const Tensor* x : vectors) {
    check_vector("every vector", *x, M);
    batch = broadcast(batch, "a vector", M, *x);
  }
  return batch;
}

c10::SymDimVector vector_shape(const c10::SymDimVector& batch, const Tensor& M) {
  c10::SymDimVector shape = batch;
  shape.push_back(M.sym_size(-1));
  return shape;
}

const SolveOp& solve_op() {
  static const SolveOp op = find<SolveOp>("lcp::solve");
  return op;
}

const TangentOp& solve_tangent_op() {
  static const TangentOp op = find<TangentOp>("lcp::_solve_tangent");
  return op;
}

const AdjointOp& solve_adjoint_op() {
  static const AdjointOp op = find<AdjointOp>("lcp::_solve_adjoint");
  return op;
}

const SumOuterOp& sum_outer_op() {
  static const SumOuterOp op = find<SumOuterOp>("lcp::_sum_outer");
  return op;
}

}  // namespace lcp::ops
