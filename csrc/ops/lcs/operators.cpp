#include "ops/lcs/operators.h"

#include <c10/util/Exception.h>

namespace lcp::ops {

void check_cone(at::IntArrayRef cone, const c10::SymInt& n) {
  if (cone.empty()) return;
  TORCH_CHECK(n == static_cast<std::int64_t>(cone.size()), "cone must have one number for each of M's n = ", n,
              " pairs; got ", cone);
  for (const std::int64_t pair : cone) {
    TORCH_CHECK(pair >= -1 && pair < n, "cone must be of -1..n - 1 with M's n = ", n, "; got ", cone);
  }
}

}  // namespace lcp::ops
