// The directions of the polygons that approximate the friction disk.
//
//   [ST] Stewart, Trinkle: An implicit time-stepping scheme for rigid body dynamics, IJNME 39, 1996.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorOptions.h>

#include <cstdint>

namespace lcp::physics {

/// D = [d_1 .. d_n], [2, n], with d_j = (cos 2 pi j / n, sin 2 pi j / n) for j = 0 .. n - 1. Directions j and j + n / 2
/// are exactly opposite, and the components of directions along an axis are exactly 0 and 1 or -1.
/// Throws c10::Error unless n is even and at least 4.
at::Tensor friction_directions(std::int64_t n, const at::TensorOptions& options);

}  // namespace lcp::physics
