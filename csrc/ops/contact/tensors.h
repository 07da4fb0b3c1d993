// Functions that the formulas of both kinds of contact share.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>

#include <limits>
#include <utility>

#include "ops/contact/operators.h"
#include "ops/derivative.h"

namespace lcp::ops {

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

inline Tensor symmetric(const Tensor& A) { return (A + A.mT()) / 2; }

// Splits rows by contacts, [..., 3 c] into [..., c, 3]. by_row joins the last two dimensions again.
inline Tensor by_contact(const Tensor& x) {
  Shape shape = shape_of(x);
  shape.back() = shape.back() / 3;
  shape.emplace_back(3);
  return x.reshape_symint(shape);
}
inline Tensor by_row(const Tensor& x) {
  Shape shape = shape_of(x);
  const c10::SymInt last = shape.back();
  shape.pop_back();
  shape.back() = shape.back() * last;
  return x.reshape_symint(shape);
}

inline Tensor tangents(const Tensor& x) { return x.narrow(-1, 0, 2); }  // [..., c, 2]
inline Tensor normals(const Tensor& x) { return x.select(-1, 2); }      // [..., c]
inline Tensor scalar_product(const Tensor& a, const Tensor& b) { return (a * b).sum(-1); }
inline Tensor apply(const Tensor& K, const Tensor& x) { return scalar_product(K, x.unsqueeze(-2)); }  // [..., c, 3]
inline Tensor any_nonzero(const Tensor& x) { return (x != 0).any(-1, true); }

// The contacts without numbers to compute with: the contacts of elements that `unsolved`, [..., 1], marks, and the
// contacts beyond `sizes`.
struct Missing {
  Tensor contacts;  // [..., c], or [..., 1] where it is the same for all contacts
  Tensor rows;      // [..., 3 c], or [..., 1]

  Missing(const Tensor& unsolved, const std::optional<Tensor>& sizes, const Tensor& mu)
      : contacts(unsolved), rows(unsolved) {
    if (!sizes) return;
    const c10::SymInt count = mu.sym_size(-1);
    contacts = unsolved | (at::arange(count, sizes->options()) >= sizes->unsqueeze(-1));
    Shape three = shape_of(contacts);
    three.emplace_back(3);
    rows = by_row(contacts.unsqueeze(-1).expand_symint(three));
  }
};

// x t' summed to the shape of J. As in sum_outer, x may be NaN where t is 0: in elements that are not solved.
inline Tensor sum_outer_turned(const Tensor& t, const Tensor& x, const Tensor& J) {
  Shape turned = shape_of(J);
  std::swap(turned[turned.size() - 1], turned[turned.size() - 2]);
  return sum_outer(t, x, turned).mT();
}

// A^-1 g.
inline Tensor times_inverse(const Tensor& A, const Tensor& g) {
  const auto none = [&](const c10::SymInt& columns) { return at::zeros_symint({0, columns}, A.options()); };
  return contact_inverse_op().call(A, none(A.sym_size(-1)), none(3), g);
}

}  // namespace lcp::ops
