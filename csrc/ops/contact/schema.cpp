#include "ops/contact/schema.h"

#include <c10/util/Exception.h>
#include <torch/library.h>

#include <string>
#include <vector>

namespace lcp::ops {
namespace {

TORCH_LIBRARY_FRAGMENT(lcp, library) {
  const std::vector<at::Tag> tags = {at::Tag::pt2_compliant_tag};
  const auto define = [&](const std::string& schema) { library.def(schema.c_str(), tags); };
  const std::string problem = "Tensor A, Tensor v_free, Tensor J, Tensor v_hat, Tensor R, Tensor mu";
  const std::string how = ", *, Tensor? guess=None, float? tolerance=None, int? max_iterations=None)";
  define("solve_contact(" + problem + how + " -> (Tensor v, Tensor gamma, Tensor status, Tensor iterations)");
  define("certify_contact(" + problem + ", Tensor v) -> (Tensor residual, Tensor margin, Tensor condition)");
  define("add_equality(Tensor A, Tensor v_free, Tensor J, Tensor v_hat, Tensor R) -> (Tensor A, Tensor v_free)");
  define("delassus_diagonal(Tensor A, Tensor J) -> Tensor");
  define(
      "contact_parameters(Tensor gap, Tensor stiffness, Tensor dissipation, Tensor delassus, float dt, *, "
      "float sigma=1e-3, float beta=1.0) -> (Tensor v_hat, Tensor R)");
  define("_contact_point(" + problem + how +
         " -> (Tensor v, Tensor y, Tensor gamma, Tensor status, Tensor iterations)");
  define(
      "_contact_adjoint(Tensor A, Tensor J, Tensor R, Tensor mu, Tensor v, Tensor y, Tensor g_v, Tensor g_y, "
      "Tensor g_gamma) -> (Tensor l, Tensor v_free, Tensor v_hat, Tensor R, Tensor mu, Tensor gamma)");
  define("_contact_inverse(Tensor A, Tensor J, Tensor K, Tensor g) -> Tensor");
}

}  // namespace

c10::SymDimVector ContactShapes::with(const c10::SymInt& size) const {
  c10::SymDimVector shape = batch;
  shape.push_back(size);
  return shape;
}

ContactShapes check_contact(const Tensor& A, const Tensor& J, std::initializer_list<Named> bodies,
                            std::initializer_list<Named> rows, std::initializer_list<Named> contacts) {
  const Named first = {"A", A};
  check_matrix("A", A);
  const c10::SymInt n = A.sym_size(-1);
  check_layout("J", J);
  TORCH_CHECK(J.dim() >= 2 && J.sym_size(-1) == n && J.sym_size(-2) % 3 == 0,
              "J must be [..., 3 c, n] with A's n = ", n, "; got ", J.sym_sizes());
  check_like("J", J, "A", A);
  ContactShapes shapes{broadcast({}, first, first, 2), n, J.sym_size(-2) / 3};
  shapes.batch = broadcast(shapes.batch, first, {"J", J}, 2);
  const auto add = [&](const Named& x, const char* shape, const c10::SymInt& size) {
    check_layout(x.name, x.tensor);
    TORCH_CHECK(x.tensor.dim() >= 1 && x.tensor.sym_size(-1) == size, x.name, " must be [..., ", shape, "] with ",
                shape, " = ", size, " as in A and J; got ", x.tensor.sym_sizes());
    check_like(x.name, x.tensor, "A", A);
    shapes.batch = broadcast(shapes.batch, first, x, 1);
  };
  for (const Named& x : bodies) add(x, "n", n);
  for (const Named& x : rows) add(x, "3 c", 3 * shapes.contacts);
  for (const Named& x : contacts) add(x, "c", shapes.contacts);
  return shapes;
}

ContactShapes check_inverse(const Tensor& A, const Tensor& J, const Tensor& K, const Tensor& g) {
  ContactShapes shapes = check_contact(A, J, {{"g", g}});
  check_layout("K", K);
  TORCH_CHECK(K.dim() >= 2 && K.sym_size(-1) == 3 && K.sym_size(-2) == 3 * shapes.contacts,
              "K must be [..., 3 c, 3] with J's 3 c = ", 3 * shapes.contacts, "; got ", K.sym_sizes());
  check_like("K", K, "A", A);
  shapes.batch = broadcast(shapes.batch, {"A", A}, {"K", K}, 2);
  return shapes;
}

void check_limits(std::optional<double> tolerance, std::optional<std::int64_t> max_iterations) {
  check_tolerance(tolerance);
  TORCH_CHECK(!max_iterations || *max_iterations >= 0, "max_iterations must be >= 0; got ", max_iterations.value_or(0));
}

LCP_FIND(SolveContactOp, solve_contact_op, "solve_contact")
LCP_FIND(CertifyContactOp, certify_contact_op, "certify_contact")
LCP_FIND(AddEqualityOp, add_equality_op, "add_equality")
LCP_FIND(DelassusDiagonalOp, delassus_diagonal_op, "delassus_diagonal")
LCP_FIND(ContactParametersOp, contact_parameters_op, "contact_parameters")
LCP_FIND(ContactPointOp, contact_point_op, "_contact_point")
LCP_FIND(ContactAdjointOp, contact_adjoint_op, "_contact_adjoint")
LCP_FIND(ContactInverseOp, contact_inverse_op, "_contact_inverse")

}  // namespace lcp::ops
