#include "ops/schema.h"

#include <ATen/ExpandUtils.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace lcp::ops {
namespace {

constexpr std::array<std::string_view, 5> kMethods = {"auto", "lemke", "enumeration", "newton_min", "central_path"};
constexpr std::array<std::string_view, 3> kTies = {"inactive", "active", "midpoint"};

template <class List>
bool contains(const List& list, std::string_view value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

void check_vector(const char* name, const Tensor& x, const char* first_name, const Tensor& first,
                  const c10::SymInt& n) {
  check_layout(name, x);
  TORCH_CHECK(x.dim() >= 1 && x.sym_size(-1) == n, name, " must be [..., n] with ", first_name, "'s n = ", n, "; got ",
              x.sym_sizes());
  check_like(name, x, first_name, first);
}

TORCH_LIBRARY(lcp, library) {
  const std::vector<at::Tag> tags = {at::Tag::pt2_compliant_tag};
  const auto define = [&](const std::string& schema) { library.def(schema.c_str(), tags); };
  const std::string how =
      "Tensor? guess=None, str method=\"auto\", str ties=\"inactive\", float kappa=0.0, float? tolerance=None, "
      "int? max_pivots=None)";
  define("solve(Tensor M, Tensor q, *, " + how + " -> (Tensor z, Tensor w, Tensor status)");
  define("solve_mixed(Tensor A, Tensor B, Tensor C, Tensor M, Tensor p, Tensor q, *, " + how +
         " -> (Tensor x, Tensor z, Tensor w, Tensor status)");
  define(
      "certify(Tensor M, Tensor q, Tensor z, *, float? tolerance=None) -> (Tensor residual, Tensor margin, "
      "Tensor condition, Tensor rank, Tensor ties)");
  define(
      "directional_derivative(Tensor M, Tensor q, Tensor z, Tensor dM, Tensor dq) -> (Tensor dz, Tensor dw, "
      "Tensor status)");
  define("gradient_radius(Tensor M, Tensor q, Tensor z, Tensor dq) -> Tensor");
  define("_solve_blocks(Tensor H, Tensor h, int num_equations, *, " + how +
         " -> (Tensor v, Tensor y, Tensor status, Tensor basis)");
  define("_piece(Tensor M, Tensor q, Tensor z, Tensor w, Tensor basis, bool tied_active) -> (Tensor z, Tensor w)");
  define("_tangent(Tensor M, Tensor basis, Tensor r, bool tied_active) -> (Tensor dz, Tensor dw)");
  define("_adjoint(Tensor M, Tensor basis, Tensor g_z, Tensor g_w, bool tied_active) -> Tensor");
  define("_path_point(Tensor M, Tensor q, Tensor z_0, int num_equations, float kappa) -> (Tensor z, Tensor w)");
  define("_path_tangent(Tensor M, Tensor a, Tensor b, Tensor r, Tensor s) -> (Tensor x, Tensor y)");
  define("_path_adjoint(Tensor M, Tensor a, Tensor b, Tensor g_x, Tensor g_y) -> (Tensor t_r, Tensor t_s)");
  define("_sum_outer(Tensor t, Tensor x, SymInt[] size) -> Tensor");
}

}  // namespace

c10::SymDimVector broadcast(c10::SymIntArrayRef batch, const Named& first, const Named& x, std::int64_t core_dims) {
  const auto own = x.tensor.sym_sizes().slice(0, x.tensor.dim() - core_dims);
  try {
    return at::infer_size_symdimvector(batch, own);
  } catch (const c10::Error&) {
    TORCH_CHECK(false, "the batch dimensions of ", first.name, " ", first.tensor.sym_sizes(), " and ", x.name, " ",
                x.tensor.sym_sizes(), " must broadcast; got ", batch, " and ", own);
  }
}

void check_like(const char* name, const Tensor& x, const char* first_name, const Tensor& first) {
  TORCH_CHECK(x.scalar_type() == first.scalar_type(), name, " must have ", first_name, "'s dtype, ",
              first.scalar_type(), "; got ", x.scalar_type());
  TORCH_CHECK(x.device() == first.device(), name, " must be on ", first_name, "'s device, ", first.device(), "; got ",
              x.device());
}

void check_matrix(const char* name, const Tensor& M) {
  check_layout(name, M);
  TORCH_CHECK(M.dim() >= 2 && M.sym_size(-1) == M.sym_size(-2), name, " must be [..., n, n]; got ", M.sym_sizes());
  TORCH_CHECK(M.scalar_type() == at::kDouble || M.scalar_type() == at::kFloat, name,
              " must be float32 or float64; got ", M.scalar_type());
}

void check_layout(const char* name, const Tensor& x) {
  TORCH_CHECK(x.layout() == at::kStrided, name, " must be a dense tensor; got layout ", x.layout());
}

c10::SymDimVector check_solve(const Tensor& M, const Tensor& q, std::int64_t num_equations,
                              const SolveArguments& arguments) {
  auto batch = check_shapes({{"M", M}}, {{"q", q}});
  check_num_equations(num_equations, M);
  TORCH_CHECK(contains(kMethods, arguments.method),
              "method must be \"auto\", \"lemke\", \"enumeration\", \"newton_min\" or \"central_path\"; got \"",
              arguments.method, "\"");
  TORCH_CHECK(contains(kTies, arguments.ties), "ties must be \"inactive\", \"active\" or \"midpoint\"; got \"",
              arguments.ties, "\"");
  TORCH_CHECK(arguments.kappa >= 0 && std::isfinite(arguments.kappa), "kappa must be finite and >= 0; got ",
              arguments.kappa);
  TORCH_CHECK(arguments.kappa == 0 || arguments.ties == "inactive",
              "ties must be \"inactive\" where kappa > 0, since a smoothed gradient has no ties; got \"",
              arguments.ties, "\"");
  check_tolerance(arguments.tolerance);
  TORCH_CHECK(!arguments.max_pivots || *arguments.max_pivots >= 0, "max_pivots must be >= 0; got ",
              arguments.max_pivots.value_or(0));
  if (arguments.guess) {
    const Tensor& guess = *arguments.guess;
    check_vector("guess", guess, "M", M, M.sym_size(-1) - num_equations);
    batch = broadcast(batch, {"M", M}, {"guess", guess}, 1);
  }
  return batch;
}

c10::SymDimVector check_shapes(std::initializer_list<Named> matrices, std::initializer_list<Named> vectors) {
  const Named& named_first = *matrices.begin();
  const auto& [first_name, first] = named_first;
  c10::SymDimVector batch;
  for (const auto& [name, matrix] : matrices) {
    check_matrix(name, matrix);
    TORCH_CHECK(matrix.sym_size(-1) == first.sym_size(-1), name, " must be [..., n, n] with ", first_name,
                "'s n = ", first.sym_size(-1), "; got ", matrix.sym_sizes());
    check_like(name, matrix, first_name, first);
    batch = broadcast(batch, named_first, {name, matrix}, 2);
  }
  for (const auto& [name, x] : vectors) {
    check_vector(name, x, first_name, first, first.sym_size(-1));
    batch = broadcast(batch, named_first, {name, x}, 1);
  }
  return batch;
}

c10::SymDimVector check_derivative(const Tensor& M, const Tensor& basis, std::initializer_list<Named> vectors) {
  auto shape = check_shapes({{"M", M}}, vectors);
  check_layout("basis", basis);
  TORCH_CHECK(basis.scalar_type() == at::kChar && basis.dim() >= 1 && basis.sym_size(-1) == M.sym_size(-1),
              "basis must be [..., n] with M's n = ", M.sym_size(-1), ", int8; got ", basis.sym_sizes(), ", ",
              basis.scalar_type());
  return broadcast(shape, {"M", M}, {"basis", basis}, 1);
}

void check_num_equations(std::int64_t num_equations, const Tensor& M) {
  TORCH_CHECK(num_equations >= 0 && num_equations <= M.sym_size(-1),
              "num_equations must be 0..n with n = ", M.sym_size(-1), "; got ", num_equations);
}

void check_tolerance(const std::optional<double>& tolerance) {
  TORCH_CHECK(!tolerance || (*tolerance > 0 && std::isfinite(*tolerance)), "tolerance must be finite and > 0; got ",
              tolerance.value_or(0));
}

c10::SymDimVector vector_shape(const c10::SymDimVector& batch, const Tensor& M) {
  c10::SymDimVector shape = batch;
  shape.push_back(M.sym_size(-1));
  return shape;
}

LCP_FIND(SolveOp, solve_op, "solve")
LCP_FIND(SolveMixedOp, solve_mixed_op, "solve_mixed")
LCP_FIND(SolveBlocksOp, solve_blocks_op, "_solve_blocks")
LCP_FIND(CertifyOp, certify_op, "certify")
LCP_FIND(DirectionalDerivativeOp, directional_derivative_op, "directional_derivative")
LCP_FIND(GradientRadiusOp, gradient_radius_op, "gradient_radius")
LCP_FIND(PieceOp, piece_op, "_piece")
LCP_FIND(TangentOp, tangent_op, "_tangent")
LCP_FIND(AdjointOp, adjoint_op, "_adjoint")
LCP_FIND(PathPointOp, path_point_op, "_path_point")
LCP_FIND(PathTangentOp, path_tangent_op, "_path_tangent")
LCP_FIND(PathAdjointOp, path_adjoint_op, "_path_adjoint")
LCP_FIND(SumOuterOp, sum_outer_op, "_sum_outer")

}  // namespace lcp::ops
