#include "contact/system.h"

#include "contact/dense_system.h"
#include "contact/sparse_system.h"

namespace lcp::contact {

AnySystem::AnySystem(Eigen::Index n, Eigen::Index contacts, Eigen::Index rows, Factors factors)
    : n_(n),
      contacts_(contacts),
      rows_(rows),
      factors_(factors),
      dense_(std::make_unique<DenseSystem>(n, contacts, rows)) {}

System& AnySystem::set(const double* A, const double* J) {
  const bool sparse = sparse_pays(A, J, n_, contacts_, factors_);
  if (sparse && !sparse_) sparse_ = std::make_unique<SparseSystem>(n_, contacts_, rows_);
  System& system = sparse ? *sparse_ : *dense_;
  system.set(A, J);
  return system;
}

}  // namespace lcp::contact
