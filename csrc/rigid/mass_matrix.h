// The masses and inertias of the free bodies as one matrix.
#pragma once

#include <algorithm>

#include "rigid/scene.h"

namespace lcp::rigid {

/// The part of A, [n, n], that belongs to the free bodies; that of the trees becomes the identity.
inline void set_mass_matrix(const Scene& scene, const Parameters<const double>& parameters, double* A) {
  const int n = scene.velocities();
  std::fill_n(A, n * n, 0.0);
  for (int k = scene.first_of_trees(); k < n; ++k) A[k * (n + 1)] = 1;
  for (int body = 0; body < scene.free(); ++body) {
    double* const block = A + 6 * body * (n + 1);
    for (int i = 0; i < 3; ++i) {
      block[i * (n + 1)] = parameters[kMass][body];
      for (int j = 0; j < 3; ++j) block[(3 + i) * n + 3 + j] = parameters[kInertia][9 * body + 3 * i + j];
    }
  }
}

}  // namespace lcp::rigid
