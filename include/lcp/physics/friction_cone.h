// The directions of the polygons that approximate the friction disk.
//
//   [ST] Stewart, Trinkle: An implicit time-stepping scheme for rigid body dynamics, IJNME 39, 1996.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorOptions.h>

#include <cstdint>

#include "lcp/export.h"

namespace lcp::physics {

/// D = [d_1 .. d_n], [2, n], with d_j = (cos 2 pi j / n, sin 2 pi j / n) for j = 0 .. n - 1. Directions j and j + n / 2
/// are exactly opposite, and the components of directions along an axis are exactly 0 and 1 or -1.
/// Throws c10::Error unless n is even and at least 4.
LCP_API at::Tensor friction_directions(std::int64_t n, const at::TensorOptions& options);

/// D = [a, b, -a, -b], [..., 2, 4], with a and b scaled to length 1: directions aligned with two vectors, which may
/// differ from step to step. If one of a and b is 0, or b is parallel to a, the other one turned by 90 degrees replaces
/// it. If both are 0, the axes replace them. D has no derivative.
///   a, b: [..., 2].
LCP_API at::Tensor aligned_directions(const at::Tensor& a, const at::Tensor& b);

/// Whether each vector of the plane is a combination of directions with weights >= 0: [...], bool. Only such directions
/// hold a block in every direction.
///   D: [..., 2, n].
LCP_API at::Tensor span_plane(const at::Tensor& D);

}  // namespace lcp::physics
