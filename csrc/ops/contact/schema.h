// The schemas of the operators for compliant contact, their checks, and handles to call them.
#pragma once

#include <optional>
#include <tuple>

#include "ops/schema.h"

namespace lcp::ops {

/// [batch...], with n velocities and c contacts.
struct ContactShapes {
  c10::SymDimVector batch;
  c10::SymInt n, contacts;

  c10::SymDimVector of_bodies() const { return with(n); }
  c10::SymDimVector of_rows() const { return with(3 * contacts); }
  c10::SymDimVector of_contacts() const { return with(contacts); }

 private:
  c10::SymDimVector with(const c10::SymInt& size) const;
};

/// A: [..., n, n], J: [..., 3 c, n], and vectors: `bodies` [..., n], `rows` [..., 3 c] and `contacts` [..., c]. Throws
/// c10::Error.
ContactShapes check_contact(const Tensor& A, const Tensor& J, std::initializer_list<Named> bodies,
                            std::initializer_list<Named> rows = {}, std::initializer_list<Named> contacts = {});
/// The arguments of lcp::_contact_inverse. Throws c10::Error.
ContactShapes check_inverse(const Tensor& A, const Tensor& J, const Tensor& K, const Tensor& g);
void check_limits(std::optional<double> tolerance, std::optional<std::int64_t> max_iterations);

using SolveContactOp = Handle<std::tuple<Tensor, Tensor, Tensor, Tensor>(
    const Tensor& A, const Tensor& v_free, const Tensor& J, const Tensor& v_hat, const Tensor& R, const Tensor& mu,
    const std::optional<Tensor>& guess, std::optional<double> tolerance, std::optional<std::int64_t> max_iterations)>;
const SolveContactOp& solve_contact_op();  ///< see lcp/solve_contact.h

using CertifyContactOp = Handle<Three(const Tensor& A, const Tensor& v_free, const Tensor& J, const Tensor& v_hat,
                                      const Tensor& R, const Tensor& mu, const Tensor& v)>;
const CertifyContactOp& certify_contact_op();  ///< see lcp/certify_contact.h

using AddEqualityOp =
    Handle<Two(const Tensor& A, const Tensor& v_free, const Tensor& J, const Tensor& v_hat, const Tensor& R)>;
const AddEqualityOp& add_equality_op();  ///< see lcp/add_equality.h

using DelassusDiagonalOp = Handle<Tensor(const Tensor& A, const Tensor& J)>;
const DelassusDiagonalOp& delassus_diagonal_op();  ///< see lcp/contact_parameters.h

using ContactParametersOp = Handle<Two(const Tensor& gap, const Tensor& stiffness, const Tensor& dissipation,
                                       const Tensor& delassus, double dt, double sigma, double beta)>;
const ContactParametersOp& contact_parameters_op();  ///< see lcp/contact_parameters.h

// v, y and gamma, all three with derivatives, status and iterations: float32 v would leave few digits of
// y = R^-1 (v_hat - J v), by which the derivative knows what each contact does.
using ContactPointOp = Handle<std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>(
    const Tensor& A, const Tensor& v_free, const Tensor& J, const Tensor& v_hat, const Tensor& R, const Tensor& mu,
    const std::optional<Tensor>& guess, std::optional<double> tolerance, std::optional<std::int64_t> max_iterations)>;
const ContactPointOp& contact_point_op();

// The Adjoint of csrc/contact/derivative.h: l, and the gradients of v_free, v_hat, R and mu, and gamma.
using ContactAdjointOp = Handle<std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>(
    const Tensor& A, const Tensor& J, const Tensor& R, const Tensor& mu, const Tensor& v, const Tensor& y,
    const Tensor& g_v, const Tensor& g_y, const Tensor& g_gamma)>;
const ContactAdjointOp& contact_adjoint_op();

// x = (A + J' blkdiag(K) J)^-1 g with the symmetric blocks K: [..., 3 c, 3]. 0 where g is 0; else NaN where the matrix
// is not positive definite.
using ContactInverseOp = Handle<Tensor(const Tensor& A, const Tensor& J, const Tensor& K, const Tensor& g)>;
const ContactInverseOp& contact_inverse_op();

}  // namespace lcp::ops
